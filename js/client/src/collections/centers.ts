/**
 * What is taken off rows and queries of an `l2` collection before they are sealed, for the key owner. No distance changes, and errors, which
 * grow with the distance from zero, shrink. The Python client chooses the same.
 */

import type { Rows } from "../ingest/arrays.js";
import type { Id } from "../types.js";
import type { Segments } from "./segments.js";

const SAMPLE = 64;
/** The error of a cosine by precision, docs/sealed.md. */
const COSINE_ERROR: { readonly [precision: string]: number } = {
  standard: 1.5e-5,
  small: 1.9e-4,
  wide: 6e-8,
};
/** Of the median squared distance: errors below it are left alone. */
const WORTH = 1e-4;
/** How many times smaller a center has to make them. */
const BETTER = 2;

/** The collection's center: as it was given, or that of the latest segment that has one. Empty where there is none. */
export function centerOf({ description, directory }: Segments): Float32Array {
  return description.center ?? directory.centreInUse();
}

/** The same for these rows, which choose one where there is none yet and they lie far from zero. */
export function centerFor(segments: Segments, rows: Rows): Float32Array {
  const present = centerOf(segments);
  const { metric, mode, precision } = segments.description.spec;
  if (present.length > 0 || metric !== "l2" || mode === "open" || rows.count < 2) return present;
  const { dimension, count } = rows;
  const sums = new Float64Array(dimension);
  for (let i = 0; i < count; i++)
    for (let j = 0; j < dimension; j++)
      sums[j] = (sums[j] as number) + (rows.data[i * dimension + j] as number);
  const mean = Float32Array.from(sums, (sum) => sum / count);
  const now = distanceError(rows, new Float32Array(dimension), precision);
  const then = distanceError(rows, mean, precision);
  return now.error > WORTH * now.distance && now.error > BETTER * then.error ? mean : present;
}

/** Whether two centers are one. */
export function sameCenter(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i]);
}

/** The ids of the segments around this center, of those allowed. */
export function idsAround({ directory }: Segments, center: Float32Array, allow: readonly Id[] | null): Id[] {
  const allowed = allow === null ? null : new Set(allow);
  return directory
    .rows()
    .filter(({ segmentId }) => sameCenter(directory.centre(segmentId), center))
    .flatMap(({ ids }) => ids)
    .filter((id): id is Id => id !== null && (allowed?.has(id) ?? true));
}

/** Of a squared distance between two of these rows less the center its error, and the distance itself: medians over the pairs of some. */
function distanceError(
  { data, count, dimension }: Rows,
  center: Float32Array,
  precision: string,
): { error: number; distance: number } {
  const step = Math.ceil(count / SAMPLE);
  const rows: number[][] = [];
  for (let i = 0; i < count; i += step)
    rows.push(
      Array.from(data.subarray(i * dimension, (i + 1) * dimension), (x, j) => x - (center[j] as number)),
    );
  const lengths = rows.map((row) => Math.hypot(...row));
  const products: number[] = [];
  const distances: number[] = [];
  for (let a = 0; a < rows.length; a++)
    for (let b = 0; b < a; b++) {
      products.push((lengths[a] as number) * (lengths[b] as number));
      let squared = 0;
      for (let j = 0; j < dimension; j++)
        squared += ((rows[a]?.[j] as number) - (rows[b]?.[j] as number)) ** 2;
      distances.push(squared);
    }
  return { error: 2 * (COSINE_ERROR[precision] as number) * median(products), distance: median(distances) };
}

function median(values: number[]): number {
  values.sort((a, b) => a - b);
  const upper = values.length >> 1;
  return ((values[upper] as number) + (values[(values.length - 1) >> 1] as number)) / 2;
}
