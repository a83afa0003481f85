/**
 * The client of a server: opens, creates and deletes collections under the owner's keys, which stay in the Worker. Runs
 * on the page.
 */

import { defaultStorage } from "#platform";
import "./dispose.js";
import { Collection } from "./collection.js";
import type { CollectionRow } from "./collections/client.js";
import type { CollectionFacts } from "./collections/collection.js";
import { Engine } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { baseUrl, Token } from "./http/address.js";
import type { Identity, Keys } from "./keys.js";
import { bytesOf } from "./keys.js";
import { CALL, known, NAMED, type Names } from "./known.js";
import { CREATE, type CreateOptions, type GetCollectionOptions, OPEN } from "./options.js";
import type { Storage } from "./storage/storage.js";
import {
  GET_TABLE,
  type GetTableOptions,
  type MadeTable,
  PrivateTable,
  PUT_TABLE,
  type PutTableOptions,
  RemoteTable,
} from "./tables.js";
import type { CallOptions, TableRow } from "./types.js";
import { type Handle, ROOT, type StorageChoice } from "./worker/messages.js";

const CACHE_BYTES = 256 << 20;
const TIMEOUT = 120_000;
const RETRIES = 6;

/** What a client is made with. */
export interface ClientOptions {
  /** `https://…`, or `http://…` for a server on this machine. */
  url: string | URL;
  /** Those of the collections, or the identity of a member. May be left out only for collections in mode `open`. */
  keys?: Keys | Identity;
  /** From `ciphervec token create`. */
  token?: string;
  /**
   * Where the client keeps what it holds the server to (pins, a watermark, the latest state) and sealed blobs it fetched, all encrypted: IndexedDB in a browser, in Node
   * the folder `js` in CIPHERVEC_STATE or the user's data folder, unless given. `{database}`: another database; `{folder}`: a folder, in Node; or a storage of the caller's.
   */
  storage?: "indexeddb" | "memory" | { database: string } | { folder: string } | Storage;
  /** Allow plain HTTP to another machine. */
  insecure?: boolean;
  /** Milliseconds for one request, or one piece of an upload, with all its attempts: 120,000 unless given. */
  timeout?: number;
  /** Attempts after the first: 6 unless given. */
  retries?: number;
  /** Most bytes of blobs that are kept: 256 MiB unless given. */
  cacheBytes?: number;
  /**
   * In Node a file that gets a line of what was done at each call: which operation, on which collection, how many rows, queries and bytes, and whether
   * it was done; never content. Lines are chained, and `ciphervec audit verify` checks them. One client, one file; `close` gives it back.
   */
  auditLog?: string;
  /** What that is signed with: a file that `ciphervec audit key` makes, or its 32 bytes. */
  auditKey?: string | Uint8Array;
  /** Told what does not stop a call and should be known; written to the console unless given. */
  onWarning?: (message: string) => void;
  /** Where it runs without keys; with keys, where these are. */
  engine?: Engine;
}

const CLIENT: Names<ClientOptions> = {
  url: true,
  keys: true,
  token: true,
  storage: true,
  insecure: true,
  timeout: true,
  retries: true,
  cacheBytes: true,
  auditLog: true,
  auditKey: true,
  onWarning: true,
  engine: true,
};

type Made = { handle: Handle; facts: CollectionFacts };

/** Collections on a ciphervec server, which holds no key. */
export class Client {
  readonly url: string;
  readonly #engine: Engine;
  readonly #opened: Promise<{ handle: Handle }>;
  readonly #collections = new Map<Handle, Collection>();

