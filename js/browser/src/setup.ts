/** Set-up: says once why there are no browser tests, where there are none; else builds the page that they open. */

import { fileURLToPath } from "node:url";
import { build } from "vite";
import { missing } from "./needs.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

export default async function setup(): Promise<void> {
  const reason = missing();
  if (reason !== undefined) {
    process.stderr.write(`browser tests are skipped: ${reason}\n`);
    return;
  }
  await build({ root: `${ROOT}page`, configFile: `${ROOT}vite.config.ts`, logLevel: "error" });
}
