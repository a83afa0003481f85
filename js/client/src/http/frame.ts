/**
 * Commit frame: a change enters; the bytes of one commit over HTTP leave. Key owner's side; all of it is sealed already.
 *
 * `CVCHANGE | version u32 | JSON length u32 | JSON | blobs back to back`, little-endian. The blobs stand in the order in which the
 * JSON names them: those of new segments, the description, the attachments. One that was uploaded has a hash instead.
 */

import type { Change, NewSegment } from "../collections/change.js";
import { CorruptData, UnsupportedVersion } from "../errors.js";
import { concat, text, utf8 } from "../ingest/bytes.js";

const MAGIC = utf8("CVCHANGE");
const VERSION = 1;
const HEAD = 16;
const ABSENT = 2n ** 64n - 1n;

/** A blob's segment id and name, joined; an empty id for an attachment, and for the description with an empty name. */
export type Place = string;
export const placeOf = (segment: string, name: string): Place => `${segment} ${name}`;

/** An upload that holds a blob: its id, 32 hexadecimal digits, and the BLAKE3 hash of all of it, in hexadecimal. */
export interface Upload {
  id: string;
  blake3: string;
}

/** Every blob of a change, in the order in which a frame has them. */
export function blobsOf(change: Change): [Place, Uint8Array][] {
  const found: [Place, Uint8Array][] = [];
  for (const added of change.add)
    for (const [name, data] of Object.entries(added.blobs)) found.push([placeOf(added.id, name), data]);
  if (change.meta !== null) found.push([placeOf("", ""), change.meta]);
  for (const [name, data] of change.attachments) found.push([placeOf("", name), data]);
  return found;
}

/** The frame. Blobs named in `uploads` are taken from there by the server. */
export function encode(change: Change, uploads: ReadonlyMap<Place, Upload> = new Map()): Uint8Array {
  const entry = (place: Place, data: Uint8Array) => {
    const upload = uploads.get(place);
    return { length: data.length, ...(upload && { upload: upload.id, blake3: upload.blake3 }) };
  };
  const content = {
    add: change.add.map(({ id, rows, blobs }) => ({
      id,
      rows,
      blobs: Object.entries(blobs).map(([name, data]) => ({ name, ...entry(placeOf(id, name), data) })),
    })),
    remove: change.remove,
    delete_rows: Object.fromEntries(change.deleteRows),
    attachments: [...change.attachments].map(([name, data]) => ({ name, ...entry(placeOf("", name), data) })),
    drop_attachments: [],
    ...(change.meta !== null && { meta: entry(placeOf("", ""), change.meta) }),
  };
  const json = utf8(JSON.stringify(content));
  const head = new Uint8Array(HEAD);
  head.set(MAGIC);
  const view = new DataView(head.buffer);
  view.setUint32(8, VERSION, true);
  view.setUint32(12, json.length, true);
  const inline = blobsOf(change).filter(([place]) => !uploads.has(place));
  return concat([head, json, ...inline.map(([, data]) => data)]);
}

/** The blobs in an answer about several, each behind its length; null for one that is not there. What is cut short ends the list. */
export function splitBlobs(data: Uint8Array): (Uint8Array | null)[] {
  const found: (Uint8Array | null)[] = [];
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  for (let at = 0; at + 8 <= data.length; ) {
    const length = view.getBigUint64(at, true);
    at += 8;
    if (length === ABSENT) {
      found.push(null);
      continue;
    }
    if (length > BigInt(data.length - at)) break;
    found.push(data.slice(at, at + Number(length)));
    at += Number(length);
  }
  return found;
}

/** The segments of a frame that only adds some, as a writer's batch does. Throws CorruptData, UnsupportedVersion. */
export function decodeAdded(data: Uint8Array): NewSegment[] {
  const fail = (why: string): never => {
    throw new CorruptData(`these are not the bytes of a sealed batch (${why}); seal the rows again.`);
  };
  if (data.length < HEAD || !MAGIC.every((byte, i) => data[i] === byte))
    return fail("they start with something else");
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const version = view.getUint32(8, true);
  if (version > VERSION)
    throw new UnsupportedVersion(
      `the batch has format ${version}; this ciphervec reads up to ${VERSION}. Upgrade it.`,
    );
  let at = HEAD + view.getUint32(12, true);
  if (at > data.length) return fail("they end early");
  const added: NewSegment[] = [];
  try {
    const content = JSON.parse(text(data.subarray(HEAD, at)));
    const more = content.remove.length + Object.keys(content.delete_rows).length + content.attachments.length;
    if (more > 0 || "meta" in content) return fail("they do more than add segments");
    for (const { id, rows, blobs } of content.add) {
      if (!/^[0-9a-f]{32}$/.test(id) || !Number.isSafeInteger(rows)) return fail("a segment has no id");
      const parts: { [name: string]: Uint8Array } = {};
      for (const { name, length } of blobs) {
        if (!Number.isSafeInteger(length) || length < 0 || at + length > data.length)
          return fail("they end early");
        parts[String(name)] = data.slice(at, at + length);
        at += length;
      }
      added.push({ id, rows, blobs: parts });
    }
  } catch (error) {
    if (error instanceof CorruptData) throw error;
    return fail(String(error));
  }
  return at === data.length ? added : fail(`${at} bytes expected, ${data.length} came`);
}
