/** Collections on a server that holds no key, each opened once. In the Worker. */

import { CollectionExists, CollectionNotFound, guarded, InvalidInput } from "../errors.js";
import { type Call, under, type World } from "../host.js";
import { countOfThings, finite } from "../ingest/arrays.js";
import { sparseKind } from "../ingest/hybrid.js";
import { muveraOf } from "../ingest/multi.js";
import { known, type Names } from "../known.js";
import type { Identity, Keys, Native, NativeClient, NativeCollection } from "../native.js";
import type { Clusters, TableRow } from "../types.js";
import { type Choices, CollectionEngine } from "./collection.js";
import { RemoteTableEngine } from "./tables.js";

const METRICS = ["cosine", "ip", "l2", "hamming"];
const MODES = ["sealed", "sealed-query", "sealed-index", "open"];
const PRECISIONS = ["standard", "small", "wide"];

const CLUSTERS: Names<Clusters> = {
  count: true,
  probes: true,
  decoys: true,
  recall: true,
  serverLearnsQueries: true,
  oblivious: true,
};

/** Which collection to open, and what is taken for it. */
export interface GetChoices {
  name: string;
  /** One in mode `open` too, although there are keys. */
  allowOpen?: boolean;
  /** A checkpoint that its history must have. */
  expect?: string;
}

/** What a listing says of a collection. */
export interface CollectionRow {
  name: string;
  rows: number;
  bytes: number;
}

/** What a client is made of. */
export interface ClientParts extends World {
  native: Native;
  keys: Keys | Identity | null;
  url: string;
  token: string | null;
  insecure: boolean;
  /** Milliseconds for one request, or one piece of an upload, with all its attempts. */
  timeout: number;
  retries: number;
  cacheBytes: number;
}

export class ClientEngine {
  readonly #world: World;
  readonly #native: Native;
  readonly #client: NativeClient;
  /** Asked for twice, a collection is the same one. */
  readonly #opened = new Map<string, Promise<CollectionEngine>>();

