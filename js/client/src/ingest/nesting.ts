/** Nesting: how deep lists and objects may stand in each other, as the Python package has it. Both threads. */

import { InvalidInput } from "../errors.js";

export const MAX_DEPTH = 100;
// Beyond that nobody counts: an object may hold itself.
const COUNTED = 10_000;

/** Throws InvalidInput where lists and objects stand more than `MAX_DEPTH` deep in each other. */
export function checkDepth(value: unknown, what: string): void {
  const depth = depthOf(value);
  if (depth > MAX_DEPTH)
    throw new InvalidInput(
      `${what} is nested ${depth}${depth === COUNTED ? " or more" : ""} deep; the limit is ${MAX_DEPTH}. Put its parts beside each other, ` +
        "or store them as text.",
    );
}

function depthOf(value: unknown): number {
  let level = new Set(holders([value]));
  let depth = 0;
  while (level.size > 0 && ++depth < COUNTED)
    level = new Set([...level].flatMap((one) => holders(Object.values(one))));
  return depth;
}

const holders = (values: unknown[]): object[] =>
  values.filter((one): one is object => typeof one === "object" && one !== null && !ArrayBuffer.isView(one));
