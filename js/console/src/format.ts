/** Numbers, sizes and times as people read them. */

import type { Limits } from "./api/types";

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** Three digits and a unit, 1 kB being 1,000 bytes. */
export function bytes(count: number): string {
  let [value, unit] = [count, 0];
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  if (unit === 0) return counted(value, "byte");
  return `${digits(value)} ${UNITS[unit]}`;
}

export function number(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: 0 });
}

/** Three significant digits. */
export function digits(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

/** A count with its noun: "1 row", "2 rows". */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${number(count)} ${count === 1 ? noun : plural}`;
}

/** Seconds in the unit that fits. */
export function duration(seconds: number): string {
  if (seconds < 0.0995) return `${digits(seconds * 1000)} ms`;
  if (seconds < 1) return `${number(seconds * 1000)} ms`;
  return `${digits(seconds)} s`;
}

/** What a token or an identity may use, a phrase each; none for one without limits. */
export function limits(given: Limits | undefined): string[] {
  const { rate, burst, queries_per_day, max_bytes, max_rows } = given ?? {};
  return [
    rate,
    burst === undefined ? undefined : `${number(burst)} at once`,
    queries_per_day === undefined ? undefined : `${counted(queries_per_day, "query", "queries")} a day`,
    max_bytes === undefined ? undefined : `${bytes(max_bytes)} stored`,
    max_rows === undefined ? undefined : `${counted(max_rows, "row")} stored`,
  ].filter((phrase) => phrase !== undefined);
}

/** A day and a time here. */
export function moment(text: string): string {
  return new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

/** The beginning of something long. */
export function short(text: string, length = 8): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
