/**
 * States: what a store shows of a collection enters; it leaves if its owner has authenticated it, and if it descends from what was
 * seen before. Key owner's side.
 *
 * The owner's client writes a state with each of its commits, in the attachment `state`: which segments there are, in order, with which
 * deletions, under which description and epoch, and after which states. Segments beyond those are ones that writers appended since.
 */

import { CorruptData, InvalidInput, isOneOf, PinMismatch, RollbackDetected } from "../errors.js";
import type { Pin } from "../http/pin.js";
import type { Call } from "../http/session.js";
import type { HttpStore } from "../http/store.js";
import { concat, equal, hex, random, unhex } from "../ingest/bytes.js";
import type { Native, Owner, StateFacts, WrittenFacts } from "../native.js";
import {
  type Change,
  CONSUMED,
  EVALUATION,
  KEY_PAIR,
  ROUTING,
  SIDECAR,
  STATE,
  type StoredSegment,
  storedOf,
  TAGS,
  union,
  WRAP,
} from "./change.js";
import type { Description } from "./description.js";
import { difference } from "./difference.js";

/** The blobs whose bytes a state covers; records are sealed one by one to their place and id. */
export const COVERED = [SIDECAR, TAGS, WRAP] as const;

const ANCESTORS = 256;
const NONE = new Uint8Array(32);

export type State = StateFacts & { key: string };

/** What a store shows, sorted by what its owner's state says of it. */
export interface Shown {
  /** Null: a collection of a release before, or of mode `open`, where nothing is authenticated. */
  state: State | null;
  counted: StoredSegment[];
  appended: StoredSegment[];
  /** Rows that don't count, by segment; none at all: the whole segment. */
  aside: Map<string, number[]>;
}

/** A state that was sealed and is not committed yet. */
export interface Next {
  state: State;
  sealed: Uint8Array;
  leaves: Map<string, Uint8Array>;
  counted: Map<string, StoredSegment>;
  consumed: Uint8Array;
}

/** The authenticated states of one collection, as this client knows them. */
export class States {
  readonly #store: HttpStore;
  readonly #collection: string;
  readonly #native: Native;
  readonly #warn: (message: string) => void;
  state: State | null = null;
  /** Writers' segments that count no more, as the state names them; empty: none. */
  consumed: Uint8Array = new Uint8Array(0);
  #sealed = new Uint8Array(0);
  /** Of every segment, the BLAKE3 of its covered blobs. */
  #digests = new Map<string, Map<string, Uint8Array>>();
  /** In order, as they were found right. */
  #counted = new Map<string, StoredSegment>();
  #leaves = new Map<string, Uint8Array>();
  /** What the owner was given last. */
  #evaluation: { owner: Owner; epoch: number; expected: Uint8Array | null } | null = null;

  constructor(store: HttpStore, collection: string, native: Native, warn: (message: string) => void) {
    this.#store = store;
    this.#collection = collection;
    this.#native = native;
    this.#warn = warn;
  }

