import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Units are of the sources; what runs against a server, and in a Worker, is the build.
export default defineConfig({
  test: {
    projects: [
      {
        resolve: { alias: [{ find: "#platform", replacement: here("src/platform/node.ts") }] },
        test: {
          name: "unit",
          include: ["tests/unit/**/*.test.ts"],
          exclude: ["tests/unit/wasm/**"],
          testTimeout: 60_000,
        },
      },
      ...["ciphervec_bg.wasm", "ciphervec_simd_bg.wasm"].map((module) => ({
        test: {
          name: `unit-${module}`,
          include: ["tests/unit/wasm/*.test.ts"],
          env: { CIPHERVEC_WASM: module },
          testTimeout: 60_000,
        },
      })),
      {
        test: {
          name: "e2e",
          include: ["tests/e2e/**/*.test.ts"],
          // Where a client keeps its state unless it is told.
          env: { CIPHERVEC_STATE: mkdtempSync(join(tmpdir(), "ciphervec-js-state-")) },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
