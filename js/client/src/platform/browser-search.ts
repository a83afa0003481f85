/** Browser, the half of an engine that only searches: what loads its wasm. Runs in the Worker. */

import type { SearchNative } from "../native.js";
import load, * as wasm from "../wasm/ciphervec_search.js";
import { hasSimd } from "./simd.js";

export { openLog, storage } from "./browser-storage.js";

/** The module, compiled and started once. */
export async function native(): Promise<SearchNative> {
  // Both addresses stand here as they are, for bundlers to find.
  const plain = new URL("../wasm/ciphervec_search_bg.wasm", import.meta.url);
  const simd = new URL("../wasm/ciphervec_search_simd_bg.wasm", import.meta.url);
  await load({ module_or_path: hasSimd() ? simd : plain });
  return wasm as unknown as SearchNative;
}
