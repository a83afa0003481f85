/** Quarantine: what is told whoever asks a collection with segments that failed a check. Key owner's side. */

import { Quarantined } from "../errors.js";
import { hex } from "../ingest/bytes.js";
import type { SegmentDirectory } from "../native.js";

const SHOWN = 8;

/**
 * Throw Quarantined where a query would have to do without segments that failed a check. Writers' segments, and with `skip` all, cost only
 * themselves, and a warning names them. `outlasts` tells those that will be known in a later session, or to another client of the owner's:
 * of one that is not, the failure counts for the whole collection.
 */
export function refuseHeld(
  directory: SegmentDirectory,
  collection: string,
  skip: boolean,
  outlasts: (segment: string) => boolean,
  warn: (message: string) => void,
): void {
  const held = directory.quarantined();
  const writer = (id: Uint8Array) => {
    const origin = directory.origin(id);
    return origin?.kind === "writer" ? origin.writer : null;
  };
  const few = (ids: readonly string[]) =>
    `${ids.slice(0, SHOWN).join(", ")}${ids.length > SHOWN ? ", ..." : ""}`;
  const own = held.filter((id) => writer(id) === null).map(hex);
  const kept = own.every(outlasts);
  if (own.length > 0 && !(skip && kept))
    throw new Quarantined(
      `${own.length} of the segments of "${collection}" failed a check and are in quarantine: ${few(own)}. ${
        kept
          ? "Find out what happened first: whoever shifts answers can watch what follows from them. Then seal their rows again with the " +
            "Python client's optimize(), or use them as they are with release(); query({skipQuarantined: true}) asks about the others."
          : "This client could write that down nowhere: it has no storage that takes it, and may not commit. So one failure counts for the " +
            "whole collection. Open it with a storage, or with a token that may write."
      }`,
      own,
    );
  if (held.length > 0)
    warn(
      `${held.length} of the segments of "${collection}" are in quarantine and were passed over: ${few(
        held.map((id) => (writer(id) === null ? hex(id) : `${hex(id)} of writer "${writer(id)}"`)),
      )}. They failed a check.`,
    );
}
