/** The worker thread of Node: its port is that of the thread that made it. */

import { parentPort } from "node:worker_threads";
import { type Engine, serve } from "./serve.js";

/** Answer that thread's calls with this engine. */
export function run(engine: Engine): void {
  if (parentPort === null)
    throw new Error("this file is a worker thread's; import @ciphervec/client instead");
  const port = parentPort;
  serve(
    {
      post: (message, transfer) => port.postMessage(message, transfer),
      listen: (take) => port.on("message", take),
    },
    { ...engine, fetch: (url, options) => fetch(url, options) },
  );
}
