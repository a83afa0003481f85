/**
 * Segments: what a store shows and changes to it enter; the directory of rows leaves, in step with the store. Key owner's side.
 *
 * Order of every change: seal, commit to the store, and only then let the directory know. A commit that fails leaves both as they
 * were.
 */

import {
  CiphervecError,
  CommitUncertain,
  Conflict,
  CorruptData,
  DuplicateId,
  InvalidInput,
  isOneOf,
  UnknownId,
  UnsupportedVersion,
} from "../errors.js";
import { sleep } from "../http/retry.js";
import type { Call } from "../http/session.js";
import type { HttpStore } from "../http/store.js";
import type { Sink } from "../http/transport.js";
import { show } from "../ingest/arrays.js";
import { equal, hex, unhex } from "../ingest/bytes.js";
import type { Keys, Native, Owner, SegmentDirectory } from "../native.js";
import type { Id } from "../types.js";
import {
  type Change,
  EVALUATION,
  KEY_PAIR,
  newChange,
  SIDECAR,
  type StoredSegment,
  TAGS,
  WRAP,
} from "./change.js";
import { type Description, hasKeyPair, ownerOf, readDescription, readsAlike } from "./description.js";
import { difference } from "./difference.js";
import { grown, type Known } from "./grown.js";
import { Mutex } from "./mutex.js";
import { Payloads } from "./payloads.js";
import { refuseHeld } from "./quarantine.js";
import { QueryKeys } from "./query-keys.js";
import { COVERED, type Next, type Shown, type State, States } from "./states.js";

/** Rows after which another segment begins. */
export const SEGMENT_ROWS = 65_536;

