/** Node, the half of an engine that only searches: what loads its wasm. */

import { readFile } from "node:fs/promises";
import { InvalidInput } from "../errors.js";
import type { SearchNative } from "../native.js";
import * as wasm from "../wasm/ciphervec_search.js";
import { hasSimd } from "./simd.js";

export { storage } from "./node-storage.js";

let loaded: Promise<SearchNative> | null = null;

/** The module, compiled and started once. */
export function native(): Promise<SearchNative> {
  const name = hasSimd() ? "ciphervec_search_simd_bg.wasm" : "ciphervec_search_bg.wasm";
  loaded ??= readFile(new URL(`../wasm/${name}`, import.meta.url)).then((module) => {
    wasm.initSync({ module });
    return wasm as unknown as SearchNative;
  });
  return loaded;
}

/** What chains and signs a log is not in its wasm. Throws InvalidInput. */
export function openLog(): never {
  throw new InvalidInput(
    "a client that only searches writes no log: take one of @ciphervec/client for auditLog.",
  );
}
