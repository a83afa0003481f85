/** The bench's page: starts a Worker that measures a mode, and passes its result on. */

import type { Measured } from "./bench-worker.ts";

declare global {
  interface Window {
    measure: (mode: string, repeats: number) => Promise<Measured>;
  }
}

window.measure = (mode, repeats) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./bench-worker.ts", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => {
      worker.terminate();
      if ("error" in data) reject(new Error(data.error));
      else resolve(data);
    };
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ mode, repeats });
  });
