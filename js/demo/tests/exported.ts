/** The folder that `ciphervec demo --export-web` wrote, if someone has written it. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export function exported(): string | undefined {
  const folder = fileURLToPath(new URL("../public/model", import.meta.url));
  return existsSync(`${folder}/known.bin`) ? folder : undefined;
}