  /** Throws InvalidInput. Nothing is sent yet. */
  constructor(parts: ClientParts) {
    const { native, keys, fetch, storage, warn, log, ...options } = parts;
    this.#world = { fetch, storage, warn, log };
    this.#native = native;
    this.#client = guarded(() => {
      if (keys === null) return native.Client.withoutKeys(options);
      if ("keyId" in keys) return native.Client.withKeys(keys, options);
      return native.Client.withIdentity(keys, options);
    });
  }

  /** Make an empty collection. Throws CollectionExists, InvalidInput. */
  async createCollection(choices: Choices, call: Call): Promise<CollectionEngine> {
    const checked = this.#checked(choices);
    return this.#once(checked.name, true, (world) =>
      under(world, call, (host) => this.#client.createCollection(host, checked)),
    );
  }

  /** Open a collection that is there. Throws CollectionNotFound, WrongKey, CorruptData, RollbackDetected, PinMismatch. */
  async getCollection(
    { name, allowOpen = false, expect }: GetChoices,
    call: Call,
  ): Promise<CollectionEngine> {
    const known = this.#opened.has(name);
    const collection = await this.#once(name, false, (world) =>
      under(world, call, (host) => this.#client.getCollection(host, String(name), allowOpen, expect)),
    );
    if (known && expect !== undefined) await collection.expect(expect, call);
    return collection;
  }

  /** Open the collection, or make it. Throws InvalidInput when it is there with other choices. */
  async getOrCreateCollection(choices: Choices, call: Call): Promise<CollectionEngine> {
    const checked = this.#checked(choices);
    const which = { name: checked.name, allowOpen: checked.mode === "open" };
    let collection: CollectionEngine;
    try {
      collection = await this.getCollection(which, call);
    } catch (error) {
      if (!(error instanceof CollectionNotFound)) throw error;
      try {
        return await this.createCollection(checked, call);
      } catch (again) {
        // Of several clients that come here at once, one makes it and the others open it.
        if (!(again instanceof CollectionExists)) throw again;
        collection = await this.getCollection(which, call);
      }
    }
    await collection.checkChoices(checked, call);
    return collection;
  }

  /** Name, rows and bytes of every collection that the token may see. */
  listCollections(call: Call): Promise<CollectionRow[]> {
    return under(this.#world, call, (host) => this.#client.listCollections(host));
  }

  /** Delete a collection and everything in it. Throws CollectionNotFound. */
  async deleteCollection(name: string, call: Call): Promise<void> {
    await under(this.#world, call, (host) => this.#client.deleteCollection(host, String(name)));
    await this.#shut(name, "deleted");
  }

  /** Go on from an older state of a collection, which whoever keeps it put back from a copy. */
  async acceptRestore(name: string, call: Call): Promise<CollectionEngine> {
    await this.#shut(name, "restored");
    return this.#once(name, false, (world) =>
      under(world, call, (host) => this.#client.acceptRestore(host, String(name))),
    );
  }

  /** Show the server another token from now on. Throws InvalidInput. */
  setToken(token: string): void {
    this.#client.setToken(token);
  }

  /** Drop what was pinned and seen of a collection, to accept one that was restored or made anew on purpose. */
  async forget(name: string): Promise<void> {
    await this.#shut(name, "forgotten");
    await under(this.#world, {}, (host) => this.#client.forget(host, String(name)));
  }

  /** Open a table of records. Throws TableNotFound, PinMismatch, InvalidInput, CorruptData. */
  async getTable(
    { name, fingerprint }: { name: string; fingerprint?: string },
    call: Call,
  ): Promise<RemoteTableEngine> {
    const opened = await under(this.#world, call, (host) =>
      this.#client.getTable(host, String(name), fingerprint === undefined ? undefined : String(fingerprint)),
    );
    return new RemoteTableEngine(opened, this.#world);
  }

  /** Store the bytes of a table of records. Throws InvalidInput. */
  putTable({ name, file }: { name: string; file: Uint8Array }, call: Call): Promise<TableRow> {
    return under(this.#world, call, (host) => this.#client.putTable(host, String(name), file));
  }

  listTables(call: Call): Promise<TableRow[]> {
    return under(this.#world, call, (host) => this.#client.listTables(host));
  }

  /** Throws TableNotFound. */
  deleteTable(name: string, call: Call): Promise<void> {
    return under(this.#world, call, (host) => this.#client.deleteTable(host, String(name)));
  }

  /** Close every collection. */
  async close(): Promise<void> {
    await Promise.all([...this.#opened.keys()].map((name) => this.#shut(name, "closed")));
    this.#client.free();
    this.#world.storage.close?.();
    this.#world.log?.close();
  }

  async #once(
    name: string,
    anew: boolean,
    open: (world: World) => Promise<NativeCollection>,
  ): Promise<CollectionEngine> {
    const known = this.#opened.get(name);
    if (known !== undefined && !anew) return known;
    if (known !== undefined)
      throw new CollectionExists(
        `the collection "${name}" exists already. Use getCollection, or another name.`,
      );
    const opening = open(this.#world).then(
      (opened) => new CollectionEngine(opened, this.#native, this.#world),
    );
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

  /** Choices of the types that the core takes. Throws InvalidInput. */
  #checked(choices: Choices): Choices {
    const {
      dimension,
      filterable = [],
      metric = "cosine",
      mode = "sealed",
      precision = "standard",
    } = choices;
    if (choices.multi === undefined || dimension !== undefined) countOfThings(dimension, "dimension");
    oneOf("metric", metric, METRICS);
    oneOf("mode", mode, MODES);
    oneOf("precision", precision, PRECISIONS);
    if (!Array.isArray(filterable) || !filterable.every((one) => typeof one === "string"))
      throw new InvalidInput(
        `filterable must be a list of field names, got ${Array.isArray(filterable) ? "other values" : typeof filterable}.`,
      );
    if (choices.routing !== undefined) checkClusters(choices.routing);
    const { sparse } = choices;
    const ranked = sparse === undefined ? {} : { sparse: sparseKind(sparse) };
    const many = choices.multi === undefined ? {} : { multi: muveraOf(choices.multi) };
    const checked = { ...choices, ...ranked, ...many, name: String(choices.name), filterable };
    guarded(() => this.#client.checkNew(checked));
    return checked;
  }
}

function checkClusters(routing: Clusters): void {
  const { count, probes, decoys, recall } = known(routing, CLUSTERS, "routing");
  for (const [name, value] of Object.entries({ count, probes, decoys }))
    if (value !== undefined && value !== null) countOfThings(value, name, 0);
  if (recall !== undefined) finite(recall, "recall");
}

function oneOf(what: string, value: string, known: readonly string[]): void {
  if (!known.includes(value))
    throw new InvalidInput(`${what} must be one of ${known.join(", ")}; got ${String(value)}.`);
}