/** How often a change, or a query, is tried anew at least because others committed in between. */
const TURNS = 16;
/** Milliseconds for which it is. A server that tidies up commits as well, many times a second. */
const PATIENCE = 20_000;

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
  readonly queryKeys = new QueryKeys();
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
  /** Segments in quarantine by the owner's state. */
  #stated = new Set<string>();

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
    const stated = [...this.#stated].map((id): [string, string] => [id, "the owner's state says so"]);
    return new Map([...stated, ...Object.entries(this.store.trust.held)]);
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
    const ends = Date.now() + PATIENCE;
    for (let turn = 0; ; turn++) {
      try {
        return await step();
      } catch (error) {
        const over = turn >= TURNS - 1 && Date.now() > ends;
        if (!(error instanceof Conflict) || over) throw error;
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
      shown = await this.#shown(call);
      const since = difference(this.#taken, this.store.segments());
      if (!grown(this.#known(), shown, since)) {
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
    await this.#took();
  }

  /** Have the server answer a message of queries, from a state with the owner's evaluation keys; the commit that it was computed on.
   * `again` is called before it is sent another time. */
  evaluate(query: Uint8Array, call: Call, sink: Sink, again?: () => void): Promise<number> {
    return this.store.evaluate(query, call, (digest) => this.#states.checkEvaluation(digest), sink, again);
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
    await this.#took();
  }

  /** Segments failed a check: they are not used any more from now on, here, in every session that comes later, and, where this client may
   * commit, in every client of the owner's. What fails of that is no reason to leave out the rest, and `refuseHeld` counts it. The query
   * key ends with it. Their blobs stay in the cache: fetching just those anew would show a server what failed. */
  async hold(segments: readonly string[], reason: string, call: Call): Promise<void> {
    for (const segment of segments) this.#directory.quarantine(unhex(segment));
    this.queryKeys.end();
    const said: string[] = [];
    for (const segment of segments)
      try {
        await this.store.trust.hold(segment, reason);
      } catch (error) {
        said.push(`quarantine could not be written down: ${(error as Error).message}`);
      }
    try {
      await this.inTurn(async () => {
        await this.settle(call); // the call may have ended before it did
        await this.#sayQuarantine(call);
      }, call);
    } catch (error) {
      if (!(error instanceof CiphervecError || call.signal?.aborted)) throw error;
      // Who may not commit now remembers it, and the next commit says it.
    } finally {
      // Last of all: a program's own `onWarning` may throw.
      for (const text of said) this.warn(text);
    }
  }

  /** Use a segment again. Throws InvalidInput, and what a commit does where the owner's state names it. */
  async release(segment: string, call: Call): Promise<void> {
    if (!this.#directory.quarantined().map(hex).includes(segment))
      throw new InvalidInput(
        `segment "${segment}" is not in quarantine; collection.info() lists those that are.`,
      );
    this.#directory.release(unhex(segment));
    this.#stated.delete(segment);
    await this.store.trust.unhold([segment]);
    await this.#sayQuarantine(call);
  }

  /** Put into the owner's state what is in quarantine. */
  async #sayQuarantine(call: Call): Promise<void> {
    const { state } = this;
    if (state === null) return;
    const held = this.#directory.quarantined().map(hex);
    if (String(held.sort()) === String(state.quarantine.map(hex).sort())) return;
    await this.#send(newChange(), call);
    await this.#took();
  }

  /** Ids of the segments in quarantine. */
  quarantined(): Set<string> {
    return new Set(this.#directory.quarantined().map(hex));
  }

  /** Throw Quarantined where a query would have to do without segments that failed a check, here or in another tab or process with the
   * same storage, see `refuseHeld`; with `since`, only if there are others than those. */
  async refuseHeld(skip: boolean, since?: ReadonlySet<string>): Promise<void> {
    const { trust } = this.store;
    if (trust.durable) await trust.reload();
    this.#passOver();
    if (since !== undefined && [...this.quarantined()].every((id) => since.has(id))) return;
    const outlasts = (id: string) => this.#stated.has(id) || trust.keeps(id);
    refuseHeld(this.#directory, this.description.spec.collection, skip, outlasts, this.warn);
  }

  /** Let go of what lies in the wasm's memory. */
  free(): void {
    this.#payloads.free();
    this.#directory.free();
    this.#owner.free();
  }

  /** Read everything again. What is shown may be replaced by others while it is read. */
  async #load(call: Call): Promise<void> {
    let doubted = false;
    for (let turn = 0; ; turn++) {
      try {
        await this.#readAll(call);
        return;
      } catch (error) {
        const last = turn >= TURNS - 1;
        const wrong = isOneOf(error, "CorruptData", "TamperedAnswer", "RollbackDetected");
        if (wrong && (await this.store.drop()) && !doubted) {
          doubted = true; // blobs kept from another time may be wrong: once more, without them
          this.#states.doubt();
          continue;
        }
        if (error instanceof Conflict && !last) {
          await stepAside(turn, call); // what was listed is merged into something newer by now
          await this.store.refresh(call);
        } else if (wrong && !last) {
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
      found: async ({ id }, blob, right) => {
        if (right) await this.store.keep(id, blob);
        return right || this.store.drop(id, blob);
      },
    });
    this.#deleted = new Map();
    this.#reasons = new Map();
    this.#appended = [];
    this.#taken = [];
    this.losses++;
    const shown = await this.#shown(call);
    await this.#openKeyPair(call);
    await this.#attach(shown, shown.counted, call);
    await this.#states.check(shown, call);
    await this.#attachAppended(shown, call);
    await this.#states.holdEvaluation(this.#owner, this.description, call);
    await this.#took();
  }

  /** What the store shows, with the owner's state, under the owner's keys. */
  async #shown(call: Call): Promise<Shown> {
    const shown = await this.#states.shown(this.#owner, this.description, call);
    this.#directory.expectUnconsumed(this.#states.consumed);
    const said = this.store.evaluation;
    if (said !== null) this.#states.checkEvaluation(said);
    return shown;
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
      if (ids.length > 1) await this.store.prefetch(ids, blob, call);
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

  #known(): Known {
    return {
      deleted: this.#deleted,
      reasons: this.#reasons,
      appended: this.#appended,
      aside: this.#directory.aside().map(({ segmentId, row }) => ({ id: hex(segmentId), row })),
    };
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
  async #took(): Promise<void> {
    this.#taken = this.store.segments();
    for (const { segment, blob } of this.store.unkept())
      if ((COVERED as readonly string[]).includes(blob) && !this.#reasons.has(segment))
        await this.store.keep(segment, blob);
    this.#stated = new Set(this.state?.quarantine.map(hex));
    await this.store.trust.unhold([...this.#stated]);
    this.#passOver();
    this.#inStep = true;
  }

  /** Pass over what failed a check before: here, in another tab or in another client of the owner's. */
  #passOver(): void {
    const { held } = this;
    for (const id of held.keys()) if (this.#deleted.has(id)) this.#directory.quarantine(unhex(id));
    // Another client has released the others.
    for (const id of this.#directory.quarantined()) if (!held.has(hex(id))) this.#directory.release(id);
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
        this.#directory.quarantined().map(hex).sort(),
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
    const taken = following;
    const what = `the change to "${this.description.spec.collection}"`;
    await this.store.trust.afterwards(what, () => this.#states.take(taken));
    this.#directory.expectUnconsumed(following.consumed);
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
