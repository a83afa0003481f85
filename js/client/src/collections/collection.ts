/** A collection, as the page calls it: values of JavaScript become typed arrays and JSON for the core, and back. In the Worker. */

import { CiphervecError, InvalidInput } from "../errors.js";
import { type Call, under, type World } from "../host.js";
import {
  countOfThings,
  distinct,
  type Flat,
  finite,
  idsOf,
  type Rows,
  rowsOf,
  sameLength,
} from "../ingest/arrays.js";
import { hybridOf, sparseKind } from "../ingest/hybrid.js";
import { parse } from "../ingest/json.js";
import { tokensOf } from "../ingest/multi.js";
import { changesOf } from "../ingest/records.js";
import { filterText } from "../ingest/where.js";
import { nearest } from "../known.js";
import type {
  CollectionFacts,
  Host,
  Keys,
  Native,
  NativeCollection,
  NativeListed,
  NativeMembers,
  NativeRows,
  NativeSelection,
  NativeTokens,
} from "../native.js";
import type {
  Audience,
  Clustered,
  Clusters,
  Explanation,
  Fetch,
  FloodingPlan,
  GetPart,
  GetResult,
  Id,
  Metadata,
  Metric,
  Mode,
  Muvera,
  Precision,
  PrivateFetch,
  QueryPart,
  QueryResult,
  Sparse,
} from "../types.js";
import { batchOf, type GivenRows, manyOf, sparseOf } from "./batch.js";

export type { CollectionFacts } from "../native.js";

const GET_PARTS: readonly GetPart[] = [
  "metadatas",
  "documents",
  "embeddings",
  "multiEmbeddings",
  "sparseEmbeddings",
];
const QUERY_PARTS: readonly QueryPart[] = ["distances", "scores", ...GET_PARTS];

interface Which {
  ids?: unknown;
  where?: unknown;
  whereDocument?: unknown;
}

/** What a caller chooses. */
export interface Choices {
  name: string;
  dimension?: number | undefined;
  metric?: Metric | undefined;
  mode?: Mode | undefined;
  precision?: Precision | undefined;
  filterable?: readonly string[] | undefined;
  originals?: boolean | undefined;
  routing?: Clusters | undefined;
  sparse?: Sparse | undefined;
  multi?: Muvera | undefined;
}

/** What `get` is asked, as it crosses from the page. */
export interface GetQuestion extends Which {
  include?: readonly string[] | undefined;
  limit?: number | undefined;
  offset?: number | undefined;
  audience?: Audience | undefined;
  fetch?: Fetch | undefined;
}

/** What `query` is asked. */
export interface QueryQuestion extends Which {
  queryEmbeddings?: Flat | undefined;
  queryMultiEmbeddings?: Flat[] | undefined;
  candidates?: number | undefined;
  queryTexts?: unknown;
  sparse?: unknown;
  fusion?: unknown;
  nResults?: number | undefined;
  within?: number | undefined;
  include?: readonly string[] | undefined;
  skipQuarantined?: boolean | undefined;
  audience?: Audience | undefined;
  flooding?: number | undefined;
  fetch?: Fetch | undefined;
}

/** Rows of which `there` says which have a vector, where not all of them have one or none. */
type Some = GivenRows & { there?: boolean[] };

export class CollectionEngine {
  readonly #native: NativeCollection;
  readonly #module: Pick<Native, "Members">;
  #members: NativeMembers | null = null;
  readonly #world: World;
  readonly #facts: CollectionFacts;
  #closed = "";

  constructor(native: NativeCollection, module: Pick<Native, "Members">, world: World) {
    this.#native = native;
    this.#module = module;
    this.#world = world;
    this.#facts = native.facts();
  }

  facts(): CollectionFacts {
    return this.#facts;
  }

  add(given: GivenRows, call: Call): Promise<Id[]> {
    const rows = this.#batch(given);
    return this.#under(call, (host) => this.#native.add(host, rows));
  }

