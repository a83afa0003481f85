/** Words and sparse vectors beside vectors, as callers give them and as the core takes them: indices ascend, weights are above zero. */

import { InvalidInput, InvalidRows } from "../errors.js";
import type { NativeHybrid, NativeSparse, NativeSparseKind } from "../native.js";
import type { SparseVector } from "../types.js";
import { countOfThings, finite, sameLength } from "./arrays.js";

const LAST = 2 ** 32 - 1;
const RRF = { k: 60, window: 100 };
const BM25 = { k1: 1.2, b: 0.75 };

/** What rows are ranked by, as it is chosen. Throws InvalidInput. */
export function sparseKind(given: unknown): NativeSparseKind {
  if (given === "vectors") return given;
  if (given === "bm25") return BM25;
  const { k1 = BM25.k1, b = BM25.b, ...others } = (given ?? { none: 0 }) as { k1?: unknown; b?: unknown };
  if (typeof given !== "object" || Object.keys(others).length > 0)
    throw new InvalidInput(
      `sparse must be "bm25", {k1, b} for BM25, or "vectors", got ${JSON.stringify(given)}.`,
    );
  return { k1: finite(k1, "k1"), b: finite(b, "b") };
}

/** Sparse vectors, null where a row has none. Throws InvalidInput, InvalidRows naming every offending row. */
export function sparseVectors(given: unknown, what: string, length?: number): (NativeSparse | null)[] {
  const rows = Array.isArray(given) ? given : [given];
  if (length !== undefined) sameLength(length, rows.length, what);
  const faults = new Map<number, string>();
  const found = rows.map((one, i) => {
    try {
      return one === null || one === undefined ? null : sparseVector(one, `${what}[${i}]`);
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      faults.set(i, error.message);
      return null;
    }
  });
  if (faults.size > 0) throw InvalidRows.of(faults);
  return found;
}

function sparseVector(one: unknown, what: string): NativeSparse {
  const { indices, values } = one as Partial<SparseVector>;
  if (!isList(indices) || !isList(values) || indices.length !== values.length)
    throw new InvalidInput(`${what} must have indices and values, two lists of the same length.`);
  const pairs = Array.from(indices, (index, i) => [index, Math.fround(values[i] as number)] as const);
  pairs.sort(([a], [b]) => a - b);
  pairs.forEach(([index, weight], i) => {
    const there = Number.isInteger(index) && index >= 0 && index <= LAST && index !== pairs[i - 1]?.[0];
    if (!there || !(Number.isFinite(weight) && weight >= 0))
      throw new InvalidInput(
        `${what} has the weight ${weight} at ${index}; indices are 0 to ${LAST}, each once, weights finite and at least 0.`,
      );
  });
  const kept = pairs.filter(([, weight]) => weight > 0);
  return {
    indices: Uint32Array.from(kept, ([index]) => index),
    values: Float32Array.from(kept, ([, weight]) => weight),
  };
}

const isList = (value: unknown): value is ArrayLike<number> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));

/** What a query asks beside its vectors; undefined where it asks nothing. Throws InvalidInput. */
export function hybridOf({
  fusion,
  queryTexts,
  sparse,
}: {
  fusion?: unknown;
  queryTexts?: unknown;
  sparse?: unknown;
}): NativeHybrid | undefined {
  if (fusion === undefined || fusion === null) {
    if (queryTexts === undefined && sparse === undefined) return undefined;
    throw new InvalidInput('queryTexts and sparse go with fusion, such as fusion: "rrf".');
  }
  if ((queryTexts === undefined) === (sparse === undefined))
    throw new InvalidInput("fusion ranks by words or by sparse vectors too: give queryTexts or sparse.");
  return { ...fusionOf(fusion), ...askedOf(queryTexts, sparse) };
}

function askedOf(queryTexts: unknown, sparse: unknown): Pick<NativeHybrid, "texts" | "vectors"> {
  if (sparse === undefined) {
    const texts = Array.isArray(queryTexts) ? queryTexts : [queryTexts];
    if (!texts.every((one) => typeof one === "string"))
      throw new InvalidInput("queryTexts must be a text, or a list of texts, one for each query.");
    return { texts };
  }
  const vectors = sparseVectors(sparse, "sparse");
  if (!vectors.every((one) => one !== null))
    throw new InvalidInput("sparse must be a sparse vector for each query, got null among them.");
  return { vectors };
}

function fusionOf(fusion: unknown): Omit<NativeHybrid, "texts" | "vectors"> {
  const { by, ...given } = (typeof fusion === "object" ? fusion : { by: fusion }) as {
    [name: string]: unknown;
  };
  const takes = { rrf: ["k", "window", "idf"], weighted: ["alpha", "window", "idf"], sparse: ["idf"] }[
    by as string
  ];
  const strange = Object.keys(given).find((name) => !takes?.includes(name));
  if (takes === undefined || strange !== undefined)
    throw new InvalidInput(
      'fusion must be "rrf", "sparse", or an object: {by: "rrf", k, window, idf}, {by: "weighted", alpha, window, idf}, ' +
        `{by: "sparse", idf}; got ${JSON.stringify(fusion)}.`,
    );
  const { k = RRF.k, alpha = 0.5, window = RRF.window, idf = false } = given;
  return {
    ...(by === "rrf" && { k: finite(k, "k") }),
    ...(by === "weighted" && { alpha: finite(alpha, "alpha") }),
    window: countOfThings(window, "window"),
    idf: Boolean(idf),
  };
}
