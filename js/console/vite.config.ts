/** Build of the console, into files that the server's binary holds. */
import { defineConfig } from "vite";
import { licences } from "./build/licences.ts";

export default defineConfig({
  base: "/",
  plugins: [licences()],
  build: {
    outDir: "dist",
    // Files stand beside the page and nothing is put into it: its policy allows no inline code and no data addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rollupOptions: {
      // Of libraries that servers can render as well; it says nothing here.
      onwarn: (warning, warn) => warning.code === "MODULE_LEVEL_DIRECTIVE" || warn(warning),
    },
  },
  worker: { format: "es" },
  esbuild: { jsx: "automatic", legalComments: "none" },
  server: { proxy: { "/v1": "http://127.0.0.1:8707", "/metrics": "http://127.0.0.1:8707" } },
});
