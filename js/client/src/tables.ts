/** Private tables on the page: records by key, which a publisher makes, and which are looked up without showing the server the keys. */

import { Held } from "./held.js";
import "./dispose.js";
import { Engine, whole } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { countOfThings } from "./ingest/arrays.js";
import { own, utf8 } from "./ingest/bytes.js";
import { wellFormed } from "./ingest/json.js";
import { type Bytes, bytesOf, ENGINE, Keys } from "./keys.js";
import { CALL, callOptions, known, NAMED, type Names } from "./known.js";
import type { CallOptions, TableInfo } from "./types.js";
import { type Handle, ROOT } from "./worker/messages.js";

/** A key of a record: text, a whole number of 128 bits, a bigint beyond 2^53, or bytes. `7` and `"7"` are two keys. */
export type TableKey = string | number | bigint | Uint8Array;

/** Records by key: a Map, pairs, or an object whose keys are texts. Records are bytes, or texts as their UTF-8 bytes. */
export type TableRecords =
  | Iterable<readonly [TableKey, Uint8Array | string]>
  | { readonly [key: string]: Uint8Array | string };

/** The same of a table on a server, and what became of lookups in it. */
export interface RemoteTableInfo extends TableInfo {
  /** How many lookups failed a check, of all clients with this storage: each may have told the server whether one bucket was asked for. */
  failures: number;
  /** Whether none is made any more, because one failed. */
  ended: boolean;
}

/** What a table is made with. */
export interface BuildOptions {
  /** Seal the records under these keys. */
  keys?: Keys;
  /** The room of a record, if it is to be more than that of the longest. */
  recordBytes?: number;
  /** 32 bytes that the hash of keys is made with; drawn unless given. Only for tables that are not sealed. */
  seed?: Uint8Array;
  /** Where it is made without keys; with keys, where these are. */
  engine?: Engine;
}

/** What a lookup of several keys takes. */
export interface GetManyOptions extends CallOptions {
  /** How many keys the lookup looks as if it were of, at least: their number unless given. */
  bound?: number;
}

/** Which table of records to open. */
export interface GetTableOptions extends CallOptions {
  name: string;
  /** That of its publisher, from elsewhere than the server. */
  fingerprint?: string;
}

/** Which table of records to store, and as what. */
export interface PutTableOptions extends CallOptions {
  name: string;
  /** A table, or the bytes of its file. */
  table: PrivateTable | Bytes;
}

export const GET_TABLE: Names<GetTableOptions> = { ...NAMED, fingerprint: true };
export const PUT_TABLE: Names<PutTableOptions> = { ...NAMED, table: true };
const BUILD: Names<BuildOptions> = { keys: true, recordBytes: true, seed: true, engine: true };
const GET_MANY: Names<GetManyOptions> = { bound: true, ...CALL };
const OWNER: Names<{ keys?: Keys }> = { keys: true };

/** What the Worker tells of a table. */
export interface MadeTable {
  handle: Handle;
  facts: TableInfo;
}

/** A table, at either half. */
export class Table extends Held {
  protected readonly facts: TableInfo;

  /** Not for callers. */
  constructor(engine: Engine, { handle, facts }: MadeTable) {
    super(engine, handle);
    this.facts = facts;
  }

  /** How many records it has. */
  get size(): number {
    return this.facts.records;
  }

  /** The most bytes that a record of the table may have. */
  get recordBytes(): number {
    return this.facts.recordBytes;
  }

  /** Whether its owner sealed the records. */
  get sealed(): boolean {
    return this.facts.sealed;
  }

  /** 64 hexadecimal digits that stand for the table. */
  get fingerprint(): string {
    return this.facts.fingerprint;
  }
}

/**
 * A table of records by key, as its publisher has it, in the Worker's memory. A table does not change: a publisher builds another one,
 * with another fingerprint.
 */
export class PrivateTable extends Table {
  /**
   * Make a table. Records have up to 65,535 bytes; all take the room of the longest. Rejects with InvalidInput for two records of one key,
   * and what is no key or record; OutOfMemory.
   */
  static async build(records: TableRecords, options: BuildOptions = {}): Promise<PrivateTable> {
    const { keys, recordBytes = 0, seed, engine } = known(options, BUILD, "PrivateTable.build");
    if (keys !== undefined && !(keys instanceof Keys)) throw new InvalidInput("keys must be Keys.");
    if (keys !== undefined && seed !== undefined)
      throw new InvalidInput("seed is for tables that are not sealed: leave keys or seed out.");
    if (keys !== undefined && engine !== undefined && keys.engine !== engine)
      throw new InvalidInput("the keys are in another engine than the one given; leave engine out.");
    if (seed !== undefined && !(seed instanceof Uint8Array && seed.length === 32))
      throw new InvalidInput("seed must be 32 bytes, as crypto.getRandomValues(new Uint8Array(32)) gives.");
    const room = countOfThings(recordBytes, "recordBytes", 0);
    const names: TableKey[] = [];
    const contents: Uint8Array[] = [];
    for (const pair of pairsOf(records)) {
      if (!Array.isArray(pair) || pair.length !== 2)
        throw new InvalidInput(`record ${names.length} must come as a pair of key and record.`);
      contents.push(contentOf(pair[1], names.length));
      names.push(keyOf(pair[0]));
    }
    const where = whole(keys?.engine ?? engine ?? Engine.shared());
    const given = { names, contents, recordBytes: room, seed, keys: keys?.handle };
    return new PrivateTable(where, await where.call(ROOT, "buildTable", [given]));
  }

