/**
 * Passes the page's calls to the Worker that holds the keys. One Worker serves all clients of a page, so that a page
 * never blocks and no key is on its heap.
 */

import { here, start } from "#platform";
import { fromMessage, InvalidInput, toMessage, WorkerLost } from "./errors.js";
import { isOwn } from "./ingest/bytes.js";
import { known, type Names } from "./known.js";
import type { Module, Started } from "./platform/platform.js";
import type { Storage } from "./storage/storage.js";
import type { CallOptions, Progress } from "./types.js";
import { buffersOf, type Handle, type Port, ROOT, type ToPage } from "./worker/messages.js";

const ENGINE: Names<EngineOptions> = { worker: true };

/** How an engine runs. */
export interface EngineOptions {
  /**
   * `true`: in a Worker of its own; `false`: in this thread, for one that is a Worker already; in a browser also a Worker that was made of
   * `@ciphervec/client/worker`, where a bundler or a policy wants that.
   */
  worker?: boolean | Worker;
}

interface Waiting {
  resolve: (value: never) => void;
  reject: (error: unknown) => void;
  onProgress: ((progress: Progress) => void) | undefined;
}

const shared = new Map<typeof Engine, Engine>();

export class Engine {
  readonly #started: Started;
  readonly #waiting = new Map<number, Waiting>();
  readonly #storages = new Map<number, Storage>();
  readonly #warnings = new Map<number, (message: string) => void>();
  #calls = 0;
  #lost: string | null = null;

  constructor(options: EngineOptions = {}) {
    const { worker = true } = known(options, ENGINE, "Engine");
    if (worker === false) this.#started = inThread(this.module);
    else this.#started = start(this.module, worker === true ? undefined : worker);
    this.#started.port.listen((message) => this.#take(message as ToPage));
    this.#started.onEnd((why) => this.#end(why));
  }

  /** The one that is used where none is named; another after it was lost. */
  static shared(): Engine {
    const before = shared.get(this);
    if (before !== undefined && before.#lost === null) return before;
    const engine = new this();
    shared.set(this, engine);
    return engine;
  }

  /** The wasm that its Worker loads. */
  protected get module(): Module {
    return "whole";
  }

  /** Release of the native code, and which kernels it computes with. */
  about(): Promise<{ version: string; backend: string }> {
    return this.call(ROOT, "about", []);
  }

  /** End the Worker, and with it every key in it. Calls that wait are rejected with WorkerLost. */
  stop(): void {
    this.#started.stop();
    this.#end("it was stopped");
  }

  /** Call a method of what a handle stands for. */
  call<T>(target: Handle, method: string, args: unknown[], options: CallOptions = {}): Promise<T> {
    const { signal, onProgress } = options;
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.#lost !== null) throw lostError(this.#lost);
      const id = ++this.#calls;
      const abort = () => {
        this.#done(id);
        this.#started.port.post({ type: "abort", id }, []);
        reject(signal?.reason);
      };
      const ended =
        <V>(then: (value: V) => void) =>
        (value: V) => {
          signal?.removeEventListener("abort", abort);
          then(value);
        };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.set(id, { resolve: ended(resolve), reject: ended(reject), onProgress });
      this.#started.busy(true);
      try {
        const message = { type: "call", id, target, method, args, wantsProgress: onProgress !== undefined };
        this.#started.port.post(message, buffersOf(args).filter(isOwn)); // never one of the caller's, which would leave it empty
      } catch (error) {
        this.#done(id);
        throw error; // what can't be cloned: a function in metadata, say
      }
    });
  }

  /** Let go of what a handle stands for, which wipes keys. */
  async release(handle: Handle): Promise<void> {
    if (this.#lost === null) await this.call(ROOT, "release", [handle]);
  }

  /** A number under which the Worker asks for this storage. */
  lend(given: Storage): number {
    this.#storages.set(this.#storages.size + 1, given);
    return this.#storages.size;
  }

  /** Tell warnings of a client. */
  warn(client: Handle, tell: (message: string) => void): void {
    this.#warnings.set(client, tell);
  }

  #take(message: ToPage): void {
    switch (message.type) {
      case "result":
        this.#done(message.id)?.resolve(message.value as never);
        break;
      case "error":
        this.#done(message.id)?.reject(fromMessage(message.error));
        break;
      case "progress":
        this.#waiting.get(message.id)?.onProgress?.(message.progress);
        break;
      case "warning":
        this.#warnings.get(message.client)?.(message.message);
        break;
      case "storage":
        void this.#answer(message);
    }
  }

  async #answer({ id, storage: number, method, args }: Extract<ToPage, { type: "storage" }>): Promise<void> {
    const lent = this.#storages.get(number) as unknown as { [name: string]: (...args: unknown[]) => unknown };
    try {
      const value = await lent[method]?.(...args);
      this.#started.port.post({ type: "stored", id, value }, []);
    } catch (error) {
      this.#started.port.post({ type: "stored", id, error: toMessage(error) }, []);
    }
  }

  #done(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#started.busy(false);
    return waiting;
  }

  #end(why: string): void {
    if (this.#lost !== null) return;
    this.#lost = why;
    for (const id of [...this.#waiting.keys()]) this.#done(id)?.reject(lostError(why));
  }
}

/** One whose Worker loads what reads collections, and nothing that changes them. */
export class SearchEngine extends Engine {
  protected override get module(): Module {
    return "search";
  }
}

/** An engine that has all of the package. Throws InvalidInput for one that only searches. */
export function whole(engine: Engine): Engine {
  if (engine instanceof SearchEngine)
    throw new InvalidInput(
      "this engine is one of @ciphervec/client/search, which only searches. Take one, and the keys in it, from @ciphervec/client.",
    );
  return engine;
}

function lostError(why: string): WorkerLost {
  return new WorkerLost(
    `the Worker that holds the keys has ended: ${why}. Every commit that was answered is on the server; load the keys again and make ` +
      "another Client to go on. A change whose answer did not come is there as a whole, or not at all.",
  );
}

/** The engine in this thread, loaded when it is first called. */
function inThread(module: Module): Started {
  let page: (message: unknown) => void = () => undefined;
  let loading: Promise<(message: unknown) => void> | null = null;
  let fail: (why: string) => void = () => undefined;
  // What ends the module does so in a turn of its own, which no call awaits. Node ends the process then.
  const ended = new AbortController();
  const trap = ({ error }: { error?: unknown }) => {
    if (error instanceof WebAssembly.RuntimeError) fail(error.message);
  };
  globalThis.addEventListener?.("error", trap as EventListener, { signal: ended.signal });
  const load = async () => {
    const [platform, { serve }] = await Promise.all([here(module), import("./worker/serve.js")]);
    let engine: (message: unknown) => void = () => undefined;
    const port: Port = {
      post: (message, transfer) => {
        const copy = structuredClone(message, { transfer });
        queueMicrotask(() => page(copy));
      },
      listen: (take) => {
        engine = take;
      },
    };
    serve(port, platform);
    return (message: unknown) => engine(message);
  };
  return {
    port: {
      // Cloned as between threads, so that neither side changes what the other holds.
      post: (message, transfer) => {
        const copy = structuredClone(message, { transfer });
        loading ??= load();
        loading.then((engine) => engine(copy)).catch((error) => fail(String(error)));
      },
      listen: (take) => {
        page = take;
      },
    },
    onEnd: (end) => {
      fail = end;
    },
    busy: () => undefined,
    stop: () => ended.abort(),
  };
}