  upsert(given: GivenRows, call: Call): Promise<Id[]> {
    const rows = this.#batch(given);
    return this.#under(call, (host) => this.#native.upsert(host, rows));
  }

  update(given: Some & { removeFields?: unknown }, call: Call): Promise<void> {
    const removeFields = textList(given.removeFields ?? [], "removeFields must be a list of field names.");
    const rows = this.#some(given);
    distinct(rows.ids);
    return this.#under(call, (host) => this.#native.update(host, { ...rows, removeFields }));
  }

  merge(given: Some & { known?: unknown; unknown?: unknown }, call: Call): Promise<number> {
    const { known = "merge", unknown = "add" } = given;
    const [keep, skip] = [known === "keep", unknown === "skip"];
    if ((!keep && known !== "merge") || (!skip && unknown !== "add"))
      throw new InvalidInput(
        `known is "merge" or "keep" and unknown "add" or "skip", got ${JSON.stringify(known)} and ${JSON.stringify(unknown)}.`,
      );
    const rows = this.#some(given);
    return this.#under(call, (host) => this.#native.merge(host, { ...rows, keep, skip }));
  }

  delete(given: Which & { missingOk?: boolean | undefined }, call: Call): Promise<number> {
    const which = selection(given);
    if (which.ids === undefined && which.where === undefined && which.whereDocument === undefined)
      throw new InvalidInput(
        "delete() needs ids, where or whereDocument; to drop everything use client.deleteCollection.",
      );
    const { missingOk = false } = given;
    return this.#under(call, (host) => this.#native.delete(host, { ...which, missingOk }));
  }

  async get(question: GetQuestion, call: Call): Promise<GetResult> {
    const include = checkInclude(question.include ?? ["metadatas", "documents"], GET_PARTS);
    const { limit } = question;
    const asked = {
      ...selection(question),
      ...partsOf(include),
      offset: countOfThings(question.offset ?? 0, "offset", 0),
      ...(limit !== undefined && { limit: countOfThings(limit, "limit", 0) }),
      audience: checkAudience(question.audience),
      ...fetchOf(question.fetch),
    };
    const found = await this.#under(call, (host) => this.#native.get(host, asked));
    return { ...listed(found, include), include, ownersOnly: found.ownersOnly };
  }

