/**
 * Checks a caller's vectors, ids and counts, and makes float32 rows end to end of them. `flatten` runs on the page, so
 * that a transfer is one buffer; the rest in the Worker.
 */

import { DuplicateId, InvalidInput, InvalidRows } from "../errors.js";
import type { Id, Metric, OnZero } from "../types.js";
import { own } from "./bytes.js";
import { wellFormed } from "./json.js";

export const MAX_DIMENSION = 16_384;
const MAX_ID_BYTES = 65_535;
const INT64 = 1n << 63n;

/** What a metric needs of vectors: `bits`, or a direction, so that no row is zero; `similar` scores grow with closeness. */
export const METRICS: { readonly [name in Metric]: { bits: boolean; directed: boolean; similar: boolean } } =
  {
    cosine: { bits: false, directed: true, similar: true },
    ip: { bits: false, directed: false, similar: true },
    l2: { bits: false, directed: false, similar: false },
    hamming: { bits: true, directed: false, similar: false },
  };

/** Numbers row after row, as they came. */
export interface Flat {
  data: Float32Array;
  /** Null: several rows may stand end to end. */
  rows: number | null;
  width: number;
  of: "numbers" | "booleans" | "bytes";
}

/** Row after row of a dimension. */
export interface Rows {
  data: Float32Array;
  count: number;
  dimension: number;
}

type Row = ArrayLike<number | boolean>;

const isRow = (value: unknown): value is Row =>
  (ArrayBuffer.isView(value) && !(value instanceof DataView)) ||
  (Array.isArray(value) &&
    (value.length === 0 || typeof value[0] === "number" || typeof value[0] === "boolean"));

/** One buffer of what may be one row, several, or rows end to end. Throws InvalidInput. */
export function flatten(value: unknown, what = "embeddings"): Flat {
  if (!Array.isArray(value) && !ArrayBuffer.isView(value))
    throw new InvalidInput(`${what} must be an array of vectors, got ${typeof value}. Embed texts first.`);
  if (value instanceof BigInt64Array || value instanceof BigUint64Array)
    throw new InvalidInput(
      `${what} must be numbers, got bigints. Convert them with Float32Array.from(x, Number).`,
    );
  if (isRow(value)) {
    const of = kindOf(value, what);
    const endToEnd = value instanceof Float32Array;
    if (value.length === 0) return { data: new Float32Array(0), rows: 0, width: 0, of };
    return { data: own(floats(value, what)), rows: endToEnd ? null : 1, width: value.length, of };
  }
  const rows = value as unknown[];
  const width = isRow(rows[0]) ? rows[0].length : 0;
  const of = isRow(rows[0]) ? kindOf(rows[0], what) : "numbers";
  const data = own(new Float32Array(rows.length * width));
  rows.forEach((row, i) => {
    if (!isRow(row) || row.length !== width || kindOf(row, what) !== of) {
      const came = isRow(row) ? `${row.length} ${kindOf(row, what)}` : typeof row;
      throw new InvalidInput(
        `${what} must be rows of the same kind and length; the first has ${width} ${of}, row ${i} is ${came}.`,
      );
    }
    data.set(floats(row, `${what}[${i}]`), i * width);
  });
  return { data, rows: rows.length, width, of };
}

function kindOf(row: Row, what: string): Flat["of"] {
  if (row instanceof Uint8Array || row instanceof Uint8ClampedArray) return "bytes";
  if (row instanceof BigInt64Array || row instanceof BigUint64Array)
    throw new InvalidInput(`${what} must be numbers, got bigints.`);
  return typeof row[0] === "boolean" ? "booleans" : "numbers";
}

function floats(row: Row, what: string): Float32Array {
  if (row instanceof Float32Array) return row.slice();
  if (!ArrayBuffer.isView(row))
    for (let i = 0; i < row.length; i++)
      if (typeof row[i] !== "number" && typeof row[i] !== "boolean")
        throw new InvalidInput(`${what} must be numbers; at ${i} is ${typeof row[i]}.`);
  return Float32Array.from(row as ArrayLike<number>, Number);
}

