/**
 * Payloads: what belongs to a row beside its vector enters and is sealed into blobs of its segment: metadata, document, filter tags, the
 * vector as it was put in. They leave opened. Key owner's side.
 */

import { isOneOf } from "../errors.js";
import { unhex } from "../ingest/bytes.js";
import { originalBytes, readOriginal } from "../ingest/records.js";
import type { Filter, FilterTags, Native, Owner, RecordBatch, SegmentDirectory } from "../native.js";
import type { Id } from "../types.js";
import type { Batch } from "./batch.js";
import { ORIGINALS, RECORDS, type StoredSegment, TAGS } from "./change.js";

/** Bytes of opened records that are held, about. */
const MOST_OPENED = 64 << 20;

/** The bytes of an empty record. */
export const NOTHING = new Uint8Array(0);

/** Rows of a segment that pass a filter, a byte each. */
export type Mask = Uint8Array;

/** What payloads are opened and sealed with. */
export interface PayloadParts {
  native: Native;
  owner: Owner;
  directory: SegmentDirectory;
  filterable: readonly string[];
  keepOriginals: boolean;
  untagged: ReadonlySet<string>;
  read: (segment: StoredSegment, blob: string) => Promise<Uint8Array>;
  /** Told whether a blob opened; where it did not, it says whether reading it again may help. */
  found: (segment: StoredSegment, blob: string, right: boolean) => Promise<boolean>;
}

/** Records and tags of one collection's segments, each read once. */
export class Payloads {
  readonly #parts: PayloadParts;
  readonly #records = new Map<string, RecordBatch>();
  readonly #tags = new Map<string, FilterTags>();
  /** Records that were opened, by row of a segment, all of them forgotten where they grow too many. */
  readonly #opened = new Map<string, Map<number, Uint8Array>>();
  #openedBytes = 0;

  constructor(parts: PayloadParts) {
    this.#parts = parts;
  }

  get filterable(): readonly string[] {
    return this.#parts.filterable;
  }

