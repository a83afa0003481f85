/** Vitest's settings: one browser and one server at a time, each test with the seconds that a browser needs. */

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    globalSetup: ["src/setup.ts"],
  },
});
