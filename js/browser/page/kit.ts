/** Rows that Node and the page draw alike, and their nearest neighbours in the clear, for browser tests and benches. */

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
