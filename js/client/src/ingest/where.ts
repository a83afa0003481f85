/** Filters as callers write them, in the JSON that the native filter reads. Its grammar is that of the Python package. */

import { InvalidInput } from "../errors.js";
import type { Filter, Native } from "../native.js";
import { plain, stringify } from "./json.js";

/** A filter on metadata, on documents or on both, checked; null where there is neither. Throws InvalidInput, naming the part that is not
 * understood. */
export function rowFilter(
  native: Native,
  where: unknown,
  whereDocument: unknown,
  filterable: readonly string[],
): Filter | null {
  if (where === undefined && whereDocument === undefined) return null;
  const [metadata, document] = [written(where, "where"), written(whereDocument, "whereDocument")];
  return new native.Filter(metadata, document, [...filterable]);
}

/** As JSON, in which 1e999 stands for infinity. NaN, which nothing equals, is left out of lists. */
function written(value: unknown, at: string): string | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value))
    return `[${value.flatMap((one) => (Number.isNaN(one) ? [] : [written(one, at) ?? "null"])).join(",")}]`;
  if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    const fields = Object.entries(plainObject(value, at)).flatMap(([name, one]) => {
      const text = written(one, `${at}.${name}`);
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
