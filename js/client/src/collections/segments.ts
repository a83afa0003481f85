/**
 * Segments: what a store shows and changes to it enter; the directory of rows leaves, in step with the store. Key owner's side.
 *
 * Order of every change: seal, commit to the store, and only then let the directory know. A commit that fails leaves both as they
 * were.
 */

import {
  CommitUncertain,
  Conflict,
  CorruptData,
  DuplicateId,
  isOneOf,
  UnknownId,
  UnsupportedVersion,
} from "../errors.js";
import { sleep } from "../http/retry.js";
import type { Call } from "../http/session.js";
import type { HttpStore } from "../http/store.js";
import { show } from "../ingest/arrays.js";
import { equal, hex, unhex } from "../ingest/bytes.js";
import type { Keys, Native, Owner, SegmentDirectory } from "../native.js";
import type { Id } from "../types.js";
import { type Change, EVALUATION, KEY_PAIR, SIDECAR, type StoredSegment, TAGS, WRAP } from "./change.js";
import { type Description, hasKeyPair, ownerOf, readDescription, readsAlike } from "./description.js";
import { type Difference, difference } from "./difference.js";
import { Mutex } from "./mutex.js";
import { Payloads } from "./payloads.js";
import { COVERED, type Next, type Shown, type State, States } from "./states.js";

/** Rows after which another segment begins. */
export const SEGMENT_ROWS = 65_536;

/** How often a change, or a query, is tried anew because others committed in between. */
const TURNS = 16;

/** What a collection is opened with. */
export interface Opened {
  native: Native;
  keys: Keys | null;
  store: HttpStore;
  description: Description;
  warn: (message: string) => void;
}

/** A row's place. */
export interface Place {
  segment: string;
  row: number;
}

/** The segments of one collection, from the owner's point of view. */
export class Segments {
  readonly native: Native;
  readonly store: HttpStore;
  readonly warn: (message: string) => void;
  readonly lock = new Mutex();
  readonly #keys: Keys | null;
  readonly #states: States;
  description: Description;
  /** What is being done now: reads of records end with it. */
  call: Call = {};
  /** Times that rows went away. */
  losses = 0;
  #owner!: Owner;
  #directory!: SegmentDirectory;
  #payloads!: Payloads;
  #inStep = false;
  /** Deleted rows of every segment that is attached. */
  #deleted = new Map<string, readonly number[]>();
  /** Why segments are passed over. */
  #reasons = new Map<string, string>();
  /** Since the state, and counted. */
  #appended: string[] = [];
  /** As listed when all this was right. */
  #taken: StoredSegment[] = [];
  /** Segments that failed a check, as long as this is open. */
  readonly #held = new Map<string, string>();

  private constructor({ native, keys, store, description, warn }: Opened) {
    this.native = native;
    this.#keys = keys;
    this.store = store;
    this.description = description;
    this.warn = warn;
    this.#states = new States(store, description.spec.collection, native, warn);
  }

  /** Read the sidecars. Throws CorruptData, RollbackDetected or WrongKey. */
  static async open(opened: Opened, call: Call): Promise<Segments> {
    const segments = new Segments(opened);
    await segments.#load(call);
    return segments;
  }

  get owner(): Owner {
    return this.#owner;
  }

  get directory(): SegmentDirectory {
    return this.#directory;
  }

  get payloads(): Payloads {
    return this.#payloads;
  }

  get states(): States {
    return this.#states;
  }

  /** The latest state of the owner's, if there are any. */
  get state(): State | null {
    return this.#states.state;
  }

  /** Segments that writers added since the owner's state, and that count. */
  get appended(): readonly string[] {
    return this.#appended;
  }

  /** Why segments are passed over. */
  get reasons(): ReadonlyMap<string, string> {
    return this.#reasons;
  }

  /** Why segments are in quarantine. */
  get held(): ReadonlyMap<string, string> {
    return this.#held;
  }

  /** The committed segments, oldest first. */
  entries(): StoredSegment[] {
    return this.store.segments();
  }

