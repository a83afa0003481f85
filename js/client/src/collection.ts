/** A collection as the page sees it: passes calls to the Worker, which holds the keys. */

import { InvalidInput } from "./errors.js";
import { flatten } from "./ingest/arrays.js";
import { sparseKind } from "./ingest/hybrid.js";
import { Keys } from "./keys.js";
import { CALL, callOptions, known, type Names } from "./known.js";
import { Members } from "./members.js";
import {
  ADD,
  ADOPT,
  type AddOptions,
  type AdoptOptions,
  DELETE,
  type DeleteOptions,
  DISCARD,
  type DiscardOptions,
  MERGE,
  type MergeOptions,
  OPTIMIZE,
  type OptimizeOptions,
  RECLUSTER,
  type ReclusterOptions,
  UPDATE,
  type UpdateOptions,
} from "./options.js";
import { rowsOf, someOf } from "./rows.js";
import { SearchCollection } from "./search-collection.js";
import type { CallOptions, Clustered, Id, Sparse } from "./types.js";

export interface RotateOptions extends CallOptions {
  /** The new ones. */
  keys: Keys;
  /** Let the old ones open the collection meanwhile, which stores the new ones encrypted under the old until the end. */
  overlap?: boolean;
}

const ROTATE: Names<RotateOptions> = { keys: true, overlap: true, ...CALL };

/**
 * Named vectors with their metadata and documents, all sealed before they leave this machine.
 *
 * Every method that changes something is one atomic commit: once it resolves the change is durable, and if it rejects nothing has changed, but for
 * `CommitUncertain`. Made by a `Client`.
 */
export class Collection extends SearchCollection {
  /** Who may do what with the collection, signed. */
  get members(): Members {
    return new Members(this.engine, this.handle);
  }

  /** Seal and store new rows; their ids. Rejects with DuplicateId when one is here, InvalidRows. */
  async add(options: AddOptions): Promise<Id[]> {
    return this.call("add", rowsOf(known(options, ADD, "add")), options);
  }

  /** As `add`, but a row whose id is here is replaced: vector, metadata and document. */
  async upsert(options: AddOptions): Promise<Id[]> {
    return this.call("upsert", rowsOf(known(options, ADD, "upsert")), options);
  }

  /**
   * Change rows that are here: metadata is laid over the old, documents and vectors replace. A new document without a vector keeps
   * that of the old one, with a warning. Rejects with UnknownId.
   */
  async update(options: UpdateOptions): Promise<void> {
    const { removeFields } = known(options, UPDATE, "update");
    return this.call("update", { ...someOf(options), ...(removeFields && { removeFields }) }, options);
  }

  /**
   * Add the rows that are not here and lay the others over what is here, in one commit; how many were written. An id that comes twice counts
   * as two changes, one after the other. Rejects with InvalidInput, for a new row without a vector too.
   */
  async merge(options: MergeOptions): Promise<number> {
    const { known: here, unknown: new_ } = known(options, MERGE, "merge");
    return this.call("merge", { ...someOf(options), known: here, unknown: new_ }, options);
  }

  /** Delete the rows with these ids, or those that pass the filter, or both at once; how many. */
  async delete(options: DeleteOptions): Promise<number> {
    const { signal, onProgress, ...which } = known(options, DELETE, "delete");
    return this.call("delete", which, callOptions(signal, onProgress));
  }

  /**
   * Put every row of a routed collection into clusters, filled up to equally many rows. Rows that were added, changed or deleted since the
   * last time are unrouted, and scanned by every query, until this is called. A call that was interrupted is gone on with by the next. It
   * holds all vectors and records in memory, and the server holds everything twice meanwhile.
   */
  async recluster(options: ReclusterOptions = {}): Promise<Clustered> {
    const { questions } = known(options, RECLUSTER, "recluster");
    const flat = questions === undefined ? undefined : flatten(questions, "questions");
    return this.call("recluster", { ...(flat && { questions: flat }) }, options);
  }

  /** Use a segment again that `info().quarantine` names, after its cause was found. */
  async release(segment: string, options: CallOptions = {}): Promise<void> {
    return this.call("release", segment, known(options, CALL, "release"));
  }

