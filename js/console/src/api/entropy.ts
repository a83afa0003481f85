/** Shannon entropy of bytes, in bits a byte. */

/** Bits of a byte by how often each value is there, at most 8. Few bytes show less than they have. */
export function entropy(bytes: Uint8Array): number {
  if (bytes.length === 0) return 0;
  const counts = new Uint32Array(256);
  for (const byte of bytes) counts[byte] = (counts[byte] ?? 0) + 1;
  let bits = 0;
  for (const count of counts) {
    if (count === 0) continue;
    const share = count / bytes.length;
    bits -= share * Math.log2(share);
  }
  return bits;
}

/** What bytes without any pattern show on average, as many of them (Miller and Madow's correction). */
export function expectedEntropy(length: number): number {
  if (length === 0) return 0;
  return Math.max(0, Math.min(8 - 255 / (2 * Math.LN2 * length), Math.log2(length)));
}
