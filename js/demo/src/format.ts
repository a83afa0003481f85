/** Numbers, sizes and times as people read them. */

/** Bytes in three digits. */
export function bytes(count: number): string {
  for (const [unit, divisor] of [
    ["GB", 1e9],
    ["MB", 1e6],
    ["KB", 1e3],
  ] as const)
    if (count >= divisor) return `${(count / divisor).toPrecision(3).replace(/\.$/, "")} ${unit}`;
  return `${count} B`;
}

/** Milliseconds, or seconds where they are many. */
export function time(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(0)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(1)} s`;
  return ms >= 10 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`;
}

export function count(value: number): string {
  return value.toLocaleString("en");
}

/** Hexadecimal in groups of four digits. */
export function grouped(hex: string): string {
  return hex.match(/.{1,4}/g)?.join(" ") ?? "";
}
