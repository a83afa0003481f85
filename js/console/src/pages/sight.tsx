/** The tab that shows what the server stores of a segment beside what its owner reads there. */
import { useState } from "react";
import type { Description } from "../api/description";
import { entropy, expectedEntropy } from "../api/entropy";
import { readFrame } from "../api/frame";
import type { CollectionState } from "../api/types";
import { bytes, digits, number, short } from "../format";
import type { Row } from "../keys/contract";
import { useOpened } from "../keys/opened";
import { useAsked } from "../parts/asked";
import { Empty, Facts, Trouble, Waiting } from "../parts/basics";
import { HexDump } from "../parts/hex-dump";
import { KeyDrop } from "../parts/key-drop";
import { allows, usePage } from "../state";
import { knowledgeOf } from "./knowledge";

/** Bytes that are shown at once. */
const PIECE = 512;
/** Rows that are shown at once. */
const ROWS = 20;
/** Components of a vector that are shown. */
const SHOWN = 6;

interface TabProps {
  state: CollectionState;
  description: Description | null;
}

export function SightTab({ state, description }: TabProps) {
  const knowledge = description === null ? null : knowledgeOf(description.mode);
  return (
    <>
      {knowledge !== null && (
        <div className="sides known">
          <section aria-labelledby="sees">
            <h2 id="sees">The server learns</h2>
            <ul className="ticks sees">
              {knowledge.sees.map((one) => (
                <li key={one}>{one}</li>
              ))}
            </ul>
          </section>
          <section aria-labelledby="hidden">
            <h2 id="hidden">It cannot learn</h2>
            {knowledge.hidden.length === 0 ? (
              <p className="quiet">In mode open nothing is hidden from it.</p>
            ) : (
              <ul className="ticks hides">
                {knowledge.hidden.map((one) => (
                  <li key={one}>{one}</li>
                ))}
              </ul>
            )}
          </section>
        </div>
      )}
      <div className="sides">
        <section aria-labelledby="stored" className="side">
          <h2 id="stored">What it stores</h2>
          <Stored state={state} />
        </section>
        <section aria-labelledby="opened" className="side">
          <h2 id="opened">What its owner reads there</h2>
          <Opened state={state} plain={description?.mode === "open"} />
        </section>
      </div>
    </>
  );
}

function Stored({ state }: { state: CollectionState }) {
  const { server, own } = usePage();
  const [segment, setSegment] = useState(state.segments[0]?.id ?? "");
  const [blob, setBlob] = useState("rows");
  const [from, setFrom] = useState(0);
  const chosen = state.segments.find((one) => one.id === segment) ?? state.segments[0];
  const blobs = Object.keys(chosen?.blobs ?? {});
  const name = blobs.includes(blob) ? blob : (blobs[0] ?? "rows");
  const readable = allows(own, "read", state.name) && chosen !== undefined && blobs.length > 0;
  const asked = useAsked(
    async (signal) => (readable ? server.blob(state.name, chosen.id, name, from, PIECE, signal) : null),
    [server, state.head, chosen?.id, name, from, readable],
  );
  // The first bytes say what the rest is, wherever one looks.
  const head = useAsked(
    async (signal) => (readable ? server.blob(state.name, chosen.id, name, 0, 128, signal) : null),
    [server, state.head, chosen?.id, name, readable],
  );
  if (state.segments.length === 0) {
    return (
      <Empty title="No row yet">
        <p>With the first add there is a sealed segment to look at.</p>
      </Empty>
    );
  }
  if (!readable) {
    return (
      <Empty title="This token does not read stored bytes">
        <p>
          It takes the permission <code>read</code> on this collection.
        </p>
      </Empty>
    );
  }
  const piece = asked.value;
  const fields = head.value === null ? [] : readFrame(head.value.bytes);
  const body =
    piece === null ? null : piece.bytes.subarray(Math.max(0, Math.min(piece.bytes.length, 128 - from)));
  const go = (to: number) =>
    setFrom(Math.max(0, Math.min(to, Math.floor(((piece?.total ?? 1) - 1) / PIECE) * PIECE)));
  return (
    <>
      <div className="choices">
        <label className="field inline">
          <span>Segment</span>
          <select
            value={chosen.id}
            onChange={(event) => {
              setSegment(event.target.value);
              setFrom(0);
            }}
          >
            {state.segments.map((one) => (
              <option key={one.id} value={one.id}>
                {short(one.id, 12)} ({number(one.rows)} rows)
              </option>
            ))}
          </select>
        </label>
        <label className="field inline">
          <span>Blob</span>
          <select
            value={name}
            onChange={(event) => {
              setBlob(event.target.value);
              setFrom(0);
            }}
          >
            {blobs.map((one) => (
              <option key={one} value={one}>
                {one} ({bytes(chosen.blobs?.[one] ?? 0)})
              </option>
            ))}
          </select>
        </label>
      </div>
      {asked.problem !== null && <Trouble problem={asked.problem} again={asked.again} />}
      {piece === null && asked.waiting && <Waiting what="Reading stored bytes" />}
      {piece !== null && (
        <>
          <HexDump bytes={piece.bytes} from={from} fields={fields} label={`Stored bytes of ${name}`} />
          <div className="pager">
            <button
              type="button"
              className="button small"
              onClick={() => go(from - PIECE)}
              disabled={from === 0}
            >
              Before
            </button>
            <span className="quiet">
              {number(from)}–{number(from + piece.bytes.length)} of {number(piece.total)}
            </span>
            <button
              type="button"
              className="button small"
              onClick={() => go(from + PIECE)}
              disabled={from + PIECE >= piece.total}
            >
              Next
            </button>
            <button
              type="button"
              className="button small"
              onClick={() => go(Math.floor((Math.random() * piece.total) / PIECE) * PIECE)}
              disabled={piece.total <= PIECE}
            >
              Anywhere
            </button>
          </div>
          {body !== null && body.length >= 64 && (
            <p className="quiet">
              {digits(entropy(body))} bits of entropy a byte; {digits(expectedEntropy(body.length))} is what
              as many random bytes show.
            </p>
          )}
          {fields.length > 0 && (
            <details open>
              <summary>What anybody reads in its header</summary>
              <Facts
                facts={fields
                  .filter(({ name: one }) => one !== "magic")
                  .map(({ name: one, value }) => ({ name: one, value: <code>{value}</code> }))}
              />
            </details>
          )}
        </>
      )}
    </>
  );
}

