/** Measures how long a page takes until it has a key in its Worker. */

import { Keys } from "@ciphervec/client";

declare global {
  interface Window {
    /** Milliseconds from the beginning of the navigation. */
    ready?: number;
  }
}

await Keys.generate();
window.ready = performance.now();
