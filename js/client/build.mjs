/** The wasm and its declarations enter from src/wasm; they leave beside what tsc made, in dist/wasm. */

import { cp, rm } from "node:fs/promises";

await rm(new URL("dist/wasm", import.meta.url), { recursive: true, force: true });
await cp(new URL("src/wasm", import.meta.url), new URL("dist/wasm", import.meta.url), { recursive: true });
