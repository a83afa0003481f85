/** The tab of what an operator may do with a collection, as buttons that ask before they act. */
import { type ReactNode, useState } from "react";
import type { CollectionState } from "../api/types";
import { bytes, counted, number } from "../format";
import { useAsked } from "../parts/asked";
import { Empty, Table, Trouble, Waiting } from "../parts/basics";
import { Confirm } from "../parts/confirm";
import { allows, usePage } from "../state";

interface TabProps {
  state: CollectionState;
  /** The state is another now. */
  changed: () => void;
}

type Action =
  | { kind: "verify" | "compact" | "purge" | "snapshot" }
  | { kind: "restore" | "drop"; snapshot: string };

export function UpkeepTab({ state, changed }: TabProps) {
  const { server, own } = usePage();
  const may = allows(own, "admin", state.name);
  const snapshots = useAsked(
    (signal) => (may ? server.snapshots(state.name, signal) : Promise.resolve([])),
    [server, state.name, state.head, may],
  );
  const [action, setAction] = useState<Action | null>(null);
  if (!may) {
    return (
      <Empty title="Upkeep is for admins">
        <p>
          It takes a token with the permission <code>admin</code> on <code>{state.name}</code>.
        </p>
      </Empty>
    );
  }
  const close = () => {
    setAction(null);
    snapshots.again();
    changed();
  };
  return (
    <>
      <div className="tasks">
        <Task title="Verify" button="Verify" act={() => setAction({ kind: "verify" })}>
          Reads every stored block and compares it with its checksum. Nothing is changed;{" "}
          {bytes(state.statistics.bytes)} are read.
        </Task>
        <Task title="Compact" button="Compact" act={() => setAction({ kind: "compact" })}>
          Moves small files together and drops segments without rows. No key is needed for it.
        </Task>
        <Task title="Purge" button="Purge" act={() => setAction({ kind: "purge" })}>
          Deletes for good what was removed and no snapshot keeps. Until then the owner could bring it back.
        </Task>
      </div>
      <div className="section-head">
        <h2>Snapshots</h2>
        <button type="button" className="button" onClick={() => setAction({ kind: "snapshot" })}>
          Take one
        </button>
      </div>
      {snapshots.problem !== null && <Trouble problem={snapshots.problem} again={snapshots.again} />}
      {snapshots.value === null && snapshots.waiting && <Waiting what="Reading the list" />}
      {snapshots.value?.length === 0 && (
        <Empty title="No snapshot yet">
          <p>
            A snapshot keeps the present state under a name. It takes room only for what later changes would
            have freed.
          </p>
        </Empty>
      )}
      {snapshots.value !== null && snapshots.value.length > 0 && (
        <Table label="Snapshots">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col" className="right">
                Version
              </th>
              <th scope="col" className="right">
                Rows
              </th>
              <th scope="col" className="right">
                Names
              </th>
              <th scope="col">
                <span className="hidden">What to do with it</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {snapshots.value.map((one) => (
              <tr key={one.name}>
                <th scope="row">{one.name}</th>
                <td className="right">{number(one.version)}</td>
                <td className="right">{number(one.rows)}</td>
                <td className="right">{bytes(one.bytes)}</td>
                <td className="right">
                  <button
                    type="button"
                    className="button small"
                    aria-label={`Copy ${one.name} to a collection`}
                    onClick={() => setAction({ kind: "restore", snapshot: one.name })}
                  >
                    Bring back
                  </button>{" "}
                  <button
                    type="button"
                    className="button small"
                    aria-label={`Drop ${one.name}`}
                    onClick={() => setAction({ kind: "drop", snapshot: one.name })}
                  >
                    Drop
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {action !== null && <Ask action={action} state={state} close={close} />}
    </>
  );
}

function Task({
  title,
  button,
  act,
  children,
}: {
  title: string;
  button: string;
  act: () => void;
  children: ReactNode;
}) {
  return (
    <section className="task">
      <h2>{title}</h2>
      <p className="quiet">{children}</p>
      <button type="button" className="button" onClick={act}>
        {button}
      </button>
    </section>
  );
}

function Ask({ action, state, close }: { action: Action; state: CollectionState; close: () => void }) {
  const { server } = usePage();
  const [word, setWord] = useState(() => defaultName(action, state));
  const { name } = state;
  switch (action.kind) {
    case "verify":
      return (
        <Confirm
          title={`Verify ${name}`}
          verb="Verify"
          close={close}
          act={async ({ progress, signal }) => {
            const found = await server.verify(name, progress, signal);
            if (found.sound) {
              return (
                <p className="good-news">
                  Sound: {counted(found.files, "file")} and {bytes(found.bytes)} are as they were written.
                </p>
              );
            }
            return (
              <>
                <p className="wrong">{counted(found.problems.length, "fault")} found.</p>
                <ul>
                  {found.problems.slice(0, 20).map(({ file, offset }) => (
                    <li key={`${file} ${offset}`}>
                      <code className="breaks">{file}</code> at byte {number(offset)}
                    </li>
                  ))}
                </ul>
                <p>
                  Put these files back from a copy: a name is the hash of its contents. The server's log has
                  their paths.
                </p>
              </>
            );
          }}
        >
          <p>
            The server reads {bytes(state.statistics.bytes)} from its disk or bucket. Queries go on meanwhile.
          </p>
        </Confirm>
      );
    case "compact":
      return (
        <Confirm
          title={`Compact ${name}`}
          verb="Compact"
          close={close}
          act={async () => {
            const done = await server.compact(name);
            return (
              <p className="good-news">
                {counted(done.segments_dropped, "segment")} without rows went, {number(done.files_before)}{" "}
                files became {number(done.files_after)}.
              </p>
            );
          }}
        >
          <p>
            It writes a new state in fewer files, without the segments all of whose rows were deleted. The old
            bytes stay until a purge. Other deleted rows go when their owner optimizes the collection.
          </p>
        </Confirm>
      );
    case "purge":
      return (
        <Confirm
          title={`Purge ${name}`}
          verb="Purge"
          typed={name}
          close={close}
          act={async () => {
            await server.purge(name);
            return <p className="good-news">It is gone.</p>;
          }}
        >
          <p>
            Rows that were deleted or replaced, and states before the present one, can then be brought back by
            nobody. Snapshots and what they need stay.
          </p>
        </Confirm>
      );
    case "snapshot":
      return (
        <Confirm
          title={`Snapshot of ${name}`}
          verb="Take"
          close={close}
          act={async () => {
            await server.takeSnapshot(name, word);
            return (
              <p className="good-news">
                Version {number(state.version)} is kept as {word}.
              </p>
            );
          }}
        >
          <Named
            value={word}
            change={setWord}
            says="Name: a to z, 0 to 9, point, underscore, hyphen"
            pattern="[a-z0-9._\-]{1,64}"
          />
        </Confirm>
      );
    case "restore":
      return (
        <Confirm
          title={`Bring back ${action.snapshot}`}
          verb="Bring back"
          close={close}
          act={async () => {
            await server.restore(name, action.snapshot, word);
            return (
              <p className="good-news">
                It is now the state of {word}. Owners accept it once:{" "}
                <code>client.accept_restore("{word}")</code>.
              </p>
            );
          }}
        >
          <Named
            value={word}
            change={setWord}
            says="Into which collection"
            pattern="[A-Za-z0-9]([A-Za-z0-9._\-]{0,126}[A-Za-z0-9])?"
          />
          <p>
            {word === name
              ? "The present state is replaced, and stays in the history until a purge. Take a snapshot of it first if in doubt."
              : "A new collection with the snapshot's rows. It must not be there yet."}
          </p>
        </Confirm>
      );
    case "drop":
      return (
        <Confirm
          title={`Drop ${action.snapshot}`}
          verb="Drop"
          typed={action.snapshot}
          close={close}
          act={async () => {
            await server.dropSnapshot(name, action.snapshot);
            return <p className="good-news">It is gone, and what only it needed.</p>;
          }}
        >
          <p>What only this snapshot keeps is deleted for good.</p>
        </Confirm>
      );
  }
}

function defaultName(action: Action, state: CollectionState): string {
  if (action.kind === "snapshot")
    return new Date().toISOString().slice(0, 16).replace("T", "-").replace(":", "");
  if (action.kind === "restore") return `${state.name}-${action.snapshot}`;
  return "";
}

interface NamedProps {
  value: string;
  change: (value: string) => void;
  says: string;
  pattern: string;
}

function Named({ value, change, says, pattern }: NamedProps) {
  return (
    <label className="field">
      <span>{says}</span>
      <input
        value={value}
        onChange={(event) => change(event.target.value)}
        pattern={pattern}
        required
        autoComplete="off"
        spellCheck={false}
      />
    </label>
  );
}
