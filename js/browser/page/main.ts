/** Page of the browser tests: the package as a page's own code has it, and helpers that make vectors there. */

import * as client from "@ciphervec/client";

/** Rows of a standard normal distribution, the same for a seed in Node and in the page. */
export function gaussian(seed: number, rows: number, dimension: number): Float32Array {
  let state = seed >>> 0 || 1;
  const uniform = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return ((state >>> 0) + 0.5) / 2 ** 32;
  };
  return Float32Array.from(
    { length: rows * dimension },
    () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()),
  );
}

/** The rows of the largest cosine with a vector, in double precision. */
export function nearest(rows: Float32Array, query: Float32Array, count: number): number[] {
  const dimension = query.length;
  const scores = Array.from({ length: rows.length / dimension }, (_, row) => {
    let product = 0;
    let squares = 0;
    for (let i = 0; i < dimension; i++) {
      const x = rows[row * dimension + i] ?? 0;
      product += x * (query[i] ?? 0);
      squares += x * x;
    }
    return product / Math.sqrt(squares);
  });
  return scores
    .map((_, row) => row)
    .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0))
    .slice(0, count);
}

/** What a rejected call says: the name of its class, and its words. */
export async function outcome<T>(
  work: () => Promise<T>,
): Promise<{ value: T } | { name: string; message: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    const { name, message } = error as Error;
    return { name, message };
  }
}

export interface Kit {
  client: typeof client;
  gaussian: typeof gaussian;
  nearest: typeof nearest;
  outcome: typeof outcome;
  /** What a test keeps from one step to the next. */
  kept: Record<string, unknown>;
}

declare global {
  interface Window {
    kit: Kit;
  }
}

window.kit = { client, gaussian, nearest, outcome, kept: {} };
