/**
 * Retry policy: failed attempts enter; pauses leave, or the decision that it was enough. Key owner's side.
 *
 * The pause before attempt k is uniform between 0 and min(5 s, 0.2 s · 2^k), so that clients who failed together don't come back
 * together. Where the server says how long to wait, that is waited at least.
 */

/** Answers after which the same request may succeed. */
export const RETRY_STATUS: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const FIRST = 200;
const LONGEST = 5_000;
const LEAST_LEFT = 50;
const LONGEST_WAIT = 86_400_000;

/** The attempts of one request: `retries` after the first, and `timeout` milliseconds for all together. */
export class Attempts {
  readonly #timeout: number;
  readonly #retries: number;
  readonly #signal: AbortSignal | undefined;
  #ends: number;
  /** Attempts that have failed. */
  failed = 0;

  constructor(timeout: number, retries: number, signal?: AbortSignal) {
    this.#timeout = timeout;
    this.#retries = retries;
    this.#signal = signal;
    this.#ends = performance.now() + timeout;
  }

  /** Milliseconds left, at least a few: a request with none would fail for the wrong reason. */
  get left(): number {
    return Math.max(LEAST_LEFT, this.#ends - performance.now());
  }

  /**
   * Count a failure and wait; false when there is no attempt left. A server that says how long to `wait` is busy, not
   * broken: those attempts end with the time, not with their number. Throws what the signal was aborted with.
   */
  async again(wait: number | null = null): Promise<boolean> {
    this.failed++;
    let pause = Math.random() * Math.min(LONGEST, FIRST * 2 ** this.failed);
    if (wait !== null) pause += wait;
    else if (this.failed > this.#retries) return false;
    if (performance.now() + pause >= this.#ends) return false;
    await sleep(pause, this.#signal);
    return true;
  }

  /** Something arrived: what comes next has all its time and attempts again. */
  progressed(): void {
    this.#ends = performance.now() + this.#timeout;
    this.failed = 0;
  }
}

/** Wait, unless the signal is aborted meanwhile: then throws its reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const give = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", give);
      resolve();
    }, ms);
    if (signal?.aborted) give();
    else signal?.addEventListener("abort", give, { once: true });
  });
}

/** Milliseconds that `Retry-After` asks for, as a number or a date; null without it, or when it is neither. */
export function retryAfter(headers: Headers): number | null {
  const text = (headers.get("retry-after") ?? "").trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text.slice(0, 9)) * 1000, LONGEST_WAIT);
  const when = text === "" ? Number.NaN : Date.parse(text);
  return Number.isNaN(when) ? null : Math.min(Math.max(0, when - Date.now()), LONGEST_WAIT);
}
