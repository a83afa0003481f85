/** SIMD: nothing enters; whether this engine runs a module with SIMD of 128 bits leaves. Both threads. */

/** A function that spreads a number over a vector and counts its bits: the smallest module that an engine without refuses. */
const PROBE = Uint8Array.of(
  ...[0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3],
  ...[2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
);

export const hasSimd = (): boolean => WebAssembly.validate(PROBE);
