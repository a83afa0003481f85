/** Filters as callers write them, in the JSON that the core reads. Its grammar is that of the Python package. */

import { InvalidInput } from "../errors.js";
import { plain, stringify } from "./json.js";

/** As JSON, in which 1e999 stands for infinity. NaN, which nothing equals, is left out of lists. Throws InvalidInput. */
export function filterText(value: unknown, at: string): string | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value))
    return `[${value.flatMap((one) => (Number.isNaN(one) ? [] : [filterText(one, at) ?? "null"])).join(",")}]`;
  if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    const fields = Object.entries(plainObject(value, at)).flatMap(([name, one]) => {
      const text = filterText(one, `${at}.${name}`);
      return text === undefined ? [] : [`${stringify(plain(name, `a name in ${at}`))}:${text}`];
    });
    return `{${fields.join(",")}}`;
  }
  if (value === Number.POSITIVE_INFINITY) return "1e999";
  if (value === Number.NEGATIVE_INFINITY) return "-1e999";
  return stringify(plain(value, at));
}
function plainObject(value: object, at: string): object {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new InvalidInput(
      `${at} must hold plain objects and values, got ${value.constructor?.name ?? "another"}.`,
    );
  return value;
}