  /** Nothing is sent yet. Throws InvalidInput. */
  constructor(options: ClientOptions) {
    const { keys, token, insecure = false } = known(options, CLIENT, "Client");
    this.url = baseUrl(options.url, insecure);
    if (token !== undefined) new Token(token.trim()); // refused here, and not by the first call
    checkLog(options);
    this.#engine = keys?.engine ?? options.engine ?? Engine.shared();
    if (options.engine !== undefined && options.engine !== this.#engine)
      throw new InvalidInput(
        "the keys are in another engine than the one given; load them there, or leave engine out.",
      );
    this.#opened = this.#open(options);
    this.#opened.catch(() => undefined); // told by the first call
  }

  /** Make an empty collection. Rejects with CollectionExists, InvalidInput. */
  async createCollection(options: CreateOptions): Promise<Collection> {
    const { signal, onProgress, ...choices } = known(options, CREATE, "createCollection");
    return this.#collection("create", choices, { signal, onProgress });
  }

  /**
   * Open a collection that is there. A client with keys refuses one in mode `open`, which whoever keeps it could have put there, unless
   * `allowOpen` says that it is meant to be. `expect` is a checkpoint that somebody else sees, or saw: see `Collection.expect`. Rejects with
   * CollectionNotFound, WrongKey, RollbackDetected, PinMismatch.
   */
  async getCollection(options: GetCollectionOptions): Promise<Collection> {
    const { signal, onProgress, ...which } = known(options, OPEN, "getCollection");
    return this.#collection("get", which, { signal, onProgress });
  }

  /** Open the collection, or make it. Rejects with InvalidInput when it is there with other choices. */
  async getOrCreateCollection(options: CreateOptions): Promise<Collection> {
    const { signal, onProgress, ...choices } = known(options, CREATE, "getOrCreateCollection");
    return this.#collection("getOrCreate", choices, { signal, onProgress });
  }

  /** Name, rows and bytes of every collection that the token may see. */
  async listCollections(options: CallOptions = {}): Promise<CollectionRow[]> {
    return this.#call("list", undefined, known(options, CALL, "listCollections"));
  }

  /** Delete a collection and everything in it. Rejects with CollectionNotFound. */
  async deleteCollection(options: { name: string } & CallOptions): Promise<void> {
    const { name, signal, onProgress } = known(options, NAMED, "deleteCollection");
    return this.#call("delete", name, { signal, onProgress });
  }

  /**
   * Go on from an older state of a collection, which whoever keeps it put back from a copy. Only its owner can: the state is checked as ever, but
   * for coming after what was seen here, and another history begins with a commit. Other clients that saw what is lost are told so, and follow with
   * `forget`. Rejects with RollbackDetected for what is no state of the owner's, InvalidInput where nothing was restored.
   */
  async acceptRestore(options: { name: string } & CallOptions): Promise<Collection> {
    const { name, signal, onProgress } = known(options, NAMED, "acceptRestore");
    return this.#collection("acceptRestore", name, { signal, onProgress });
  }

  /** Drop what was pinned and seen of a collection, to accept one that was restored or made anew on purpose. */
  forget(name: string): Promise<void> {
    return this.#call("forget", name, {});
  }

  /**
   * Open a table of records on the server, to look some up without showing which. The token needs the permission query.
   *
   * `fingerprint` is that of its publisher, from elsewhere than the server: a server that knows which client asks could show it another
   * table. Without one the table must be the one that was seen first under the name. A table that its owner sealed needs the client's `keys`
   * to be the owner's. Rejects with TableNotFound; PinMismatch for another table than expected; InvalidInput or CorruptData for other keys.
   */
  async getTable(options: GetTableOptions): Promise<RemoteTable> {
    const { name, fingerprint, signal, onProgress } = known(options, GET_TABLE, "getTable");
    const which = { name, fingerprint };
    const made = await this.#call<MadeTable>("getTable", which, { signal, onProgress });
    return new RemoteTable(this.#engine, made, name);
  }

  /**
   * Store a table of records under a name, in place of one that is there; what the server says of it. The token needs the permission admin:
   * whoever may store a table decides what is found. Rejects with InvalidInput for what is no table or more than the server has memory for.
   */
  async putTable(options: PutTableOptions): Promise<TableRow> {
    const { name, table, signal, onProgress } = known(options, PUT_TABLE, "putTable");
    const file = table instanceof PrivateTable ? await table.toBytes() : await bytesOf(table);
    return this.#call("putTable", { name, file }, { signal, onProgress });
  }

  /** The tables of records that the token may see. */
  async listTables(options: CallOptions = {}): Promise<TableRow[]> {
    return this.#call("listTables", undefined, known(options, CALL, "listTables"));
  }

  /** Remove a table of records. The token needs the permission admin. Rejects with TableNotFound. */
  async deleteTable(options: { name: string } & CallOptions): Promise<void> {
    const { name, signal, onProgress } = known(options, NAMED, "deleteTable");
    return this.#call("deleteTable", name, { signal, onProgress });
  }

  /** Show the server another token from now on: one that an identity provider signs is valid for minutes. Rejects with InvalidInput. */
  async setToken(token: string): Promise<void> {
    return this.#call("setToken", token.trim(), {});
  }

  /** Close every collection; the keys stay. */
  async close(): Promise<void> {
    const { handle } = await this.#opened;
    await this.#engine.release(handle);
  }

  [Symbol.dispose](): void {
    this.close().catch(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(options: ClientOptions): Promise<{ handle: Handle }> {
    const {
      keys,
      token,
      insecure = false,
      timeout = TIMEOUT,
      retries = RETRIES,
      cacheBytes = CACHE_BYTES,
      auditLog,
      auditKey,
    } = options;
    const opened = await this.#engine.call<{ handle: Handle }>(ROOT, "openClient", [
      {
        url: this.url,
        token: token ?? null,
        keys: keys?.handle ?? null,
        storage: this.#storage(options.storage ?? defaultStorage()),
        insecure,
        timeout,
        retries,
        cacheBytes,
        ...(auditLog && { log: { path: auditLog, ...(auditKey && { key: auditKey }) } }),
      },
    ]);
    this.#engine.warn(
      opened.handle,
      options.onWarning ?? ((message) => console.warn(`ciphervec: ${message}`)),
    );
    return opened;
  }

  #storage(given: NonNullable<ClientOptions["storage"]>): StorageChoice {
    if (given === "memory") return { kind: "memory" };
    if (given === "indexeddb") return { kind: "indexeddb", database: "ciphervec" };
    if ("database" in given)
      return { kind: "indexeddb", database: known(given, { database: true }, "storage").database };
    if ("folder" in given) return { kind: "folder", path: known(given, { folder: true }, "storage").folder };
    if (["get", "set", "delete", "list"].every((name) => typeof given[name as keyof Storage] === "function"))
      return { kind: "page", number: this.#engine.lend(given) };
    throw new InvalidInput(
      'storage must be "indexeddb", "memory", {database}, {folder}, or an object with get, set, delete and list.',
    );
  }

  async #collection(method: string, argument: unknown, options: Loose): Promise<Collection> {
    const made = await this.#call<Made>(method, argument, options);
    const known = this.#collections.get(made.handle) ?? new Collection(this.#engine, made);
    this.#collections.set(made.handle, known);
    return known;
  }

  async #call<T>(method: string, argument: unknown, { signal, onProgress }: Loose): Promise<T> {
    const { handle } = await this.#opened;
    return this.#engine.call(handle, method, [argument], {
      ...(signal && { signal }),
      ...(onProgress && { onProgress }),
    });
  }
}

function checkLog({ auditLog, auditKey }: ClientOptions): void {
  if (auditLog !== undefined && (typeof auditLog !== "string" || auditLog === ""))
    throw new InvalidInput(`auditLog must be the path of a file, got ${JSON.stringify(auditLog)}.`);
  if (auditKey === undefined) return;
  if (auditLog === undefined) throw new InvalidInput("auditKey signs a log: name its file, auditLog.");
  if (typeof auditKey !== "string" && !(auditKey instanceof Uint8Array))
    throw new InvalidInput(`auditKey must be the path of a file or its bytes, got ${typeof auditKey}.`);
}

interface Loose {
  signal?: CallOptions["signal"] | undefined;
  onProgress?: CallOptions["onProgress"] | undefined;
}