  async query(question: QueryQuestion, call: Call): Promise<QueryResult> {
    const include = checkInclude(question.include ?? ["distances", "scores"], QUERY_PARTS);
    const { nResults, within, flooding, queryEmbeddings, skipQuarantined = false } = question;
    const { queryMultiEmbeddings, candidates } = question;
    if (queryEmbeddings !== undefined && queryMultiEmbeddings !== undefined)
      throw new InvalidInput("pass either queryEmbeddings or queryMultiEmbeddings, not both.");
    const hybrid = hybridOf(question);
    const scans = hybrid === undefined || hybrid.k !== undefined || hybrid.alpha !== undefined;
    if (scans !== ((queryEmbeddings ?? queryMultiEmbeddings) !== undefined))
      throw new InvalidInput(
        scans
          ? "query() needs queryEmbeddings, the vectors of the questions. Embed the texts first."
          : 'fusion "sparse" asks no vectors: leave queryEmbeddings out.',
      );
    const asked = {
      ...selection(question),
      ...partsOf(include),
      queryEmbeddings: queryEmbeddings
        ? this.#rows(queryEmbeddings, "queryEmbeddings").data
        : new Float32Array(0),
      ...(queryMultiEmbeddings && { queryTokens: this.#tokens(queryMultiEmbeddings) }),
      ...(candidates !== undefined && { candidates: countOfThings(candidates, "candidates") }),
      ...(hybrid && { hybrid }),
      ...(nResults !== undefined && { nResults: countOfThings(nResults, "nResults") }),
      ...(within !== undefined && { within: finite(within, "within") }),
      ...(flooding !== undefined && { flooding: finite(flooding, "flooding") }),
      skipQuarantined,
      audience: checkAudience(question.audience),
      ...fetchOf(question.fetch),
    };
    const {
      hits,
      bounds,
      ownersOnly,
      checked,
      flooding: flooded,
    } = await this.#under(call, (host) => this.#native.query(host, asked));
    const beside = hits.map((one) => listed(one, include as GetPart[]));
    const part = <T>(name: QueryPart, of: (i: number) => T) =>
      include.includes(name) ? hits.map((_, i) => of(i)) : null;
    return {
      ids: hits.map(({ ids }) => ids),
      distances: part("distances", (i) => Array.from(hits[i]?.distances ?? [])),
      scores: part("scores", (i) => Array.from(hits[i]?.scores ?? [])),
      metadatas: part("metadatas", (i) => beside[i]?.metadatas ?? []),
      documents: part("documents", (i) => beside[i]?.documents ?? []),
      embeddings: part("embeddings", (i) => beside[i]?.embeddings ?? []),
      ...(include.includes("multiEmbeddings") && {
        multiEmbeddings: beside.map((one) => one.multiEmbeddings ?? []),
      }),
      ...(include.includes("sparseEmbeddings") && {
        sparseEmbeddings: beside.map((one) => one.sparseEmbeddings ?? []),
      }),
      ...(bounds.length > 0 && { bounds: Array.from(bounds) }),
      include,
      ownersOnly,
      checked,
      flooding: flooded ?? null,
    };
  }

  floodingPlan(flooding: unknown, call: Call): Promise<FloodingPlan> {
    const deviation = finite(flooding, "flooding");
    return this.#under(call, (host) => this.#native.floodingPlan(host, deviation));
  }

  prefetch(queries: unknown, call: Call): Promise<number> {
    const count = countOfThings(queries, "queries");
    return this.#under(call, (host) => this.#native.prefetch(host, count));
  }

  privateFetch(call: Call): Promise<PrivateFetch> {
    return this.#under(call, (host) => this.#native.privateFetch(host));
  }

  resumePrivateFetch(call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.resumePrivateFetch(host));
  }

  recluster({ questions }: { questions?: Flat }, call: Call): Promise<Clustered> {
    const rows = questions && this.#rows(questions, "questions").data;
    return this.#under(call, (host) => this.#native.recluster(host, { ...(rows && { questions: rows }) }));
  }

  count(call: Call): Promise<number> {
    return this.#under(call, (host) => this.#native.count(host));
  }

  has(ids: unknown, call: Call): Promise<boolean[]> {
    const wanted = idsOf(ids);
    return this.#under(call, async (host) => Array.from(await this.#native.has(host, wanted), Boolean));
  }

  refresh(call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.refresh(host));
  }

  checkpoint(call: Call): Promise<string> {
    return this.#under(call, (host) => this.#native.checkpoint(host));
  }

