/** Grown: whether what a store shows is what was known of it, and more. Key owner's side. */

import type { Difference } from "./difference.js";
import type { Shown } from "./states.js";

/** What is known here of the segments that are attached. */
export interface Known {
  /** Deleted rows of each. */
  deleted: ReadonlyMap<string, readonly number[]>;
  /** Why some are passed over. */
  reasons: ReadonlyMap<string, string>;
  /** Since the owner's state, and counted. */
  appended: readonly string[];
  /** Rows that are there and don't count. */
  aside: readonly { id: string; row: number }[];
}

/** Whether all that is new since the state known here are segments, and deletions: not so after a restore, or when rows were set aside, or
 * rows appended count otherwise by now. */
export function grown(known: Known, shown: Shown, since: Difference): boolean {
  const { deleted, reasons, appended } = known;
  const fewer = since.changed.some((segment) =>
    deleted.get(segment.id)?.some((row) => !segment.deleted.includes(row)),
  );
  if (fewer || since.added.some(({ id }) => deleted.has(id))) return false;
  if (shown.state === null) return true;
  const gone = new Set(since.gone.map(({ id }) => id));
  const left = new Set(shown.appended.map(({ id }) => id));
  const aside = new Map<string, number[]>();
  for (const { id, row } of known.aside)
    aside.set(
      id,
      [...(aside.get(id) ?? []), row].sort((a, b) => a - b),
    );
  // Whether a segment known here is one of the owner's state by now.
  const counts = (id: string) =>
    deleted.has(id) && !(gone.has(id) || left.has(id) || shown.aside.get(id)?.length === 0);
  const same = (id: string) => String(aside.get(id) ?? []) === String(shown.aside.get(id) ?? []);
  const there = [...left].filter((id) => deleted.has(id) && !appended.includes(id));
  return (
    [...new Set([...aside.keys(), ...shown.aside.keys()])].every((id) => !counts(id) || same(id)) &&
    ![...reasons.keys()].some(counts) &&
    (left.size === 0 || appended.every((id) => left.has(id))) &&
    there.every((id) => reasons.has(id))
  );
}
