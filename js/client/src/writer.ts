/** The writer's half on the page: seals rows under a card into batches that only the owner decrypts. Holds no secret. */

import "./dispose.js";
import { Engine, whole } from "./engine.js";
import { type Bytes, bytesOf } from "./keys.js";
import { CALL, callOptions, known, type Names } from "./known.js";
import { SEAL, type SealOptions } from "./options.js";
import { rowsOf } from "./rows.js";
import type { CallOptions } from "./types.js";
import { type Handle, ROOT } from "./worker/messages.js";

/** What a card says. */
export interface WriterFacts {
  collection: string;
  dimension: number;
  metric: string;
  mode: string;
  writer: string;
  fingerprint: string;
  filterable: string[];
}

/** Sealed rows: keep the bytes before they are sent the first time, and they can be sent again, by whoever has them; the rows are added once. */
export interface WrittenBatch {
  bytes: Uint8Array;
  rows: number;
}

/** Where a batch goes. */
export interface SendOptions extends CallOptions {
  url: string | URL;
  /** One with the verb `append` is enough. */
  token?: string;
  insecure?: boolean;
}

const OPEN: Names<{ fingerprint?: string; engine?: Engine }> = { fingerprint: true, engine: true };
const SEND: Names<SendOptions> = { url: true, token: true, insecure: true, ...CALL };

/**
 * Adds rows to a collection and reads none: what a device holds. Every segment is sealed under a key that is drawn for it, wrapped to the owner and forgotten.
 * A stolen device exposes what it is sealing at that moment and nothing it sealed before.
 */
export class Writer {
  readonly facts: WriterFacts;
  readonly #engine: Engine;
  readonly #handle: Handle;

  /** Not for callers: use `Writer.open`. */
  private constructor(engine: Engine, handle: Handle, facts: WriterFacts) {
    this.#engine = engine;
    this.#handle = handle;
    this.facts = facts;
  }

  /** The holder of a card, from `collection.writerCard`. Rejects with PinMismatch for another card than the one of this fingerprint, CorruptData. */
  static async open(card: Bytes, options: { fingerprint?: string; engine?: Engine } = {}): Promise<Writer> {
    const { fingerprint, engine = Engine.shared() } = known(options, OPEN, "Writer.open");
    const made = await whole(engine).call<{ handle: Handle; facts: WriterFacts }>(ROOT, "openWriter", [
      await bytesOf(card),
      fingerprint,
    ]);
    return new Writer(engine, made.handle, made.facts);
  }

  /** Seal rows, as `Collection.add` takes them, and keep nothing. */
  async seal(rows: SealOptions): Promise<WrittenBatch> {
    const given = rowsOf(known(rows, SEAL, "seal"));
    return this.#engine.call(this.#handle, "seal", [given], callOptions(rows.signal, rows.onProgress));
  }

  /** Add a sealed batch to its collection, a commit for each segment. What is there already is not added twice. */
  async send(batch: WrittenBatch | Bytes, to: SendOptions): Promise<void> {
    known(to, SEND, "send");
    const bytes = await bytesOf("bytes" in batch ? (batch.bytes as Uint8Array) : batch);
    const destination = {
      url: String(to.url),
      token: to.token ?? null,
      insecure: to.insecure ?? false,
      batch: bytes,
    };
    return this.#engine.call(this.#handle, "send", [destination], callOptions(to.signal, to.onProgress));
  }

  close(): Promise<void> {
    return this.#engine.release(this.#handle);
  }

  [Symbol.dispose](): void {
    this.close().catch(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
