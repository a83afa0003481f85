/** The built modules, and the files of vectors/, for the tests beside this. Node. */
import { readFileSync } from "node:fs";
import * as lookup from "../../../src/wasm/ciphervec_lookup.js";
import * as search from "../../wasm/ciphervec.js";

const built = (path: string): Buffer => readFileSync(new URL(`../../../${path}`, import.meta.url));

/** Of the two modules of searching, the one that these tests are run with. */
const chosen = process.env["CIPHERVEC_WASM"] ?? "ciphervec_bg.wasm";

/** What it keeps in its memory. */
export const { memory } = search.initSync({ module: built(`tests/wasm/${chosen}`) });
lookup.initSync({ module: built("src/wasm/ciphervec_lookup_bg.wasm") });

/** The kernels that it was built with. */
export const backend = chosen.includes("simd") ? "simd128" : "portable";

export { lookup, search };

export const MASTER = new TextEncoder().encode("a published key protects nothing");

const VECTORS = new URL("../../../../../vectors/", import.meta.url);

/** A file of vectors/. */
export const vector = (path: string): Uint8Array<ArrayBuffer> =>
  new Uint8Array(readFileSync(new URL(path, VECTORS)));

/** What was thrown: its kind and what it says. */
export function thrown(work: () => unknown): {
  name: string;
  code: string;
  message: string;
  segments?: Uint8Array[];
} {
  try {
    work();
  } catch (error) {
    if (error instanceof Error) return error as never;
    throw error;
  }
  throw new Error("an error was expected");
}

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** So many rows, end to end. */
export function rows(count: number, dimension: number, seed: number): Float32Array<ArrayBuffer> {
  const next = random(seed);
  return Float32Array.from({ length: count * dimension }, () => next() - 0.5);
}

/** The cosine of two rows of the same array, or of two. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let [product, left, right] = [0, 0, 0];
  for (const [at, x] of a.entries()) {
    const y = b[at] ?? 0;
    product += x * y;
    left += x * x;
    right += y * y;
  }
  return product / Math.sqrt(left * right);
}

/** One row that a writer sealed: its segment's id, and its blobs by name. */
export function written(card: Uint8Array, row: Float32Array, id: number | string) {
  const host = { clock: () => Date.now(), progress: () => undefined, ended: false };
  const given = { ids: [id], embeddings: row, metadatas: ['{"a":1}'], documents: [null] };
  const { bytes } = new search.Writer(card).seal(host as never, given as never);
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(12, true);
  const [added] = JSON.parse(new TextDecoder().decode(bytes.subarray(16, 16 + length))).add;
  let at = 16 + length;
  const blobs = Object.fromEntries(
    added.blobs.map(({ name, length }: { name: string; length: number }) => {
      at += length;
      return [name, bytes.slice(at - length, at)];
    }),
  ) as { [name in "rows" | "sidecar" | "records" | "wrap"]: Uint8Array<ArrayBuffer> };
  return { id: Uint8Array.from(Buffer.from(added.id, "hex")), ...blobs };
}