  /** Those that are not passed over. */
  readEntries(): StoredSegment[] {
    return this.entries().filter(({ id }) => !this.#reasons.has(id));
  }

  /** Segments taken in, those that are passed over included. */
  attached(): Set<string> {
    return new Set(this.#deleted.keys());
  }

  /** Where ids are; null for one that is not here. */
  locate(ids: readonly Id[]): (Place | null)[] {
    return this.#directory
      .locateMany([...ids])
      .map((place) => (place === null ? null : { segment: hex(place.segmentId), row: place.row }));
  }

  /** Where ids are. Throws UnknownId. */
  places(ids: readonly Id[]): Place[] {
    return this.locate(ids).map((place, i) => {
      if (place === null)
        throw new UnknownId(
          `id ${show(ids[i] as Id)} is not in "${this.description.spec.collection}"; nothing was changed. Ids are typed: 1 and ` +
            '"1" are different.',
        );
      return place;
    });
  }

  /** Throws DuplicateId when one of the ids is here. */
  refuseKnown(ids: readonly Id[]): void {
    const known = this.#directory.locateMany([...ids]).findIndex((place) => place !== null);
    if (known >= 0)
      throw new DuplicateId(
        `id ${show(ids[known] as Id)} is already in "${this.description.spec.collection}"; nothing was written. Use upsert to ` +
          "replace it, or update to change it.",
      );
  }

  /** Run `step`, which reads the present state and may commit; again on the latest one when others were first. */
  async inTurn<T>(step: () => Promise<T>, call: Call): Promise<T> {
    for (let turn = 0; ; turn++) {
      try {
        return await step();
      } catch (error) {
        if (!(error instanceof Conflict) || turn >= TURNS - 1) throw error;
        await stepAside(turn, call);
        await this.refresh(call);
      }
    }
  }

  /** Read everything again if the last change was interrupted between its commit and its end. */
  async settle(call: Call): Promise<void> {
    if (this.#inStep) return;
    await this.store.refresh(call);
    await this.#describe(call);
    if (!this.#inStep) await this.#load(call);
  }

  /** Take in what others have committed since: sidecars of new segments, deletions, the epoch. */
  async refresh(call: Call): Promise<void> {
    if (!(await this.store.refresh(call))) return;
    this.#inStep = false;
    await this.#describe(call);
    if (this.#inStep) return; // read again altogether
    let shown: Shown;
    try {
      shown = await this.#states.shown(this.#owner, this.description, call);
      const since = difference(this.#taken, this.store.segments());
      if (!this.#grown(shown, since)) {
        await this.#load(call);
        return;
      }
      for (const { id } of since.gone) this.#detach(id);
      // An id may have moved from an old segment to a new one, so rows go before others come.
      this.#forget(since.changed);
      const others = new Set(shown.appended.map(({ id }) => id));
      for (const [id, rows] of shown.aside) if (rows.length === 0) others.add(id);
      await this.#attach(
        shown,
        since.added.filter(({ id }) => !others.has(id)),
        call,
      );
      await this.#states.check(shown, call);
    } catch (error) {
      if (!isOneOf(error, "Conflict", "CorruptData", "RollbackDetected")) throw error;
      await this.#load(call); // again, where others were faster, or the same error
      return;
    }
    if (shown.state !== null && this.#appended.length > 0 && shown.appended.length === 0) {
      this.#directory.authenticate();
      this.#appended = [];
    }
    await this.#attachAppended(shown, call);
    await this.#states.holdEvaluation(this.#owner, this.description, call);
    this.#took();
  }

  /** Commit `change`, in which the rows of the ids in `dropped` go, and take it in. */
  async commit(change: Change, dropped: readonly Id[], call: Call): Promise<void> {
    if (change.add.length + change.remove.length + change.deleteRows.size === 0) return;
    await this.#send(change, call);
    for (const id of dropped) this.#directory.markDeleted(id);
    if (dropped.length > 0) this.losses++;
    if (change.deleteRows.size + change.remove.length > 0) this.#directory.settle();
    for (const [id, rows] of change.deleteRows)
      this.#deleted.set(id, [...(this.#deleted.get(id) ?? []), ...rows]);
    for (const id of change.remove) this.#detach(id);
    for (const { id, blobs } of change.add) {
      this.#owner.addTo(
        this.#directory,
        unhex(id),
        blobs[SIDECAR] as Uint8Array,
        undefined,
        undefined,
        "new",
      );
      this.#deleted.set(id, []);
    }
    this.#took();
  }

  /** A segment failed a check: it is passed over until the collection is opened again. */
  quarantine(segment: string, reason: string): void {
    this.#directory.quarantine(unhex(segment));
    this.#held.set(segment, reason);
  }

  /** Let go of what lies in the wasm's memory. */
  free(): void {
    this.#payloads.free();
    this.#directory.free();
    this.#owner.free();
  }

  /** Read everything again. What is shown may be replaced by others while it is read. */
  async #load(call: Call): Promise<void> {
    for (let turn = 0; ; turn++) {
      try {
        await this.#readAll(call);
        return;
      } catch (error) {
        const last = turn >= TURNS - 1;
        if (error instanceof Conflict && !last) {
          await stepAside(turn, call); // what was listed is merged into something newer by now
          await this.store.refresh(call);
        } else if (isOneOf(error, "CorruptData", "TamperedAnswer", "RollbackDetected") && !last) {
          const before = this.store.version;
          this.store.doubt();
          if (!(await this.store.refresh(call)) || (this.store.version === before && turn > 0)) {
            this.store.doubt(); // shown so twice
            throw error;
          }
        } else throw error;
        this.#renew();
      }
    }
  }

  async #readAll(call: Call): Promise<void> {
    this.#inStep = false;
    if (this.description.routed)
      throw new UnsupportedVersion(
        `collection "${this.description.spec.collection}" is routed, which this package does not search yet. Use the Python client, or ` +
          "a collection without routing.",
      );
    const owner = ownerOf(this.native, this.#keys, this.description);
    this.#payloads?.free();
    this.#directory?.free();
    this.#owner?.free();
    this.#owner = owner;
    this.#directory = new this.native.SegmentDirectory();
    this.#payloads = new Payloads({
      native: this.native,
      owner,
      directory: this.#directory,
      filterable: this.description.filterable,
      keepOriginals: this.description.originals,
      untagged: this.description.untagged,
      read: (segment, blob) => this.#read(segment, blob, this.call),
    });
    this.#deleted = new Map();
    this.#reasons = new Map();
    this.#appended = [];
    this.#taken = [];
    this.losses++;
    const shown = await this.#states.shown(owner, this.description, call);
    await this.#openKeyPair(call);
    await this.#attach(shown, shown.counted, call);
    await this.#states.check(shown, call);
    await this.#attachAppended(shown, call);
    await this.#states.holdEvaluation(this.#owner, this.description, call);
    this.#took();
  }

  /** Take in segments of the owner's state, or of a collection that has none. One that does not open is an error where the owner says that
   * it is there. */
  async #attach(shown: Shown, segments: readonly StoredSegment[], call: Call): Promise<void> {
    await this.#prefetch(segments, call);
    for (const segment of segments) {
      try {
        const wrap = WRAP in segment.blobs ? await this.#read(segment, WRAP, call) : undefined;
        const sidecar = await this.#read(segment, SIDECAR, call);
        this.#counting(segment, sidecar, wrap, "stored", shown.aside.get(segment.id) ?? []);
      } catch (error) {
        if (!isOneOf(error, "CorruptData", "InvalidInput", "UnsupportedVersion", "WrongKey")) throw error;
        const { message } = error as Error;
        if (shown.state === null && WRAP in segment.blobs) {
          this.#refuse(segment, message);
          continue;
        }
        throw new CorruptData(
          `segment ${segment.id} of collection "${this.description.spec.collection}" does not open, and its owner stored it: ${message}`,
        );
      }
      if (shown.state !== null && TAGS in segment.blobs) await this.#read(segment, TAGS, call);
    }
  }

