/** Node: what starts a worker thread, loads the wasm and keeps bytes in a folder. Both threads. */

import { readFile } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import type { Native } from "../native.js";
import { FolderStorage } from "../storage/folder.js";
import { refused, type Storage } from "../storage/storage.js";
import * as wasm from "../wasm/ciphervec.js";
import type { Started } from "./platform.js";
import { hasSimd } from "./simd.js";

/** Where a client keeps its state unless it is told. */
export const defaultStorage = (): "indexeddb" | "memory" => "memory";

let loaded: Promise<Native> | null = null;

/** The module, compiled and started once. */
export function native(): Promise<Native> {
  const name = hasSimd() ? "ciphervec_simd_bg.wasm" : "ciphervec_bg.wasm";
  loaded ??= readFile(new URL(`../wasm/${name}`, import.meta.url)).then((module) => {
    wasm.initSync({ module });
    return wasm as unknown as Native;
  });
  return loaded;
}

/** Where bytes are kept. Throws StorageError. */
export function storage(
  choice: { kind: "indexeddb"; database: string } | { kind: "folder"; path: string },
): Storage {
  if (choice.kind === "indexeddb") throw refused("IndexedDB", new Error("Node has none; name a folder"));
  return new FolderStorage(choice.path);
}

/** A thread that runs the engine. `given` was made by the caller, of the same file. */
export function start(given?: unknown): Started {
  const worker =
    given instanceof Worker
      ? given
      : new Worker(new URL("../worker/node.js", import.meta.url), { name: "ciphervec" });
  worker.unref();
  return {
    port: {
      post: (message, transfer) => worker.postMessage(message, transfer),
      listen: (take) => worker.on("message", take),
    },
    onEnd: (ended) => {
      worker.on("error", (error) => ended(error instanceof Error ? error.message : String(error)));
      worker.on("exit", (code) => ended(`it exited with code ${code}`));
    },
    busy: (waiting) => (waiting ? worker.ref() : worker.unref()),
    stop: () => void worker.terminate(),
  };
}
