/** A collection as a page that searches sees it: passes questions to the Worker, which holds the keys. */

import type { CollectionFacts } from "./collections/collection.js";
import type { Engine } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { flatten } from "./ingest/arrays.js";
import { flattenAll } from "./ingest/multi.js";
import { CALL, callOptions, known } from "./known.js";
import {
  FLOODING,
  type FloodingOptions,
  GET,
  type GetOptions,
  PREFETCH,
  type PrefetchOptions,
  QUERY,
  type QueryOptions,
} from "./options.js";
import type {
  Audience,
  CallOptions,
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
 * Named vectors with their metadata and documents, to be searched. What changes them is in `Collection` of `@ciphervec/client`. Made by a `Client`.
 */
export class SearchCollection {
  protected readonly engine: Engine;
  protected readonly handle: Handle;
  protected facts: CollectionFacts;

  /** Not for callers: use a client. */
  constructor(engine: Engine, { handle, facts }: { handle: Handle; facts: CollectionFacts }) {
    this.engine = engine;
    this.handle = handle;
    this.facts = facts;
  }

  get name(): string {
    return this.facts.name;
  }

  /** Numbers per vector. */
  get dimension(): number {
    return this.facts.dimension;
  }

  get metric(): Metric {
    return this.facts.metric as Metric;
  }

  get mode(): Mode {
    return this.facts.mode as Mode;
  }

  /** The metadata fields whose equality the server can test. */
  get filterable(): readonly string[] {
    return this.facts.filterable;
  }

  /** Whether vectors are kept as they are put in, for `get` to return them so. */
  get originals(): boolean {
    return this.facts.originals;
  }

  /** How rows are put in clusters, which queries ask about; null where they are not. */
  get routing(): Required<Clusters> | null {
    return this.facts.routing;
  }

  /** What rows are ranked by beside their vectors; null where by nothing. */
  get sparse(): Required<Exclude<Sparse, "bm25">> | null {
    return this.facts.sparse;
  }

  /** How the many vectors of a row become the one that is searched; null where rows have one each. */
  get multi(): Required<Muvera> | null {
    return this.facts.multi;
  }

  /** What a private fetch of metadata and documents is like, or why there is none, and how many failed a check. */
  async privateFetch(options: CallOptions = {}): Promise<PrivateFetch> {
    return this.call("privateFetch", undefined, known(options, CALL, "privateFetch"));
  }

  /** Go on with private fetches after one that rejected with TamperedAnswer. It may have told the server whether one row was asked for:
   * that stays counted. */
  async resumePrivateFetch(options: CallOptions = {}): Promise<void> {
    return this.call("resumePrivateFetch", undefined, known(options, CALL, "resumePrivateFetch"));
  }

  /** Rows by id (ids that are not here are left out), by filter, or all of them. */
  async get(options: GetOptions = {}): Promise<GetResult> {
    const { signal, onProgress, ...question } = known(options, GET, "get");
    const found = await this.call<GetResult>("get", question, callOptions(signal, onProgress));
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
    const found = await this.call<QueryResult>("query", asked, callOptions(signal, onProgress));
    return guarded(found, question.audience);
  }

  /**
   * What `query({ audience: "others" })` costs in mode `sealed` with noise of this standard deviation in every score, and how much of it
   * is left. Rejects with InvalidInput in other modes, and for rows of writers that were not adopted.
   */
  async floodingPlan(options: FloodingOptions = {}): Promise<FloodingPlan> {
    const { flooding = 2 ** -8 } = known(options, FLOODING, "floodingPlan");
    return this.call("floodingPlan", flooding, options);
  }

  /**
   * Fetch ahead, for so many questions more, the half of an answer that does not depend on what is asked; how many are ready then. A question
   * takes one by itself. Each serves once; they are held in memory alone, and are gone once anybody's commit has changed which segments
   * there are. Rejects with InvalidInput outside modes `sealed` and `sealed-query`, and where rows are routed.
   */
  async prefetch(options: PrefetchOptions = {}): Promise<number> {
    const { queries = 8 } = known(options, PREFETCH, "prefetch");
    return this.call("prefetch", queries, options);
  }

  /** Rows stored and not deleted, as of the server's latest answer. */
  async count(options: CallOptions = {}): Promise<number> {
    return this.call("count", undefined, known(options, CALL, "count"));
  }

  /** Which of these ids are here. */
  async has(ids: readonly Id[], options: CallOptions = {}): Promise<boolean[]> {
    return this.call("has", ids, known(options, CALL, "has"));
  }

  /** Take in what others have committed since. */
  async refresh(options: CallOptions = {}): Promise<void> {
    return this.call("refresh", undefined, known(options, CALL, "refresh"));
  }

  /** What is stored and what protects it. */
  async info(options: CallOptions = {}): Promise<CollectionInfo> {
    return this.call("info", undefined, known(options, CALL, "info"));
  }

  /** 24 characters for two people to compare, aloud if need be: the number and the name of the state that this client sees, which the
   * collection's owner authenticated. Where they are equal, both see the same collection and the same history of it. */
  async checkpoint(options: CallOptions = {}): Promise<string> {
    return this.call("checkpoint", undefined, known(options, CALL, "checkpoint"));
  }

  /** That the history of the collection has the state of this checkpoint, which somebody else saw: the present one, or one of the 256 before
   * it. Rejects with RollbackDetected where it does not, or where too many came since to tell. */
  async expect(checkpoint: string, options: CallOptions = {}): Promise<void> {
    return this.call("expect", checkpoint, known(options, CALL, "expect"));
  }

  /** What one question costs, in rows and bytes, and what it shows the server; `text` of it is for people. */
  async explain(options: CallOptions = {}): Promise<Explanation> {
    return this.call("explain", undefined, known(options, CALL, "explain"));
  }

  protected call<T>(method: string, argument: unknown, options: CallOptions): Promise<T> {
    return this.engine.call(this.handle, method, [argument], callOptions(options.signal, options.onProgress));
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
