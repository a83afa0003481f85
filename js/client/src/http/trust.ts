/**
 * Trust on first use: what a server says about a collection enters; it leaves if it agrees with what the server said before. Key
 * owner's side.
 *
 * Remembered for each server and collection: the public parameters, pinned when they are first seen; the latest state that its owner
 * has authenticated, which all others have to descend from; and a watermark, the latest version with its head. Version and head are
 * the server's own words: they show what it lost, not what it hides.
 */

import { CorruptData, PinMismatch, RollbackDetected, StorageError } from "../errors.js";
import { hex, text, utf8 } from "../ingest/bytes.js";
import type { Native } from "../native.js";
import type { SealedStorage } from "../storage/sealed.js";
import { isPin, latest, type Pin, pinAfter, samePin } from "./pin.js";

export const KEY_ID = "key id";
export const MASKS = "masks";
/** Followed by the number. */
export const EPOCH = "evaluation keys of epoch ";
/** Whether the server takes query keys of its clients. */
export const SESSIONS = "query keys";

const FORMER = "former key ids";
const FORMAT = 1;
const ROOM = 16 << 10; // bytes, more than what is remembered of a collection
const HEADS = 256; // versions whose heads are remembered while a client is open

/** What a description says that was opened, so authenticated, under the owner's keys. */
export interface Lineage {
  keyId: string;
  /** The hash of the seed of the public masks, which a collection keeps when its keys change. */
  masks: string;
  epoch: number;
}

type Values = { [name: string]: string };

interface Stored {
  format: number;
  server: string;
  collection: string;
  version: number;
  head: string;
  pins: Values;
  state: Pin | null;
  /** Why segments are in quarantine, until the owner's state says it. */
  held?: Values;
}

/** Pins and watermark of one collection of one server. */
export class Trust {
  readonly #storage: SealedStorage;
  readonly #server: string;
  readonly #collection: string;
  readonly #entry: string;
  readonly #warn: (message: string) => void;
  #version = 0;
  #head = "";
  #pins: Values = {};
  #pin: Pin | null = null;
  readonly #heads = new Map<number, string>();
  #held: Values = {};
  /** Changes of it that are not written yet: the reason, or null for a segment that is out. */
  #toHold = new Map<string, string | null>();

  private constructor(
    storage: SealedStorage,
    native: Native,
    server: string,
    collection: string,
    warn: (message: string) => void,
  ) {
    this.#storage = storage;
    this.#server = server;
    this.#collection = collection;
    this.#entry = `trust/${hex(native.blake3(utf8(`${server}\n${collection}`)))}`;
    this.#warn = warn;
  }

  /** What was remembered. Throws CorruptData, PinMismatch for what is under other keys, StorageError. */
  static async open(
    storage: SealedStorage,
    native: Native,
    server: string,
    collection: string,
    warn: (message: string) => void,
  ): Promise<Trust> {
    const trust = new Trust(storage, native, server, collection, warn);
    await trust.reload();
    return trust;
  }

