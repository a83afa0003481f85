/** Rows as callers give them, in the buffers that cross to the Worker. Page. */

import { flatten } from "./ingest/arrays.js";
import { flattenAll } from "./ingest/multi.js";
import type { MergeOptions, UpdateOptions } from "./options.js";
import type { Id, OneOrMany, OnZero, Vectors } from "./types.js";

/** Rows as a caller gives them. */
interface GivenRows extends Omit<UpdateOptions, "ids" | "embeddings"> {
  ids?: OneOrMany<Id>;
  embeddings?: Vectors;
  onZero?: OnZero;
}

/** Rows as they cross to the Worker. */
export function rowsOf({
  ids,
  embeddings,
  metadatas,
  documents,
  sparseEmbeddings,
  multiEmbeddings,
  onZero,
}: GivenRows) {
  return {
    ...(onZero !== undefined && { onZero }),
    ...(ids !== undefined && { ids }),
    ...(embeddings !== undefined && { embeddings: flatten(embeddings) }),
    ...(metadatas !== undefined && { metadatas }),
    ...(documents !== undefined && { documents }),
    ...(sparseEmbeddings !== undefined && { sparseEmbeddings }),
    ...(multiEmbeddings !== undefined && {
      multiEmbeddings: flattenAll(multiEmbeddings, "multiEmbeddings"),
    }),
  };
}

/** The same of rows of which some have no vector. */
export function someOf({ embeddings, ...rows }: MergeOptions | UpdateOptions) {
  const listed: readonly unknown[] = Array.isArray(embeddings) ? embeddings : [];
  const there = listed.includes(null) ? listed.map((one) => one !== null) : undefined;
  const vectors = (there ? listed.filter((one) => one !== null) : embeddings) as Vectors | undefined;
  return {
    ...rowsOf({ ...rows, ...(vectors !== undefined && { embeddings: vectors }) }),
    ...(there && { there }),
  };
}
