/**
 * Sealed storage: named bytes enter and leave as they are; what lies in the storage below is encrypted under a key that the
 * native code derives from the owner's, bound to its name. Key owner's side.
 *
 * An entry is `CVBSTATE | version u8 | length of the key id u8 | key id | a sealed record`. The key id is in clear, so that an entry
 * under other keys is told from one that was damaged.
 */

import { CorruptData, fromNative, UnsupportedVersion } from "../errors.js";
import { concat, text, utf8 } from "../ingest/bytes.js";
import type { Keys, Native, Owner, SegmentDirectory } from "../native.js";
import { MemoryStorage, type Storage } from "./storage.js";

const MAGIC = utf8("CVBSTATE");
const VERSION = 1;
const HEAD = MAGIC.length + 2;
/** The index that the keys of this storage are derived for. None of that name is ever made: it has a space. */
const INDEX = "browser state";

/** What an entry holds, or under which keys it is. */
export type Entry = { data: Uint8Array } | { keyId: string } | undefined;

export class SealedStorage {
  /** Whether what is put there is there in a later session. */
  readonly durable: boolean;
  readonly #storage: Storage;
  readonly #native: Native;
  readonly #owner: Owner;
  readonly #nothing: SegmentDirectory;

  constructor(storage: Storage, native: Native, keys: Keys) {
    this.durable = !(storage instanceof MemoryStorage);
    this.#storage = storage;
    this.#native = native;
    const spec = new native.IndexSpec(INDEX, 1, "cosine", "sealed-index");
    this.#owner = new native.Owner(keys, spec);
    this.#nothing = new native.SegmentDirectory();
    spec.free();
  }

  /** What was put there. Throws CorruptData for an entry that was damaged, or put elsewhere. */
  async get(name: string): Promise<Entry> {
    const stored = await this.#storage.get(name);
    return stored === undefined ? undefined : this.#open(name, stored);
  }

  async set(name: string, data: Uint8Array): Promise<void> {
    const id = utf8(this.#owner.keyId);
    const batch = this.#owner.sealRecords(this.#place(name), [name], [data]);
    const head = concat([MAGIC, Uint8Array.of(VERSION, id.length), id]);
    const sealed = concat([head, batch.toBytes()]);
    batch.free();
    await this.#storage.set(name, sealed);
  }

  delete(name: string): Promise<void> {
    return this.#storage.delete(name);
  }

  list(prefix: string): Promise<{ name: string; bytes: number }[]> {
    return this.#storage.list(prefix);
  }

  exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.#storage.exclusive === undefined ? work() : this.#storage.exclusive(name, work);
  }

  close(): void {
    this.#owner.free();
    this.#nothing.free();
    this.#storage.close?.();
  }

  #open(name: string, stored: Uint8Array): Entry {
    const damaged = () => new CorruptData(`what this client remembers under ${name} was damaged.`);
    if (stored.length < HEAD || !MAGIC.every((byte, i) => stored[i] === byte)) throw damaged();
    const version = stored[MAGIC.length] as number;
    if (version !== VERSION)
      throw new UnsupportedVersion(
        `this client's state has version ${version}, and this ciphervec reads ${VERSION}. Upgrade it, or use another storage.`,
      );
    const end = HEAD + (stored[MAGIC.length + 1] as number);
    if (stored.length < end) throw damaged();
    const keyId = text(stored.subarray(HEAD, end));
    if (keyId !== this.#owner.keyId) return { keyId };
    try {
      const batch = this.#native.RecordBatch.fromBytes(stored.subarray(end));
      const data = this.#owner.openRecord(this.#place(name), batch, 0, name, this.#nothing);
      batch.free();
      return { data };
    } catch (error) {
      throw fromNative(error) instanceof CorruptData ? damaged() : error;
    }
  }

  /** The segment that its record would be of: half of a hash of the name. */
  #place(name: string): Uint8Array {
    return this.#native.blake3(utf8(name)).slice(0, 16);
  }
}
