/** Client: a server, a token and the owner's keys enter; collections leave. Runs in the Worker. */

import { CollectionExists, CollectionNotFound, Conflict, isOneOf } from "../errors.js";
import { baseUrl, Token } from "../http/address.js";
import { type CollectionRow, checkName, HttpDatabase } from "../http/database.js";
import { type Call, Session } from "../http/session.js";
import type { HttpStore } from "../http/store.js";
import type { Fetch } from "../http/transport.js";
import type { Lineage } from "../http/trust.js";
import { hex } from "../ingest/bytes.js";
import type { Keys, Native } from "../native.js";
import { BlobCache } from "../storage/cache.js";
import { SealedStorage } from "../storage/sealed.js";
import type { Storage } from "../storage/storage.js";
import { EVALUATION } from "./change.js";
import { CollectionEngine } from "./collection.js";
import {
  type Choices,
  checkChoices,
  type Description,
  describe,
  hasKeyPair,
  keysFor,
  newDescription,
  ownerOf,
  readDescription,
  refuseOpen,
} from "./description.js";
import { Segments } from "./segments.js";
import { firstState } from "./states.js";

const ATTEMPTS = 8;

/** Which collection to open, and what is taken for it. */
export interface GetChoices {
  name: string;
  /** One in mode `open` too, although there are keys. */
  allowOpen?: boolean;
  /** A checkpoint that its history must have. */
  expect?: string;
}

/** What a client is made of. */
export interface ClientParts {
  native: Native;
  keys: Keys | null;
  url: string;
  token: string | null;
  storage: Storage;
  fetch: Fetch;
  insecure: boolean;
  /** Milliseconds for one request, or one piece of an upload, with all its attempts. */
  timeout: number;
  retries: number;
  cacheBytes: number;
  warn: (message: string) => void;
}

/** Collections on a server that holds no key. */
export class ClientEngine {
  readonly url: string;
  readonly #native: Native;
  readonly #keys: Keys | null;
  readonly #storage: SealedStorage;
  readonly #database: HttpDatabase;
  readonly #warn: (message: string) => void;
  /** Asked for twice, a collection is the same one. */
  readonly #opened = new Map<string, Promise<CollectionEngine>>();

