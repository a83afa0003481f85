/** Where a client keeps what it remembers between sessions, by name. */

import { StorageError } from "../errors.js";

/** Where a client keeps what it remembers: anything that holds named bytes. They are encrypted before they get there. */
export interface Storage {
  /** What was put there, or undefined. */
  get(name: string): Promise<Uint8Array | undefined>;
  /** Keep these bytes, durably once this resolves. Rejects where there is no room. */
  set(name: string, data: Uint8Array): Promise<void>;
  /** Forget them; that there are none is no error. */
  delete(name: string): Promise<void>;
  /** Names that begin so, with the bytes of each, the ones unused for longest first. */
  list(prefix: string): Promise<{ name: string; bytes: number }[]>;
  /** Run `work` while no other tab or process runs any under this name; left out, there are no others. */
  exclusive?<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Let go of what is open. */
  close?(): void;
}

/** A storage that ends with the page or process. */
export class MemoryStorage implements Storage {
  readonly #held = new Map<string, Uint8Array>();

  async get(name: string): Promise<Uint8Array | undefined> {
    const data = this.#held.get(name);
    if (data === undefined) return undefined;
    this.#held.delete(name); // so that it is the one used last
    this.#held.set(name, data);
    return data;
  }

  async set(name: string, data: Uint8Array): Promise<void> {
    this.#held.delete(name);
    this.#held.set(name, data);
  }

  async delete(name: string): Promise<void> {
    this.#held.delete(name);
  }

  async list(prefix: string): Promise<{ name: string; bytes: number }[]> {
    return [...this.#held]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, data]) => ({ name, bytes: data.length }));
  }
}

/** The error for a storage that refused, with what to do about it. */
export function refused(what: string, error: unknown): StorageError {
  const says = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const full = error instanceof Error && /quota|ENOSPC/i.test(`${error.name} ${error.message}`);
  return new StorageError(
    full
      ? `${what}: there is no more room for this client's state (${says}). Free some (a browser lists it under the site's data, ` +
          'navigator.storage.persist() may raise the quota), give less cacheBytes, or make the Client with storage: "memory", ' +
          "which remembers nothing between sessions."
      : `${what}: the client's state can't be used (${says}). Make the Client with another storage, or with storage: "memory", ` +
          "which remembers nothing between sessions.",
  );
}

/** Which log a client writes, as it crosses. */
export interface LogChoice {
  path: string;
  /** A file of 32 bytes, or these. */
  key?: string | Uint8Array;
}

/** What a client writes what it did to. */
export interface ClientLog {
  /** Throws StorageError. */
  append(line: string): void;
  close(): void;
}
