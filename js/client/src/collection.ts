/** A collection as the page sees it: passes calls to the Worker, which holds the keys. */

import type { CollectionFacts } from "./collections/collection.js";
import type { Engine } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { flatten } from "./ingest/arrays.js";
import { sparseKind } from "./ingest/hybrid.js";
import { flattenAll } from "./ingest/multi.js";
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
  FLOODING,
  type FloodingOptions,
  GET,
  type GetOptions,
  MERGE,
  type MergeOptions,
  OPTIMIZE,
  type OptimizeOptions,
  PREFETCH,
  type PrefetchOptions,
  QUERY,
  type QueryOptions,
  RECLUSTER,
  type ReclusterOptions,
  UPDATE,
  type UpdateOptions,
} from "./options.js";
import { rowsOf, someOf } from "./rows.js";
import type {
  Audience,
  CallOptions,
  Clustered,
  Clusters,
  Explanation,
  FloodingPlan,
  GetResult,
  Id,
  Metric,
  Mode,
  Muvera,
  PrivateFetch,
  QueryResult,
  Sparse,
} from "./types.js";
import type { Handle } from "./worker/messages.js";

export interface RotateOptions extends CallOptions {
  /** The new ones. */
  keys: Keys;
  /** Let the old ones open the collection meanwhile, which stores the new ones encrypted under the old until the end. */
  overlap?: boolean;
}

const ROTATE: Names<RotateOptions> = { keys: true, overlap: true, ...CALL };

/** What is stored and what protects it. */
export interface CollectionInfo extends CollectionFacts {
  rows: number;
  keyId: string;
  /** The id of the keys that it comes from, while they are being changed. */
  rotatesFrom: string | null;
  epoch: number;
  /** What queries are asked under: the present session and how many of its `most` queries are counted, or, where the server refused it,
   * those asked under the epoch; null where queries are plain. */
  queryKey: { session: number | null; queries: number; most: number; refused: boolean } | null;
  version: number;
  authenticated: boolean;
  state: { sequence: number; lineage: string } | null;
  /** Who committed the present state, and how many members there are; null where there is no list of them. */
  author: { name: string; fingerprint: string; members: number } | null;
  security: unknown;
  segments: {
    id: string;
    rows: number;
    deleted: number;
    bytes: { [blob: string]: number };
    writer: string | null;
  }[];
  /** Rows by the name of the writer, until they are adopted. */
  writers: { [name: string]: number };
  /** Segments that writers added since the owner's latest state. */
  appended: string[];
  /** Segments that are passed over, and why. */
  refused: { [segment: string]: string };
  /** Segments that failed a check, and how; `query` is refused until they are released. */
  quarantine: { [segment: string]: string };
  /** Rows that don't count: their id was here before a writer added them. */
  ignored: { id: Id; segment: string }[];
}

/**
 * Named vectors with their metadata and documents, all sealed before they leave this machine.
 *
 * Every method that changes something is one atomic commit: once it resolves the change is durable, and if it rejects nothing has changed, but for
 * `CommitUncertain`. Made by a `Client`.
 */
export class Collection {
  readonly #engine: Engine;
  readonly #handle: Handle;
  #facts: CollectionFacts;

  /** Not for callers: use a client. */
  constructor(engine: Engine, { handle, facts }: { handle: Handle; facts: CollectionFacts }) {
    this.#engine = engine;
    this.#handle = handle;
    this.#facts = facts;
  }

  get name(): string {
    return this.#facts.name;
  }

  /** Numbers per vector. */
  get dimension(): number {
    return this.#facts.dimension;
  }

  get metric(): Metric {
    return this.#facts.metric as Metric;
  }

  get mode(): Mode {
    return this.#facts.mode as Mode;
  }

  /** The metadata fields whose equality the server can test. */
  get filterable(): readonly string[] {
    return this.#facts.filterable;
  }

  /** Whether vectors are kept as they are put in, for `get` to return them so. */
  get originals(): boolean {
    return this.#facts.originals;
  }

  /** How rows are put in clusters, which queries ask about; null where they are not. */
  get routing(): Required<Clusters> | null {
    return this.#facts.routing;
  }

  /** What rows are ranked by beside their vectors; null where by nothing. */
  get sparse(): Required<Exclude<Sparse, "bm25">> | null {
    return this.#facts.sparse;
  }

