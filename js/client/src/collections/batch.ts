/** Rows as a caller passes them, checked, as the core takes them. For owners and writers. */

import { InvalidInput, InvalidRows } from "../errors.js";
import { distinct, type Flat, idsOf, rowsOf, sameLength } from "../ingest/arrays.js";
import { sparseVectors } from "../ingest/hybrid.js";
import { tokensOf } from "../ingest/multi.js";
import { changesOf } from "../ingest/records.js";
import type { NativeRows } from "../native.js";
import type { Metric } from "../types.js";

/** Rows as they cross from the page. */
export interface GivenRows {
  ids?: unknown;
  embeddings?: Flat | undefined;
  metadatas?: unknown;
  documents?: unknown;
  sparseEmbeddings?: unknown;
  multiEmbeddings?: (Flat | null)[] | undefined;
  onZero?: unknown;
}

/** Rows of many vectors, each of `width` numbers where they stand end to end. Throws as `batchOf`. */
export function manyOf(given: GivenRows, width: number | undefined): NativeRows {
  const { embeddings, multiEmbeddings = [] } = given;
  if (embeddings !== undefined)
    throw new InvalidInput("pass either embeddings or multiEmbeddings, not both.");
  if (multiEmbeddings.includes(null))
    throw new InvalidInput("multiEmbeddings must have a matrix for each row, got null among them.");
  const multi = tokensOf(multiEmbeddings, width);
  const ids = given.ids === undefined || given.ids === null ? undefined : idsOf(given.ids);
  if (ids) {
    sameLength(ids.length, multi.length, "multiEmbeddings");
    distinct(ids);
  }
  const count = multi.length;
  const beside = {
    ...changesOf(count, given.metadatas, given.documents),
    ...sparseOf(given.sparseEmbeddings, count),
  };
  return { ...(ids && { ids }), embeddings: new Float32Array(0), multi, ...beside };
}

/** Rows for a collection of this kind. Throws InvalidInput, InvalidRows naming all that is wrong, DuplicateId. */
export function batchOf(given: GivenRows, dimension: number, metric: Metric): NativeRows {
  const { embeddings, onZero = "refuse" } = given;
  if (onZero !== "refuse" && onZero !== "skip")
    throw new InvalidInput(`onZero is "refuse" or "skip", got ${JSON.stringify(onZero)}.`);
  if (embeddings === undefined)
    throw new InvalidInput(
      "rows need embeddings, one vector each; none were given. Embed the documents first.",
    );
  const faults = new Map<number, string>();
  const checked = <T>(step: () => T): T | null => {
    try {
      return step();
    } catch (error) {
      if (!(error instanceof InvalidRows)) throw error;
      for (const [row, says] of error.rows)
        faults.set(row, faults.has(row) ? `${faults.get(row)} ${says}` : says);
      return null;
    }
  };
  const rows = checked(() => rowsOf(embeddings, dimension, metric, "embeddings", onZero));
  const count = rows?.count ?? embeddings.rows ?? embeddings.data.length / dimension;
  const given_ids = given.ids === undefined || given.ids === null ? undefined : given.ids;
  const ids = given_ids === undefined ? undefined : checked(() => idsOf(given_ids));
  if (ids) sameLength(ids.length, count, "embeddings");
  const changes = checked(() => changesOf(ids?.length ?? count, given.metadatas, given.documents));
  const beside = checked(() => sparseOf(given.sparseEmbeddings, ids?.length ?? count));
  if (faults.size > 0 || rows === null || ids === null || changes === null || beside === null)
    throw InvalidRows.of(faults);
  if (ids && onZero === "refuse") distinct(ids); // of what is left of them otherwise, which the core looks at
  return { ...(ids && { ids }), embeddings: rows.data, ...changes, ...beside, onZero };
}

/** Sparse vectors of so many rows, where there are some. Throws InvalidInput, InvalidRows. */
export function sparseOf(given: unknown, count: number): Pick<NativeRows, "sparse"> {
  if (given === undefined || given === null) return {};
  return { sparse: sparseVectors(given, "sparseEmbeddings", count) };
}
