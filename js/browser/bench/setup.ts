/** Set-up of the bench: its pages are built. Fails where a browser or the package is missing: figures are not skipped unsaid. */

import { program } from "../src/chromium.ts";
import { needed } from "../src/ciphervec.ts";
import { buildPages } from "../src/setup.ts";

export default async function setup(): Promise<void> {
  if (program() === undefined) throw new Error("no Chromium; on Debian: apt-get install chromium");
  needed();
  await buildPages("ready.html", "bench.html");
}
