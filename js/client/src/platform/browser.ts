/** Browser, the page's half: what starts a Worker. The engine and its wasm are loaded by the Worker alone. */

import type { Port } from "../worker/messages.js";
import type { Platform } from "../worker/serve.js";
import type { Module, Started } from "./platform.js";

/** Where a client keeps its state unless it is told. */
export const defaultStorage = (): "indexeddb" | "memory" =>
  typeof indexedDB === "undefined" ? "memory" : "indexeddb";

/** What an engine needs that runs in this thread. */
export async function here(module: Module): Promise<Platform> {
  const engine = module === "search" ? import("./browser-search.js") : import("./browser-engine.js");
  return { ...(await engine), fetch: (url, options) => fetch(url, options) };
}

/** A Worker that runs the engine. `given` was made by the caller, of the same file. */
export function start(module: Module, given?: unknown): Started {
  const worker = given instanceof Worker ? given : made(module);
  const port: Port = {
    post: (message, transfer) => worker.postMessage(message, transfer),
    listen: (take) => worker.addEventListener("message", (event) => take(event.data)),
  };
  return {
    port,
    onEnd: (ended) => {
      worker.addEventListener("error", (event) => ended(event.message || "it could not be loaded"));
      worker.addEventListener("messageerror", () => ended("a message of it could not be read"));
      watch(port, ended);
    },
    busy: () => undefined,
    stop: () => worker.terminate(),
  };
}

/** Both addresses stand here as they are, for bundlers to find. */
function made(module: Module): Worker {
  if (module === "search")
    return new Worker(new URL("../worker/search.js", import.meta.url), { type: "module", name: "ciphervec" });
  return new Worker(new URL("../worker/browser.js", import.meta.url), { type: "module", name: "ciphervec" });
}

/**
 * A browser tells nobody that it ended a Worker, for want of memory say. A lock that the Worker holds as long as it lives is free then.
 */
function watch(port: Port, ended: (why: string) => void): void {
  const { locks } = navigator;
  if (locks === undefined) return;
  const name = `ciphervec worker ${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
  port.listen((message) => {
    const { type, name: held } = message as { type: string; name?: string };
    if (type === "alive" && held === name)
      void locks.request(name, async () => ended("the browser ended it, for want of memory perhaps"));
  });
  port.post({ type: "live", name }, []);
}
