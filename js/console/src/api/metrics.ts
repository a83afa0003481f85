/** Reads OpenMetrics text: numbers by name and label, and rates and quantiles between two readings. */

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** One reading of every metric. */
export class Reading {
  readonly at: number;
  readonly #samples: Map<string, Sample[]>;

  constructor(text: string, at: number) {
    this.at = at;
    this.#samples = new Map();
    for (const sample of parse(text)) {
      const same = this.#samples.get(sample.name);
      if (same === undefined) this.#samples.set(sample.name, [sample]);
      else same.push(sample);
    }
  }

  all(name: string): Sample[] {
    return this.#samples.get(`ciphervec_${name}`) ?? [];
  }

  /** The sum over all labels that are not `except`ed; null where there is no such metric. */
  sum(name: string, except: (labels: Record<string, string>) => boolean = () => false): number | null {
    const samples = this.#samples.get(`ciphervec_${name}`);
    if (samples === undefined) return null;
    return samples.reduce((sum, { labels, value }) => (except(labels) ? sum : sum + value), 0);
  }
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

export function* parse(text: string): Generator<Sample> {
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const [, name, inside, number] = LINE.exec(line) ?? [];
    if (name === undefined || number === undefined) continue;
    const labels: Record<string, string> = {};
    for (const [, label, value] of (inside ?? "").matchAll(LABEL)) {
      if (label !== undefined) labels[label] = unescaped(value ?? "");
    }
    yield { name, labels, value: number === "+Inf" ? Number.POSITIVE_INFINITY : Number(number) };
  }
}

function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => (character === "n" ? "\n" : character));
}

/** Events a second between two readings; null where a counter began anew, as after a restart. */
export function rate(before: Reading, now: Reading, name: string): number | null {
  const [old, latest] = [before.sum(name), now.sum(name)];
  const seconds = (now.at - before.at) / 1000;
  if (old === null || latest === null || seconds <= 0 || latest < old) return null;
  return (latest - old) / seconds;
}

/**
 * The value under which a share `q` of what a histogram counted between two readings lies, between the bounds of its
 * bucket by straight line, as Prometheus' histogram_quantile; null where nothing was counted.
 */
export function quantile(before: Reading | null, now: Reading, name: string, q: number): number | null {
  const counts = new Map<number, number>();
  for (const [reading, sign] of [[now, 1] as const, [before, -1] as const]) {
    for (const { labels, value } of reading?.all(`${name}_bucket`) ?? []) {
      const bound = labels["le"] === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels["le"]);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
    }
  }
  const buckets = [...counts].sort(([a], [b]) => a - b);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const rank = q * total;
  let [low, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (bound === Number.POSITIVE_INFINITY) return low;
      return low + ((bound - low) * (rank - below)) / Math.max(count - below, 1);
    }
    [low, below] = [bound, count];
  }
  return low;
}