  /** Open the bytes of a table's file, this client's or another's. Rejects with CorruptData, UnsupportedVersion. */
  static async load(file: Bytes, options: { engine?: Engine } = {}): Promise<PrivateTable> {
    const { engine = Engine.shared() } = known(options, ENGINE, "PrivateTable.load");
    return new PrivateTable(engine, await whole(engine).call(ROOT, "loadTable", [await bytesOf(file)]));
  }

  /** The bytes of its file, which every client loads. */
  toBytes(): Promise<Uint8Array> {
    return this.engine.call(this.handle, "toBytes", []);
  }

  /** Check every bucket. Rejects with CorruptData. */
  verify(): Promise<void> {
    return this.engine.call(this.handle, "verify", []);
  }

  /** What is public of it. */
  info(): TableInfo {
    return { ...this.facts };
  }

  /**
   * The record of a key, read from the table here; null where there is none. A sealed table needs its owner's `keys`. Rejects with
   * CorruptData for other keys, or damage.
   */
  get(key: TableKey, options: { keys?: Keys } = {}): Promise<Uint8Array | null> {
    const { keys } = known(options, OWNER, "get");
    return this.engine.call(this.handle, "get", [keyOf(key), keys?.handle]);
  }
}

/** A table on a server, to look records up in. Its key is drawn for it, and drawn again after 1,024 queries. */
export class RemoteTable extends Table {
  readonly #name: string;

  /** Not for callers: use `Client.getTable`. */
  constructor(engine: Engine, made: MadeTable, name: string) {
    super(engine, made);
    this.#name = name;
  }

  /** Its name on the server. */
  get name(): string {
    return this.#name;
  }

  /** What is public of it, and whether a lookup failed. Rejects with StorageError. */
  async info(): Promise<RemoteTableInfo> {
    const failures = await this.engine.call<{ failures: number; ended: boolean }>(
      this.handle,
      "failures",
      [],
    );
    return { ...this.facts, ...failures };
  }

  /**
   * The record of a key; null where the table has no such key. The server sees that a key was looked up.
   *
   * Another key's record is returned with a chance below 2⁻¹¹⁸. Rejects with TamperedAnswer for an answer that is wrong, once: nothing
   * more is looked up then.
   */
  async get(key: TableKey, options: CallOptions = {}): Promise<Uint8Array | null> {
    const [found = null] = await this.getMany([key], known(options, CALL, "get"));
    return found;
  }

  /**
   * The records of keys, in order; null where there is none. The server sees how many keys there are at most: 1, 10, 100 or whole hundreds,
   * the next from `bound` on. At most 5,000. Rejects as `get`.
   */
  async getMany(keys: Iterable<TableKey>, options: GetManyOptions = {}): Promise<(Uint8Array | null)[]> {
    const { bound, signal, onProgress } = known(options, GET_MANY, "getMany");
    if (typeof keys === "string" || keys instanceof Uint8Array || !isIterable(keys))
      throw new InvalidInput("keys are a list of keys; for one use get(key).");
    const most = bound === undefined ? undefined : countOfThings(bound, "bound");
    const asked = [[...keys].map(keyOf), most];
    return this.engine.call(this.handle, "get", asked, callOptions(signal, onProgress));
  }

  /** Whether the table has the key. */
  async has(key: TableKey, options: CallOptions = {}): Promise<boolean> {
    return (await this.get(key, options)) !== null;
  }

  /**
   * Look up again after a failure, once its cause was found. What was counted stays. Rejects with PinMismatch if the server has another
   * table by now.
   */
  resume(): Promise<void> {
    return this.engine.call(this.handle, "resume", []);
  }
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

function pairsOf(records: TableRecords): Iterable<readonly [TableKey, Uint8Array | string]> {
  if (isIterable(records)) return records as Iterable<readonly [TableKey, Uint8Array | string]>;
  if (typeof records === "object" && records !== null) return Object.entries(records);
  throw new InvalidInput(`records are a Map, pairs of key and record, or an object, got ${typeof records}.`);
}

/** A key that the core takes as it is: half of a surrogate pair would silently become another text there. */
function keyOf(key: TableKey): TableKey {
  if (typeof key === "string" && !wellFormed(key))
    throw new InvalidInput("a key that is a text must be of Unicode, without halves of pairs.");
  return key;
}

function contentOf(record: Uint8Array | string, index: number): Uint8Array {
  if (record instanceof Uint8Array) return own(new Uint8Array(record));
  if (typeof record !== "string")
    throw new InvalidInput(`record ${index} must be a Uint8Array or text, got ${typeof record}.`);
  if (!wellFormed(record))
    throw new InvalidInput(`record ${index} is no text of Unicode: it has half of a pair.`);
  return own(utf8(record));
}
