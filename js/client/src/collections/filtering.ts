/**
 * Filtering: a filter enters; the rows that pass leave, and why there may be none. Key owner's side.
 *
 * Keyed tags tell of equality on filterable fields, without opening anything; else metadata decides, which is opened row by row.
 */

import { unhex } from "../ingest/bytes.js";
import { comparisons, kind, type WhereFilter } from "../ingest/where.js";
import type { Id } from "../types.js";
import { RECORDS, type StoredSegment } from "./change.js";
import type { Mask } from "./payloads.js";
import { readRecords } from "./reading.js";
import type { Segments } from "./segments.js";

/** Whether a document passes. */
export type DocumentTest = (document: string | null) => boolean;

/** What rows must pass. */
export interface Filter {
  where: WhereFilter | null;
  document: DocumentTest | null;
}

const SHOWN = 12; // fields that an explanation names
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
  { where, document }: Filter,
  byTags: boolean,
  names: readonly (Id | null)[],
  most: number,
): Promise<Mask> {
  const { payloads } = segments;
  let mask: Mask = new Uint8Array(segment.rows).fill(1);
  let exact = where === null;
  if (where !== null && byTags && payloads.hasTags(segment)) {
    const bound = await payloads.bound(segment, where.root);
    mask = bound.mask ?? mask;
    exact = bound.exact && segments.state !== null;
  }
  if (exact && document === null) return mask;
  const found: Mask = new Uint8Array(segment.rows);
  let count = 0;
  for (const [row, name] of names.entries()) {
    if (name === null || mask[row] !== 1) continue;
    const record = await payloads.record(segment, row, name);
    if ((exact || where?.matches(record.metadata) !== false) && (document?.(record.document) ?? true)) {
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

/** Whether all of these ids pass the filter, by their own metadata. */
export async function allPass(segments: Segments, where: WhereFilter, ids: readonly Id[]): Promise<boolean> {
  return (await readRecords(segments, ids)).every(({ metadata }) => where.matches(metadata));
}

/** Why no row passes, if a field is one that no row has, or holds values of other kinds; else nothing. */
export async function explain(segments: Segments, where: WhereFilter): Promise<string> {
  const entries = segments.readEntries();
  if (entries.reduce((sum, { blobs }) => sum + (blobs[RECORDS] ?? 0), 0) > MOST_READ) return "";
  const there = new Map<string, Set<string>>();
  for (const segment of entries)
    for (const [row, name] of (segments.directory.names(unhex(segment.id)) ?? []).entries()) {
      const { metadata } = await segments.payloads.record(segment, row, name);
      for (const [field, value] of Object.entries(metadata ?? {}))
        there.set(field, (there.get(field) ?? new Set()).add(kind(value)));
    }
  const faults = new Set<string>();
  for (const { field, operator, operands } of comparisons(where.root)) {
    const kinds = there.get(field);
    const asked = new Set(operands.map(kind));
    if (operator === "$exists" || (asked.size === 1 && asked.has("none"))) continue;
    if (kinds === undefined) {
      const names = [...there.keys()].sort();
      const more = names.length > SHOWN ? ` and ${names.length - SHOWN} more` : "";
      const known =
        names.length > 0 ? `there are ${names.slice(0, SHOWN).join(", ")}${more}` : "no row has metadata";
      faults.add(`no row has a field "${field}": ${known}`);
    } else if (operator === "$contains" || operator === "$not_contains") {
      if (!kinds.has("list") && !kinds.has("text"))
        faults.add(
          `"${field}" holds ${[...kinds].join(" and ")}, and ${operator} looks into lists and texts`,
        );
    } else if (![...asked].some((one) => kinds.has(one)))
      faults.add(
        `"${field}" holds ${[...kinds].join(" and ")}, and is compared with ${[...asked].join(" and ")}`,
      );
  }
  return [...faults].join("; ");
}
