/** The tab of a collection's sizes, parameters and segments, as the server knows them. */
import { useState } from "react";
import type { Description } from "../api/description";
import type { CollectionState } from "../api/types";
import { bytes, number, short } from "../format";
import { Empty, Facts, Table } from "../parts/basics";

const PAGE = 50;

export function SegmentsTab({
  state,
  description,
}: {
  state: CollectionState;
  description: Description | null;
}) {
  const [shown, setShown] = useState(PAGE);
  const { statistics } = state;
  const held = statistics.bytes === 0 ? 0 : statistics.resident / statistics.bytes;
  const attached = Object.values(state.attachments).reduce((sum, length) => sum + length, 0);
  return (
    <>
      <Facts
        facts={[
          {
            name: "Rows",
            value: number(statistics.rows),
            note: statistics.deleted > 0 ? `${number(statistics.deleted)} deleted` : undefined,
          },
          { name: "Segments", value: number(statistics.segments) },
          { name: "Stored", value: bytes(statistics.bytes) },
          {
            name: "In memory",
            value: bytes(statistics.resident),
            note: statistics.degraded
              ? "larger than the memory budget"
              : held > 0
                ? undefined
                : "read with the first query",
          },
        ]}
      />
      {statistics.degraded && (
        <p className="notice">
          The collection is larger than the server's memory budget, so that queries read segments from the
          store. A larger <code>--memory-budget</code> makes them fast.
        </p>
      )}
      {description !== null && (
        <dl className="pairs">
          <dt>Mode</dt>
          <dd>{description.mode}</dd>
          <dt>Metric</dt>
          <dd>{description.metric}</dd>
          <dt>Dimension</dt>
          <dd>{number(description.dimension)}</dd>
          <dt>Scheme</dt>
          <dd>
            {description.scheme}, {description.precision} precision
          </dd>
          <dt>Key</dt>
          <dd>
            <code>{description.keyId ?? "none"}</code>
            {description.epoch > 0 && `, query key number ${description.epoch + 1}`}
          </dd>
          <dt>Sealed settings</dt>
          <dd>{bytes(description.settingsBytes)} that only the owner reads</dd>
          <dt>Head</dt>
          <dd>
            <code className="breaks">{state.head}</code>
          </dd>
        </dl>
      )}
      {state.segments.length === 0 ? (
        <Empty title="No row yet">
          <p>Segments come with the owner's first add, each sealed before it leaves the owner's machine.</p>
        </Empty>
      ) : (
        <>
          <h2>Segments</h2>
          <Table label="Segments" stacks>
            <thead>
              <tr>
                <th scope="col">Id</th>
                <th scope="col" className="right">
                  Rows
                </th>
                <th scope="col" className="right">
                  Deleted
                </th>
                <th scope="col">Blobs</th>
              </tr>
            </thead>
            <tbody>
              {state.segments.slice(0, shown).map((segment) => (
                <tr key={segment.id}>
                  <th scope="row">
                    <code className="whole" title={segment.id}>
                      {short(segment.id, 12)}
                    </code>
                  </th>
                  <td className="right" data-label="Rows">
                    {number(segment.rows)}
                  </td>
                  <td className="right" data-label="Deleted">
                    {segment.deleted.length === 0 ? "–" : number(segment.deleted.length)}
                  </td>
                  <td data-label="Blobs">
                    {segment.blobs === undefined
                      ? "not for this token"
                      : Object.entries(segment.blobs).map(([name, length]) => (
                          <span key={name} className="blob">
                            <code>{name}</code> {bytes(length)}
                          </span>
                        ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </Table>
          {state.segments.length > shown && (
            <button type="button" className="button" onClick={() => setShown(shown + 4 * PAGE)}>
              Show more of {number(state.segments.length)}
            </button>
          )}
        </>
      )}
      {attached > 0 && (
        <>
          <h2>Attachments</h2>
          <Table label="Attachments" stacks>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" className="right">
                  Bytes
                </th>
                <th scope="col">What it is</th>
              </tr>
            </thead>
            <tbody>
              {Object.entries(state.attachments).map(([name, length]) => (
                <tr key={name}>
                  <th scope="row">
                    <code className="whole">{name}</code>
                  </th>
                  <td className="right" data-label="Bytes">
                    {bytes(length)}
                  </td>
                  <td data-label="For">{ATTACHMENTS[name] ?? "the owner's"}</td>
                </tr>
              ))}
            </tbody>
          </Table>
        </>
      )}
    </>
  );
}

const ATTACHMENTS: Record<string, string> = {
  evaluation: "public keys by which queries are answered",
  "key-pair": "the owner's key pair, sealed",
  state: "what authenticates this state to the owner",
  routing: "the table of clusters, sealed",
  "centroids-a": "centroids of clusters, sealed",
  "centroids-b": "centroids of clusters, sealed",
};
