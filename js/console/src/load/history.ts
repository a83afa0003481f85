/** What happened between readings of the metrics, as a series of bounded length. */
import { quantile, Reading, rate } from "../api/metrics";

/** What happened until `at`; null where nothing can be said. */
export interface Moment {
  at: number;
  /** A second. */
  queries: number | null;
  requests: number | null;
  commits: number | null;
  /** Seconds, of what was answered in this time. */
  scanMiddle: number | null;
  scanSlow: number | null;
  queueSlow: number | null;
  /** Now. */
  waiting: number | null;
  inFlight: number | null;
  connections: number | null;
  /** Bytes a second. */
  received: number | null;
  sent: number | null;
  /** Bytes. */
  process: number | null;
  budget: number | null;
  resident: number | null;
  /** Since the last one. */
  refused: number;
}

export class History {
  readonly #length: number;
  #last: Reading | null = null;
  #moments: Moment[] = [];

  constructor(length: number) {
    this.#length = length;
  }

  get moments(): readonly Moment[] {
    return this.#moments;
  }

  /** Takes a reading, and says what happened since the one before; the first has nothing before it. */
  add(text: string, at: number): readonly Moment[] {
    const now = new Reading(text, at);
    const before = this.#last;
    this.#last = now;
    const since = (name: string) => (before === null ? null : rate(before, now, name));
    const refused =
      before === null
        ? 0
        : Math.max(0, (now.sum("rejected_total") ?? 0) - (before.sum("rejected_total") ?? 0));
    const between = (name: string, q: number) => (before === null ? null : quantile(before, now, name, q));
    const process = now.sum("process_resident_bytes");
    const moment: Moment = {
      at,
      queries: since("query_scan_seconds_count"),
      requests: since("requests_total"),
      commits: since("commit_seconds_count"),
      scanMiddle: between("query_scan_seconds", 0.5),
      scanSlow: between("query_scan_seconds", 0.95),
      queueSlow: between("query_queue_seconds", 0.95),
      waiting: now.sum("queries_waiting"),
      inFlight: now.sum("requests_in_flight"),
      connections: now.sum("connections"),
      received: since("received_bytes_total"),
      sent: since("sent_bytes_total"),
      // Zero where the system does not say.
      process: process === 0 ? null : process,
      budget: now.sum("memory_budget_bytes"),
      resident: now.sum("collection_resident_bytes") ?? 0,
      refused,
    };
    this.#moments = [...this.#moments, moment].slice(-this.#length);
    return this.#moments;
  }
}
