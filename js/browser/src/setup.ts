/** Set-up: says once why there are no browser tests, where there are none. */

import { missing } from "./needs.ts";

export default function setup(): void {
  const reason = missing();
  if (reason !== undefined) process.stderr.write(`browser tests are skipped: ${reason}\n`);
}