function Opened({ state, plain }: { state: CollectionState; plain: boolean }) {
  const opened = useOpened(state.name, state.head);
  const [from, setFrom] = useState(0);
  const { collection } = opened;
  const rows = useAsked(
    async (signal) => (collection === null ? null : collection.rows(from, ROWS, { vectors: true }, signal)),
    [collection, from],
  );
  if (!opened.unlocked) {
    return <KeyDrop plain={plain} why="With its owner's key, rows are read here." />;
  }
  if (opened.problem !== null) return <Trouble problem={opened.problem} again={opened.again} />;
  if (collection === null) return <Waiting what="Opening the collection in this page" />;
  if (rows.problem !== null) return <Trouble problem={rows.problem} again={rows.again} />;
  if (rows.value === null) return <Waiting what="Decrypting rows in this page" />;
  const total = state.statistics.rows - state.statistics.deleted;
  return (
    <>
      <ol className="rows" start={from + 1}>
        {rows.value.map((row) => (
          <OpenRow key={row.id} row={row} />
        ))}
      </ol>
      {rows.value.length === 0 && <p className="quiet">There is no row to read.</p>}
      <div className="pager">
        <button
          type="button"
          className="button small"
          onClick={() => setFrom(Math.max(0, from - ROWS))}
          disabled={from === 0}
        >
          Before
        </button>
        <span className="quiet">
          {number(Math.min(from + 1, total))}–{number(from + rows.value.length)} of {number(total)}
        </span>
        <button
          type="button"
          className="button small"
          onClick={() => setFrom(from + ROWS)}
          disabled={from + ROWS >= total}
        >
          Next
        </button>
      </div>
    </>
  );
}

function OpenRow({ row }: { row: Row }) {
  const first =
    row.vector === null ? [] : Array.from(row.vector.subarray(0, SHOWN), (value) => value.toFixed(3));
  return (
    <li>
      <p className="row-id">{row.id}</p>
      {row.document !== null && <p className="row-document">{short(row.document, 240)}</p>}
      {row.metadata !== null && Object.keys(row.metadata).length > 0 && <Metadata metadata={row.metadata} />}
      {row.vector !== null && (
        <p className="row-vector">
          {first.join("  ")}
          {row.vector.length > SHOWN && " …"}
        </p>
      )}
    </li>
  );
}

export function Metadata({ metadata }: { metadata: Record<string, unknown> }) {
  return (
    <p className="metadata">
      {Object.entries(metadata).map(([field, value]) => (
        <span key={field}>
          <span className="quiet">{field}</span>{" "}
          {short(typeof value === "string" ? value : JSON.stringify(value), 60)}
        </span>
      ))}
    </p>
  );
}