  /** The bytes of what is stored beside one row; none of a deleted one. */
  async payload(segment: StoredSegment, row: number, id: Id | null): Promise<Uint8Array> {
    if (!hasBlob(segment, RECORDS) || id === null) return NOTHING;
    const known = this.#opened.get(segment.id)?.get(row);
    if (known !== undefined) return known;
    const { native, owner, directory, read } = this.#parts;
    const bytes = await this.#open(segment, RECORDS, async () => {
      let batch = this.#records.get(segment.id);
      if (batch === undefined) {
        batch = native.RecordBatch.fromBytes(await read(segment, RECORDS));
        this.#records.set(segment.id, batch);
      }
      return owner.openRecord(unhex(segment.id), batch, row, id, directory);
    });
    const opened = this.#opened.get(segment.id) ?? new Map<number, Uint8Array>();
    this.#opened.set(segment.id, opened.set(row, bytes));
    this.#openedBytes += bytes.length;
    if (this.#openedBytes > MOST_OPENED) this.#opened.clear();
    if (this.#opened.size === 0) this.#openedBytes = 0;
    return bytes;
  }

  /** The vectors of these rows as they were put in, null where they were not kept. None of a writer's: that they are those searched is the
   * writer's word. */
  async originals(
    segment: StoredSegment,
    rows: readonly number[],
    ids: readonly Id[],
    dimension: number,
  ): Promise<(Float32Array | null)[]> {
    const { native, owner, directory, read } = this.#parts;
    const writer = directory.origin(unhex(segment.id))?.kind === "writer";
    if (!(ORIGINALS in segment.blobs) || writer) return rows.map(() => null);
    const sealed = await this.#open(segment, ORIGINALS, async () => {
      const batch = native.RecordBatch.fromBytes(await read(segment, ORIGINALS));
      try {
        return rows.map((row, i) => owner.openRecord(unhex(segment.id), batch, row, ids[i] as Id, directory));
      } finally {
        batch.free();
      }
    });
    return sealed.map((one) => readOriginal(one, dimension));
  }

  /** What `work` makes of a blob: of the one kept here, or if that is wrong of one read anew. */
  async #open<T>(segment: StoredSegment, blob: string, work: () => Promise<T>): Promise<T> {
    for (let turn = 0; ; turn++) {
      try {
        const made = await work();
        await this.#parts.found(segment, blob, true);
        return made;
      } catch (error) {
        if (!isOneOf(error, "CorruptData")) throw error;
        this.#records.get(segment.id)?.free();
        this.#records.delete(segment.id);
        if (!(await this.#parts.found(segment, blob, false)) || turn > 0) throw error;
      }
    }
  }

  /** Whether the absence of a tag means something. */
  hasTags(segment: StoredSegment): boolean {
    const { filterable, untagged, directory } = this.#parts;
    return (
      filterable.length === 0 ||
      (!untagged.has(segment.id) && directory.origin(unhex(segment.id))?.kind === "owner")
    );
  }

  /** The tags that a row has which passes the filter. */
  wanted(where: Filter): Uint8Array[] {
    return where.tags(this.#parts.owner);
  }

  /** Which of a segment's rows carry all of these tags; null where it has none. */
  async carrying(segment: StoredSegment, tags: Uint8Array[]): Promise<Mask | null> {
    return (await this.#tagsOf(segment))?.matches(tags) ?? null;
  }

  /** Which rows may pass the filter as far as tags tell, and whether that is all there is to test. */
  async bound(segment: StoredSegment, where: Filter): Promise<{ mask: Mask; exact: boolean }> {
    const { native, owner } = this.#parts;
    const tags = await this.#tagsOf(segment);
    const none = tags === null ? new native.FilterTags([]) : null;
    const found = where.bound(owner, tags ?? (none as FilterTags), segment.rows);
    none?.free();
    return { mask: found.slice(0, segment.rows), exact: found[segment.rows] === 1 };
  }

  /** The blobs beside the rows of a new segment. */
  seal(segment: Uint8Array, batch: Batch): { [name: string]: Uint8Array } {
    const { native, owner, keepOriginals, filterable } = this.#parts;
    const blobs: { [name: string]: Uint8Array } = {};
    const { records } = batch;
    const sealed = (payloads: Uint8Array[]) => {
      const made = owner.sealRecords(segment, batch.ids, payloads);
      const bytes = made.toBytes();
      made.free();
      return bytes;
    };
    if (records.some((one) => one.length > 0)) blobs[RECORDS] = sealed(records);
    if (keepOriginals && (batch.original?.some(Boolean) ?? true))
      blobs[ORIGINALS] = sealed(originalBytes(batch.rows, batch.original));
    const tags =
      filterable.length === 0 ? [] : records.map((one) => native.recordTags(owner, [...filterable], one));
    if (tags.some((row) => row.length > 0)) {
      const table = new native.FilterTags(tags);
      blobs[TAGS] = table.toBytes();
      table.free();
    }
    return blobs;
  }

  /** The segment is gone. */
  forget(id: string): void {
    for (const held of [this.#records, this.#tags]) {
      held.get(id)?.free();
      held.delete(id);
    }
    this.#opened.delete(id);
  }

  /** All of them are. */
  free(): void {
    for (const id of [...this.#records.keys(), ...this.#tags.keys()]) this.forget(id);
    this.#opened.clear();
  }

  async #tagsOf(segment: StoredSegment): Promise<FilterTags | null> {
    if (!hasBlob(segment, TAGS)) return null;
    let table = this.#tags.get(segment.id);
    if (table === undefined) {
      table = this.#parts.native.FilterTags.fromBytes(await this.#parts.read(segment, TAGS));
      this.#tags.set(segment.id, table);
    }
    return table;
  }
}

/** Whether to read a blob. Whoever may only query is shown no blobs at all: reading one then says so, unless it was read before. */
function hasBlob(segment: StoredSegment, blob: string): boolean {
  return blob in segment.blobs || Object.keys(segment.blobs).length === 0;
}
