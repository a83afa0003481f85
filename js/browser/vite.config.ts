/** Vite's settings for the pages of tests and benches. */

import { defineConfig } from "vite";

export default defineConfig({
  root: "page",
  base: "/",
  build: {
    outDir: "../test-results/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
  },
  worker: { format: "es" },
});
