/** Node, the page's half: what starts a worker thread. */

import { homedir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Platform } from "../worker/serve.js";
import type { Module, Started } from "./platform.js";

/** Where a client keeps its state unless it is told: beside that of the Python package. */
export function defaultStorage(): { folder: string } {
  const { env, platform } = process;
  const data =
    platform === "darwin"
      ? join(homedir(), "Library", "Application Support")
      : platform === "win32"
        ? env["LOCALAPPDATA"] || join(homedir(), "AppData", "Local")
        : env["XDG_DATA_HOME"] || join(homedir(), ".local", "share");
  return { folder: join(env["CIPHERVEC_STATE"] || join(data, "ciphervec"), "js") };
}

/** What an engine needs that runs in this thread. */
export async function here(module: Module): Promise<Platform> {
  const engine = module === "search" ? import("./node-search.js") : import("./node-engine.js");
  return { ...(await engine), fetch: (url, options) => fetch(url, options) };
}

/** A thread that runs the engine. `given` was made by the caller, of the same file. */
export function start(module: Module, given?: unknown): Started {
  const file = module === "search" ? "../worker/node-search.js" : "../worker/node.js";
  const worker =
    given instanceof Worker ? given : new Worker(new URL(file, import.meta.url), { name: "ciphervec" });
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
