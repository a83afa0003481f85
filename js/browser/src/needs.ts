/** What browser tests need of a machine, and why they are skipped where it is missing. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { program } from "./chromium.ts";
import { command } from "./ciphervec.ts";

export const DEMO = fileURLToPath(new URL("../../demo", import.meta.url));

/** Why there are no browser tests here, or undefined where there are. */
export function missing(): string | undefined {
  if (program() === undefined) return "no Chromium; on Debian: apt-get install chromium";
  if (command() === undefined) return "no ciphervec in .venv; `make wheel` installs it";
  if (!existsSync(`${DEMO}/dist/index.html`)) return "the demo page is not built; `make web` builds it";
  if (!existsSync(`${DEMO}/dist/model/model.bin`)) return "the demo page was built without its model";
  return undefined;
}