  /** Take in what came since the owner's state: segments of writers. Whatever else was put there, by a replay say, is passed over, as are the
   * segments that the owner set aside. */
  async #attachAppended(shown: Shown, call: Call): Promise<void> {
    await this.#prefetch(shown.appended, call);
    if (shown.aside.size > 0)
      for (const segment of this.store.segments())
        if (shown.aside.get(segment.id)?.length === 0 && !this.#deleted.has(segment.id))
          this.#refuse(segment, "it was set aside before");
    for (const segment of shown.appended) {
      if (this.#deleted.has(segment.id)) continue;
      if (!(WRAP in segment.blobs) || !(SIDECAR in segment.blobs))
        this.#refuse(segment, "neither its owner nor a writer added it: an old commit was sent again");
      else if (segment.deleted.length > 0)
        this.#refuse(segment, "rows of it were deleted, and not by its owner");
      else
        try {
          const wrap = await this.#read(segment, WRAP, call);
          const sidecar = await this.#read(segment, SIDECAR, call);
          this.#counting(segment, sidecar, wrap, "appended", []);
          this.#appended.push(segment.id);
        } catch (error) {
          if (!isOneOf(error, "CorruptData", "InvalidInput", "UnsupportedVersion", "WrongKey")) throw error;
          this.#refuse(segment, (error as Error).message);
        }
    }
  }

  #counting(
    segment: StoredSegment,
    sidecar: Uint8Array,
    wrap: Uint8Array | undefined,
    standing: "stored" | "appended",
    aside: readonly number[],
  ): void {
    const before = this.#directory.shadowed().length;
    const deleted = Uint32Array.from(segment.deleted);
    this.#owner.addTo(
      this.#directory,
      unhex(segment.id),
      sidecar,
      deleted,
      wrap,
      standing,
      Uint32Array.from(aside),
    );
    this.#deleted.set(segment.id, segment.deleted);
    if (this.#directory.shadowed().length !== before) this.losses++;
  }