  /** Open the state beside the segments and sort these by it. Throws RollbackDetected. */
  async shown(owner: Owner, description: Description, call: Call): Promise<Shown> {
    const entries = this.#store.segments();
    if (!description.authenticated) {
      if (this.state !== null || this.#store.trust.state !== null)
        throw this.#rolledBack("a description from before its states were authenticated");
      return { state: null, counted: entries, appended: [], aside: new Map() };
    }
    const { sealed, state } = await this.#read(owner, call);
    if (state.key !== description.keyId)
      throw this.#rolledBack(`a state under the keys ${state.key}, not ${description.keyId}`);
    const { incarnation } = description.spec;
    if (incarnation !== undefined && !equal(incarnation, state.origin))
      throw this.#rolledBack("the state of another collection of this name");
    if (!equal(state.description, this.#native.blake3(this.#store.meta)) || state.epoch !== description.epoch)
      throw this.#rolledBack(
        `a description of epoch ${description.epoch} that is not the one of state ${state.sequence}, of epoch ${state.epoch}`,
      );
    const aside = new Map(state.aside.map(({ segmentId, rows }) => [hex(segmentId), Array.from(rows)]));
    const rest = entries.filter((segment) => aside.get(segment.id)?.length !== 0);
    if (rest.length < state.segments)
      throw this.#rolledBack(`${rest.length} segments where state ${state.sequence} has ${state.segments}`);
    this.consumed = await this.#readConsumed(state, call);
    this.#sealed = sealed;
    this.state = state;
    return { state, counted: rest.slice(0, state.segments), appended: rest.slice(state.segments), aside };
  }

  /** A blob that is covered was read. Throws CorruptData when it was another one before. */
  note(segment: string, blob: string, data: Uint8Array): void {
    if (!(COVERED as readonly string[]).includes(blob)) return;
    const digest = this.#native.blake3(data);
    const known = this.#digests.get(segment) ?? new Map<string, Uint8Array>();
    this.#digests.set(segment, known);
    const before = known.get(blob);
    if (before !== undefined && !equal(before, digest))
      throw new CorruptData(
        `the blob ${blob} of segment ${segment} of collection "${this.#collection}" is another one than before. Ask whoever keeps ` +
          "it what happened, or restore it from a copy.",
      );
    known.set(blob, digest);
  }

  /** What was read of blobs may be wrong: none of it is compared with what is read from now on, which the state has to name anew. */
  doubt(): void {
    this.#digests = new Map();
    this.#counted = new Map();
    this.#leaves = new Map();
  }

  /** Compare the segments with the state, once their blobs were read, and the state with what was seen before. Throws
   * RollbackDetected. */
  async check(shown: Shown, call: Call): Promise<void> {
    const { state } = shown;
    if (state === null) return;
    const { gone, changed, added } = difference([...this.#counted.values()], shown.counted);
    const counted = new Map(this.#counted);
    const leaves = new Map(this.#leaves);
    for (const { id } of gone) {
      counted.delete(id);
      leaves.delete(id);
    }
    for (const segment of [...changed, ...added]) {
      counted.set(segment.id, segment);
      leaves.set(segment.id, await this.#leaf(segment, call));
    }
    const digest = this.#native.stateDigest(concat([...leaves.values()]));
    if (leaves.size !== shown.counted.length || !equal(digest, state.segmentsDigest)) {
      const which = changed.slice(0, 3).map(({ id }) => id);
      const since = which.length > 0 ? ` (changed since: ${which.join(", ")})` : "";
      throw this.#rolledBack(
        `segments that are not those of state ${state.sequence}: reordered, replaced, or with other rows deleted${since}`,
      );
    }
    const pin = this.#pin(state, this.#sealed);
    this.#follow(state, pin, this.#store.trust.state);
    this.#counted = counted;
    this.#leaves = leaves;
    await this.#store.trust.seeState(pin);
  }

  /** Let the owner have the evaluation keys that queries of this epoch are answered with. Throws RollbackDetected for others than
   * those of the state. */
  async holdEvaluation(owner: Owner, description: Description, call: Call): Promise<void> {
    if (!["sealed", "sealed-query"].includes(description.spec.mode)) return;
    const expected = this.state?.evaluation ?? null;
    const given = this.#evaluation;
    const same =
      given !== null &&
      (expected === null || given.expected === null
        ? given.expected === expected
        : equal(given.expected, expected));
    if (same && given.owner === owner && given.epoch === description.epoch) return;
    const keys = owner.evaluation(description.epoch);
    const ours = this.#native.blake3(keys.toBytes());
    keys.free();
    if (expected === null || !equal(ours, expected)) {
      const data = await this.#store.attachment(EVALUATION, call);
      this.checkAttachment(EVALUATION, data);
      owner.holdEvaluation(data);
    }
    this.#evaluation = { owner, epoch: description.epoch, expected };
  }

  /** Compare the evaluation keys, the sealed key pair or routing table with the state. Throws RollbackDetected. */
  checkAttachment(name: string, data: Uint8Array): void {
    if (this.state === null) return;
    const { evaluation, routing, keyPair } = this.state;
    const expected = name === EVALUATION ? evaluation : name === ROUTING ? routing : keyPair;
    if (!equal(this.#native.blake3(data), expected))
      throw this.#rolledBack(`another ${name} than that of state ${this.state.sequence}`);
  }

  /** Compare the BLAKE3 of the evaluation keys that answer, or are said to, with the state. Throws RollbackDetected. */
  checkEvaluation(digest: Uint8Array): void {
    if (this.state !== null && !equal(digest, this.state.evaluation))
      throw this.#rolledBack(`other evaluation keys than those of state ${this.state.sequence}`);
  }

  /** The state that `change` makes, added to it. `appended` are the segments that count from now on, `aside` the rows, or whole
   * segments, that don't, `quarantine` those that failed a check. */
  async seal(
    change: Change,
    owner: Owner,
    description: Description,
    appended: readonly StoredSegment[],
    aside: ReadonlyMap<string, readonly number[]>,
    quarantine: readonly string[],
    call: Call,
  ): Promise<Next> {
    const before = this.state;
    const leaves = new Map(this.#leaves);
    const counted = new Map(this.#counted);
    for (const segment of appended) {
      leaves.set(segment.id, await this.#leaf(segment, call));
      counted.set(segment.id, segment);
    }
    for (const id of [
      ...change.remove,
      ...[...aside].filter(([, rows]) => rows.length === 0).map(([one]) => one),
    ]) {
      leaves.delete(id);
      counted.delete(id);
    }
    for (const [id, rows] of change.deleteRows) {
      const old = counted.get(id);
      if (old === undefined) continue;
      const left = { ...old, deleted: union(old.deleted, rows) };
      counted.set(id, left);
      leaves.set(id, await this.#leaf(left, call));
    }
    for (const added of change.add) {
      for (const [blob, data] of Object.entries(added.blobs)) this.note(added.id, blob, data);
      const stored = storedOf(added);
      counted.set(added.id, stored);
      leaves.set(added.id, await this.#leaf(stored, call));
    }
    const { blake3 } = this.#native;
    const consumed = await this.#consume(change, owner, call);
    const attached = async (name: string, known: Uint8Array | undefined) => {
      const given = change.attachments.get(name);
      if (given !== undefined) return blake3(given);
      return known ?? blake3(await this.#store.attachment(name, call));
    };
    const pair = description.spec.scheme === "lattice" ? NONE : await attached(KEY_PAIR, before?.keyPair);
    const facts: StateFacts = {
      origin: before?.origin ?? description.spec.incarnation ?? random(16),
      lineage: before?.lineage ?? random(16),
      begun: before?.begun ?? now(),
      sequence: before === null ? 0n : before.sequence + 1n,
      epoch: description.epoch,
      segments: leaves.size,
      segmentsDigest: this.#native.stateDigest(concat([...leaves.values()])),
      description: blake3(change.meta ?? this.#store.meta),
      evaluation: await attached(EVALUATION, before?.evaluation),
      keyPair: pair,
      ancestors:
        before === null ? [] : [...before.ancestors, this.#native.stateName(this.#sealed)].slice(-ANCESTORS),
      aside: [...aside].map(([id, rows]) => ({ segmentId: unhex(id), rows: Uint32Array.from(rows) })),
      routing: change.attachments.has(ROUTING)
        ? await attached(ROUTING, undefined)
        : (before?.routing ?? NONE),
      consumed: consumed.length > 0 ? blake3(consumed) : NONE,
      quarantine: quarantine.filter((id) => !change.remove.includes(id)).map(unhex),
    };
    const sealed = owner.sealState(facts);
    change.attachments.set(STATE, sealed);
    return { state: { ...facts, key: owner.keyId }, sealed, leaves, counted, consumed };
  }

  /** The commit that was sealed is made. */
  async take(following: Next): Promise<void> {
    this.state = following.state;
    this.#sealed = following.sealed.slice();
    this.#leaves = following.leaves;
    this.#counted = following.counted;
    this.consumed = following.consumed;
    await this.#store.trust.seeState(this.#pin(following.state, following.sealed));
  }

  /** What two people compare to know that they see one history. Throws InvalidInput. */
  checkpoint(): string {
    return this.#native.stateCheckpoint(this.#present().sequence, this.#native.stateName(this.#sealed));
  }

  /** That the state of this checkpoint is the present one, or comes before it. Throws InvalidInput, RollbackDetected. */
  expect(checkpoint: string): void {
    const state = this.#present();
    const point = this.#native.readCheckpoint(checkpoint);
    if (point === null)
      throw new InvalidInput(
        `${JSON.stringify(checkpoint)} is no checkpoint: those have 24 characters, digits and letters but U, as ` +
          "collection.checkpoint() gives them.",
      );
    const steps = Number(state.sequence - point.sequence);
    if (steps > state.ancestors.length && state.ancestors.length >= ANCESTORS)
      throw new RollbackDetected(
        `state ${state.sequence} of "${this.#collection}" names the ${ANCESTORS} states before it, and the checkpoint is of state ` +
          `${point.sequence}: nobody can tell whether it is one of its history. Compare a later checkpoint.`,
      );
    const names = [...state.ancestors, this.#native.stateName(this.#sealed)];
    const name = steps < 0 ? undefined : names[names.length - 1 - steps];
    if (name !== undefined && equal(name.slice(0, point.name.length), point.name)) return;
    throw new RollbackDetected(
      `the store of "${this.#collection}" shows state ${state.sequence}, ${this.checkpoint()}, in whose history there is no ` +
        `${checkpoint}: whoever gave you that saw ${steps < 0 ? "what is not shown here yet, or is hidden" : "another history"}. ` +
        "Read both aloud again; if they differ, believe neither, and ask whoever keeps the collection.",
    );
  }

  #present(): State {
    if (this.state === null)
      throw new InvalidInput(
        `the states of "${this.#collection}" are not authenticated, so that they have no checkpoints: mode "open" has no key, and a ` +
          "collection of release 0.1 gets them by the Python client's upgrade().",
      );
    return this.state;
  }

  /** The present state. */
  pin(): Pin | null {
    return this.state === null ? null : this.#pin(this.state, this.#sealed);
  }

  async #read(owner: Owner, call: Call): Promise<{ sealed: Uint8Array<ArrayBuffer>; state: State }> {
    if (!this.#store.hasAttachment(STATE)) throw this.#rolledBack("no authenticated state");
    const sealed = (await this.#store.attachment(STATE, call)).slice();
    if (this.state !== null && equal(sealed, this.#sealed)) return { sealed, state: this.state };
    try {
      return { sealed, state: owner.openState(sealed) };
    } catch (error) {
      if (isOneOf(error, "CorruptData", "WrongKey"))
        throw this.#rolledBack(`a state that its owner did not make (${(error as Error).message})`);
      throw error;
    }
  }

  async #readConsumed(state: State, call: Call): Promise<Uint8Array> {
    if (equal(state.consumed, NONE)) return new Uint8Array(0);
    if (this.state !== null && equal(this.state.consumed, state.consumed)) return this.consumed;
    const data = await this.#store.attachment(CONSUMED, call);
    if (!equal(this.#native.blake3(data), state.consumed))
      throw this.#rolledBack(`another list of consumed segments than that of state ${state.sequence}`);
    return data;
  }

  /** The list of consumed segments after `change`, added to it where it grew. */
  async #consume(change: Change, owner: Owner, call: Call): Promise<Uint8Array> {
    const listed = new Map(this.#store.segments().map((segment) => [segment.id, segment]));
    const written: WrittenFacts[] = [];
    for (const id of change.remove) {
      if (!(WRAP in (listed.get(id)?.blobs ?? {}))) continue;
      try {
        written.push(owner.written(unhex(id), await this.#store.read(id, WRAP, call)));
      } catch (error) {
        if (!isOneOf(error, "CorruptData", "InvalidInput", "UnsupportedVersion", "WrongKey")) throw error; // it opens for nobody
      }
    }
    if (written.length === 0) return this.consumed;
    const consumed = this.#native.consumedAfter(this.consumed, written);
    change.attachments.set(CONSUMED, consumed);
    return consumed;
  }

  async #leaf(segment: StoredSegment, call: Call): Promise<Uint8Array> {
    for (const blob of COVERED)
      if (blob in segment.blobs && !this.#digests.get(segment.id)?.has(blob))
        this.note(segment.id, blob, await this.#store.read(segment.id, blob, call));
    return this.#native.stateLeaf({
      segmentId: unhex(segment.id),
      rows: segment.rows,
      deleted: Uint32Array.from(segment.deleted),
      blobs: Object.keys(segment.blobs),
      digests: Object.fromEntries(this.#digests.get(segment.id) ?? []),
    });
  }

  #pin(state: State, sealed: Uint8Array): Pin {
    return {
      origin: hex(state.origin),
      lineage: hex(state.lineage),
      sequence: Number(state.sequence),
      name: hex(this.#native.stateName(sealed)),
      epoch: state.epoch,
      left: [],
    };
  }

  #follow(state: State, shown: Pin, pin: Pin | null): void {
    if (pin === null || (pin.sequence === shown.sequence && pin.name === shown.name)) return;
    if (pin.origin !== shown.origin)
      throw new PinMismatch(
        `the collection "${this.#collection}" is not the one that was pinned here under this name: it was dropped and made again ` +
          `elsewhere, or replaced. ${this.#nextStep()}`,
      );
    const steps = shown.sequence - pin.sequence;
    const { ancestors } = state;
    const ancestor = steps > 0 && steps <= ancestors.length ? ancestors[ancestors.length - steps] : undefined;
    if (ancestor !== undefined && hex(ancestor) === pin.name) return;
    if (steps > ancestors.length && ancestors.length >= ANCESTORS && shown.lineage === pin.lineage) {
      this.#warn(
        `${steps} states of "${this.#collection}" came since this client last looked, more than one can tell the descent of. If its ` +
          "keeper may have put an older one back meanwhile, compare it with another client.",
      );
      return;
    }
    if (shown.lineage !== pin.lineage && !pin.left.includes(shown.lineage)) {
      const when = new Date(Number(state.begun) * 1000).toISOString().slice(0, 16);
      throw new RollbackDetected(
        `the owner of "${this.#collection}" accepted a restore at ${when}: state ${state.sequence} does not have what was seen here ` +
          `up to state ${pin.sequence}. To follow, call client.forget(${JSON.stringify(this.#collection)}).`,
      );
    }
    const what = steps < 0 ? `state ${state.sequence}` : `a state ${state.sequence} of another history`;
    throw this.#rolledBack(`${what}, and state ${pin.sequence} was seen before`);
  }

  #rolledBack(shows: string): RollbackDetected {
    return new RollbackDetected(
      `the store of "${this.#collection}" shows ${shows}: commits were lost, rolled back or forged, and nothing was taken from it. ` +
        this.#nextStep(),
    );
  }

  #nextStep(): string {
    return (
      "Ask whoever keeps it what happened. If a backup was restored on purpose, its owner confirms that with the Python client's " +
      "accept_restore, or `ciphervec accept-restore`."
    );
  }
}

/** The state of a collection that is being made. */
export function firstState(
  native: Native,
  owner: Owner,
  description: Description,
  meta: Uint8Array,
  evaluation: Uint8Array,
): Uint8Array {
  return owner.sealState({
    origin: description.spec.incarnation ?? random(16),
    lineage: random(16),
    begun: now(),
    sequence: 0n,
    epoch: description.epoch,
    segments: 0,
    segmentsDigest: native.stateDigest(new Uint8Array(0)),
    description: native.blake3(meta),
    evaluation: native.blake3(evaluation),
    keyPair: NONE,
    ancestors: [],
    aside: [],
    routing: NONE,
    consumed: NONE,
    quarantine: [],
  });
}

const now = (): bigint => BigInt(Math.floor(Date.now() / 1000));
