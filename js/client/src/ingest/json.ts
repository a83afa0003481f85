/** JSON as Python writes it: whole numbers beyond 2^53, which `JSON.parse` rounds, are bigints. Key owner's side. */

import { InvalidInput } from "../errors.js";
import type { Json } from "../types.js";

const LONG_NUMBER = /\d{16}/;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const SPACE = /[ \t\r\n]*/y;
const DEEPEST = 500;

/** Throws a SyntaxError. */
export function parse(source: string): unknown {
  return LONG_NUMBER.test(source) ? new Reader(source).all() : JSON.parse(source);
}

/** UTF-8 JSON as Python writes it; what is no JSON value is refused before, by `plain`. */
export function stringify(value: unknown): string {
  switch (typeof value) {
    case "bigint":
      return value.toString();
    case "object": {
      if (value === null) return "null";
      if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
      const fields = Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}:${stringify(one)}`);
      return `{${fields.join(",")}}`;
    }
    default:
      return JSON.stringify(value);
  }
}

/**
 * A value as JSON has it, checked: a Date is its ISO 8601 text, as Python writes one in UTC; a bigint that a number
 * holds is that number. Throws InvalidInput, whose message begins with `what`.
 */
export function plain(value: unknown, what: string, depth = 0): Json {
  if (depth > DEEPEST) throw new InvalidInput(`${what} is nested more than ${DEEPEST} deep.`);
  switch (typeof value) {
    case "boolean":
      return value;
    case "string":
      if (!wellFormed(value)) throw new InvalidInput(`${what} is not valid Unicode: it has half of a pair.`);
      return value;
    case "number":
      if (!Number.isFinite(value))
        throw new InvalidInput(`${what} is ${value}, which JSON has no number for.`);
      return value;
    case "bigint":
      return value === BigInt(Number(value)) && Number.isSafeInteger(Number(value)) ? Number(value) : value;
    case "object":
      break;
    default:
      throw new InvalidInput(
        `${what} must hold JSON values (string, number, boolean, null, array, object), got ${typeof value}.`,
      );
  }
  if (value === null) return null;
  if (value instanceof Date) return isoText(value, what);
  if (Array.isArray(value)) return value.map((one, i) => plain(one, `${what}[${i}]`, depth + 1));
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null)
    throw new InvalidInput(`${what} must hold plain objects, got ${value.constructor?.name ?? "another"}.`);
  const out: { [name: string]: Json } = Object.create(null);
  for (const [name, one] of Object.entries(value)) {
    plain(name, `a field name of ${what}`);
    if (one !== undefined) out[name] = plain(one, `${what}.${name}`, depth + 1);
  }
  return out;
}

/** Whether text has no half of a surrogate pair, which UTF-8 has no bytes for. */
export function wellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

/** `2024-05-01T12:00:00+00:00`: as Python's `isoformat` in UTC, so that texts compare as times do. */
function isoText(date: Date, what: string): string {
  if (Number.isNaN(date.getTime())) throw new InvalidInput(`${what} is an invalid Date.`);
  const iso = date.toISOString();
  const fraction = iso.slice(-5, -1) === ".000" ? "" : `${iso.slice(-5, -1)}000`;
  return `${iso.slice(0, -5)}${fraction}+00:00`;
}

/** The grammar of RFC 8259, for texts with long numbers. */
class Reader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  all(): unknown {
    const value = this.#value(0);
    this.#skip();
    if (this.#at !== this.#source.length) this.#fail();
    return value;
  }

  #value(depth: number): unknown {
    if (depth > DEEPEST) this.#fail();
    this.#skip();
    switch (this.#source[this.#at]) {
      case "{":
        return this.#object(depth);
      case "[":
        return this.#array(depth);
      case '"':
        return this.#string();
      case "t":
        return this.#word("true", true);
      case "f":
        return this.#word("false", false);
      case "n":
        return this.#word("null", null);
      default:
        return this.#number();
    }
  }

  #object(depth: number): unknown {
    const out: { [name: string]: unknown } = {};
    this.#at++;
    this.#skip();
    if (this.#take("}")) return out;
    do {
      this.#skip();
      const name = this.#string();
      this.#skip();
      if (!this.#take(":")) this.#fail();
      // As JSON.parse has it: a field of that name, and not the prototype.
      Object.defineProperty(out, name, {
        value: this.#value(depth + 1),
        enumerable: true,
        configurable: true,
        writable: true,
      });
      this.#skip();
    } while (this.#take(","));
    if (!this.#take("}")) this.#fail();
    return out;
  }

  #array(depth: number): unknown[] {
    const out: unknown[] = [];
    this.#at++;
    this.#skip();
    if (this.#take("]")) return out;
    do {
      out.push(this.#value(depth + 1));
      this.#skip();
    } while (this.#take(","));
    if (!this.#take("]")) this.#fail();
    return out;
  }

  #string(): string {
    return JSON.parse(this.#match(STRING)) as string;
  }

  #number(): number | bigint {
    const digits = this.#match(NUMBER);
    const near = Number(digits);
    return /[.eE]/.test(digits) || Number.isSafeInteger(near) ? near : BigInt(digits);
  }

  #word<T>(word: string, value: T): T {
    if (!this.#source.startsWith(word, this.#at)) this.#fail();
    this.#at += word.length;
    return value;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source)?.[0];
    if (found === undefined) this.#fail();
    this.#at += found.length;
    return found;
  }

  #skip(): void {
    this.#match(SPACE);
  }

  #take(mark: string): boolean {
    if (this.#source[this.#at] !== mark) return false;
    this.#at++;
    return true;
  }

  #fail(): never {
    throw new SyntaxError(`unexpected JSON at character ${this.#at}`);
  }
}
