/** Private tables: a publisher's, and those on a server. In the Worker. */

import { guarded } from "../errors.js";
import { type Call, under, type World } from "../host.js";
import type { Keys, Native, NativeRemoteTable, NativeTable } from "../native.js";
import type { TableInfo } from "../types.js";

/** What a table is made of, as it crosses from the page. */
export interface TableParts {
  names: unknown[];
  contents: Uint8Array[];
  recordBytes: number;
  seed?: Uint8Array;
}

/** A table in memory. */
export class TableEngine {
  readonly #table: NativeTable;

  private constructor(table: NativeTable) {
    this.#table = table;
  }

  /** Throws InvalidInput. */
  static build(native: Native, { names, contents, recordBytes, seed }: TableParts, keys: Keys | null) {
    return guarded(
      () =>
        new TableEngine(
          keys === null
            ? native.KeyedTable.plain(names, contents, recordBytes, seed)
            : native.KeyedTable.sealed(keys, names, contents, recordBytes),
        ),
    );
  }

  /** Throws CorruptData, UnsupportedVersion. */
  static load(native: Native, file: Uint8Array): TableEngine {
    return guarded(() => new TableEngine(native.KeyedTable.fromBytes(file)));
  }

  facts(): TableInfo {
    return this.#table.facts();
  }

  toBytes(): Uint8Array {
    return guarded(() => this.#table.toBytes());
  }

  verify(): void {
    guarded(() => this.#table.verify());
  }

  get(key: unknown, keys: Keys | null): Uint8Array | null {
    return guarded(() => (keys === null ? this.#table.get(key) : this.#table.open(keys, key)));
  }

  free(): void {
    this.#table.free();
  }
}

/** A table on a server. */
export class RemoteTableEngine {
  readonly #table: NativeRemoteTable;
  readonly #world: World;

  constructor(table: NativeRemoteTable, world: World) {
    [this.#table, this.#world] = [table, world];
  }

  facts(): TableInfo {
    return this.#table.facts();
  }

  /** Throws TamperedAnswer, Conflict, InvalidInput. */
  get(keys: unknown[], bound: number | undefined, call: Call): Promise<(Uint8Array | null)[]> {
    return under(this.#world, call, (host) => this.#table.get(host, keys, bound));
  }

  failures(call: Call): Promise<{ failures: number; ended: boolean }> {
    return under(this.#world, call, (host) => this.#table.failures(host));
  }

  /** Throws PinMismatch. */
  resume(call: Call): Promise<void> {
    return under(this.#world, call, (host) => this.#table.resume(host));
  }

  free(): void {
    this.#table.free();
  }
}
