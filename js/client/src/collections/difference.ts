/** Difference: two listings of a collection's segments enter; which went, which changed and which came leave. Owner's side. */

import { type StoredSegment, sameSegment } from "./change.js";

/** The later listing is the earlier one without `gone`, with `changed` in the places of the segments of their ids, and with `added` at
 * its end. A segment that moved is among those gone and those added. */
export interface Difference {
  gone: StoredSegment[];
  changed: StoredSegment[];
  added: StoredSegment[];
}

/** What leads from one listing, in which no id is twice, to another, which may be anything. */
export function difference(before: readonly StoredSegment[], now: readonly StoredSegment[]): Difference {
  const found: Difference = { gone: [], changed: [], added: [] };
  const places = new Map(before.map((segment, place) => [segment.id, place]));
  let old = 0;
  let next = 0;
  while (old < before.length && next < now.length) {
    const wanted = now[next] as StoredSegment;
    const at = places.get(wanted.id) ?? before.length;
    if (at < old) break; // it moved
    found.gone.push(...before.slice(old, at));
    old = at;
    if (old === before.length) break;
    if (!sameSegment(before[old] as StoredSegment, wanted)) found.changed.push(wanted);
    old++;
    next++;
  }
  found.gone.push(...before.slice(old));
  found.added.push(...now.slice(next));
  return found;
}
