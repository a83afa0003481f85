/** Browser, the engine's half: what loads the wasm and keeps bytes. Runs in the Worker. */

import { InvalidInput } from "../errors.js";
import type { LookupNative, Native } from "../native.js";
import { IndexedDbStorage } from "../storage/indexeddb.js";
import { refused, type Storage } from "../storage/storage.js";
import load, * as wasm from "../wasm/ciphervec.js";
// Not by a dynamic import: bundlers that make a Worker one script can't split it. Its wasm is loaded when it is asked for.
import loadLookup, * as lookups from "../wasm/ciphervec_lookup.js";
import { hasSimd } from "./simd.js";

/** The module, compiled and started once. */
export async function native(): Promise<Native> {
  // Both addresses stand here as they are, for bundlers to find.
  const plain = new URL("../wasm/ciphervec_bg.wasm", import.meta.url);
  const simd = new URL("../wasm/ciphervec_simd_bg.wasm", import.meta.url);
  await load({ module_or_path: hasSimd() ? simd : plain });
  return wasm as unknown as Native;
}

/** The module of private lookup, the same. */
export async function lookup(): Promise<LookupNative> {
  await loadLookup({ module_or_path: new URL("../wasm/ciphervec_lookup_bg.wasm", import.meta.url) });
  return lookups as unknown as LookupNative;
}

/** Where bytes are kept. Throws StorageError. */
export function storage(
  choice: { kind: "indexeddb"; database: string } | { kind: "folder"; path: string },
): Storage {
  if (choice.kind === "folder") throw refused("a folder", new Error("a browser has none"));
  if (typeof indexedDB === "undefined") throw refused("IndexedDB", new Error("this browser has none"));
  return new IndexedDbStorage(choice.database);
}

/** A page has no file to write a log to. Throws InvalidInput. */
export function openLog(): never {
  throw new InvalidInput("auditLog names a file, and a page has none: only Node writes a client's log.");
}