  /** Forget what was remembered, whatever it is. */
  static async forget(
    storage: SealedStorage,
    native: Native,
    server: string,
    collection: string,
  ): Promise<void> {
    await storage.delete(new Trust(storage, native, server, collection, () => undefined).#entry);
  }

  /** The latest version seen. */
  get version(): number {
    return this.#version;
  }

  /** The latest authenticated state seen. */
  get state(): Pin | null {
    return this.#pin;
  }

  /** Whether what is remembered is there in a later session. */
  get durable(): boolean {
    return this.#storage.durable;
  }

  /** Why segments are in quarantine, but for those that the owner's state names. */
  get held(): { readonly [segment: string]: string } {
    return changed(this.#held, this.#toHold);
  }

  /** Whether a later session will know that a segment is in quarantine. */
  keeps(segment: string): boolean {
    return this.durable && segment in this.#held && !this.#toHold.has(segment);
  }

  /** Put a segment into quarantine: it is, whether or not that could be written down. Throws StorageError. */
  async hold(segment: string, reason: string): Promise<void> {
    this.#toHold.set(segment, reason);
    await this.#write();
  }

  /** Take segments out again. */
  async unhold(segments: readonly string[]): Promise<void> {
    for (const segment of segments) this.#toHold.delete(segment);
    const there = segments.filter((segment) => segment in this.#held);
    for (const segment of there) this.#toHold.set(segment, null);
    if (there.length > 0) await this.#write();
  }

  /** Take in what other tabs have seen. */
  async reload(): Promise<void> {
    const stored = await this.#read();
    if (stored !== null) this.#merge(stored);
  }

  /** Find out, before a change that can't be taken back, whether what it makes could be written down. Throws StorageError. */
  async prepare(): Promise<void> {
    const draft = `${this.#entry}/draft`;
    await this.#storage.exclusive(this.#entry, async () => {
      await this.#storage.set(draft, new Uint8Array(ROOM));
      await this.#storage.delete(draft);
    });
  }

  /** `what` is done, and cannot be taken back where what was seen of it can't be written down: a warning says so in the place of a
   * StorageError. */
  async afterwards(what: string, step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      this.#warn(
        `${what} is made. What this client has seen of it could not be written down, so that another one would not notice if it were ` +
          `taken back: ${error.message} This client goes on, and writes it down with the next change.`,
      );
    }
  }

  /**
   * The server shows this version. `since` is the latest one known when it was asked: answers may overtake each other.
   * Throws RollbackDetected. With `later` it is written down with what comes next.
   */
  async see(version: number, head: string, since: number, later = false): Promise<void> {
    if (version < Math.min(since, this.#version))
      throw new RollbackDetected(
        `${this.#server} shows version ${version} (head ${short(head)}) of "${this.#collection}", and has shown version ` +
          `${this.#version} (head ${short(this.#head)}) before: commits were lost or rolled back. ${this.#nextStep()}`,
      );
    const known = this.#heads.get(version);
    if (known !== undefined && known !== head)
      throw new RollbackDetected(
        `${this.#server} shows version ${version} of "${this.#collection}" with head ${short(head)}, and has shown it with ` +
          `head ${short(known)} before: these are two histories. ${this.#nextStep()}`,
      );
    if (version === this.#version && known === head) return;
    this.#remember(version, head);
    if (version > this.#version) {
      this.#version = version;
      this.#head = head;
      if (!later) await this.#write();
    }
  }

  /** The server shows this state, which was found to be right, or has committed it. */
  async seeState(pin: Pin): Promise<void> {
    if (samePin(pin, this.#pin)) return;
    this.#pin = pinAfter(pin, this.#pin);
    await this.#write();
  }

  /** Begin anew with this state. */
  async accept(pin: Pin): Promise<void> {
    const before = this.#pin;
    await this.start();
    this.#pin = pinAfter(pin, before);
    await this.#write();
  }

  /** Hold the server to these values from now on. Throws PinMismatch when it has shown others. */
  async pin(values: Values): Promise<void> {
    let news = false;
    for (const [name, value] of Object.entries(values)) {
      const pinned = this.#pins[name];
      if (pinned !== undefined && pinned !== value)
        throw new PinMismatch(
          `${this.#server} shows ${name} ${short(value)} of "${this.#collection}"; ${short(pinned)} was pinned when it was ` +
            `first used here. ${this.#nextStep()}`,
        );
      news ||= pinned === undefined;
    }
    if (!news) return;
    Object.assign(this.#pins, values);
    await this.#write();
  }

  /** Hold the server to other values from now on: this client has changed them itself. */
  async repin(values: Values): Promise<void> {
    const before = this.#pins[KEY_ID];
    if (before !== undefined && (values[KEY_ID] ?? before) !== before)
      this.#pins[FORMER] = [...former(this.#pins), before].join(" ");
    Object.assign(this.#pins, values);
    await this.#write();
  }

  /**
   * The server shows a description under the keys `shown`, and others were pinned. Another client of the owner may have changed them:
   * then the pin moves on, and a warning says so. Otherwise throws PinMismatch.
   *
   * `lineage` is what the description says when opened under the keys given, null if it doesn't open. Its sealed part names the seed of
   * the public masks, which a change of keys hands on and a server can't make up; keys that were left are not gone back to, and the epoch
   * has to have grown.
   */
  async follow(shown: string, lineage: Lineage | null): Promise<void> {
    const pinned = this.#pins[KEY_ID];
    const epochs = Object.keys(this.#pins)
      .filter((name) => name.startsWith(EPOCH))
      .map((name) => Number(name.slice(EPOCH.length)));
    if (
      lineage === null ||
      lineage.keyId !== shown ||
      lineage.masks !== this.#pins[MASKS] ||
      former(this.#pins).includes(shown) ||
      epochs.some((epoch) => lineage.epoch <= epoch)
    )
      throw new PinMismatch(
        `${this.#server} shows ${KEY_ID} ${shown} of "${this.#collection}"; ${pinned} was pinned when it was last used here. If ` +
          "its owner has changed the keys from elsewhere, open it with the new ones. If not, do not go on: " +
          this.#nextStep(),
      );
    await this.repin({ [KEY_ID]: shown });
    this.#warn(
      `the keys of "${this.#collection}" on ${this.#server} were changed by another client of its owner, from ${pinned} to ` +
        `${shown}, which were given here. The pin has moved on.`,
    );
  }

  /** A pinned value. */
  pinned(name: string): string | undefined {
    return this.#pins[name];
  }

  /** Begin anew: the collection was made, or deleted, from here. */
  async start(): Promise<void> {
    this.#version = 0;
    this.#head = "";
    this.#pins = {};
    this.#pin = null;
    this.#held = {};
    this.#toHold.clear();
    this.#heads.clear();
    await this.#storage.delete(this.#entry);
  }

  #remember(version: number, head: string): void {
    this.#heads.set(version, head);
    if (this.#heads.size > HEADS) this.#heads.delete(Math.min(...this.#heads.keys()));
  }

  async #read(): Promise<Stored | null> {
    const entry = await this.#storage.get(this.#entry);
    if (entry === undefined) return null;
    if (!("data" in entry))
      throw new PinMismatch(
        `"${this.#collection}" on ${this.#server} was last used here with the keys ${entry.keyId}, which what was seen of it is ` +
          "encrypted under. If its owner has changed the keys, confirm that the server shows the right collection with " +
          `client.forget(${JSON.stringify(this.#collection)}); else open it with those keys.`,
      );
    try {
      const content = JSON.parse(text(entry.data)) as Stored;
      const sound =
        content.format === FORMAT &&
        content.server === this.#server &&
        content.collection === this.#collection &&
        Number.isSafeInteger(content.version) &&
        typeof content.head === "string" &&
        Object.values(content.pins).every((value) => typeof value === "string") &&
        (content.state === null || isPin(content.state)) &&
        Object.values(content.held ?? {}).every((value) => typeof value === "string");
      if (sound) return content;
    } catch {
      // Said below.
    }
    throw new CorruptData(
      `what was remembered of "${this.#collection}" is not what ciphervec writes. client.forget(` +
        `${JSON.stringify(this.#collection)}) trusts ${this.#server} on first use again, after making sure that it shows the ` +
        "right version.",
    );
  }

  /** What another tab has written in the meantime counts as seen here. */
  #merge(stored: Stored): void {
    const known = this.#heads.get(stored.version);
    if (known !== undefined && known !== stored.head)
      throw new RollbackDetected(
        `${this.#server} has shown version ${stored.version} of "${this.#collection}" with head ${short(known)} here and with ` +
          `head ${short(stored.head)} to another tab: these are two histories. ${this.#nextStep()}`,
      );
    // A tab that still holds the pins from before a change of keys must not put them back.
    const newer = former(stored.pins).length > former(this.#pins).length;
    this.#pins = newer ? { ...this.#pins, ...stored.pins } : { ...stored.pins, ...this.#pins };
    this.#pin = latest(this.#pin, stored.state);
    this.#held = { ...stored.held };
    if (stored.head !== "") this.#remember(stored.version, stored.head);
    if (stored.version > this.#version) {
      this.#version = stored.version;
      this.#head = stored.head;
    }
  }

  async #write(): Promise<void> {
    await this.#storage.exclusive(this.#entry, async () => {
      await this.reload();
      const changes = new Map(this.#toHold);
      this.#held = changed(this.#held, changes);
      const content: Stored = {
        format: FORMAT,
        server: this.#server,
        collection: this.#collection,
        version: this.#version,
        head: this.#head,
        pins: this.#pins,
        state: this.#pin,
        held: this.#held,
      };
      await this.#storage.set(this.#entry, utf8(JSON.stringify(content)));
      // Others may have come meanwhile.
      for (const [segment, reason] of changes)
        if (this.#toHold.get(segment) === reason) this.#toHold.delete(segment);
    });
  }

  #nextStep(): string {
    return (
      "Ask the server's operator what happened. If the collection was restored on purpose, its owner confirms that with the " +
      "Python client's accept_restore, or `ciphervec accept-restore`; if it was made anew, accept that with " +
      `client.forget(${JSON.stringify(this.#collection)}).`
    );
  }
}

/** What is in quarantine after these changes. */
function changed(held: Values, changes: ReadonlyMap<string, string | null>): Values {
  const after = { ...held };
  for (const [segment, reason] of changes)
    if (reason === null) delete after[segment];
    else after[segment] = reason;
  return after;
}

/** Ids of the keys that were pinned once, oldest first. */
function former(pins: Values): string[] {
  return (pins[FORMER] ?? "").split(" ").filter(Boolean);
}

function short(value: string): string {
  return value.length <= 24 ? value : `${value.slice(0, 16)}…`;
}
