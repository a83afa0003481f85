/** Messages between the page and the Worker: calls, their ends, what happens meanwhile. Both threads. */

import type { ErrorMessage } from "../errors.js";
import type { Progress } from "../types.js";

/** What a handle stands for in the Worker; `ROOT` is the Worker itself. */
export type Handle = number;
export const ROOT: Handle = 0;

export type ToWorker =
  | { type: "call"; id: number; target: Handle; method: string; args: unknown[]; wantsProgress: boolean }
  | { type: "abort"; id: number }
  | { type: "stored"; id: number; value?: unknown; error?: ErrorMessage };

export type ToPage =
  | { type: "result"; id: number; value: unknown }
  | { type: "error"; id: number; error: ErrorMessage }
  | { type: "progress"; id: number; progress: Progress }
  | { type: "warning"; client: number; message: string }
  | { type: "storage"; id: number; storage: number; method: string; args: unknown[] };

/** Whatever carries them: a Worker, a port of a channel. */
export interface Port {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  listen(take: (message: unknown) => void): void;
}

/** Where a client keeps its state, as it crosses: the page's own storage stays there and is asked. */
export type StorageChoice =
  | { kind: "memory" }
  | { kind: "indexeddb"; database: string }
  | { kind: "folder"; path: string }
  | { kind: "page"; number: number };

/** The buffers in a value that may go over without a copy, which leaves the sender an empty one. */
export function buffersOf(value: unknown, found = new Set<ArrayBuffer>()): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) {
    // A view of a part shares its buffer with others: that one is copied.
    if (value.buffer instanceof ArrayBuffer && value.byteLength === value.buffer.byteLength)
      found.add(value.buffer);
  } else if (Array.isArray(value)) {
    if (typeof value[0] === "object") for (const one of value) buffersOf(one, found);
  } else if (typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype)
    for (const one of Object.values(value)) buffersOf(one, found);
  return [...found];
}
