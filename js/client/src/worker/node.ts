/** The worker thread of Node: its port is that of the thread that made it. */

import { parentPort } from "node:worker_threads";
import { lookup, native, openLog, storage } from "../platform/node-engine.js";
import { serve } from "./serve.js";

if (parentPort === null) throw new Error("this file is a worker thread's; import @ciphervec/client instead");
const port = parentPort;

serve(
  {
    post: (message, transfer) => port.postMessage(message, transfer),
    listen: (take) => port.on("message", take),
  },
  { native, lookup, storage, openLog, fetch: (url, options) => fetch(url, options) },
);
