/** Changes: rows to write and ids to delete enter; one commit each leaves. Key owner's side. */

import type { Call } from "../http/session.js";
import { hex } from "../ingest/bytes.js";
import type { Id } from "../types.js";
import { type Batch, partOf } from "./batch.js";
import { centerFor } from "./centers.js";
import { type Change, type NewSegment, newChange, ROWS, SIDECAR } from "./change.js";
import { hasKeyPair } from "./description.js";
import { joined, mergeable } from "./merging.js";
import { SEGMENT_ROWS, type Segments } from "./segments.js";

/** Rows of a segment under the additively homomorphic schemes, which take seconds for so many. */
const KEY_PAIR_ROWS = 4_096;

/** Seal `batch`, and in the same commit drop the rows of the ids in `replaced`. Small segments before it are sealed again together with
 * it. */
export async function write(
  segments: Segments,
  batch: Batch,
  replaced: readonly Id[],
  call: Call,
): Promise<void> {
  const total = batch.ids.length;
  if (total === 0) return;
  const expected = total + segments.directory.length - replaced.length;
  const taken = batch.sealed.length > 0 || batch.alone ? [] : mergeable(segments, total);
  if (taken.length > 0) {
    batch.alone = true; // if others are first, the next attempt touches nothing of theirs
    const whole = await joined(segments, taken, batch, replaced, call);
    const change = newChange({ remove: taken.map(({ id }) => id) });
    change.add.push(seal(segments, whole, expected, centerFor(segments, whole.rows)));
    call.progress?.({ phase: "seal", done: total, total });
    dropRows(segments, change, replaced);
    await segments.commit(change, replaced, call);
    return;
  }
  if (batch.sealed.length === 0) {
    const step = hasKeyPair(segments.description.spec) ? KEY_PAIR_ROWS : SEGMENT_ROWS;
    const sealed: NewSegment[] = [];
    const center = centerFor(segments, batch.rows);
    for (let start = 0; start < total; start += step) {
      const stop = Math.min(start + step, total);
      sealed.push(seal(segments, partOf(batch, start, stop), expected, center));
      call.progress?.({ phase: "seal", done: stop, total });
      await breath(call);
    }
    batch.sealed = sealed;
  }
  const change = newChange({ add: [...batch.sealed] });
  dropRows(segments, change, replaced);
  await segments.commit(change, replaced, call);
}

/** Drop the rows of these ids. Throws UnknownId; nothing is deleted then. */
export async function remove(segments: Segments, ids: readonly Id[], call: Call): Promise<void> {
  const change = newChange();
  dropRows(segments, change, ids);
  await segments.commit(change, ids, call);
}

/** Let what waits be done, an abort say. */
export async function breath(call: Call): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  call.signal?.throwIfAborted();
}

function seal(segments: Segments, batch: Batch, expected: number, center: Float32Array): NewSegment {
  const { owner, description, payloads } = segments;
  const sealed = owner.seal(batch.rows.data, batch.ids, expected, description.network, center);
  const { id, rows } = sealed;
  const blobs = { [ROWS]: sealed.segment, [SIDECAR]: sealed.sidecar };
  sealed.free();
  return { id: hex(id), rows, blobs: { ...blobs, ...payloads.seal(id, batch) } };
}

/** Add the deletion of these ids to `change`, and that of rows whose id another segment has taken over: they would come back when the later
 * row goes. A segment left without rows is removed altogether. */
function dropRows(segments: Segments, change: Change, ids: readonly Id[]): void {
  const dropped = new Map<string, number[]>();
  const shadowed = segments.directory
    .shadowed()
    .map(({ segmentId, row }) => ({ segment: hex(segmentId), row }));
  for (const { segment, row } of [...segments.places(ids), ...shadowed])
    dropped.set(segment, [...(dropped.get(segment) ?? []), row]);
  for (const { id, rows, deleted } of segments.entries()) {
    const gone = dropped.get(id);
    if (gone === undefined || change.remove.includes(id)) continue;
    if (gone.length + deleted.length === rows) change.remove.push(id);
    else
      change.deleteRows.set(
        id,
        gone.sort((a, b) => a - b),
      );
  }
}
