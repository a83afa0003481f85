/** Writer: a card and rows enter; sealed segments leave that nobody here can open. Runs in the Worker, on the writer's side, without a secret. */

import { batchOf, type GivenRows } from "../collections/batch.js";
import { type NewSegment, newChange, RECORDS, ROWS, SIDECAR, WRAP } from "../collections/change.js";
import { SEGMENT_ROWS } from "../collections/segments.js";
import { InvalidInput, PinMismatch } from "../errors.js";
import { baseUrl, Token } from "../http/address.js";
import { decodeAdded, encode } from "../http/frame.js";
import { errorOf, problemOf } from "../http/problem.js";
import { type Call, Session } from "../http/session.js";
import type { Fetch } from "../http/transport.js";
import { sliceRows } from "../ingest/arrays.js";
import { hex, utf8 } from "../ingest/bytes.js";
import type { Native, Writer, WriterCard } from "../native.js";
import type { Metric } from "../types.js";

const SEGMENT_BYTES = 16 << 20;
/** Times its rows that a segment is packed for at most: a server takes none that is packed for far more than it sees. */
const EXPECTED = 32;
const TIMEOUT = 120_000;
const RETRIES = 6;
/** Problems that say that a segment arrived before, in these bytes or another release's. */
const ARRIVED = ["urn:ciphervec:segment-exists", "urn:ciphervec:key-reused"];

/** Where a batch goes. */
export interface Destination {
  url: string;
  token: string | null;
  insecure: boolean;
  batch: Uint8Array;
}

/** Adds rows to a collection and reads none. */
export class WriterEngine {
  readonly #native: Native;
  readonly #card: WriterCard;
  readonly #writer: Writer;
  readonly #fetch: Fetch;

  /** Throws PinMismatch for another card than the one of this fingerprint, CorruptData, UnsupportedVersion. */
  constructor(native: Native, card: Uint8Array, fingerprint: string | undefined, fetch: Fetch) {
    this.#native = native;
    this.#fetch = fetch;
    this.#card = native.WriterCard.fromBytes(card);
    if (fingerprint !== undefined && fingerprint !== this.#card.fingerprint)
      throw new PinMismatch(
        `the card's fingerprint is ${this.#card.fingerprint}, not ${fingerprint}: this is not the card that the owner made. Nothing was ` +
          "sealed; get the card from the owner again.",
      );
    this.#writer = new native.Writer(this.#card);
  }

  facts() {
    const { spec, writer, fingerprint, filterable } = this.#card;
    const { collection, dimension, metric, mode } = spec;
    spec.free();
    return { collection, dimension, metric, mode, writer, fingerprint, filterable };
  }

  /** Seal rows as `add` takes them, and keep nothing: the bytes of a batch. */
  async seal(given: GivenRows, call: Call): Promise<{ bytes: Uint8Array; rows: number }> {
    const { dimension, metric } = this.facts();
    const batch = batchOf(this.#native, given, dimension, metric as Metric);
    const total = batch.ids.length;
    if (total === 0) throw new InvalidInput("there is nothing to seal: 0 ids were given.");
    const add: NewSegment[] = [];
    const step = segmentRows(dimension);
    for (let start = 0; start < total; start += step) {
      const stop = Math.min(start + step, total);
      const expected = Math.min(total, EXPECTED * (stop - start));
      const rows = sliceRows(batch.rows, start, stop).data;
      const sealed = this.#writer.seal(
        rows,
        batch.ids.slice(start, stop),
        batch.records.slice(start, stop),
        expected,
      );
      const blobs: { [name: string]: Uint8Array } = { [ROWS]: sealed.segment, [SIDECAR]: sealed.sidecar };
      if (sealed.records !== null) blobs[RECORDS] = sealed.records;
      blobs[WRAP] = sealed.wrap;
      add.push({ id: hex(sealed.id), rows: sealed.rows, blobs });
      call.progress?.({ phase: "seal", done: stop, total });
      await new Promise((resolve) => setTimeout(resolve));
      call.signal?.throwIfAborted();
    }
    return { bytes: encode(newChange({ add })), rows: total };
  }

  /** Add a sealed batch to the collection, a commit for each segment. One that is there already is not added twice. */
  async send({ url, token, insecure, batch }: Destination, call: Call): Promise<void> {
    const { collection } = this.facts();
    const session = new Session(
      this.#fetch,
      baseUrl(url, insecure),
      token === null ? null : new Token(token.trim()),
      TIMEOUT,
      RETRIES,
    );
    const doing = `cannot add to "${collection}"`;
    const added = decodeAdded(batch);
    for (const [i, segment] of added.entries()) {
      const reply = await session.call("POST", `/v1/collections/${collection}/commits`, doing, call, {
        body: encode(newChange({ add: [segment] })),
        headers: { "Content-Type": "application/octet-stream", "Idempotency-Key": this.#key(segment.id) },
        ok: [200, 409, 422],
      });
      if (reply.status !== 200 && !ARRIVED.includes(String(problemOf(reply)["type"])))
        throw errorOf(reply, doing, session.url);
      call.progress?.({ phase: "upload", done: i + 1, total: added.length });
    }
  }

  free(): void {
    this.#writer.free();
    this.#card.free();
  }

  /** By which a server knows the segment again; it follows from its id alone, which is drawn anew by every sealing. */
  #key(id: string): string {
    return hex(this.#native.blake3(utf8(`ciphervec commit key ${id}`)).slice(0, 16));
  }
}

/** So few that a segment goes into one request: a vector takes at most 8 bytes a number, and the ring form pads to a power of two. */
function segmentRows(dimension: number): number {
  const padded = 2 ** Math.ceil(Math.log2(Math.max(1, dimension)));
  return Math.max(64, Math.min(SEGMENT_ROWS, Math.floor(SEGMENT_BYTES / (padded * 8))));
}
