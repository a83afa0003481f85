/** Browser: what starts a Worker, loads the wasm and keeps bytes in a page. Both threads. */

import type { Native } from "../native.js";
import { IndexedDbStorage } from "../storage/indexeddb.js";
import { refused, type Storage } from "../storage/storage.js";
import load, * as wasm from "../wasm/ciphervec.js";
import type { Port } from "../worker/messages.js";
import type { Started } from "./platform.js";
import { hasSimd } from "./simd.js";

/** Where a client keeps its state unless it is told. */
export const defaultStorage = (): "indexeddb" | "memory" =>
  typeof indexedDB === "undefined" ? "memory" : "indexeddb";

/** The module, compiled and started once. */
export async function native(): Promise<Native> {
  // Both addresses stand here as they are, for bundlers to find.
  const plain = new URL("../wasm/ciphervec_bg.wasm", import.meta.url);
  const simd = new URL("../wasm/ciphervec_simd_bg.wasm", import.meta.url);
  await load({ module_or_path: hasSimd() ? simd : plain });
  return wasm as unknown as Native;
}

/** Where bytes are kept. Throws StorageError. */
export function storage(
  choice: { kind: "indexeddb"; database: string } | { kind: "folder"; path: string },
): Storage {
  if (choice.kind === "folder") throw refused("a folder", new Error("a browser has none"));
  if (typeof indexedDB === "undefined") throw refused("IndexedDB", new Error("this browser has none"));
  return new IndexedDbStorage(choice.database);
}

/** A Worker that runs the engine. `given` was made by the caller, of the same file. */
export function start(given?: unknown): Started {
  const worker =
    given instanceof Worker
      ? given
      : new Worker(new URL("../worker/browser.js", import.meta.url), { type: "module", name: "ciphervec" });
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
