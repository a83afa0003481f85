/**
 * Filters: a `where` filter enters; a test on metadata and the equalities the server can check by tag leave. Owner's side.
 *
 * The grammar, and which values are equal, are those of the Python package: `{lang: "en"}` or `{lang: {$eq: "en"}}`; a missing
 * field fails every comparison but `$ne`, `$nin` and `$not_contains`; numbers compare with numbers, texts with texts,
 * by code point.
 */

import { InvalidInput } from "../errors.js";
import { hex, utf8 } from "./bytes.js";
import { plain } from "./json.js";

const EQUAL = new Set(["$eq", "$in", "$ne", "$nin"]);
const NEGATIVE = new Set(["$ne", "$nin", "$not_contains"]);
const ORDER: { [operator: string]: (sign: number) => boolean } = {
  $gt: (sign) => sign > 0,
  $gte: (sign) => sign >= 0,
  $lt: (sign) => sign < 0,
  $lte: (sign) => sign <= 0,
};
const OPERATORS = [
  "$eq",
  "$ne",
  ...Object.keys(ORDER),
  "$in",
  "$nin",
  "$contains",
  "$not_contains",
  "$exists",
  "$not",
];

type Fields = { [field: string]: unknown };

/** One operator on one field; `options` are the operands in canonical form. */
export interface Comparison {
  field: string;
  operator: string;
  operands: unknown[];
  options: Set<string>;
}

export type Part = { all: Part[] } | { some: Part[] } | { not: Part } | Comparison;

/** A checked filter, split into what goes to the server as keyed tags and what the owner tests. */
export class WhereFilter {
  readonly root: Part;
  /** The (field, canonical value) pairs that must all hold on filterable fields. */
  readonly tags: [string, Uint8Array][] = [];
  /** Whether the tags are the whole filter, so that no metadata needs to be opened. */
  complete = true;

  /** Throws InvalidInput, naming the part of `where` that is not understood. */
  constructor(where: unknown, filterable: readonly string[]) {
    this.root = filter(where);
    this.#collect(this.root, filterable);
  }

  /** Whether a row with this metadata passes. */
  matches(metadata: Fields | null): boolean {
    return passes(this.root, metadata ?? {});
  }

  #collect(part: Part, filterable: readonly string[]): void {
    if ("all" in part) for (const one of part.all) this.#collect(one, filterable);
    else if ("field" in part && part.operator === "$eq" && filterable.includes(part.field))
      for (const option of part.options) this.tags.push([part.field, utf8(option)]);
    else this.complete = false;
  }
}

/** Text that is equal exactly when two scalars are equal under `$eq`. Throws InvalidInput for a list or object. */
export function canonical(value: unknown): string {
  if (value === null) return "n";
  switch (typeof value) {
    case "boolean":
      return value ? "b1" : "b0";
    case "bigint":
      return `i${value}`;
    case "number":
      return Number.isInteger(value) ? `i${BigInt(value)}` : `f${hexFloat(value)}`;
    case "string":
      return `s${value}`;
    default:
      throw new InvalidInput(
        `a filter compares with a string, number, boolean or null, got ${kind(value)}. Use $in for one of several values, ` +
          "$contains for a value within a list.",
      );
  }
}

/** What a value compares with: `none`, `boolean`, `number`, `text`, `list` or `object`. */
export function kind(value: unknown): string {
  if (value === null) return "none";
  switch (typeof value) {
    case "boolean":
      return "boolean";
    case "number":
    case "bigint":
      return "number";
    case "string":
      return "text";
    default:
      return Array.isArray(value) ? "list" : "object";
  }
}

/** Whether a filter on documents holds. Throws InvalidInput for what is none. */
export function documentTest(where: unknown): (document: string | null) => boolean {
  const entries = typeof where === "object" && where !== null ? Object.entries(where) : [];
  if (entries.length !== 1)
    throw new InvalidInput(
      'whereDocument must be one of {$contains: "…"}, {$not_contains: "…"}, {$and: […]}, {$or: […]}.',
    );
  const [operator, operand] = entries[0] as [string, unknown];
  if (operator === "$and" || operator === "$or") {
    if (!Array.isArray(operand) || operand.length === 0)
      throw new InvalidInput(`${operator} in whereDocument takes a non-empty list of filters.`);
    const parts = operand.map(documentTest);
    return operator === "$and"
      ? (document) => parts.every((part) => part(document))
      : (document) => parts.some((part) => part(document));
  }
  if (
    (operator !== "$contains" && operator !== "$not_contains") ||
    typeof operand !== "string" ||
    operand === ""
  )
    throw new InvalidInput(
      `whereDocument has ${JSON.stringify(operator)}; $contains and $not_contains take a text that is not empty.`,
    );
  return (document) => (document?.includes(operand) ?? false) === (operator === "$contains");
}

/** Every comparison of a filter, wherever it stands. */
export function* comparisons(part: Part): Generator<Comparison> {
  if ("field" in part) yield part;
  else if ("not" in part) yield* comparisons(part.not);
  else for (const one of "all" in part ? part.all : part.some) yield* comparisons(one);
}

/** Whether one operator answers with the opposite. */
export const isNegative = (operator: string): boolean => NEGATIVE.has(operator);
/** Whether an operator tests equality alone, which tags tell of. */
export const isEquality = (operator: string): boolean => EQUAL.has(operator);

