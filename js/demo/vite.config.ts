/** Build of the demo page into static files, with the recorder beside it when it is served. */

import { defineConfig } from "vite";
import { recorder } from "./server/recorder.ts";

export const HEADERS = {
  // What docs/browser.md asks of a page that holds keys. Styles come from files, scripts from here alone.
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; " +
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
  "Cross-Origin-Opener-Policy": "same-origin",
};

export default defineConfig({
  base: "./", // in a folder of a site as well
  plugins: [recorder(process.env["CIPHERVEC_URL"] ?? "http://127.0.0.1:8707", process.env["CIPHERVEC_DATA"])],
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    rollupOptions: { input: ["index.html", "photos.html"] },
  },
  worker: { format: "es" },
  preview: { host: "127.0.0.1", port: 8717, strictPort: true, headers: HEADERS },
});
