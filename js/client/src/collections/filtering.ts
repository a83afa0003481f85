/**
 * Filtering: a filter enters; the rows that pass leave, and why there may be none. Key owner's side.
 *
 * Keyed tags tell of equality on filterable fields, without opening anything; else metadata decides, which is opened row by row.
 */

import { unhex } from "../ingest/bytes.js";
import type { Filter } from "../native.js";
import type { Id } from "../types.js";
import { RECORDS, type StoredSegment } from "./change.js";
import type { Mask } from "./payloads.js";
import { readPayloads } from "./reading.js";
import type { Segments } from "./segments.js";

const MOST_READ = 32 << 20; // bytes of records that are read for one
const MANY = 1 << 14; // rows opened between two breaths

/** The ids that pass, in the order of insertion, at most so many. By keyed tags where their owner authenticated them, else by metadata, which
 * decides. */
export async function matching(
  segments: Segments,
  filter: Filter,
  byTags: boolean,
  most = Infinity,
): Promise<Id[]> {
  const found: Id[] = [];
  for (const segment of segments.readEntries()) {
    if (found.length >= most) break;
    const names = segments.directory.names(unhex(segment.id)) ?? [];
    const mask = await maskOf(segments, segment, filter, byTags, names, most - found.length);
    names.forEach((name, row) => {
      if (name !== null && mask[row] === 1) found.push(name);
    });
  }
  return found.slice(0, most);
}

/** Rows of a segment that pass, those of no account among them; perhaps only the first. */
async function maskOf(
  segments: Segments,
  segment: StoredSegment,
  filter: Filter,
  byTags: boolean,
  names: readonly (Id | null)[],
  most: number,
): Promise<Mask> {
  const { payloads } = segments;
  let mask: Mask = new Uint8Array(segment.rows).fill(1);
  if (byTags && payloads.hasTags(segment)) {
    const bound = await payloads.bound(segment, filter);
    if (bound.exact && segments.state !== null) return bound.mask;
    mask = bound.mask;
  }
  const found: Mask = new Uint8Array(segment.rows);
  let count = 0;
  for (const [row, name] of names.entries()) {
    if (name === null || mask[row] !== 1) continue;
    if (filter.matches(await payloads.payload(segment, row, name))) {
      found[row] = 1;
      if (++count >= most) break;
    }
    if (row % MANY === MANY - 1) await new Promise((resolve) => setTimeout(resolve));
  }
  return found;
}

/** Which rows have all of these tags, as their owner authenticated them: of every segment, so that no read tells which rows were found. None of a
 * segment that its owner did not tag. */
export async function tagged(
  segments: Segments,
  tags: Uint8Array[],
): Promise<{ segmentIds: Uint8Array[]; masks: Mask[] }> {
  const entries = segments.readEntries();
  const masks: Mask[] = [];
  for (const segment of entries) {
    const { payloads } = segments;
    const mask = payloads.hasTags(segment) ? await payloads.carrying(segment, tags) : null;
    masks.push(mask ?? new Uint8Array(segment.rows));
  }
  return { segmentIds: entries.map(({ id }) => unhex(id)), masks };
}

/** Whether all of these ids pass the filter, by their own records. */
export async function allPass(segments: Segments, where: Filter, ids: readonly Id[]): Promise<boolean> {
  return (await readPayloads(segments, ids)).every((record) => where.matches(record));
}

/** Why no row passes, if a field is one that no row has, or holds values of other kinds; else nothing. */
export async function explain(segments: Segments, where: Filter): Promise<string> {
  const entries = segments.readEntries();
  if (entries.reduce((sum, { blobs }) => sum + (blobs[RECORDS] ?? 0), 0) > MOST_READ) return "";
  const kinds = new segments.native.FieldKinds();
  for (const segment of entries) {
    const records: Uint8Array[] = [];
    for (const [row, name] of (segments.directory.names(unhex(segment.id)) ?? []).entries())
      records.push(await segments.payloads.payload(segment, row, name));
    kinds.add(records);
  }
  const why = kinds.whyNone(where);
  kinds.free();
  return why;
}
