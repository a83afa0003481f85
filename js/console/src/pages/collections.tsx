/** The page that lists the collections that the token may see, with their sizes. */

import { bytes, counted, number } from "../format";
import { useAsked } from "../parts/asked";
import { Empty, Table, Title, Trouble, Waiting } from "../parts/basics";
import { linkTo } from "../router";
import { usePage } from "../state";

export function CollectionsPage() {
  const { server, own } = usePage();
  const asked = useAsked((signal) => server.collections(signal), [server]);
  const all = asked.value ?? [];
  const rows = all.reduce((sum, one) => sum + one.rows, 0);
  const size = all.reduce((sum, one) => sum + one.bytes, 0);
  const most = Math.max(1, ...all.map((one) => one.bytes));
  const note =
    all.length === 0
      ? undefined
      : `${counted(all.length, "collection")}, ${counted(rows, "row")}, ${bytes(size)} stored`;
  return (
    <>
      <Title
        note={note}
        actions={
          <>
            <a className="button" href={linkTo({ page: "new" })}>
              New collection
            </a>
            <button type="button" className="button" onClick={asked.again} disabled={asked.waiting}>
              Refresh
            </button>
          </>
        }
      >
        Collections
      </Title>
      {!own.required && (
        <p className="notice">
          No tokens are needed here: every program on this machine may do everything.{" "}
          <code>ciphervec token create</code> changes that.
        </p>
      )}
      {asked.problem !== null && <Trouble problem={asked.problem} again={asked.again} />}
      {asked.value === null && asked.waiting && <Waiting what="Reading the list" />}
      {asked.value !== null && all.length === 0 && (
        <Empty title="No collection yet">
          <p>
            {!own.required || own.operator
              ? "Collections are made by whoever has the keys, from a program of their own. The server never makes one."
              : "None that this token may see. It covers the names below."}
          </p>
          {!own.required || own.operator ? (
            <p>
              <a href={linkTo({ page: "new" })}>What they run</a>
            </p>
          ) : (
            <p>
              {(
                own.token?.collections ??
                own.identity?.grants.flatMap((grant) => grant.collections) ??
                []
              ).map((name) => (
                <code key={name} className="tag">
                  {name}
                </code>
              ))}
            </p>
          )}
        </Empty>
      )}
      {all.length > 0 && (
        <Table label="Collections">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col" className="right">
                Rows
              </th>
              <th scope="col" className="right">
                Stored
              </th>
              <th scope="col" className="right wide-only">
                A row
              </th>
              <th scope="col" className="wide-only">
                <span className="hidden">Share of what is stored</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {all.map((one) => (
              <tr key={one.name}>
                <th scope="row">
                  <a href={linkTo({ page: "collection", name: one.name, tab: "segments" })}>{one.name}</a>
                </th>
                <td className="right">{number(one.rows)}</td>
                <td className="right">{bytes(one.bytes)}</td>
                <td className="right wide-only">{one.rows === 0 ? "–" : bytes(one.bytes / one.rows)}</td>
                <td className="wide-only share">
                  <svg aria-hidden="true" viewBox="0 0 100 6" preserveAspectRatio="none">
                    <rect className="share-all" width="100" height="6" />
                    <rect className="share-part" width={(100 * one.bytes) / most} height="6" />
                  </svg>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
    </>
  );
}