  expect(checkpoint: string, call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.expect(host, String(checkpoint)));
  }

  release(segment: string, call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.release(host, String(segment)));
  }

  writerCard(writer: string, call: Call): Promise<{ bytes: Uint8Array; fingerprint: string }> {
    return this.#under(call, (host) => this.#native.writerCard(host, String(writer)));
  }

  verify(call: Call): Promise<{ files: number; bytes: number; strays: number }> {
    return this.#under(call, (host) => this.#native.verify(host));
  }

  purge(call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.purge(host));
  }

  async optimize({ reseal, network }: { reseal?: unknown; network?: unknown }, call: Call): Promise<void> {
    if (network !== undefined) {
      const { megabits, latencyMs } = networkOf(network);
      await this.#under(call, (host) => this.#native.packFor(host, megabits, latencyMs));
    }
    return this.#under(call, (host) => this.#native.optimize(host, Boolean(reseal)));
  }

  explain(call: Call): Promise<Explanation> {
    return this.#under(call, (host) => this.#native.explain(host));
  }

  upgrade(call: Call): Promise<boolean> {
    return this.#under(call, (host) => this.#native.upgrade(host));
  }

  extendFilterable(fields: unknown, call: Call): Promise<void> {
    const names = textList(fields, "fields must be a list of field names.");
    return this.#under(call, (host) => this.#native.extendFilterable(host, names));
  }

  setSparse(sparse: unknown, call: Call): Promise<void> {
    const kind = sparseKind(sparse);
    return this.#under(call, (host) => this.#native.setSparse(host, kind));
  }

  adopt({ takeOver }: { takeOver?: unknown }, call: Call): Promise<number> {
    return this.#under(call, (host) => this.#native.adopt(host, Boolean(takeOver)));
  }

  discard({ segments }: { segments: unknown }, call: Call): Promise<number> {
    const ids = textList(segments, "segments must be a list of their ids.");
    return this.#under(call, (host) => this.#native.discard(host, ids));
  }

  rotateKeys(keys: Keys, overlap: boolean, call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.rotateKeys(host, keys, overlap));
  }

  rotateQueryKey(call: Call): Promise<void> {
    return this.#under(call, (host) => this.#native.rotateQueryKey(host));
  }

  async info(call: Call) {
    const info = await this.#under(call, (host) => this.#native.info(host));
    return { ...this.#facts, ...info };
  }

  /** Throws InvalidInput unless it was chosen so. */
  checkChoices(choices: Choices, call: Call): Promise<void> {
    return this.#under(call, () => this.#native.checkChoices(choices));
  }

  /** Let go of what it holds; `why` is told to whoever uses it afterwards. */
  close(why = "closed"): void {
    if (this.#closed !== "") return;
    this.#closed = why;
    this.#members?.free();
    this.#native.free();
  }

  /** Something about the list of members. */
  members<T>(call: Call, work: (members: NativeMembers, host: Host) => Promise<T>): Promise<T> {
    return this.#under(call, (host) => {
      this.#members ??= this.#module.Members.of(this.#native);
      return work(this.#members, host);
    });
  }

  async #under<T>(call: Call, work: (host: Host) => Promise<T>): Promise<T> {
    if (this.#closed !== "")
      throw new CiphervecError(`this collection was ${this.#closed}; get it again from the client.`);
    return under(this.#world, call, work);
  }

  /** New rows, of one vector each or of many. */
  #batch(given: GivenRows): NativeRows {
    const { dimension, metric, multi } = this.#facts;
    if (given.multiEmbeddings !== undefined) return manyOf(given, multi?.width);
    return batchOf(given, dimension, metric as Metric);
  }

  #tokens(given: readonly (Flat | null)[]): NativeTokens[] {
    return tokensOf(given, this.#facts.multi?.width);
  }

  /** Rows of which some have no vector, as the core takes them. */
  #some({ embeddings, there, multiEmbeddings, ...given }: Some) {
    const ids = idsOf(given.ids);
    const changes = {
      ...changesOf(ids.length, given.metadatas, given.documents),
      ...sparseOf(given.sparseEmbeddings, ids.length),
    };
    if (multiEmbeddings !== undefined) {
      if (embeddings !== undefined)
        throw new InvalidInput("pass either embeddings or multiEmbeddings, not both.");
      sameLength(ids.length, multiEmbeddings.length, "multiEmbeddings");
      const given_to = multiEmbeddings.map((one) => one !== null);
      const multi = this.#tokens(multiEmbeddings);
      return { ids, embeddings: new Float32Array(0), multi, ...changes, there: given_to };
    }
    const rows = embeddings === undefined ? null : this.#rows(embeddings, "embeddings");
    const expected = there?.filter(Boolean).length ?? (rows === null ? 0 : ids.length);
    if (there !== undefined) sameLength(ids.length, there.length, "embeddings");
    if (rows !== null) sameLength(expected, rows.count, "embeddings");
    return { ids, embeddings: rows?.data ?? new Float32Array(0), ...changes, ...(there && { there }) };
  }

  #rows(flat: Flat, what: string): Rows {
    return rowsOf(flat, this.#facts.dimension, this.#facts.metric as Metric, what);
  }
}

