/** Vitest's settings for the bench: it has the machine to itself, and all the time it needs. */

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["bench/**/*.bench.ts"],
    fileParallelism: false,
    testTimeout: 1_200_000,
    hookTimeout: 300_000,
    globalSetup: ["bench/setup.ts"],
  },
});