  /** A card for somebody who may add rows and read none, see `Writer`; tell them the fingerprint by another way. */
  async writerCard(
    writer = "writer",
    options: CallOptions = {},
  ): Promise<{ bytes: Uint8Array; fingerprint: string }> {
    return this.call("writerCard", writer, known(options, CALL, "writerCard"));
  }

  /** Have the server read and check every stored block; the token needs the verb admin. */
  async verify(options: CallOptions = {}): Promise<{ files: number; bytes: number; strays: number }> {
    return this.call("verify", undefined, known(options, CALL, "verify"));
  }

  /** Have the server delete what the present state doesn't need; the token needs the verb admin. */
  async purge(options: CallOptions = {}): Promise<void> {
    return this.call("purge", undefined, known(options, CALL, "purge"));
  }

  /** Merge small segments and drop deleted rows, by unsealing and sealing again. Each merge is one commit: ended half-way, the collection is
   * whole. `onProgress` counts rows. */
  async optimize(options: OptimizeOptions = {}): Promise<void> {
    const { signal, onProgress, ...how } = known(options, OPTIMIZE, "optimize");
    return this.call("optimize", how, callOptions(signal, onProgress));
  }

  /** Authenticate a collection that was made by a release before 0.2, from its present state on; whether it was not yet. Releases before
   * can't open it afterwards. */
  async upgrade(options: CallOptions = {}): Promise<boolean> {
    return this.call("upgrade", undefined, known(options, CALL, "upgrade"));
  }

  /** Let the server test equality on further metadata fields, and so see which rows are equal there. Rows that come from now on have tags
   * for them; those that are here with `optimize`, until when they are filtered here. */
  async extendFilterable(fields: readonly string[], options: CallOptions = {}): Promise<void> {
    await this.call("extendFilterable", fields, known(options, CALL, "extendFilterable"));
    this.facts = { ...this.facts, filterable: [...this.facts.filterable, ...fields] };
  }

  /** Rank rows by the words of their documents, or by sparse vectors, from now on, or by BM25 of other figures. Until `optimize({ reseal:
   * true })` seals the words of rows that are here beside them, clients read their documents for the first query with `fusion`. */
  async setSparse(sparse: Sparse, options: CallOptions = {}): Promise<void> {
    await this.call("setSparse", sparse, known(options, CALL, "setSparse"));
    this.facts = { ...this.facts, sparse: sparseKind(sparse) };
  }

  /** Seal the rows that writers added again as the owner's own, which makes their filter tags; how many. `optimize` does so too. */
  async adopt(options: AdoptOptions = {}): Promise<number> {
    const { signal, onProgress, ...how } = known(options, ADOPT, "adopt");
    return this.call("adopt", how, callOptions(signal, onProgress));
  }

  /** Remove segments that writers sealed: those that don't open, or should not have come. How many rows went. Rejects with InvalidInput for
   * other segments; nothing is removed then. */
  async discard(options: DiscardOptions): Promise<number> {
    const { signal, onProgress, ...which } = known(options, DISCARD, "discard");
    return this.call("discard", which, callOptions(signal, onProgress));
  }

  /**
   * Seal everything again under new keys, each segment in a commit of its own. Interrupted, it goes on with the next call, to which only the
   * new keys have to be given: from the first commit on they open the whole collection. Afterwards the old keys are refused, writers need new
   * cards, and the collection is opened by a client with the new keys. `onProgress` counts rows.
   */
  async rotateKeys(options: RotateOptions): Promise<void> {
    const { keys, overlap = false, signal, onProgress } = known(options, ROTATE, "rotateKeys");
    if (!(keys instanceof Keys)) throw new InvalidInput(`keys must be Keys, got ${typeof keys}.`);
    if (keys.engine !== this.engine)
      throw new InvalidInput("the new keys are in another engine than the collection; load them in its own.");
    return this.engine.call(
      this.handle,
      "rotateKeys",
      [keys.handle, Boolean(overlap)],
      callOptions(signal, onProgress),
    );
  }

  /** Begin the next epoch: a new query key, so that one leaked epoch opens no other. Vectors stay as they are. */
  async rotateQueryKey(options: CallOptions = {}): Promise<void> {
    return this.call("rotateQueryKey", undefined, known(options, CALL, "rotateQueryKey"));
  }
}
