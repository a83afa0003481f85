/** The client of a server, as a page that searches has it: opens collections under the owner's keys, which stay in the Worker. */

import { defaultStorage } from "#platform";
import "./dispose.js";
import type { CollectionRow } from "./collections/client.js";
import type { CollectionFacts } from "./collections/collection.js";
import { type Engine, SearchEngine } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { baseUrl, Token } from "./http/address.js";
import type { Identity, Keys } from "./keys.js";
import { CALL, known, type Names } from "./known.js";
import { type GetCollectionOptions, OPEN } from "./options.js";
import { SearchCollection } from "./search-collection.js";
import type { Storage } from "./storage/storage.js";
import type { CallOptions } from "./types.js";
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

export type Made = { handle: Handle; facts: CollectionFacts };

/** Collections on a ciphervec server, which holds no key, to be searched. What changes them is in `Client` of `@ciphervec/client`. */
export class SearchClient<C extends SearchCollection = SearchCollection> {
  readonly url: string;
  protected readonly engine: Engine;
  protected readonly opened: Promise<{ handle: Handle }>;
  readonly #collections = new Map<Handle, C>();

  /** Nothing is sent yet. Throws InvalidInput. */
  constructor(options: ClientOptions) {
    const { keys, token, insecure = false } = known(options, CLIENT, "Client");
    this.url = baseUrl(options.url, insecure);
    if (token !== undefined) new Token(token.trim()); // refused here, and not by the first call
    checkLog(options);
    this.engine = keys?.engine ?? options.engine ?? this.shared();
    if (options.engine !== undefined && options.engine !== this.engine)
      throw new InvalidInput(
        "the keys are in another engine than the one given; load them there, or leave engine out.",
      );
    this.opened = this.#open(options);
    this.opened.catch(() => undefined); // told by the first call
  }

  /** The engine of a client that has no keys and was given none. */
  protected shared(): Engine {
    return SearchEngine.shared();
  }

  /** What callers have of a collection that the Worker opened. */
  protected made(made: Made): C {
    return new SearchCollection(this.engine, made) as C;
  }

  /**
   * Open a collection that is there. A client with keys refuses one in mode `open`, which whoever keeps it could have put there, unless
   * `allowOpen` says that it is meant to be. `expect` is a checkpoint that somebody else sees, or saw: see the collection's `expect`. Rejects with
   * CollectionNotFound, WrongKey, RollbackDetected, PinMismatch.
   */
  async getCollection(options: GetCollectionOptions): Promise<C> {
    const { signal, onProgress, ...which } = known(options, OPEN, "getCollection");
    return this.collection("get", which, { signal, onProgress });
  }

  /** Name, rows and bytes of every collection that the token may see. */
  async listCollections(options: CallOptions = {}): Promise<CollectionRow[]> {
    return this.call("list", undefined, known(options, CALL, "listCollections"));
  }

  /** Drop what was pinned and seen of a collection, to accept one that was restored or made anew on purpose. */
  forget(name: string): Promise<void> {
    return this.call("forget", name, {});
  }

  /** Show the server another token from now on: one that an identity provider signs is valid for minutes. Rejects with InvalidInput. */
  async setToken(token: string): Promise<void> {
    return this.call("setToken", token.trim(), {});
  }

  /** Close every collection; the keys stay. */
  async close(): Promise<void> {
    const { handle } = await this.opened;
    await this.engine.release(handle);
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
    const opened = await this.engine.call<{ handle: Handle }>(ROOT, "openClient", [
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
    this.engine.warn(
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
      return { kind: "page", number: this.engine.lend(given) };
    throw new InvalidInput(
      'storage must be "indexeddb", "memory", {database}, {folder}, or an object with get, set, delete and list.',
    );
  }

  protected async collection(method: string, argument: unknown, options: Loose): Promise<C> {
    const made = await this.call<Made>(method, argument, options);
    const known = this.#collections.get(made.handle) ?? this.made(made);
    this.#collections.set(made.handle, known);
    return known;
  }

  protected async call<T>(method: string, argument: unknown, { signal, onProgress }: Loose): Promise<T> {
    const { handle } = await this.opened;
    return this.engine.call(handle, method, [argument], {
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
