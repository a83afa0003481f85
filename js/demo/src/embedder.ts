/**
 * The unit vector that the Python demo's TF-IDF and SVD give for a text, computed in the page.
 *
 * The model is what `ciphervec demo --export-web` writes. Sums are in double precision, so that what differs from
 * scikit-learn is that library's own rounding of float32.
 */

const FORMAT = 1;
// Python's \w: letters, numbers of all kinds and the underscore; what scikit-learn keeps has two or more.
const TOKEN = /[\p{L}\p{N}_]{2,}/gu;
const NOWHERE = 1e-6;

/** The head of a model, `model.json`. */
export interface ModelHead {
  format: number;
  python: string;
  dimension: number;
  questions: string[];
  words: string[];
}

/** A fitted model. */
export class Embedder {
  readonly head: ModelHead;
  readonly dimension: number;
  readonly #columns: ReadonlyMap<string, number>;
  readonly #idf: Float32Array;
  readonly #directions: Float32Array;

  /** Throws where the files are not of one another, or of another format. */
  constructor(head: ModelHead, floats: ArrayBuffer) {
    if (head.format !== FORMAT)
      throw new Error(
        `model.json has format ${head.format}, expected ${FORMAT}: write it anew by \`ciphervec demo --export-web\``,
      );
    const words = head.words.length;
    const expected = 4 * words * (1 + head.dimension);
    if (floats.byteLength !== expected)
      throw new Error(
        `model.bin has ${floats.byteLength} bytes, expected ${expected} for ${words} words in ${head.dimension} dimensions`,
      );
    this.head = head;
    this.dimension = head.dimension;
    this.#columns = new Map(head.words.map((word, column) => [word, column]));
    this.#idf = littleEndian(floats, 0, words);
    this.#directions = littleEndian(floats, 4 * words, words * head.dimension);
  }

  /** The known words of a text and their weights, the heaviest first: what a vector is made of. */
  weigh(text: string): { word: string; column: number; weight: number }[] {
    const counts = new Map<string, number>();
    for (const [word] of text.toLowerCase().matchAll(TOKEN)) counts.set(word, (counts.get(word) ?? 0) + 1);
    const weighed = [];
    let squares = 0;
    for (const [word, count] of counts) {
      const column = this.#columns.get(word);
      if (column === undefined) continue;
      const weight = (1 + Math.log(count)) * (this.#idf[column] ?? 0);
      squares += weight * weight;
      weighed.push({ word, column, weight });
    }
    const length = Math.sqrt(squares);
    for (const one of weighed) one.weight /= length;
    return weighed.sort((a, b) => b.weight - a.weight);
  }

  /** One vector after another, `[texts, dimension]`. A text without a known word points along the first axis. */
  embed(texts: readonly string[]): Float32Array {
    const out = new Float32Array(texts.length * this.dimension);
    const sum = new Float64Array(this.dimension);
    texts.forEach((text, row) => {
      sum.fill(0);
      for (const { column, weight } of this.weigh(text)) {
        const start = column * this.dimension;
        for (let i = 0; i < sum.length; i++)
          sum[i] = (sum[i] ?? 0) + weight * (this.#directions[start + i] ?? 0);
      }
      const length = Math.sqrt(sum.reduce((squares, x) => squares + x * x, 0));
      if (length < NOWHERE) out[row * this.dimension] = 1;
      else
        out.set(
          sum.map((x) => x / length),
          row * this.dimension,
        );
    });
    return out;
  }
}

/** Float32 values at an offset, on machines of either byte order. */
function littleEndian(buffer: ArrayBuffer, offset: number, count: number): Float32Array {
  const probe = new Uint8Array(new Uint16Array([1]).buffer);
  if (probe[0] === 1) return new Float32Array(buffer, offset, count);
  const view = new DataView(buffer);
  return Float32Array.from({ length: count }, (_, i) => view.getFloat32(offset + 4 * i, true));
}
