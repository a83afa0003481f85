/** A writer's card and rows: what they are sealed into opens for nobody here. In the Worker, without a secret. */

import { batchOf, type GivenRows } from "../collections/batch.js";
import { guarded } from "../errors.js";
import { type Call, CallHost, under, type World } from "../host.js";
import type { Fetch } from "../http/transport.js";
import type { Native, NativeWriter } from "../native.js";
import { MemoryStorage } from "../storage/storage.js";
import type { Metric } from "../types.js";

/** Where a batch goes. */
export interface Destination {
  url: string;
  token: string | null;
  insecure: boolean;
  batch: Uint8Array;
}

/** Adds rows to a collection and reads none. */
export class WriterEngine {
  readonly #writer: NativeWriter;
  readonly #world: World;

  /** Throws PinMismatch for another card than the one of this fingerprint, CorruptData, UnsupportedVersion. */
  constructor(native: Native, card: Uint8Array, fingerprint: string | undefined, fetch: Fetch) {
    this.#world = { fetch, storage: new MemoryStorage(), warn: () => undefined, log: null };
    this.#writer = guarded(() => new native.Writer(card, fingerprint));
  }

  facts() {
    const { card } = this.#writer;
    const { spec, writer, fingerprint, filterable } = card;
    const { collection, dimension, metric, mode } = spec;
    spec.free();
    card.free();
    return { collection, dimension, metric, mode, writer, fingerprint, filterable };
  }

  /** Seal rows as `add` takes them, and keep nothing: the bytes of a batch. */
  async seal(given: GivenRows, call: Call): Promise<{ bytes: Uint8Array; rows: number }> {
    const { dimension, metric } = this.facts();
    const rows = batchOf(given, dimension, metric as Metric);
    call.signal?.throwIfAborted();
    return guarded(() => this.#writer.seal(new CallHost(this.#world, call), rows));
  }

  /** Add a sealed batch to the collection, a commit for each segment. One that is there already is not added twice. */
  send({ url, token, insecure, batch }: Destination, call: Call): Promise<void> {
    return under(this.#world, call, (host) =>
      this.#writer.send(host, url, token ?? undefined, insecure, batch),
    );
  }

  free(): void {
    this.#writer.free();
  }
}
