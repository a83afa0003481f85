/** What lives in the Worker's memory, named by a handle, until it is freed or the Worker ends. Page. */

import "./dispose.js";
import type { Engine } from "./engine.js";
import type { Handle } from "./worker/messages.js";

export abstract class Held {
  /** Where it lives. */
  readonly engine: Engine;
  /** Not for callers. */
  readonly handle: Handle;

  constructor(engine: Engine, handle: Handle) {
    this.engine = engine;
    this.handle = handle;
  }

  /** Wipe it in the Worker's memory, and close what was opened with it. */
  dispose(): Promise<void> {
    return this.engine.release(this.handle);
  }

  /** As `dispose`, for `using`. */
  [Symbol.dispose](): void {
    this.dispose().catch(() => undefined); // a Worker that ended has wiped it
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