/** Rows of this dimension, checked for this metric. Throws InvalidInput, or InvalidRows naming the rows. */
export function rowsOf(
  flat: Flat,
  dimension: number,
  metric: Metric,
  what = "embeddings",
  onZero: OnZero = "refuse",
): Rows {
  if (METRICS[metric].bits) return bitsOf(flat, dimension, what);
  if (flat.of === "booleans")
    throw new InvalidInput(
      `${what} are booleans, which only metric "hamming" takes; the metric is "${metric}".`,
    );
  const count = countOf(flat, dimension, what, dimension);
  const faults = new Map<number, string>();
  const { data } = flat;
  for (let row = 0; row < count; row++) {
    let any = false;
    for (let column = 0; column < dimension; column++) {
      const value = data[row * dimension + column] as number;
      if (!Number.isFinite(value)) {
        const says = Number.isNaN(value) ? "is NaN" : "is infinite, or beyond float32's range";
        faults.set(row, `${what}[${row}][${column}] ${says}. Remove or repair that row.`);
        break;
      }
      any ||= value !== 0;
    }
    if (METRICS[metric].directed && onZero === "refuse" && !any && !faults.has(row))
      faults.set(
        row,
        `${what}[${row}] is the zero vector, which has no direction for metric "${metric}". Remove it, leave such rows ` +
          'out with onZero: "skip", or use metric "l2" or "ip".',
      );
  }
  if (faults.size > 0) throw InvalidRows.of(faults);
  return { data, count, dimension };
}

function countOf(flat: Flat, width: number, what: string, dimension: number): number {
  const { data, rows } = flat;
  if (rows === 0 || data.length === 0) return 0;
  if (flat.width === width) return rows ?? 1;
  if (rows === null && data.length % width === 0) return data.length / width;
  throw new InvalidInput(
    `${what} must have ${dimension} dimensions, got ${flat.width}. The dimension is fixed when the collection is created.`,
  );
}

function bitsOf(flat: Flat, dimension: number, what: string): Rows {
  const packed = Math.ceil(dimension / 8);
  const { data } = flat;
  if (flat.of === "bytes" && flat.width === packed && (dimension > 1 || data.some((one) => one > 1)))
    return unpacked(flat, dimension, packed, what);
  const count = countOf(flat, dimension, what, dimension);
  const zero = data.includes(0);
  const minus = data.includes(-1);
  const strange = data.find((one) => one !== 0 && one !== 1 && one !== -1);
  if (strange !== undefined || (zero && minus))
    throw new InvalidInput(
      `${what} for metric "hamming" must be booleans, all 0/1, or all -1/+1; got ` +
        `${strange === undefined ? "-1, 0 and 1 mixed" : `the value ${strange}`}. Binarise first, e.g. x > 0.`,
    );
  return { data: minus ? data : data.map((one) => 2 * one - 1), count, dimension };
}

function unpacked(flat: Flat, dimension: number, packed: number, what: string): Rows {
  const count = countOf(flat, packed, what, dimension);
  const data = new Float32Array(count * dimension);
  const padding = packed * 8 - dimension;
  for (let row = 0; row < count; row++) {
    if (((flat.data[(row + 1) * packed - 1] as number) & ((1 << padding) - 1)) !== 0)
      throw new InvalidInput(
        `the last ${padding} bits of row ${row} of ${what} lie beyond dimension ${dimension} and must be 0.`,
      );
    for (let i = 0; i < dimension; i++)
      data[row * dimension + i] =
        ((flat.data[row * packed + (i >> 3)] as number) >> (7 - (i & 7))) & 1 ? 1 : -1;
  }
  return { data, count, dimension };
}

