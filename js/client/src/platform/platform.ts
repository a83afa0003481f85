/** Platform: what a thread that runs the engine is to the page that started it. */

import type { Port } from "../worker/messages.js";

/** A wasm with all of the package, or with what reads collections. */
export type Module = "whole" | "search";

export interface Started {
  port: Port;
  /** Tells once that the thread has ended, and why. */
  onEnd(ended: (why: string) => void): void;
  /** Whether calls are waiting: a process without any may end. */
  busy(waiting: boolean): void;
  stop(): void;
}
