/** A row's metadata and document, as callers give them and as the core takes them. */

import { InvalidInput, InvalidRows } from "../errors.js";
import { sameLength } from "./arrays.js";
import { plain, stringify } from "./json.js";

/** Of each row its metadata as JSON and its document, checked; left out where no row has any. Throws InvalidRows naming every offending row. */
export function changesOf(
  count: number,
  metadatas: unknown,
  documents: unknown,
): { metadatas?: (string | null)[]; documents?: (string | null)[] } {
  const left = listed(metadatas, "object", "metadatas");
  const right = listed(documents, "string", "documents");
  sameLength(count, left?.length, "metadatas");
  sameLength(count, right?.length, "documents");
  const faults = new Map<number, string>();
  const each = (values: unknown[], of: (value: unknown, i: number) => string | null) =>
    values.map((value, i) => {
      try {
        return of(value, i);
      } catch (error) {
        if (!(error instanceof InvalidInput)) throw error;
        faults.set(i, faults.get(i) ?? error.message);
        return null;
      }
    });
  const changes = {
    ...(left !== null && { metadatas: each(left, (one, i) => metadataOf(one, `metadatas[${i}]`)) }),
    ...(right !== null && { documents: each(right, (one, i) => documentOf(one, `documents[${i}]`)) }),
  };
  if (faults.size > 0) throw InvalidRows.of(faults);
  return changes;
}

function listed(value: unknown, single: "object" | "string", what: string): unknown[] | null {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value;
  if (typeof value === single) return [value];
  throw new InvalidInput(`${what} must be a list with one entry per id, got ${typeof value}.`);
}

function metadataOf(value: unknown, what: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object" || Array.isArray(value) || value instanceof Date)
    throw new InvalidInput(
      `${what} must be an object or null, got ${Array.isArray(value) ? "an array" : typeof value}.`,
    );
  for (const name of Object.keys(value as object))
    if (name === "" || name.startsWith("$"))
      throw new InvalidInput(
        `${what} has the field ${JSON.stringify(name)}; names are not empty and don't start with "$".`,
      );
  return stringify(plain(value, what));
}

function documentOf(value: unknown, what: string): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "string")
    throw new InvalidInput(`${what} must be a string or null, got ${typeof value}.`);
  return plain(value, what) as string;
}