  /** Throws InvalidInput. Nothing is sent yet. */
  constructor(parts: ClientParts) {
    const { native, keys, warn, retries, timeout } = parts;
    this.url = baseUrl(parts.url, parts.insecure);
    this.#native = native;
    this.#keys = keys;
    this.#warn = warn;
    const token = parts.token === null ? null : new Token(parts.token.trim());
    this.#storage = new SealedStorage(
      parts.storage,
      native,
      keysFor(native, keys, keys === null ? "open" : "sealed"),
    );
    this.#database = new HttpDatabase(
      new Session(parts.fetch, this.url, token, timeout, retries, warn),
      this.#storage,
      new BlobCache(this.#storage, native, parts.cacheBytes),
      native,
      (name, meta) => this.#lineage(name, meta),
      warn,
    );
  }

  /** Make an empty collection. Throws CollectionExists, InvalidInput. */
  createCollection(choices: Choices, call: Call): Promise<CollectionEngine> {
    const description = newDescription(this.#native, this.#keys, choices);
    const name = checkName(choices.name);
    return this.#once(name, true, () => this.#create(name, description, call));
  }

  /** Open a collection that is there. Throws CollectionNotFound, WrongKey, CorruptData, RollbackDetected, PinMismatch. */
  async getCollection(which: GetChoices, call: Call): Promise<CollectionEngine> {
    const { name, allowOpen = false, expect } = which;
    const known = this.#opened.has(checkName(name));
    const collection = await this.#once(name, false, async () => {
      const store = await this.#database.open(name, call, (meta) => {
        if (this.#keys !== null && !allowOpen) refuseOpen(this.#native, meta, name);
      });
      return this.#collection(name, store, readDescription(this.#native, this.#keys, store.meta, name), call);
    });
    if (expect === undefined) return collection;
    try {
      await collection.expect(expect, call);
    } catch (error) {
      if (!known) await this.#shut(name, "closed");
      throw error;
    }
    return collection;
  }

  /** Open the collection, or make it. Throws InvalidInput when it is there with other choices. */
  async getOrCreateCollection(choices: Choices, call: Call): Promise<CollectionEngine> {
    newDescription(this.#native, this.#keys, choices); // checked, whether or not it is there
    let collection: CollectionEngine;
    const which = { name: choices.name, allowOpen: choices.mode === "open" };
    try {
      collection = await this.getCollection(which, call);
    } catch (error) {
      if (!(error instanceof CollectionNotFound)) throw error;
      try {
        return await this.createCollection(choices, call);
      } catch (again) {
        // Of several clients that come here at once, one makes it and the others open it.
        if (!(again instanceof CollectionExists)) throw again;
        collection = await this.getCollection(which, call);
      }
    }
    checkChoices(collection.segments.description, choices);
    return collection;
  }

  /** Name, rows and bytes of every collection that the token may see. */
  listCollections(call: Call): Promise<CollectionRow[]> {
    return this.#database.rows(call);
  }

  /** Delete a collection and everything in it. Throws CollectionNotFound. */
  async deleteCollection(name: string, call: Call): Promise<void> {
    await this.#database.drop(checkName(name), call);
    await this.#shut(name, "deleted");
  }

  /** Drop what was pinned and seen of a collection, to accept one that was restored or made anew on purpose. */
  async forget(name: string): Promise<void> {
    await this.#shut(checkName(name), "forgotten");
    await this.#database.forget(name);
  }

  /** Close every collection. */
  async close(): Promise<void> {
    await Promise.all([...this.#opened.keys()].map((name) => this.#shut(name, "closed")));
    this.#storage.close();
  }

  async #once(name: string, anew: boolean, open: () => Promise<CollectionEngine>): Promise<CollectionEngine> {
    const known = this.#opened.get(name);
    if (known !== undefined && !anew) return known;
    if (known !== undefined)
      throw new CollectionExists(
        `the collection "${name}" exists already. Use getCollection, or another name.`,
      );
    const opening = open();
    this.#opened.set(name, opening);
    try {
      return await opening;
    } catch (error) {
      this.#opened.delete(name);
      throw error;
    }
  }

  async #shut(name: string, why: string): Promise<void> {
    const opened = this.#opened.get(name);
    this.#opened.delete(name);
    await opened?.then(
      (collection) => collection.close(why),
      () => undefined,
    );
  }

  async #create(name: string, description: Description, call: Call): Promise<CollectionEngine> {
    const native = this.#native;
    const owner = ownerOf(native, this.#keys, description);
    const meta = describe(description, owner);
    const keys = owner.evaluation(description.epoch);
    const evaluation = keys.toBytes();
    keys.free();
    const attachments = new Map([[EVALUATION, evaluation]]);
    if (description.authenticated)
      attachments.set("state", firstState(native, owner, description, meta, evaluation));
    owner.free();
    const store = await this.#database.create(name, meta, attachments, call);
    return this.#collection(name, store, description, call);
  }

  async #collection(
    name: string,
    store: HttpStore,
    description: Description,
    call: Call,
  ): Promise<CollectionEngine> {
    const { native, keys, warn } = { native: this.#native, keys: this.#keys, warn: this.#warn };
    let described = description;
    for (let turn = 0; ; turn++) {
      let segments: Segments | null = null;
      try {
        segments = await Segments.open({ native, keys, store, description: described, warn }, call);
        await this.#pin(store, segments, call);
        return new CollectionEngine(segments);
      } catch (error) {
        segments?.free();
        if (!(error instanceof Conflict)) throw error;
        if (turn === ATTEMPTS)
          throw new Conflict(`collection "${name}" changes faster than it can be opened. Try again.`);
        await store.refresh(call); // others changed it while it was read
        described = readDescription(native, keys, store.meta, name);
      }
    }
  }

  /** Hold the server to what it shows beside a state that was found to be the owner's. */
  async #pin(store: HttpStore, segments: Segments, call: Call): Promise<void> {
    const { owner, description } = segments;
    const check = (data: Uint8Array) => segments.states.checkAttachment(EVALUATION, data);
    await store.pinEvaluation(description.epoch, check, call);
    if (!hasKeyPair(description.spec)) await store.pinMasks(owner.maskSeed);
  }

  /** What a description says under these keys; null if it doesn't open, or under a scheme whose collections keep nothing when their keys
   * change. */
  #lineage(name: string, meta: Uint8Array): Lineage | null {
    try {
      const description = readDescription(this.#native, this.#keys, meta, name);
      if (hasKeyPair(description.spec)) return null;
      const owner = ownerOf(this.#native, this.#keys, description);
      const masks = hex(this.#native.blake3(owner.maskSeed));
      owner.free();
      return { keyId: description.keyId, masks, epoch: description.epoch };
    } catch (error) {
      if (isOneOf(error, "CorruptData", "UnsupportedVersion", "WrongKey", "InvalidInput", "CiphervecError"))
        return null;
      throw error;
    }
  }
}
