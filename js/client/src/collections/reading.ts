/** Reading: ids enter; records and vectors of rows leave, opened. Key owner's side. */

import type { Call } from "../http/session.js";
import { METRICS, type Rows } from "../ingest/arrays.js";
import { hex, unhex } from "../ingest/bytes.js";
import { type Record, recordOf } from "../ingest/records.js";
import type { Id, Metric } from "../types.js";
import { ROWS } from "./change.js";
import { NOTHING } from "./payloads.js";
import type { Segments } from "./segments.js";

/** The metadata and document of each id. Throws UnknownId. */
export async function readRecords(segments: Segments, ids: readonly Id[]): Promise<Record[]> {
  return (await readPayloads(segments, ids)).map(recordOf);
}

/** The same as the bytes that were sealed. */
export async function readPayloads(segments: Segments, ids: readonly Id[]): Promise<Uint8Array[]> {
  const entries = new Map(segments.entries().map((segment) => [segment.id, segment]));
  const found: Uint8Array[] = [];
  for (const [i, { segment, row }] of segments.places(ids).entries()) {
    const entry = entries.get(segment);
    found.push(entry === undefined ? NOTHING : await segments.payloads.payload(entry, row, ids[i] as Id));
  }
  return found;
}

/** The vectors of these ids, and which of them are as they were put in: where that was not kept they are unsealed, to within the precision of
 * the seal. Throws UnknownId. */
export async function readVectors(
  segments: Segments,
  ids: readonly Id[],
  call: Call,
): Promise<{ rows: Rows; original: boolean[] }> {
  const { dimension } = segments.description.spec;
  const rows: Rows = { data: new Float32Array(ids.length * dimension), count: ids.length, dimension };
  const original = ids.map(() => false);
  const entries = new Map(segments.entries().map((segment) => [segment.id, segment]));
  const bySegment = new Map<string, { position: number; row: number }[]>();
  for (const [position, { segment, row }] of segments.places(ids).entries())
    bySegment.set(segment, [...(bySegment.get(segment) ?? []), { position, row }]);
  for (const [id, places] of bySegment) {
    const entry = entries.get(id);
    if (entry === undefined) continue;
    const names = places.map(({ position }) => ids[position] as Id);
    const kept = await segments.payloads.originals(
      entry,
      places.map(({ row }) => row),
      names,
      dimension,
    );
    places.forEach(({ position }, i) => {
      const vector = kept[i];
      if (vector) rows.data.set(vector, position * dimension);
      original[position] = Boolean(vector);
    });
    const left = places.filter(({ position }) => !original[position]);
    if (left.length > 0) {
      const unsealed = await unseal(
        segments,
        id,
        left.map(({ row }) => row),
        call,
      );
      rescale(
        segments,
        left.map(({ position }) => ids[position] as Id),
        unsealed,
        dimension,
      );
      left.forEach(({ position }, i) => {
        rows.data.set(unsealed.subarray(i * dimension, (i + 1) * dimension), position * dimension);
      });
    }
  }
  return { rows, original };
}

/** A vector for each id: the next of those given where one is `there`, else the stored one. And which are as they were put in. */
export async function withStored(
  segments: Segments,
  ids: readonly Id[],
  there: readonly boolean[],
  given: Rows | null,
  call: Call,
): Promise<{ rows: Rows; original: boolean[] }> {
  const missing = ids.filter((_, i) => !there[i]);
  const stored = await readVectors(segments, missing, call);
  if (given !== null && missing.length === 0) return { rows: given, original: ids.map(() => true) };
  const { dimension } = stored.rows;
  const rows = { data: new Float32Array(ids.length * dimension), count: ids.length, dimension };
  const next = { given: 0, stored: 0 };
  const original = there.map((one, i) => {
    const at = one ? next.given++ : next.stored++;
    const from = one && given !== null ? given : stored.rows;
    rows.data.set(from.data.subarray(at * dimension, (at + 1) * dimension), i * dimension);
    return one || stored.original[at] === true;
  });
  return { rows, original };
}

async function unseal(
  segments: Segments,
  id: string,
  rows: readonly number[],
  call: Call,
): Promise<Float32Array> {
  const sealed = await segments.store.read(id, ROWS, call);
  const rowsOf = await checking(
    segments,
    async () => {
      try {
        return segments.owner.unseal(sealed, segments.directory, Uint32Array.from(rows));
      } catch (error) {
        // Whatever becomes of that, the error is that of the check.
        await segments.store.drop(id, ROWS).catch(() => undefined);
        throw error;
      }
    },
    call,
  );
  await segments.store.keep(id, ROWS);
  return rowsOf;
}

/** Run what checks segments; one that fails is not used any more from now on. */
export async function checking<T>(segments: Segments, work: () => T | Promise<T>, call: Call): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failed = (error as { segments?: Uint8Array[] }).segments;
    if (failed !== undefined && (error as Error).name === "TamperedAnswer")
      await segments.hold(failed.map(hex), (error as Error).message, call);
    throw error;
  }
}

/** Put unsealed rows where they were put in: with their lengths, which `ip` and `l2` keep, and their center; else at unit length. */
function rescale(segments: Segments, ids: Id[], rows: Float32Array, dimension: number): void {
  if (METRICS[segments.description.spec.metric as Metric].bits) return;
  const norms = segments.directory.norms(ids);
  const places = segments.places(ids);
  ids.forEach((_, i) => {
    const center = segments.directory.centre(unhex(places[i]?.segment as string));
    const row = rows.subarray(i * dimension, (i + 1) * dimension);
    const length = Math.hypot(...row);
    const scale = length > 0 ? (norms[i] as number) / length : 0;
    row.forEach((value, column) => {
      row[column] = value * scale + (center[column] ?? 0);
    });
  });
}
