/**
 * Merging: rows to be added enter; with them leave those of small segments that they are sealed together with, so that many small additions
 * don't make as many segments. Key owner's side.
 *
 * As the Python client does it: the segments before a new one are merged with it by size, eight to one; only those whose vectors were kept as
 * they were put in, which costs no precision; and only those at the end, so that rows keep their order.
 */

import type { Call } from "../http/session.js";
import { hex, unhex } from "../ingest/bytes.js";
import type { Id } from "../types.js";
import { type Batch, newBatch } from "./batch.js";
import { ORIGINALS, type StoredSegment, WRAP } from "./change.js";
import { hasKeyPair } from "./description.js";
import { readPayloads, readVectors } from "./reading.js";
import type { Segments } from "./segments.js";

/** Rows that one addition seals again at most. */
const MERGE_ROWS = 4_096;
const FAN = 8;
/** A segment of fewer rows than one of these is of its size. */
const SIZES = [1, 2, 3, 4].map((power) => FAN ** power);

const live = (segment: StoredSegment): number => segment.rows - segment.deleted.length;

/** The segments to be sealed again together with so many new rows, oldest first. */
export function mergeable(segments: Segments, rows: number): StoredSegment[] {
  if (hasKeyPair(segments.description.spec) || rows >= MERGE_ROWS) return [];
  const { directory } = segments;
  const passedOver = new Set([
    ...directory.refused().map(hex),
    ...directory.quarantined().map(hex),
    ...segments.appended,
  ]);
  const entries = segments.entries().filter(({ id }) => !passedOver.has(id));
  const suits = (segment: StoredSegment | undefined, size: number): segment is StoredSegment =>
    segment !== undefined &&
    live(segment) < size &&
    ORIGINALS in segment.blobs &&
    !(WRAP in segment.blobs) &&
    directory.origin(unhex(segment.id))?.kind === "owner";
  let first = entries.length;
  let total = rows;
  for (const size of SIZES) {
    // Beyond what is merged already: segments of this size, which count, and smaller ones among these.
    let [at, ofSize, smaller, count] = [first, 0, total, 0];
    for (let before = entries[at - 1]; suits(before, size); before = entries[at - 1]) {
      const here = live(before);
      if (ofSize + smaller + here > MERGE_ROWS) break;
      at--;
      if (here * FAN < size) smaller += here;
      else {
        ofSize += here;
        count++;
      }
    }
    if (count + Number(smaller * FAN >= size) >= FAN) {
      first = at;
      total = ofSize + smaller;
    }
  }
  return entries.slice(first);
}

/** The rows of these segments, but for those replaced, and then those of the batch. */
export async function joined(
  segments: Segments,
  taken: readonly StoredSegment[],
  batch: Batch,
  replaced: readonly Id[],
  call: Call,
): Promise<Batch> {
  const gone = new Set(replaced);
  const ids = taken
    .flatMap(({ id }) => segments.directory.names(unhex(id)) ?? [])
    .filter((name): name is Id => name !== null && !gone.has(name));
  const { rows, original } = await readVectors(segments, ids, call);
  const { dimension } = rows;
  const data = new Float32Array((ids.length + batch.ids.length) * dimension);
  data.set(rows.data);
  data.set(batch.rows.data, rows.data.length);
  const records = [...(await readPayloads(segments, ids)), ...batch.records];
  const fresh = batch.original ?? batch.ids.map(() => true);
  const all = [...ids, ...batch.ids];
  return newBatch(all, { data, count: all.length, dimension }, records, [...original, ...fresh]);
}