function passes(part: Part, metadata: Fields): boolean {
  if ("field" in part) {
    const there = Object.hasOwn(metadata, part.field);
    return test(part, there, there ? metadata[part.field] : undefined);
  }
  if ("not" in part) return !passes(part.not, metadata);
  return "all" in part
    ? part.all.every((one) => passes(one, metadata))
    : part.some.some((one) => passes(one, metadata));
}

function test({ operator, operands, options }: Comparison, there: boolean, value: unknown): boolean {
  if (EQUAL.has(operator)) {
    const scalar = there && (value === null || typeof value !== "object");
    return (scalar && options.has(canonical(value))) !== NEGATIVE.has(operator);
  }
  if (operator === "$exists") return there === operands[0];
  if (operator === "$contains" || operator === "$not_contains")
    return holds(value, operands[0], options) !== NEGATIVE.has(operator);
  const order = ORDER[operator];
  return (
    order !== undefined && there && kind(value) === kind(operands[0]) && order(compare(value, operands[0]))
  );
}

function holds(value: unknown, operand: unknown, options: Set<string>): boolean {
  if (Array.isArray(value))
    return value.some((one) => (one === null || typeof one !== "object") && options.has(canonical(one)));
  return typeof value === "string" && typeof operand === "string" && value.includes(operand);
}

/** Below, at or above 0. Texts by code point, as Python has it: UTF-16 sorts pairs before some others. */
function compare(a: unknown, b: unknown): number {
  if (typeof a !== "string" || typeof b !== "string") {
    const [x, y] = [a as number, b as number];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  let at = 0;
  while (at < a.length && at < b.length && a[at] === b[at]) at++;
  const [x, y] = [a.charCodeAt(at), b.charCodeAt(at)];
  if (Number.isNaN(x) || Number.isNaN(y)) return a.length - b.length;
  const rank = (unit: number) => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit);
  return rank(x) - rank(y);
}

/** Python's `float.hex` of a number that is not whole. */
function hexFloat(value: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const digits = hex(new Uint8Array(view.buffer)).slice(3);
  const bits = view.getUint16(0);
  const exponent = (bits >> 4) & 0x7ff;
  const power = exponent === 0 ? -1022 : exponent - 1023;
  return `${value < 0 ? "-" : ""}0x${exponent === 0 ? 0 : 1}.${digits}p${power < 0 ? "" : "+"}${power}`;
}

function filter(where: unknown): Part {
  const entries =
    typeof where === "object" && where !== null && !Array.isArray(where) ? Object.entries(where) : [];
  if (entries.length === 0)
    throw new InvalidInput('where must be an object that is not empty, such as {lang: "en"}.');
  return all(entries.map(([name, condition]) => conditionOf(name, condition)));
}

const all = (parts: Part[]): Part =>
  parts.length === 1 && parts[0] !== undefined ? parts[0] : { all: parts };

function conditionOf(name: string, condition: unknown): Part {
  if (name === "$and" || name === "$or") {
    if (!Array.isArray(condition) || condition.length === 0)
      throw new InvalidInput(`${name} takes a non-empty list of filters, got ${kind(condition)}.`);
    const parts = condition.map(filter);
    return name === "$and" ? { all: parts } : { some: parts };
  }
  if (name === "$not") return { not: filter(condition) };
  if (name === "" || name.startsWith("$"))
    throw new InvalidInput(
      `where has ${JSON.stringify(name)} where a field name, $and, $or or $not is expected.`,
    );
  return comparisonsOf(name, condition);
}

function comparisonsOf(name: string, condition: unknown): Part {
  const isObject = typeof condition === "object" && condition !== null && !(condition instanceof Date);
  const operators = isObject && !Array.isArray(condition) ? Object.entries(condition) : [["$eq", condition]];
  if (operators.length === 0)
    throw new InvalidInput(
      `the condition on ${JSON.stringify(name)} is empty; give a value or an operator such as $eq.`,
    );
  return all(operators.map(([operator, operand]) => comparison(name, operator as string, operand)));
}

function comparison(field: string, operator: string, given: unknown): Part {
  const on = `${operator} on ${JSON.stringify(field)}`;
  if (operator === "$not") return { not: comparisonsOf(field, given) };
  if (operator === "$in" || operator === "$nin") {
    if (!Array.isArray(given)) throw new InvalidInput(`${on} takes a list of values, got ${kind(given)}.`);
    const operands = given.filter((one) => !Number.isNaN(one)).map((one) => plain(one, on));
    return { field, operator, operands, options: new Set(operands.map(canonical)) };
  }
  if (!OPERATORS.includes(operator))
    throw new InvalidInput(
      `unknown operator ${JSON.stringify(operator)} on ${JSON.stringify(field)}; known are ${OPERATORS.join(" ")}.`,
    );
  const operand = plain(given, on);
  if (operator === "$exists" && typeof operand !== "boolean")
    throw new InvalidInput(`${on} takes true or false, got ${kind(operand)}.`);
  if (operator in ORDER && !["number", "text"].includes(kind(operand)))
    throw new InvalidInput(`${on} compares with a number or a string, got ${kind(operand)}.`);
  return { field, operator, operands: [operand], options: new Set([canonical(operand)]) };
}
