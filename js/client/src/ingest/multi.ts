/** Rows of many vectors, as callers give them and as the core takes them: a matrix is its width and its numbers. */

import { InvalidInput } from "../errors.js";
import type { NativeMuvera, NativeTokens } from "../native.js";
import { countOfThings, type Flat, flatten } from "./arrays.js";

/** A matrix a row, or a query, null where a row keeps its own. Throws InvalidInput. On the page. */
export function flattenAll(given: unknown, what: string): (Flat | null)[] {
  if (!Array.isArray(given))
    throw new InvalidInput(`${what} must be a list of matrices, one a row, got ${typeof given}.`);
  return given.map((one, i) => (one === null ? null : flatten(one, `${what}[${i}]`)));
}

/** Matrices as the core takes them; one whose vectors stand end to end has those of the collection's `width`. */
export function tokensOf(given: readonly (Flat | null)[], width: number | undefined): NativeTokens[] {
  return given
    .filter((one) => one !== null)
    .map((one) => ({ width: one.rows === null ? (width ?? one.width) : one.width, values: one.data }));
}

/** How many vectors become one, as it is chosen. Throws InvalidInput. */
export function muveraOf(given: unknown): NativeMuvera {
  if (typeof given !== "object" || given === null)
    throw new InvalidInput(
      `multi must be an object with width, the numbers of a vector, got ${JSON.stringify(given)}.`,
    );
  const names: readonly string[] = ["width", "kSim", "repetitions", "dProj", "dimension", "seed"];
  const found: { [name: string]: number } = {};
  for (const [name, value] of Object.entries(given)) {
    if (!names.includes(name))
      throw new InvalidInput(`multi has no option "${name}". It takes ${names.join(", ")}.`);
    if (value !== undefined)
      found[name] = countOfThings(value, `${name} of multi`, name === "kSim" || name === "seed" ? 0 : 1);
  }
  if (found["width"] === undefined)
    throw new InvalidInput("multi must have width, the numbers of a vector; it has none.");
  return { ...found, width: found["width"] };
}
