/** Storage in a database of the page's origin, for the Worker. */

import { refused, type Storage } from "./storage.js";

const VERSION = 1;
const BLOBS = "blobs";
const USES = "uses";

interface Use {
  bytes: number;
  used: number;
}

/** One database: the bytes in one store, their lengths and when they were used in another, so that listing reads no bytes. */
export class IndexedDbStorage implements Storage {
  readonly #name: string;
  #opened: Promise<IDBDatabase> | null = null;
  /** Work in this Worker that waits for its turn, where the browser has no locks across tabs. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(name = "ciphervec") {
    this.#name = name;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    return this.#run("readwrite", async ([blobs, uses]) => {
      const data: unknown = await settled(blobs.get(name));
      if (!(data instanceof Uint8Array)) return undefined;
      uses.put({ bytes: data.length, used: Date.now() } satisfies Use, name);
      return data;
    });
  }

  async set(name: string, data: Uint8Array): Promise<void> {
    await this.#run("readwrite", async ([blobs, uses]) => {
      uses.put({ bytes: data.length, used: Date.now() } satisfies Use, name);
      await settled(blobs.put(data, name));
    });
  }

  async delete(name: string): Promise<void> {
    await this.#run("readwrite", async ([blobs, uses]) => {
      uses.delete(name);
      await settled(blobs.delete(name));
    });
  }

  async list(prefix: string): Promise<{ name: string; bytes: number }[]> {
    const range = IDBKeyRange.bound(prefix, `${prefix}\uffff`);
    return this.#run("readonly", async ([, uses]) => {
      const [names, rows] = await Promise.all([settled(uses.getAllKeys(range)), settled(uses.getAll(range))]);
      return names
        .map((name, i) => ({ name: String(name), ...(rows[i] as Use) }))
        .sort((a, b) => a.used - b.used)
        .map(({ name, bytes }) => ({ name, bytes }));
    });
  }

  async exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    // Other tabs of the origin share the database; browsers have these locks wherever pages are secure.
    const { locks } = globalThis.navigator ?? {};
    if (locks !== undefined) return (await locks.request(`${this.#name} ${name}`, work)) as T;
    const before = this.#turns.get(name) ?? Promise.resolve();
    const turn = before.then(work, work);
    this.#turns.set(
      name,
      turn.catch(() => undefined),
    );
    return turn;
  }

  close(): void {
    this.#opened?.then((database) => database.close()).catch(() => undefined);
    this.#opened = null;
  }

  async #run<T>(
    mode: IDBTransactionMode,
    work: (stores: [IDBObjectStore, IDBObjectStore]) => Promise<T>,
  ): Promise<T> {
    try {
      this.#opened ??= open(this.#name);
      const database = await this.#opened;
      const transaction = database.transaction([BLOBS, USES], mode, { durability: "strict" });
      const ended = new Promise<void>((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject(transaction.error ?? new DOMException("aborted", "AbortError"));
      });
      // An error of the work is that of the transaction as well, and is told once.
      ended.catch(() => undefined);
      const result = await work([transaction.objectStore(BLOBS), transaction.objectStore(USES)]);
      await ended;
      return result;
    } catch (error) {
      if ((error as Error).name === "InvalidStateError") this.#opened = null; // the browser closed it
      throw refused("IndexedDB", error);
    }
  }
}

function open(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, VERSION);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(BLOBS);
      request.result.createObjectStore(USES);
    };
    request.onsuccess = () => {
      // Another tab that upgrades, or the person who clears the site's data, must not wait for this one.
      request.result.onversionchange = () => request.result.close();
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
    request.onblocked = () =>
      reject(new DOMException("another tab holds an older version open", "InvalidStateError"));
  });
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