  /** How the many vectors of a row become the one that is searched; null where rows have one each. */
  get multi(): Required<Muvera> | null {
    return this.#facts.multi;
  }

  /** Who may do what with the collection, signed. */
  get members(): Members {
    return new Members(this.#engine, this.#handle);
  }

  /** What a private fetch of metadata and documents is like, or why there is none, and how many failed a check. */
  async privateFetch(options: CallOptions = {}): Promise<PrivateFetch> {
    return this.#call("privateFetch", undefined, known(options, CALL, "privateFetch"));
  }

  /** Go on with private fetches after one that rejected with TamperedAnswer. It may have told the server whether one row was asked for:
   * that stays counted. */
  async resumePrivateFetch(options: CallOptions = {}): Promise<void> {
    return this.#call("resumePrivateFetch", undefined, known(options, CALL, "resumePrivateFetch"));
  }

  /** Seal and store new rows; their ids. Rejects with DuplicateId when one is here, InvalidRows. */
  async add(options: AddOptions): Promise<Id[]> {
    return this.#call("add", rowsOf(known(options, ADD, "add")), options);
  }

  /** As `add`, but a row whose id is here is replaced: vector, metadata and document. */
  async upsert(options: AddOptions): Promise<Id[]> {
    return this.#call("upsert", rowsOf(known(options, ADD, "upsert")), options);
  }

  /**
   * Change rows that are here: metadata is laid over the old, documents and vectors replace. A new document without a vector keeps
   * that of the old one, with a warning. Rejects with UnknownId.
   */
  async update(options: UpdateOptions): Promise<void> {
    const { removeFields } = known(options, UPDATE, "update");
    return this.#call("update", { ...someOf(options), ...(removeFields && { removeFields }) }, options);
  }

  /**
   * Add the rows that are not here and lay the others over what is here, in one commit; how many were written. An id that comes twice counts
   * as two changes, one after the other. Rejects with InvalidInput, for a new row without a vector too.
   */
  async merge(options: MergeOptions): Promise<number> {
    const { known: here, unknown: new_ } = known(options, MERGE, "merge");
    return this.#call("merge", { ...someOf(options), known: here, unknown: new_ }, options);
  }

  /** Delete the rows with these ids, or those that pass the filter, or both at once; how many. */
  async delete(options: DeleteOptions): Promise<number> {
    const { signal, onProgress, ...which } = known(options, DELETE, "delete");
    return this.#call("delete", which, callOptions(signal, onProgress));
  }

  /** Rows by id (ids that are not here are left out), by filter, or all of them. */
  async get(options: GetOptions = {}): Promise<GetResult> {
    const { signal, onProgress, ...question } = known(options, GET, "get");
    const found = await this.#call<GetResult>("get", question, callOptions(signal, onProgress));
    return guarded(found, question.audience);
  }

  /** The first rows, with metadata and documents. */
  async peek(limit = 10, options: CallOptions = {}): Promise<GetResult> {
    return this.get({ limit, ...(known(options, CALL, "peek") as CallOptions) });
  }

  /** The rows closest to each of the queries, closest first. Rejects with TamperedAnswer for an answer that fails its check, and from then
   * on with Quarantined: its segments are in quarantine, for every client of the owner's. */
  async query(options: QueryOptions): Promise<QueryResult> {
    const { signal, onProgress, queryEmbeddings, queryMultiEmbeddings, ...question } = known(
      options,
      QUERY,
      "query",
    );
    const flat = queryEmbeddings === undefined ? undefined : flatten(queryEmbeddings, "queryEmbeddings");
    const many = queryMultiEmbeddings && flattenAll(queryMultiEmbeddings, "queryMultiEmbeddings");
    const asked = {
      ...question,
      ...(flat && { queryEmbeddings: flat }),
      ...(many && { queryMultiEmbeddings: many }),
    };
    const found = await this.#call<QueryResult>("query", asked, callOptions(signal, onProgress));
    return guarded(found, question.audience);
  }

  /**
   * What `query({ audience: "others" })` costs in mode `sealed` with noise of this standard deviation in every score, and how much of it
   * is left. Rejects with InvalidInput in other modes, and for rows of writers that were not adopted.
   */
  async floodingPlan(options: FloodingOptions = {}): Promise<FloodingPlan> {
    const { flooding = 2 ** -8 } = known(options, FLOODING, "floodingPlan");
    return this.#call("floodingPlan", flooding, options);
  }

  /**
   * Fetch ahead, for so many questions more, the half of an answer that does not depend on what is asked; how many are ready then. A question
   * takes one by itself. Each serves once; they are held in memory alone, and are gone once anybody's commit has changed which segments
   * there are. Rejects with InvalidInput outside modes `sealed` and `sealed-query`, and where rows are routed.
   */
  async prefetch(options: PrefetchOptions = {}): Promise<number> {
    const { queries = 8 } = known(options, PREFETCH, "prefetch");
    return this.#call("prefetch", queries, options);
  }

  /**
   * Put every row of a routed collection into clusters, filled up to equally many rows. Rows that were added, changed or deleted since the
   * last time are unrouted, and scanned by every query, until this is called. A call that was interrupted is gone on with by the next. It
   * holds all vectors and records in memory, and the server holds everything twice meanwhile.
   */
  async recluster(options: ReclusterOptions = {}): Promise<Clustered> {
    const { questions } = known(options, RECLUSTER, "recluster");
    const flat = questions === undefined ? undefined : flatten(questions, "questions");
    return this.#call("recluster", { ...(flat && { questions: flat }) }, options);
  }

  /** Rows stored and not deleted, as of the server's latest answer. */
  async count(options: CallOptions = {}): Promise<number> {
    return this.#call("count", undefined, known(options, CALL, "count"));
  }

  /** Which of these ids are here. */
  async has(ids: readonly Id[], options: CallOptions = {}): Promise<boolean[]> {
    return this.#call("has", ids, known(options, CALL, "has"));
  }

  /** Take in what others have committed since. */
  async refresh(options: CallOptions = {}): Promise<void> {
    return this.#call("refresh", undefined, known(options, CALL, "refresh"));
  }

  /** What is stored and what protects it. */
  async info(options: CallOptions = {}): Promise<CollectionInfo> {
    return this.#call("info", undefined, known(options, CALL, "info"));
  }

  /** 24 characters for two people to compare, aloud if need be: the number and the name of the state that this client sees, which the
   * collection's owner authenticated. Where they are equal, both see the same collection and the same history of it. */
  async checkpoint(options: CallOptions = {}): Promise<string> {
    return this.#call("checkpoint", undefined, known(options, CALL, "checkpoint"));
  }

  /** That the history of the collection has the state of this checkpoint, which somebody else saw: the present one, or one of the 256 before
   * it. Rejects with RollbackDetected where it does not, or where too many came since to tell. */
  async expect(checkpoint: string, options: CallOptions = {}): Promise<void> {
    return this.#call("expect", checkpoint, known(options, CALL, "expect"));
  }

  /** Use a segment again that `info().quarantine` names, after its cause was found. */
  async release(segment: string, options: CallOptions = {}): Promise<void> {
    return this.#call("release", segment, known(options, CALL, "release"));
  }

  /** A card for somebody who may add rows and read none, see `Writer`; tell them the fingerprint by another way. */
  async writerCard(
    writer = "writer",
    options: CallOptions = {},
  ): Promise<{ bytes: Uint8Array; fingerprint: string }> {
    return this.#call("writerCard", writer, known(options, CALL, "writerCard"));
  }

  /** Have the server read and check every stored block; the token needs the verb admin. */
  async verify(options: CallOptions = {}): Promise<{ files: number; bytes: number; strays: number }> {
    return this.#call("verify", undefined, known(options, CALL, "verify"));
  }

  /** Have the server delete what the present state doesn't need; the token needs the verb admin. */
  async purge(options: CallOptions = {}): Promise<void> {
    return this.#call("purge", undefined, known(options, CALL, "purge"));
  }

  /** Merge small segments and drop deleted rows, by unsealing and sealing again. Each merge is one commit: ended half-way, the collection is
   * whole. `onProgress` counts rows. */
  async optimize(options: OptimizeOptions = {}): Promise<void> {
    const { signal, onProgress, ...how } = known(options, OPTIMIZE, "optimize");
    return this.#call("optimize", how, callOptions(signal, onProgress));
  }

  /** What one question costs, in rows and bytes, and what it shows the server; `text` of it is for people. */
  async explain(options: CallOptions = {}): Promise<Explanation> {
    return this.#call("explain", undefined, known(options, CALL, "explain"));
  }

  /** Authenticate a collection that was made by a release before 0.2, from its present state on; whether it was not yet. Releases before
   * can't open it afterwards. */
  async upgrade(options: CallOptions = {}): Promise<boolean> {
    return this.#call("upgrade", undefined, known(options, CALL, "upgrade"));
  }

  /** Let the server test equality on further metadata fields, and so see which rows are equal there. Rows that come from now on have tags
   * for them; those that are here with `optimize`, until when they are filtered here. */
  async extendFilterable(fields: readonly string[], options: CallOptions = {}): Promise<void> {
    await this.#call("extendFilterable", fields, known(options, CALL, "extendFilterable"));
    this.#facts = { ...this.#facts, filterable: [...this.#facts.filterable, ...fields] };
  }

  /** Rank rows by the words of their documents, or by sparse vectors, from now on, or by BM25 of other figures. Until `optimize({ reseal:
   * true })` seals the words of rows that are here beside them, clients read their documents for the first query with `fusion`. */
  async setSparse(sparse: Sparse, options: CallOptions = {}): Promise<void> {
    await this.#call("setSparse", sparse, known(options, CALL, "setSparse"));
    this.#facts = { ...this.#facts, sparse: sparseKind(sparse) };
  }

  /** Seal the rows that writers added again as the owner's own, which makes their filter tags; how many. `optimize` does so too. */
  async adopt(options: AdoptOptions = {}): Promise<number> {
    const { signal, onProgress, ...how } = known(options, ADOPT, "adopt");
    return this.#call("adopt", how, callOptions(signal, onProgress));
  }

  /** Remove segments that writers sealed: those that don't open, or should not have come. How many rows went. Rejects with InvalidInput for
   * other segments; nothing is removed then. */
  async discard(options: DiscardOptions): Promise<number> {
    const { signal, onProgress, ...which } = known(options, DISCARD, "discard");
    return this.#call("discard", which, callOptions(signal, onProgress));
  }

  /**
   * Seal everything again under new keys, each segment in a commit of its own. Interrupted, it goes on with the next call, to which only the
   * new keys have to be given: from the first commit on they open the whole collection. Afterwards the old keys are refused, writers need new
   * cards, and the collection is opened by a client with the new keys. `onProgress` counts rows.
   */
  async rotateKeys(options: RotateOptions): Promise<void> {
    const { keys, overlap = false, signal, onProgress } = known(options, ROTATE, "rotateKeys");
    if (!(keys instanceof Keys)) throw new InvalidInput(`keys must be Keys, got ${typeof keys}.`);
    if (keys.engine !== this.#engine)
      throw new InvalidInput("the new keys are in another engine than the collection; load them in its own.");
    return this.#engine.call(
      this.#handle,
      "rotateKeys",
      [keys.handle, Boolean(overlap)],
      callOptions(signal, onProgress),
    );
  }

  /** Begin the next epoch: a new query key, so that one leaked epoch opens no other. Vectors stay as they are. */
  async rotateQueryKey(options: CallOptions = {}): Promise<void> {
    return this.#call("rotateQueryKey", undefined, known(options, CALL, "rotateQueryKey"));
  }

  #call<T>(method: string, argument: unknown, options: CallOptions): Promise<T> {
    return this.#engine.call(
      this.#handle,
      method,
      [argument],
      callOptions(options.signal, options.onProgress),
    );
  }
}

/** A result; one that is the key owner's own is not written as JSON until it is asked for as such, nor are the numbers in it. */
function guarded<T extends GetResult | QueryResult>(found: T, audience: Audience | undefined): T {
  if (!found.ownersOnly || audience !== undefined) return found;
  const { distances, scores, embeddings } = found as Partial<QueryResult>;
  const lists = [distances, scores, embeddings].flatMap((one) => (one ? [one, ...one] : []));
  for (const one of [found, ...lists]) Object.defineProperty(one, "toJSON", { value: refuseJson });
  return found;
}

function refuseJson(): never {
  throw new InvalidInput(
    "these results carry noise of your key, and enough of them, shown to others, give it away. Name who will read them: " +
      'audience: "owner" for yourself, or audience: "others", which in mode "sealed" adds noise that hides the key\'s and counts how often. ' +
      'In mode "sealed-index" results are exact and for anybody.',
  );
}
