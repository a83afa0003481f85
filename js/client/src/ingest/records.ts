/** Records: a row's metadata and document enter; the JSON bytes that get sealed leave, and back. Key owner's side. */

import { CorruptData, InvalidInput, InvalidRows } from "../errors.js";
import type { Metadata } from "../types.js";
import { type Rows, sameLength } from "./arrays.js";
import { text, utf8 } from "./bytes.js";
import { parse, plain, stringify } from "./json.js";
import { kind } from "./where.js";

const MAX_RECORD_BYTES = 64 << 20;
const ORIGINAL = 1;

/** What is stored beside one vector. Either part may be null. */
export interface Record {
  metadata: Metadata | null;
  document: string | null;
}

/** Each id's metadata and document, checked. Throws InvalidInput naming every offending row. */
export function recordsOf(count: number, metadatas: unknown, documents: unknown): Record[] {
  const left = listed(metadatas, "object", "metadatas");
  const right = listed(documents, "string", "documents");
  sameLength(count, left?.length, "metadatas");
  sameLength(count, right?.length, "documents");
  const faults = new Map<number, string>();
  const records = Array.from({ length: count }, (_, i) => {
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
  return records;
}

/** The record with what is given laid over it. */
export function merged(old: Record, { metadata, document }: Record): Record {
  const fields = metadata === null ? old.metadata : { ...old.metadata, ...metadata };
  return { metadata: fields, document: document ?? old.document };
}

/** The record without these fields of its metadata. */
export function without(record: Record, fields: readonly string[]): Record {
  if (record.metadata === null || fields.length === 0) return record;
  const left = Object.entries(record.metadata).filter(([name]) => !fields.includes(name));
  return { ...record, metadata: Object.fromEntries(left) };
}

/** UTF-8 JSON; nothing at all for an empty record. Throws InvalidInput beyond 64 MiB. */
export function toBytes({ metadata, document }: Record, what: string): Uint8Array {
  if (metadata === null && document === null) return new Uint8Array(0);
  const content = { ...(metadata !== null && { metadata }), ...(document !== null && { document }) };
  const data = utf8(stringify(content));
  if (data.length > MAX_RECORD_BYTES)
    throw new InvalidInput(
      `the metadata and document of ${what} take ${data.length} bytes; the limit is ${MAX_RECORD_BYTES}. Store a ` +
        "reference to the document instead.",
    );
  return data;
}

/** Read what `toBytes`, here or in Python, wrote. Throws CorruptData. */
export function fromBytes(data: Uint8Array): Record {
  if (data.length === 0) return { metadata: null, document: null };
  let content: unknown;
  try {
    content = parse(text(data));
  } catch (error) {
    throw new CorruptData(`a stored record is not the JSON object expected: ${String(error)}.`);
  }
  const {
    metadata = null,
    document = null,
    ...others
  } = (kind(content) === "object" ? content : {}) as {
    [field: string]: unknown;
  };
  const sound =
    kind(content) === "object" &&
    Object.keys(others).length === 0 &&
    (metadata === null || kind(metadata) === "object") &&
    (document === null || typeof document === "string");
  if (!sound) throw new CorruptData("a stored record holds something else than metadata and document.");
  return { metadata: metadata as Metadata | null, document: document as string | null };
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

function metadataOf(value: unknown, what: string): Metadata | null {
  if (value === undefined || value === null) return null;
  if (kind(value) !== "object" || value instanceof Date)
    throw new InvalidInput(`${what} must be an object or null, got ${kind(value)}.`);
  for (const name of Object.keys(value as object))
    if (name === "" || name.startsWith("$"))
      throw new InvalidInput(
        `${what} has the field ${JSON.stringify(name)}; names are not empty and don't start with "$".`,
      );
  return plain(value, what) as Metadata;
}

function documentOf(value: unknown, what: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string")
    throw new InvalidInput(`${what} must be a string or null, got ${typeof value}.`);
  return plain(value, what) as string;
}
