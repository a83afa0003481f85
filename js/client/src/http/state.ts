/** Collection state: a server's description of a collection enters as JSON; its checked parts leave. Owner's side, which trusts none
 * of it. */

import { after, type Change, EVALUATION, type StoredSegment, sameSegment } from "../collections/change.js";
import { ServerError } from "../errors.js";
import { fromBase64, text, unhex } from "../ingest/bytes.js";

const ID = /^[0-9a-f]{32}$/;
const HEAD = /^[0-9a-f]{64}$/;
const LARGEST = 2 ** 48;

/** One committed state of a collection. */
export interface State {
  version: number;
  head: string;
  meta: Uint8Array;
  segments: Map<string, StoredSegment>;
  attachments: Map<string, number>;
  /** The newest version of query frames that the server answers. */
  queryVersion: number;
  /** BLAKE3 of the evaluation keys that the server says it answers with. */
  evaluation: Uint8Array | null;
}

/** The state that a commit on top of this one leaves. */
export function stateAfter(
  state: State,
  change: Change,
  version: number,
  head: string,
  blake3: (data: Uint8Array) => Uint8Array,
): State {
  const attachments = new Map(state.attachments);
  for (const [name, blob] of change.attachments) attachments.set(name, blob.length);
  const meta = change.meta ?? state.meta;
  const keys = change.attachments.get(EVALUATION);
  const evaluation = state.evaluation !== null && keys !== undefined ? blake3(keys) : state.evaluation;
  return { ...state, version, head, meta, attachments, evaluation, segments: after(change, state.segments) };
}

/** The state in an answer. Segments that are as they were `before` are the same objects again. Throws ServerError. */
export function readState(
  content: { [field: string]: unknown },
  name: string,
  server: string,
  before?: State,
): State {
  try {
    if (content["name"] !== name) throw new TypeError("it is about another one");
    const segments = new Map<string, StoredSegment>();
    for (const entry of listOf(content["segments"])) {
      const segment = segmentOf(fields(entry));
      if (segments.has(segment.id)) throw new TypeError("a segment occurs twice");
      const known = before?.segments.get(segment.id);
      segments.set(segment.id, known !== undefined && sameSegment(known, segment) ? known : segment);
    }
    return {
      version: count(content["version"]),
      head: matching(HEAD, content["head"]),
      meta: fromBase64(content["meta"]),
      segments,
      attachments: new Map(Object.entries(counts(content["attachments"]))),
      queryVersion: count(content["query_version"] ?? 1),
      evaluation: "evaluation" in content ? unhex(matching(HEAD, content["evaluation"])) : null,
    };
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
    throw new ServerError(
      `${server} describes collection "${name}" in a way that this ciphervec does not understand (${error.message}). Check the ` +
        "versions on both sides.",
    );
  }
}

/** Version and head in the answer to a commit, or in the headers of another. Throws ServerError. */
export function committed(
  content: { [field: string]: unknown },
  server: string,
): { version: number; head: string } {
  try {
    return { version: count(content["version"]), head: matching(HEAD, content["head"]) };
  } catch (error) {
    throw new ServerError(
      `${server} answered without a version and a head (${(error as Error).message}). Check the versions on both sides, and ` +
        "from a page of another origin that it exposes the headers ciphervec-version and ciphervec-head.",
    );
  }
}

/** What is pinned of a description: it never changes, but for the keys when the owner gives it others. Nothing, if it does not
 * parse; it is refused elsewhere then. */
export function publicParameters(meta: Uint8Array): { [name: string]: string } {
  try {
    const content = fields(JSON.parse(text(meta)));
    return { spec: String(content["spec"]), "key id": String(content["key_id"]) };
  } catch {
    return {};
  }
}

function segmentOf(entry: { [field: string]: unknown }): StoredSegment {
  const rows = count(entry["rows"]);
  const deleted = listOf(entry["deleted"] ?? []).map(count);
  if (deleted.some((row, i) => row >= rows || (i > 0 && row <= (deleted[i - 1] as number))))
    throw new TypeError("deleted rows are not ascending numbers of rows");
  return { id: matching(ID, entry["id"]), rows, blobs: counts(entry["blobs"]), deleted };
}

function counts(value: unknown): { [name: string]: number } {
  return Object.fromEntries(Object.entries(fields(value ?? {})).map(([name, one]) => [name, count(one)]));
}

function fields(value: unknown): { [field: string]: unknown } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("no object");
  return value as { [field: string]: unknown };
}

function listOf(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new TypeError("no list");
  return value;
}

function count(value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0 || value >= LARGEST)
    throw new TypeError(`${String(value).slice(0, 40)} is not a count`);
  return value;
}

function matching(pattern: RegExp, value: unknown): string {
  if (typeof value !== "string" || !pattern.test(value))
    throw new TypeError(`${String(value).slice(0, 80)} is not ${pattern.source}`);
  return value;
}