  /** Pass over a segment, which must not stop the owner from reading the others. */
  #refuse(segment: StoredSegment, reason: string): void {
    this.#directory.refuse(unhex(segment.id));
    this.#deleted.set(segment.id, segment.deleted);
    this.#reasons.set(segment.id, reason);
  }

  async #prefetch(segments: readonly StoredSegment[], call: Call): Promise<void> {
    for (const blob of COVERED) {
      const ids = segments.filter((one) => blob in one.blobs).map(({ id }) => id);
      if (ids.length > 1) await this.store.readAll(ids, blob, call);
    }
  }

  async #read(segment: StoredSegment, blob: string, call: Call): Promise<Uint8Array> {
    const data = await this.store.read(segment.id, blob, call);
    this.#states.note(segment.id, blob, data);
    return data;
  }

  /** What opens is what the owner sealed; the public key beside it, which anybody could write, must be its half. */
  async #openKeyPair(call: Call): Promise<void> {
    if (!hasKeyPair(this.description.spec)) return;
    const pair = await this.store.attachment(KEY_PAIR, call);
    const given = await this.store.attachment(EVALUATION, call);
    this.#states.checkAttachment(KEY_PAIR, pair);
    this.#states.checkAttachment(EVALUATION, given);
    this.#owner.openKeyPair(pair);
    const half = this.#owner.publicKey();
    const own = half.toBytes();
    half.free();
    if (!equal(given, own))
      throw new CorruptData(
        `the public key kept with collection "${this.description.spec.collection}" is not the one of its key pair: it was replaced ` +
          "or damaged. Restore it from a copy.",
      );
  }

  async #describe(call: Call): Promise<void> {
    const before = this.description;
    this.#renew();
    // Another client gives the collection new keys, or has given them, or other filterable fields.
    if (!readsAlike(before, this.description)) await this.#load(call);
  }

  #renew(): void {
    const { spec } = this.description;
    const described = readDescription(this.native, this.#keys, this.store.meta, spec.collection);
    if (!described.spec.equals(spec))
      throw new CorruptData(
        `collection "${spec.collection}" is another one now. Close it and open it again.`,
      );
    this.description = described;
  }

  /** Whether all that is new since the state known here are segments, and deletions: not so after a restore, or when rows were set aside, or
   * rows appended count otherwise by now. */
  #grown(shown: Shown, since: Difference): boolean {
    const fewer = since.changed.some(({ id, deleted }) =>
      this.#deleted.get(id)?.some((row) => !deleted.includes(row)),
    );
    if (fewer || since.added.some(({ id }) => this.#deleted.has(id))) return false;
    if (shown.state === null) return true;
    const gone = new Set(since.gone.map(({ id }) => id));
    const left = new Set(shown.appended.map(({ id }) => id));
    const aside = new Map<string, number[]>();
    for (const { segmentId, row } of this.#directory.aside()) {
      const id = hex(segmentId);
      aside.set(
        id,
        [...(aside.get(id) ?? []), row].sort((a, b) => a - b),
      );
    }
    // Whether a segment known here is one of the owner's state by now.
    const counts = (id: string) =>
      this.#deleted.has(id) && !(gone.has(id) || left.has(id) || shown.aside.get(id)?.length === 0);
    const same = (id: string) => String(aside.get(id) ?? []) === String(shown.aside.get(id) ?? []);
    const known = [...left].filter((id) => this.#deleted.has(id) && !this.#appended.includes(id));
    return (
      [...new Set([...aside.keys(), ...shown.aside.keys()])].every((id) => !counts(id) || same(id)) &&
      ![...this.#reasons.keys()].some(counts) &&
      (left.size === 0 || this.#appended.every((id) => left.has(id))) &&
      known.every((id) => this.#reasons.has(id))
    );
  }

  /** Mark rows of attached segments as deleted that others have deleted. */
  #forget(changed: readonly StoredSegment[]): void {
    for (const segment of changed) {
      const before = new Set(this.#deleted.get(segment.id));
      const names = this.#directory.names(unhex(segment.id));
      const rows = segment.deleted.filter((row) => !before.has(row));
      for (const row of rows) {
        const name = names?.[row] ?? null;
        if (name !== null) this.#directory.markDeleted(name);
      }
      this.#deleted.set(segment.id, segment.deleted);
      if (rows.length > 0) this.losses++;
    }
  }

  #detach(id: string): void {
    this.#directory.remove(unhex(id));
    this.#deleted.delete(id);
    this.#payloads.forget(id);
    this.#reasons.delete(id);
    this.#appended = this.#appended.filter((one) => one !== id);
    this.losses++;
  }

  /** What the store lists is taken in. */
  #took(): void {
    this.#taken = this.store.segments();
    for (const id of this.#held.keys()) if (this.#deleted.has(id)) this.#directory.quarantine(unhex(id));
    this.#inStep = true;
  }

  /** Commit to the store, with the state that the change makes. Out of step from here on, until the caller has taken the change in as
   * well. */
  async #send(change: Change, call: Call): Promise<void> {
    let following: Next | null = null;
    if (this.description.authenticated) {
      const counted = new Set(this.#appended);
      const first = this.#states.state === null;
      const appended = first ? this.readEntries() : this.entries().filter(({ id }) => counted.has(id));
      following = await this.#states.seal(
        change,
        this.#owner,
        this.description,
        appended,
        this.#aside(change.remove),
        call,
      );
    }
    this.#inStep = false;
    const { version } = this.store;
    try {
      await this.store.commit(change, call);
    } catch (error) {
      // Refused: the old state stands, here and in the store. Otherwise, or where what came after it failed, the next call looks.
      const unsure = error instanceof CommitUncertain || call.signal?.aborted;
      this.#inStep = !unsure && this.store.version === version;
      throw error;
    }
    if (following === null) return;
    await this.#states.take(following);
    this.#directory.authenticate();
    this.#appended = [];
  }

  /** Rows that are there and don't count, by segment; none at all: the whole segment. */
  #aside(removed: readonly string[]): Map<string, number[]> {
    const rows = new Map<string, number[]>();
    for (const id of this.#directory.refused().map(hex)) if (!removed.includes(id)) rows.set(id, []);
    for (const { segmentId, row } of this.#directory.aside()) {
      const id = hex(segmentId);
      if (!removed.includes(id))
        rows.set(
          id,
          [...(rows.get(id) ?? []), row].sort((a, b) => a - b),
        );
    }
    return rows;
  }
}

/** Wait a moment: those who met once should not meet again. */
function stepAside(turn: number, call: Call): Promise<void> {
  return sleep(Math.random() * Math.min(500, 10 * 2 ** turn), call.signal);
}
