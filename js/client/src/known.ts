/** Holds what a caller passes to a method to the names that the method knows. Both threads. */

import { InvalidInput } from "./errors.js";
import { checkDepth } from "./ingest/nesting.js";
import type { CallOptions } from "./types.js";

/** Every name that an interface has: the compiler holds a table to it. */
export type Names<T> = { readonly [K in keyof Required<T>]: true };

export const CALL: Names<CallOptions> = { signal: true, onProgress: true };
export const NAMED: Names<{ name: string } & CallOptions> = { name: true, ...CALL };

/** Those that are there. */
export function callOptions(
  signal: CallOptions["signal"],
  onProgress: CallOptions["onProgress"],
): CallOptions {
  return { ...(signal && { signal }), ...(onProgress && { onProgress }) };
}

/** The options, if the method knows each of them. Throws InvalidInput, naming the one that it doesn't and those that it does. */
export function known<T extends object>(
  given: T,
  names: { readonly [name: string]: true },
  method: string,
): T {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new InvalidInput(
      `${method} takes an object of options, such as {${Object.keys(names)[0]}: …}, got ${shown(given)}.`,
    );
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(names, name)) {
      const near = nearest(name, Object.keys(names));
      throw new InvalidInput(
        `${method} has no option "${name}"${near === null ? "." : `; did you mean "${near}"?`} ` +
          `It takes ${Object.keys(names).join(", ")}.`,
      );
    }
  }
  const { where, whereDocument, metadatas } = given as { [name: string]: unknown };
  checkDepth(where, "where");
  checkDepth(whereDocument, "whereDocument");
  if (Array.isArray(metadatas)) metadatas.forEach((one, i) => void checkDepth(one, `metadatas[${i}]`));
  else checkDepth(metadatas, "metadatas");
  return given;
}

function shown(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}

/** The name that begins so, or is a slip or two away; null where none is. */
export function nearest(name: string, names: readonly string[]): string | null {
  const begun = names.find((one) => name !== "" && one.toLowerCase().startsWith(name.toLowerCase()));
  if (begun !== undefined) return begun;
  const [found] = names
    .map((one) => ({ one, far: distance(name.toLowerCase(), one.toLowerCase()) }))
    .sort((a, b) => a.far - b.far);
  return found !== undefined && found.far <= 2 ? found.one : null;
}

/** How many letters must be put in, taken out or exchanged to make one word of the other. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, exchanged));
    }
    row = next;
  }
  return row[b.length] as number;
}
