/**
 * Blob cache: sealed blobs of segments, so that the server is not asked for them again. Key owner's side.
 *
 * A segment never changes, so its id and a blob's name are the blob's address for ever. What is put here was authenticated before, and
 * is again whenever it is opened.
 */

import { CorruptData, StorageError } from "../errors.js";
import { hex, utf8 } from "../ingest/bytes.js";
import type { Native } from "../native.js";
import type { SealedStorage } from "./sealed.js";

const PREFIX = "blobs/";

/** At most `limit` bytes of blobs, the ones unused for longest leaving first. */
export class BlobCache {
  readonly #storage: SealedStorage;
  readonly #native: Native;
  readonly #limit: number;
  /** Bytes held; null until the storage was counted. */
  #held: number | null = null;

  constructor(storage: SealedStorage, native: Native, limit: number) {
    this.#storage = storage;
    this.#native = native;
    this.#limit = limit;
  }

  /** What was put there, or null. An entry that was damaged, or is under other keys, is as good as none. */
  async get(address: string): Promise<Uint8Array | null> {
    try {
      const entry = await this.#storage.get(this.#name(address));
      return entry !== undefined && "data" in entry ? entry.data : null;
    } catch (error) {
      if (error instanceof CorruptData || error instanceof StorageError) return null;
      throw error;
    }
  }

  /** Keep a blob, unless it would take more than an eighth of the room. A storage without room only costs the saving. */
  async put(address: string, data: Uint8Array): Promise<void> {
    if (data.length > this.#limit / 8) return;
    try {
      this.#held ??= (await this.#storage.list(PREFIX)).reduce((sum, { bytes }) => sum + bytes, 0);
      await this.#storage.set(this.#name(address), data);
      this.#held += data.length;
      if (this.#held > this.#limit) await this.#makeRoom();
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
      await this.#makeRoom().catch(() => undefined); // for the next one
    }
  }

  /** What was put there was found to be wrong. */
  async drop(address: string): Promise<void> {
    try {
      await this.#storage.delete(this.#name(address));
    } catch (error) {
      if (!(error instanceof StorageError)) throw error;
    }
  }

  /** Remove the oldest until a tenth of the room is free. */
  async #makeRoom(): Promise<void> {
    const there = await this.#storage.list(PREFIX);
    let held = there.reduce((sum, { bytes }) => sum + bytes, 0);
    const wanted = Math.min(this.#limit, held) * 0.9;
    for (const { name, bytes } of there) {
      if (held <= wanted) break;
      await this.#storage.delete(name);
      held -= bytes;
    }
    this.#held = held;
  }

  #name(address: string): string {
    return PREFIX + hex(this.#native.blake3(utf8(address)));
  }
}
