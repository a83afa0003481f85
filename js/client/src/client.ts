/**
 * The client of a server: opens, creates and deletes collections under the owner's keys, which stay in the Worker. Runs
 * on the page.
 */

import { Collection } from "./collection.js";
import { Engine, whole } from "./engine.js";
import { bytesOf } from "./keys.js";
import { CALL, known, NAMED } from "./known.js";
import { CREATE, type CreateOptions } from "./options.js";
import { type ClientOptions, type Made, SearchClient } from "./search-client.js";
import {
  GET_TABLE,
  type GetTableOptions,
  type MadeTable,
  PrivateTable,
  PUT_TABLE,
  type PutTableOptions,
  RemoteTable,
} from "./tables.js";
import type { CallOptions, TableRow } from "./types.js";

export type { ClientOptions } from "./search-client.js";

/** Collections on a ciphervec server, which holds no key. */
export class Client extends SearchClient<Collection> {
  /** Nothing is sent yet. Throws InvalidInput. */
  constructor(options: ClientOptions) {
    super(options);
    whole(this.engine);
  }

  /** Make an empty collection. Rejects with CollectionExists, InvalidInput. */
  async createCollection(options: CreateOptions): Promise<Collection> {
    const { signal, onProgress, ...choices } = known(options, CREATE, "createCollection");
    return this.collection("create", choices, { signal, onProgress });
  }

  /** Open the collection, or make it. Rejects with InvalidInput when it is there with other choices. */
  async getOrCreateCollection(options: CreateOptions): Promise<Collection> {
    const { signal, onProgress, ...choices } = known(options, CREATE, "getOrCreateCollection");
    return this.collection("getOrCreate", choices, { signal, onProgress });
  }

  /** Delete a collection and everything in it. Rejects with CollectionNotFound. */
  async deleteCollection(options: { name: string } & CallOptions): Promise<void> {
    const { name, signal, onProgress } = known(options, NAMED, "deleteCollection");
    return this.call("delete", name, { signal, onProgress });
  }

  /**
   * Go on from an older state of a collection, which whoever keeps it put back from a copy. Only its owner can: the state is checked as ever, but
   * for coming after what was seen here, and another history begins with a commit. Other clients that saw what is lost are told so, and follow with
   * `forget`. Rejects with RollbackDetected for what is no state of the owner's, InvalidInput where nothing was restored.
   */
  async acceptRestore(options: { name: string } & CallOptions): Promise<Collection> {
    const { name, signal, onProgress } = known(options, NAMED, "acceptRestore");
    return this.collection("acceptRestore", name, { signal, onProgress });
  }

  /**
   * Open a table of records on the server, to look some up without showing which. The token needs the permission query.
   *
   * `fingerprint` is that of its publisher, from elsewhere than the server: a server that knows which client asks could show it another
   * table. Without one the table must be the one that was seen first under the name. A table that its owner sealed needs the client's `keys`
   * to be the owner's. Rejects with TableNotFound; PinMismatch for another table than expected; InvalidInput or CorruptData for other keys.
   */
  async getTable(options: GetTableOptions): Promise<RemoteTable> {
    const { name, fingerprint, signal, onProgress } = known(options, GET_TABLE, "getTable");
    const which = { name, fingerprint };
    const made = await this.call<MadeTable>("getTable", which, { signal, onProgress });
    return new RemoteTable(this.engine, made, name);
  }

  /**
   * Store a table of records under a name, in place of one that is there; what the server says of it. The token needs the permission admin:
   * whoever may store a table decides what is found. Rejects with InvalidInput for what is no table or more than the server has memory for.
   */
  async putTable(options: PutTableOptions): Promise<TableRow> {
    const { name, table, signal, onProgress } = known(options, PUT_TABLE, "putTable");
    const file = table instanceof PrivateTable ? await table.toBytes() : await bytesOf(table);
    return this.call("putTable", { name, file }, { signal, onProgress });
  }

  /** The tables of records that the token may see. */
  async listTables(options: CallOptions = {}): Promise<TableRow[]> {
    return this.call("listTables", undefined, known(options, CALL, "listTables"));
  }

  /** Remove a table of records. The token needs the permission admin. Rejects with TableNotFound. */
  async deleteTable(options: { name: string } & CallOptions): Promise<void> {
    const { name, signal, onProgress } = known(options, NAMED, "deleteTable");
    return this.call("deleteTable", name, { signal, onProgress });
  }

  protected override shared(): Engine {
    return Engine.shared();
  }

  protected override made(made: Made): Collection {
    return new Collection(this.engine, made);
  }
}