/** Some of the rows, in this order. */
export function takeRows(rows: Rows, places: ArrayLike<number>): Rows {
  const { dimension } = rows;
  const data = new Float32Array(places.length * dimension);
  for (let i = 0; i < places.length; i++) {
    const at = (places[i] as number) * dimension;
    data.set(rows.data.subarray(at, at + dimension), i * dimension);
  }
  return { data, count: places.length, dimension };
}

/** Rows from `start` up to `stop`, in the same memory. */
export function sliceRows({ data, dimension }: Rows, start: number, stop: number): Rows {
  return { data: data.subarray(start * dimension, stop * dimension), count: stop - start, dimension };
}

/** One id or several, checked; a bigint that a number holds exactly is that number. Throws InvalidInput. */
export function idsOf(value: unknown, what = "ids"): Id[] {
  const values =
    typeof value === "string" || typeof value === "number" || typeof value === "bigint" ? [value] : value;
  if (typeof values !== "object" || values === null || !(Symbol.iterator in values))
    throw new InvalidInput(`${what} must be strings or whole numbers, got ${typeof value}.`);
  const faults = new Map<number, string>();
  const checked: Id[] = [];
  let i = 0;
  for (const one of values as Iterable<unknown>) {
    const says = fault(one);
    if (says !== null) faults.set(i, `${what}[${i}] ${says}`);
    else
      checked.push(typeof one === "bigint" && Number.isSafeInteger(Number(one)) ? Number(one) : (one as Id));
    i++;
  }
  if (faults.size > 0) throw InvalidRows.of(faults);
  return checked;
}

function fault(id: unknown): string | null {
  switch (typeof id) {
    case "string": {
      if (!wellFormed(id)) return "is not valid Unicode: it has half of a pair.";
      const size = id.length > MAX_ID_BYTES / 4 ? new TextEncoder().encode(id).length : id.length;
      return size >= 1 && size <= MAX_ID_BYTES ? null : `must be 1 to 65,535 bytes of UTF-8, got ${size}.`;
    }
    case "number":
      return Number.isSafeInteger(id)
        ? null
        : `is ${id}; a number must be whole and below 2^53. Pass a bigint, or text.`;
    case "bigint":
      return id >= -INT64 && id < INT64
        ? null
        : `must fit in 64 signed bits, got ${id}. Pass it as a string.`;
    default:
      return `must be a string or a whole number, got ${typeof id}.`;
  }
}

/** Ids that nobody else makes up. */
export function freshIds(count: number): Id[] {
  const hexadecimal = (bytes: Uint8Array) =>
    [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return Array.from({ length: count }, () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = ((bytes[6] as number) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
    return hexadecimal(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  });
}

/** Throws DuplicateId when an id occurs twice. */
export function distinct(ids: readonly Id[]): void {
  const seen = new Set<Id>();
  ids.forEach((id, position) => {
    if (seen.has(id))
      throw new DuplicateId(
        `id ${show(id)} occurs twice in this batch (second time at position ${position}); nothing was written. Make the ` +
          "ids distinct.",
      );
    seen.add(id);
  });
}

/** Throws InvalidInput unless there is one entry for each of so many ids. */
export function sameLength(expected: number, length: number | undefined, what: string): void {
  if (length !== undefined && length !== expected)
    throw new InvalidInput(`${what} must have one entry per id: expected ${expected}, got ${length}.`);
}

/** A whole number of at least `least`. Throws InvalidInput. */
export function countOfThings(value: unknown, what: string, least = 1): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < least)
    throw new InvalidInput(`${what} must be a whole number of at least ${least}, got ${String(value)}.`);
  return value;
}

/** A finite number within float32's range. Throws InvalidInput. */
export function finite(value: unknown, what: string): number {
  if (typeof value !== "number" || !Number.isFinite(Math.fround(value)))
    throw new InvalidInput(`${what} must be a finite number, got ${String(value)}.`);
  return value;
}

/** An id as messages have it. */
export function show(id: Id): string {
  return typeof id === "string" ? JSON.stringify(id) : String(id);
}
