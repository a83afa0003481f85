/** Remote database: names of collections enter; their stores on a server leave. Key owner's side, without the keys. */

import { newChange } from "../collections/change.js";
import { CollectionExists, CollectionNotFound, InvalidInput, ServerError } from "../errors.js";
import { equal } from "../ingest/bytes.js";
import type { Native } from "../native.js";
import type { BlobCache } from "../storage/cache.js";
import type { SealedStorage } from "../storage/sealed.js";
import { encode } from "./frame.js";
import type { Call, Session } from "./session.js";
import { readState, type State } from "./state.js";
import { HttpStore } from "./store.js";
import { type Lineage, Trust } from "./trust.js";

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$/;

/** What a listing says of a collection. */
export interface CollectionRow {
  name: string;
  rows: number;
  bytes: number;
}

/** The collections of one server, as far as the token may see them. */
export class HttpDatabase {
  readonly session: Session;
  readonly #storage: SealedStorage;
  readonly #cache: BlobCache;
  readonly #native: Native;
  readonly #lineage: (name: string, meta: Uint8Array) => Lineage | null;
  readonly #warn: (message: string) => void;

  constructor(
    session: Session,
    storage: SealedStorage,
    cache: BlobCache,
    native: Native,
    lineage: (name: string, meta: Uint8Array) => Lineage | null,
    warn: (message: string) => void,
  ) {
    this.session = session;
    this.#storage = storage;
    this.#cache = cache;
    this.#native = native;
    this.#lineage = lineage;
    this.#warn = warn;
  }

  /** Name, rows and bytes of every collection, by name. */
  async rows(call: Call): Promise<CollectionRow[]> {
    const doing = "cannot list the collections";
    const content = this.session.json(await this.session.call("GET", "/v1/collections", doing, call), doing);
    const { collections } = content;
    if (!Array.isArray(collections) || !collections.every((one) => NAME.test(one?.name)))
      throw new ServerError(
        `${doing}: ${this.session.url} answered in a way that is not understood. Check the versions on both sides.`,
      );
    return collections
      .map(({ name, rows, bytes }) => ({
        name: String(name),
        rows: Number(rows ?? 0),
        bytes: Number(bytes ?? 0),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Throws CollectionExists. */
  async checkNew(name: string, call: Call): Promise<void> {
    if ((await this.#state(name, call)) !== null) throw this.#exists(name);
  }

  /** Throws CollectionExists. */
  async create(
    name: string,
    meta: Uint8Array,
    attachments: Map<string, Uint8Array>,
    call: Call,
  ): Promise<HttpStore> {
    const doing = `cannot create "${name}"`;
    await (await this.#trust(name)).prepare();
    const reply = await this.session.call("PUT", pathOf(name), doing, call, {
      body: encode(newChange({ meta, attachments })),
      headers: { "Content-Type": "application/octet-stream" },
      ok: [201, 409],
    });
    let state: State | null = null;
    if (reply.status === 201) state = readState(this.session.json(reply, doing), name, this.session.url);
    // The answer to an attempt that succeeded may have got lost.
    else if (reply.failed > 0) state = await this.#state(name, call);
    // No two descriptions are the same.
    if (state === null || !equal(state.meta, meta)) throw this.#exists(name);
    await this.forget(name);
    return this.#store(name, state);
  }

  /** `accept` is shown the description before anything is taken from it or remembered, and may throw. Throws CollectionNotFound;
   * RollbackDetected or PinMismatch for what is not what the server has shown before. */
  async open(name: string, call: Call, accept: (meta: Uint8Array) => void): Promise<HttpStore> {
    const state = await this.#state(name, call);
    if (state !== null) {
      accept(state.meta);
      return this.#store(name, state);
    }
    const names = (await this.rows(call)).slice(0, 10).map((row) => JSON.stringify(row.name));
    throw new CollectionNotFound(
      `no collection "${name}" on ${this.session.url} that this token may see; there are: ${names.join(", ") || "none"}. Use ` +
        "createCollection to make it.",
    );
  }

  /** Delete a collection and everything in it. Throws CollectionNotFound. */
  async drop(name: string, call: Call): Promise<void> {
    const doing = `cannot delete "${name}"`;
    const trust = await this.#trust(name);
    await trust.prepare();
    const reply = await this.session.call("DELETE", pathOf(name), doing, call, { ok: [204, 404] });
    // A repetition of an attempt that succeeded does not find it any more.
    if (reply.status === 404 && reply.failed === 0)
      throw new CollectionNotFound(
        `${doing}: there is none of that name on ${this.session.url} that this token may see.`,
      );
    await trust.afterwards(`the deletion of "${name}"`, () => this.forget(name));
  }

  /** Drop what was pinned and seen of a collection. */
  forget(name: string): Promise<void> {
    return Trust.forget(this.#storage, this.#native, this.session.url, checkName(name));
  }

  async #state(name: string, call: Call): Promise<State | null> {
    const doing = `cannot open "${name}"`;
    const reply = await this.session.call("GET", pathOf(name), doing, call, { ok: [200, 404] });
    return reply.status === 404 ? null : readState(this.session.json(reply, doing), name, this.session.url);
  }

  async #store(name: string, state: State): Promise<HttpStore> {
    const trust = await this.#trust(name);
    return HttpStore.open({
      session: this.session,
      name,
      trust,
      cache: this.#cache,
      native: this.#native,
      state,
      lineage: (meta) => this.#lineage(name, meta),
    });
  }

  #trust(name: string): Promise<Trust> {
    return Trust.open(this.#storage, this.#native, this.session.url, name, this.#warn);
  }

  #exists(name: string): CollectionExists {
    return new CollectionExists(
      `the collection "${name}" exists already on ${this.session.url}. Use getCollection, getOrCreateCollection, or another name.`,
    );
  }
}

/** A collection's name, checked. Throws InvalidInput. */
export function checkName(name: unknown): string {
  if (typeof name !== "string" || !NAME.test(name) || name.includes(".."))
    throw new InvalidInput(
      "a collection's name has 1 to 128 characters from a-z A-Z 0-9 . _ - and starts and ends with a letter or digit, without " +
        `".."; got ${typeof name === "string" ? JSON.stringify(name.slice(0, 140)) : typeof name}.`,
    );
  return name;
}

function pathOf(name: string): string {
  return `/v1/collections/${checkName(name)}`;
}
