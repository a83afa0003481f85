/** Browser, the engine's half: what loads the wasm. Runs in the Worker. */

import type { LookupNative, Native } from "../native.js";
import load, * as wasm from "../wasm/ciphervec.js";
// Not by a dynamic import: bundlers that make a Worker one script can't split it. Its wasm is loaded when it is asked for.
import loadLookup, * as lookups from "../wasm/ciphervec_lookup.js";
import { hasSimd } from "./simd.js";

export * as whole from "../worker/whole.js";
export { openLog, storage } from "./browser-storage.js";

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
