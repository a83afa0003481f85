/** What the core asks of the world for one call: requests by `fetch`, a storage, time, warnings. In the Worker. */

import { fromNative } from "./errors.js";
import { type Answer, type Fetch, type Request, send, sleep } from "./http/transport.js";
import type { Host } from "./native.js";
import { type ClientLog, MemoryStorage, type Storage } from "./storage/storage.js";
import type { Progress } from "./types.js";

/** What one call of a user's is done under. */
export interface Call {
  signal?: AbortSignal;
  progress?: (progress: Progress) => void;
}

/** What all calls of a client share. */
export interface World {
  fetch: Fetch;
  storage: Storage;
  warn: (message: string) => void;
  /** Null where what is done is not written down. */
  log: ClientLog | null;
}

export class CallHost implements Host {
  readonly #world: World;
  readonly #call: Call;
  /** Bytes of bodies. */
  sent = 0;
  received = 0;

  constructor(world: World, call: Call) {
    this.#world = world;
    this.#call = call;
  }

  async send(request: Request, ms: number): Promise<Answer> {
    this.sent += request.body?.length ?? 0;
    const answer = await send(this.#world.fetch, request, ms, this.#call.signal);
    const read = async () => {
      const piece = await answer.read();
      this.received += piece?.length ?? 0;
      return piece;
    };
    return this.logs ? { ...answer, read } : answer;
  }

  get logs(): boolean {
    return this.#world.log !== null;
  }

  noted(line: string): void {
    try {
      this.#world.log?.append(line);
    } catch (error) {
      this.warn(`what this client did is not in its log: ${(fromNative(error) as Error).message}`);
    }
  }

  sleep(ms: number): Promise<void> {
    return sleep(ms, this.#call.signal);
  }

  now(): number {
    return performance.now();
  }

  clock(): number {
    return Date.now();
  }

  get(name: string): Promise<Uint8Array | undefined> {
    return this.#world.storage.get(name);
  }

  set(name: string, data: Uint8Array): Promise<void> {
    return this.#world.storage.set(name, data);
  }

  delete(name: string): Promise<void> {
    return this.#world.storage.delete(name);
  }

  list(prefix: string): Promise<{ name: string; bytes: number }[]> {
    return this.#world.storage.list(prefix);
  }

  /** What lets go of it. */
  lock(name: string): Promise<(() => void) | undefined> {
    const { storage } = this.#world;
    if (storage.exclusive === undefined) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      storage.exclusive?.(name, () => new Promise<void>((release) => resolve(() => release()))).catch(reject);
    });
  }

  get durable(): boolean {
    return !(this.#world.storage instanceof MemoryStorage);
  }

  warn(text: string): void {
    this.#world.warn(text);
  }

  progress(phase: Progress["phase"], done: number, total: number | undefined, ms: number | undefined): void {
    this.#call.progress?.({ phase, done, total: total ?? null, ...(ms !== undefined && { ms }) });
  }

  meanwhile(work: () => void): void {
    setTimeout(work);
  }

  get ended(): boolean {
    return this.#call.signal?.aborted ?? false;
  }
}

/** Have the core do something under a call. Throws what the call was aborted with, or an error of ours. */
export async function under<T>(world: World, call: Call, work: (host: Host) => Promise<T>): Promise<T> {
  call.signal?.throwIfAborted();
  try {
    return await work(new CallHost(world, call));
  } catch (error) {
    call.signal?.throwIfAborted();
    throw fromNative(error);
  }
}
