/** Codes of texts' tokens for private lookup, and classes from its sums. For the client; the tables stay with the server. */

import { CorruptData, InvalidInput } from "../errors.js";
import { type Stored, unpack } from "./archive.js";
import { unescaped } from "./entities.js";

const KIND = "reader of texts";
const VERSION = 1;
const TOKEN = /^[a-z]+(?: [a-z]+)?$/;
const UNKNOWN = 0;

/** The codes of documents' tokens, end to end: of each token one for each table. */
export interface Codes {
  indices: Int32Array;
  offsets: Uint32Array;
  /** Of each document: whether tokens were cut off, and how many of those left are unknown. */
  truncated: boolean[];
  unknown: number[];
}

/** The likeliest class of each text; margins, one for two classes and positive for the second, else one a class. */
export interface TextAnswers {
  labels: (string | number)[];
  margins: number[][];
}

export class TextReader {
  readonly classes: readonly (string | number)[];
  readonly bias: readonly number[];
  /** Tables, and so codes of a token. */
  readonly tables: number;
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #codes: Uint8Array | Uint16Array;
  readonly #ngrams: number;
  readonly #limit: number;

  /** Read what Python's `model.reader().to_bytes()` gives. Throws CorruptData, UnsupportedVersion. */
  constructor(data: Uint8Array) {
    const { header, arrays } = unpack(data, KIND, VERSION, ["codes", "vocabulary"]);
    const [codes, vocabulary] = [arrays["codes"], arrays["vocabulary"]] as [Stored, Stored];
    const { ngrams, tokens, classes, bias } = header as { [field: string]: unknown };
    const fail = (why: string): never => {
      throw new CorruptData(`the parts of this reader don't fit: ${why}.`);
    };
    if (
      (ngrams !== 1 && ngrams !== 2) ||
      !Number.isInteger(tokens) ||
      Number(tokens) < 1 ||
      Number(tokens) > 1 << 16
    )
      fail("ngrams must be 1 or 2, and tokens from 1 to 65536");
    const named = (one: unknown) => typeof one === "string" || Number.isSafeInteger(one);
    if (!Array.isArray(classes) || classes.length < 2 || !classes.every(named))
      fail("at least two classes, strings or integers");
    const outputs = (classes as unknown[]).length === 2 ? 1 : (classes as unknown[]).length;
    if (!Array.isArray(bias) || bias.length !== outputs || !bias.every(Number.isFinite))
      fail("a bias for every class");
    const words =
      vocabulary.values.length === 0 ? [] : new TextDecoder("latin1").decode(vocabulary.values).split("\n");
    this.#numbers = new Map(words.map((word, i) => [word, i + 1]));
    if (this.#numbers.size !== words.length || !words.every((word) => TOKEN.test(word)))
      fail("tokens are one or two words of a to z, each once");
    if (
      codes.shape.length !== 2 ||
      codes.shape[0] !== words.length + 1 ||
      codes.values instanceof Float32Array
    )
      fail("codes for every token");
    this.#codes = codes.values as Uint8Array | Uint16Array;
    this.tables = codes.shape[1] as number;
    this.#ngrams = Number(ngrams);
    this.#limit = Number(tokens);
    this.classes = classes as (string | number)[];
    this.bias = bias as number[];
  }

  /** The codes of all tokens of these texts. Throws InvalidInput. */
  codes(texts: readonly string[]): Codes {
    if (!Array.isArray(texts))
      throw new InvalidInput("texts must be a list of texts. Put a single one in a list.");
    const numbers: number[] = [];
    const offsets = [0];
    const truncated: boolean[] = [];
    const unknown: number[] = [];
    texts.forEach((text, position) => {
      if (typeof text !== "string")
        throw new InvalidInput(`texts[${position}] must be a text, got ${typeof text}.`);
      const tokens = tokensOf(text, this.#ngrams);
      const left = tokens.slice(0, this.#limit).map((token) => this.#numbers.get(token) ?? UNKNOWN);
      numbers.push(...left);
      offsets.push(numbers.length);
      truncated.push(tokens.length > left.length);
      unknown.push(left.filter((one) => one === UNKNOWN).length);
    });
    const indices = new Int32Array(numbers.length * this.tables);
    numbers.forEach((number, i) => {
      indices.set(this.#codes.subarray(number * this.tables, (number + 1) * this.tables), i * this.tables);
    });
    return { indices, offsets: Uint32Array.from(offsets), truncated, unknown };
  }

  /** Classes and margins from what a lookup gave. */
  answers(means: readonly Float64Array[]): TextAnswers {
    const margins = means.map((row) => Array.from(row, (value, i) => value + (this.bias[i] as number)));
    const labels = margins.map((row) => {
      const place = row.length === 1 ? Number((row[0] as number) > 0) : row.indexOf(Math.max(...row));
      return this.classes[place] as string | number;
    });
    return { labels, margins };
  }
}

/** Words of the letters a to z, in order; with pairs each is followed by the pair that it ends. */
export function tokensOf(text: string, ngrams: number): string[] {
  const words =
    unescaped(text)
      .toLowerCase()
      .match(/[a-z]+/g) ?? [];
  if (ngrams === 1) return [...words];
  return words.flatMap((word, i) => (i === 0 ? [word] : [word, `${words[i - 1]} ${word}`]));
}
