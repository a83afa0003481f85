/** Node, the engine's half: what loads the wasm. */

import { readFile } from "node:fs/promises";
import type { LookupNative, Native } from "../native.js";
import * as wasm from "../wasm/ciphervec.js";
import * as lookups from "../wasm/ciphervec_lookup.js";
import { hasSimd } from "./simd.js";

export { openLog } from "../storage/log.js";
export * as whole from "../worker/whole.js";
export { storage } from "./node-storage.js";

let loaded: Promise<Native> | null = null;

/** The module, compiled and started once. */
export function native(): Promise<Native> {
  const name = hasSimd() ? "ciphervec_simd_bg.wasm" : "ciphervec_bg.wasm";
  loaded ??= readFile(new URL(`../wasm/${name}`, import.meta.url)).then((module) => {
    wasm.initSync({ module });
    return wasm as unknown as Native;
  });
  return loaded;
}

/** The module of private lookup, the same. */
export async function lookup(): Promise<LookupNative> {
  lookups.initSync({ module: await readFile(new URL("../wasm/ciphervec_lookup_bg.wasm", import.meta.url)) });
  return lookups as unknown as LookupNative;
}
