/** Set-up: says once why there are no browser tests, where there are none; else builds the page that they open. */

import { fileURLToPath } from "node:url";
import { build } from "vite";
import { missing } from "./needs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Build these pages to test-results/page. */
export async function buildPages(...names: string[]): Promise<void> {
  const input = names.map((name) => `${ROOT}page/${name}`);
  await build({
    root: `${ROOT}page`,
    configFile: `${ROOT}vite.config.ts`,
    logLevel: "error",
    build: { rollupOptions: { input } },
  });
}

export default async function setup(): Promise<void> {
  const reason = missing();
  if (reason !== undefined) process.stderr.write(`browser tests are skipped: ${reason}\n`);
  else await buildPages("index.html", "searching.html");
}
