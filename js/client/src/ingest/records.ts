/** Records: a row's metadata and document as callers give and get them, beside the JSON bytes that are sealed. */

import { CorruptData, InvalidInput, InvalidRows } from "../errors.js";
import type { Native } from "../native.js";
import type { Metadata } from "../types.js";
import { type Rows, sameLength } from "./arrays.js";
import { text } from "./bytes.js";
import { parse, plain, stringify } from "./json.js";

const MAX_RECORD_BYTES = 64 << 20;
const ORIGINAL = 1;

/** What is stored beside one vector. Either part may be null. */
export interface Record {
  metadata: Metadata | null;
  document: string | null;
}

/** What a caller gives of a row: its metadata, as JSON, and its document. */
export interface RecordChange {
  metadata: string | null;
  document: string | null;
}

/** Each id's metadata and document, checked. Throws InvalidRows naming every offending row. */
export function changesOf(count: number, metadatas: unknown, documents: unknown): RecordChange[] {
  const left = listed(metadatas, "object", "metadatas");
  const right = listed(documents, "string", "documents");
  sameLength(count, left?.length, "metadatas");
  sameLength(count, right?.length, "documents");
  const faults = new Map<number, string>();
  const changes = Array.from({ length: count }, (_, i) => {
    try {
      return {
        metadata: left === null ? null : metadataOf(left[i], `metadatas[${i}]`),
        document: right === null ? null : documentOf(right[i], `documents[${i}]`),
      };
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      faults.set(i, error.message);
      return { metadata: null, document: null };
    }
  });
  if (faults.size > 0) throw InvalidRows.of(faults);
  return changes;
}

/** The bytes of a record with a change laid over it, and without some fields of its metadata before. Throws InvalidInput beyond 64 MiB. */
export function changed(
  native: Native,
  old: Uint8Array,
  { metadata, document }: RecordChange,
  removed: readonly string[] = [],
): Uint8Array {
  const bytes = native.mergeRecord(old, metadata ?? undefined, document ?? undefined, [...removed]);
  if (bytes.length > MAX_RECORD_BYTES)
    throw new InvalidInput(
      `the metadata and document of a row take ${bytes.length} bytes; the limit is ${MAX_RECORD_BYTES}. Store a reference to the ` +
        "document instead.",
    );
  return bytes;
}

/** What a caller gets of the bytes of a record. Throws CorruptData. */
export function recordOf(data: Uint8Array): Record {
  if (data.length === 0) return { metadata: null, document: null };
  try {
    const { metadata = null, document = null } = parse(text(data)) as Partial<Record>;
    return { metadata, document };
  } catch (error) {
    throw new CorruptData(`a stored record is not the JSON object expected: ${String(error)}.`);
  }
}

/** Of each row the bytes to seal so that it is read back as it was put in; empty where it is not `there`. */
export function originalBytes(rows: Rows, there: readonly boolean[] | null): Uint8Array[] {
  const { data, count, dimension } = rows;
  return Array.from({ length: count }, (_, row) => {
    if (there !== null && !there[row]) return new Uint8Array(0);
    const out = new Uint8Array(1 + 4 * dimension);
    out[0] = ORIGINAL;
    const view = new DataView(out.buffer, 1);
    for (let i = 0; i < dimension; i++) view.setFloat32(4 * i, data[row * dimension + i] as number, true);
    return out;
  });
}

/** Read one; null where it is not there. Throws CorruptData. */
export function readOriginal(data: Uint8Array, dimension: number): Float32Array | null {
  if (data.length === 0) return null;
  if (data.length !== 1 + 4 * dimension || data[0] !== ORIGINAL)
    throw new CorruptData(
      `a vector that was kept as it was put in has ${1 + 4 * dimension} bytes, of which the first is 1; these ` +
        `${data.length} are something else.`,
    );
  const view = new DataView(data.buffer, data.byteOffset + 1);
  return Float32Array.from({ length: dimension }, (_, i) => view.getFloat32(4 * i, true));
}

function listed(value: unknown, single: "object" | "string", what: string): unknown[] | null {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value;
  if (typeof value === single) return [value];
  throw new InvalidInput(`${what} must be a list with one entry per id, got ${typeof value}.`);
}

function metadataOf(value: unknown, what: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object" || Array.isArray(value) || value instanceof Date)
    throw new InvalidInput(
      `${what} must be an object or null, got ${Array.isArray(value) ? "an array" : typeof value}.`,
    );
  for (const name of Object.keys(value as object))
    if (name === "" || name.startsWith("$"))
      throw new InvalidInput(
        `${what} has the field ${JSON.stringify(name)}; names are not empty and don't start with "$".`,
      );
  return stringify(plain(value, what));
}

function documentOf(value: unknown, what: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string")
    throw new InvalidInput(`${what} must be a string or null, got ${typeof value}.`);
  return plain(value, what) as string;
}
