/** Batch: rows as a caller passes them enter; a checked batch leaves. Runs on the key owner's side, and on a writer's. */

import { InvalidInput, InvalidRows } from "../errors.js";
import {
  distinct,
  type Flat,
  freshIds,
  idsOf,
  type Rows,
  rowsOf,
  sameLength,
  sliceRows,
} from "../ingest/arrays.js";
import { changed, changesOf } from "../ingest/records.js";
import type { Native } from "../native.js";
import type { Id, Metric } from "../types.js";
import type { NewSegment } from "./change.js";

/** Rows as they cross from the page. */
export interface GivenRows {
  ids?: unknown;
  embeddings?: Flat | undefined;
  metadatas?: unknown;
  documents?: unknown;
}

/** Rows ready to be sealed. */
export interface Batch {
  ids: Id[];
  rows: Rows;
  /** What is sealed beside each row; empty where nothing is. */
  records: Uint8Array[];
  /** Which rows are as they were put in, and not unsealed; null: all of them. */
  original: boolean[] | null;
  /** What they were sealed into, so that a second attempt sends the same bytes. */
  sealed: NewSegment[];
  /** Whether they are to be sealed without those of other segments. */
  alone: boolean;
}

export function newBatch(
  ids: Id[],
  rows: Rows,
  records: Uint8Array[],
  original: boolean[] | null = null,
): Batch {
  return { ids, rows, records, original, sealed: [], alone: false };
}

/** Rows for a collection of this kind. Throws InvalidInput, InvalidRows naming all that is wrong, DuplicateId. */
export function batchOf(native: Native, given: GivenRows, dimension: number, metric: Metric): Batch {
  const { embeddings } = given;
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
  const rows = checked(() => rowsOf(embeddings, dimension, metric));
  const count = rows?.count ?? embeddings.rows ?? embeddings.data.length / dimension;
  const ids =
    given.ids === undefined || given.ids === null ? freshIds(count) : checked(() => idsOf(given.ids));
  if (ids !== null) sameLength(ids.length, count, "embeddings");
  const changes = checked(() => changesOf(ids?.length ?? count, given.metadatas, given.documents));
  if (faults.size > 0 || rows === null || ids === null || changes === null) throw InvalidRows.of(faults);
  distinct(ids);
  const nothing = new Uint8Array(0);
  return newBatch(
    ids,
    rows,
    changes.map((change) => changed(native, nothing, change)),
  );
}

/** Rows from `start` up to `stop` of a batch. */
export function partOf(batch: Batch, start: number, stop: number): Batch {
  return newBatch(
    batch.ids.slice(start, stop),
    sliceRows(batch.rows, start, stop),
    batch.records.slice(start, stop),
    batch.original?.slice(start, stop) ?? null,
  );
}
