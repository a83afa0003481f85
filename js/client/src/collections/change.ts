/** Change: what one commit does enters and leaves as plain data: segments, blobs, deleted rows. Either side. */

import { hex } from "../ingest/bytes.js";

/** The blobs of a segment: sealed vectors, ids and norms, metadata and documents, filter tags, vectors as they were put in; and,
 * in one that a writer sealed, its key, wrapped to the owner. */
export const ROWS = "rows";
export const SIDECAR = "sidecar";
export const RECORDS = "records";
export const TAGS = "tags";
export const ORIGINALS = "originals";
export const WRAP = "wrap";

/** What a collection keeps beside its segments: the server's keys, the owner's key pair, what the owner says of all that with
 * each commit, which segments of writers count no more, and which segments are clusters. */
export const EVALUATION = "evaluation";
export const KEY_PAIR = "key-pair";
export const STATE = "state";
export const CONSUMED = "consumed";
export const ROUTING = "routing";

/** One committed segment: its id in hexadecimal, rows, bytes of each blob, and the rows deleted from it, ascending. */
export interface StoredSegment {
  readonly id: string;
  readonly rows: number;
  readonly blobs: { readonly [name: string]: number };
  readonly deleted: readonly number[];
}

/** One segment to commit. */
export interface NewSegment {
  readonly id: string;
  readonly rows: number;
  readonly blobs: { readonly [name: string]: Uint8Array };
}

/** What one commit does. All of it becomes durable, or none. */
export interface Change {
  add: NewSegment[];
  remove: string[];
  deleteRows: Map<string, number[]>;
  meta: Uint8Array | null;
  attachments: Map<string, Uint8Array>;
}

export function newChange(parts: Partial<Change> = {}): Change {
  return { add: [], remove: [], deleteRows: new Map(), meta: null, attachments: new Map(), ...parts };
}

/** A segment as it is listed once it is committed. */
export function storedOf(added: NewSegment): StoredSegment {
  const blobs = Object.fromEntries(Object.entries(added.blobs).map(([name, blob]) => [name, blob.length]));
  return { id: added.id, rows: added.rows, blobs, deleted: [] };
}

/** The segments that a change leaves of those given, oldest first. Those that it does not touch are the same objects. */
export function after(
  change: Change,
  segments: ReadonlyMap<string, StoredSegment>,
): Map<string, StoredSegment> {
  const left = new Map(segments);
  for (const id of change.remove) left.delete(id);
  for (const [id, rows] of change.deleteRows) {
    const old = left.get(id);
    if (old !== undefined) left.set(id, { ...old, deleted: union(old.deleted, rows) });
  }
  for (const added of change.add) left.set(added.id, storedOf(added));
  return left;
}

/** Both, ascending, each once. */
export function union(a: Iterable<number>, b: Iterable<number>): number[] {
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}

/** Whether two listings of a segment say the same. */
export function sameSegment(a: StoredSegment, b: StoredSegment): boolean {
  if (a === b) return true;
  const names = Object.keys(a.blobs);
  return (
    a.id === b.id &&
    a.rows === b.rows &&
    a.deleted.length === b.deleted.length &&
    a.deleted.every((row, i) => row === b.deleted[i]) &&
    names.length === Object.keys(b.blobs).length &&
    names.every((name, i) => name === Object.keys(b.blobs)[i] && a.blobs[name] === b.blobs[name])
  );
}

export const segmentId = (bytes: Uint8Array): string => hex(bytes);