/** Which rows, as the core takes it. Throws InvalidInput. */
function selection({ ids, where, whereDocument }: Which): NativeSelection {
  const [filter, document] = [filterText(where, "where"), filterText(whereDocument, "whereDocument")];
  return {
    ...(ids !== undefined && { ids: idsOf(ids) }),
    ...(filter !== undefined && { where: filter }),
    ...(document !== undefined && { whereDocument: document }),
  };
}

function partsOf(include: readonly string[]) {
  return {
    records: include.includes("metadatas") || include.includes("documents"),
    embeddings: include.includes("embeddings"),
    multi: include.includes("multiEmbeddings"),
    sparseVectors: include.includes("sparseEmbeddings"),
  };
}

function listed(
  { ids, metadatas, documents, embeddings, matrices, weights }: NativeListed,
  include: readonly GetPart[],
) {
  return {
    ids,
    metadatas:
      include.includes("metadatas") && metadatas
        ? metadatas.map((one) => (one === null ? null : (parse(one) as Metadata)))
        : null,
    documents: include.includes("documents") ? documents : null,
    embeddings: include.includes("embeddings") ? embeddings : null,
    ...(include.includes("multiEmbeddings") && { multiEmbeddings: (matrices ?? []).map(vectorsOf) }),
    ...(include.includes("sparseEmbeddings") && { sparseEmbeddings: weights ?? [] }),
  };
}

function vectorsOf({ width, values }: NativeTokens): Float32Array[] {
  return Array.from({ length: values.length / width }, (_, i) => values.subarray(i * width, (i + 1) * width));
}

/** Who will read it. Throws InvalidInput for another name than the two. */
function checkAudience(audience: unknown): Audience | null {
  if (audience === undefined || audience === null) return null;
  if (audience === "owner" || audience === "others") return audience;
  throw new InvalidInput(`audience must be "owner" or "others", got ${JSON.stringify(audience)}.`);
}

function fetchOf(fetch: unknown): { fetch?: Fetch } {
  if (fetch === undefined || fetch === null) return {};
  if (fetch === "private" || fetch === "rows" || fetch === "segments") return { fetch };
  throw new InvalidInput(`fetch must be "private", "rows" or "segments", got ${JSON.stringify(fetch)}.`);
}

/** The parts asked for, in their order. Throws InvalidInput naming the ones there are. `ids` always come. */
function checkInclude<T extends string>(include: unknown, known: readonly T[]): T[] {
  if (!Array.isArray(include))
    throw new InvalidInput(`include must be a list of parts: ${known.join(", ")}.`);
  for (const name of include)
    if (name !== "ids" && !known.includes(name)) {
      const near = typeof name === "string" ? nearest(name, known) : null;
      const meant = near === null ? "" : ` Did you mean "${near}"?`;
      throw new InvalidInput(
        `include has ${JSON.stringify(name)}; known parts are ${known.join(", ")}.${meant}`,
      );
    }
  return known.filter((name) => include.includes(name));
}

function networkOf(value: unknown): { megabits: number; latencyMs: number } {
  const { megabits, latencyMs } = (value ?? {}) as { megabits?: unknown; latencyMs?: unknown };
  if (typeof megabits !== "number" || typeof latencyMs !== "number")
    throw new InvalidInput("network must have megabits and latencyMs, both numbers.");
  return { megabits, latencyMs };
}

function textList(value: unknown, says: string): string[] {
  if (!Array.isArray(value) || !value.every((one) => typeof one === "string")) throw new InvalidInput(says);
  return value;
}
