/** Last step of the build: copies the wasm and its declarations beside what tsc made. */

import { cp, rm } from "node:fs/promises";

await rm(new URL("dist/wasm", import.meta.url), { recursive: true, force: true });
await cp(new URL("src/wasm", import.meta.url), new URL("dist/wasm", import.meta.url), { recursive: true });
