/** Collection: ids, vectors, metadata and questions enter; sealed commits and ranked answers leave. Runs in the Worker, on the key owner's
 * side. */

import { CiphervecError, InvalidInput } from "../errors.js";
import type { Call } from "../http/session.js";
import {
  countOfThings,
  distinct,
  type Flat,
  finite,
  idsOf,
  METRICS,
  type Rows,
  rowsOf,
  sameLength,
} from "../ingest/arrays.js";
import { hex, unhex } from "../ingest/bytes.js";
import { changed, changesOf, recordOf } from "../ingest/records.js";
import { rowFilter } from "../ingest/where.js";
import type { Filter } from "../native.js";
import type { Audience, GetPart, GetResult, Id, Metric, QueryPart, QueryResult } from "../types.js";
import { batchOf, type GivenRows, newBatch } from "./batch.js";
import { centerOf } from "./centers.js";
import { WRAP } from "./change.js";
import { remove, write } from "./changes.js";
import { explain, matching } from "./filtering.js";
import { QUERIES_PER_KEY } from "./query-keys.js";
import { readPayloads, readRecords, readVectors, withStored } from "./reading.js";
import { type Matches, search } from "./search.js";
import type { Segments } from "./segments.js";

const GET_PARTS: readonly GetPart[] = ["metadatas", "documents", "embeddings"];
const QUERY_PARTS: readonly QueryPart[] = ["distances", "scores", ...GET_PARTS];

/** What `get` is asked, as it crosses from the page. */
export interface GetQuestion {
  ids?: unknown;
  where?: unknown;
  whereDocument?: unknown;
  include?: readonly string[] | undefined;
  limit?: number | undefined;
  offset?: number | undefined;
  audience?: Audience | undefined;
}

/** What `query` is asked. */
export interface QueryQuestion {
  queryEmbeddings: Flat;
  nResults?: number | undefined;
  where?: unknown;
  whereDocument?: unknown;
  ids?: unknown;
  within?: number | undefined;
  include?: readonly string[] | undefined;
  skipQuarantined?: boolean | undefined;
  audience?: Audience | undefined;
}

/** What a collection is. */
export interface CollectionFacts {
  name: string;
  dimension: number;
  metric: string;
  mode: string;
  precision: string;
  scheme: string;
  filterable: string[];
  originals: boolean;
}

/** Every public method runs alone, but for the time that a query is on its way. */
export class CollectionEngine {
  readonly #segments: Segments;
  #closed = "";

  constructor(segments: Segments) {
    this.#segments = segments;
  }

  facts(): CollectionFacts {
    const { spec, filterable, originals } = this.#segments.description;
    const { collection, dimension, metric, mode, precision, scheme } = spec;
    return {
      name: collection,
      dimension,
      metric,
      mode,
      precision,
      scheme,
      filterable: [...filterable],
      originals,
    };
  }

  get segments(): Segments {
    return this.#segments;
  }

  /** Seal and store new rows; their ids. */
  add(given: GivenRows, call: Call): Promise<Id[]> {
    return this.#alone(call, async (segments) => {
      const batch = batchOf(segments.native, given, this.#dimension, this.#metric);
      await segments.inTurn(async () => {
        segments.refuseKnown(batch.ids);
        await write(segments, batch, [], call);
      }, call);
      return batch.ids;
    });
  }

  /** As `add`, but a row whose id is here is replaced. */
  upsert(given: GivenRows, call: Call): Promise<Id[]> {
    return this.#alone(call, async (segments) => {
      const batch = batchOf(segments.native, given, this.#dimension, this.#metric);
      await segments.inTurn(async () => {
        const known = batch.ids.filter((id) => segments.directory.has(id));
        await write(segments, batch, known, call);
      }, call);
      return batch.ids;
    });
  }

  /** Change rows that are here. */
  update(given: GivenRows & { removeFields?: unknown; there?: boolean[] }, call: Call): Promise<void> {
    return this.#alone(call, async (segments) => {
      const ids = idsOf(given.ids);
      await segments.refresh(call);
      const changes = changesOf(ids.length, given.metadatas, given.documents);
      const gone = fieldList(given.removeFields);
      distinct(ids);
      const { embeddings } = given;
      const there = given.there ?? ids.map(() => embeddings !== undefined);
      sameLength(ids.length, there.length, "embeddings");
      const left = ids.filter((_, i) => !there[i]);
      const rows = left.length === ids.length ? null : this.#rows(embeddings as Flat, "embeddings");
      if (rows !== null) sameLength(ids.length - left.length, rows.count, "embeddings");
      await segments.inTurn(async () => {
        const old = await readPayloads(segments, ids);
        const vectors = await withStored(segments, ids, there, rows, call);
        const records = changes.map((change, i) =>
          changed(segments.native, old[i] as Uint8Array, change, gone),
        );
        const stay = <T>(of: T[]) => of.filter((_, i) => !there[i]);
        this.#sayStale(stay(old), stay(records));
        const batch = newBatch(ids, vectors.rows, records, vectors.original);
        await write(segments, batch, ids, call);
      }, call);
    });
  }

  /** Delete rows by id, by filter, or both; how many. */
  delete(
    given: { ids?: unknown; where?: unknown; whereDocument?: unknown; missingOk?: boolean | undefined },
    call: Call,
  ): Promise<number> {
    return this.#alone(call, async (segments) => {
      const filter = this.#filter(given);
      if (given.ids === undefined && filter === null)
        throw new InvalidInput(
          "delete() needs ids, where or whereDocument; to drop everything use client.deleteCollection.",
        );
      await segments.refresh(call);
      const names = given.ids === undefined ? null : [...new Set(idsOf(given.ids))];
      return segments.inTurn(async () => {
        let there = names;
        if (names !== null && given.missingOk) there = names.filter((id) => segments.directory.has(id));
        else if (names !== null) segments.places(names);
        const passing = await this.#select(there, filter);
        await remove(segments, passing, call);
        return passing.length;
      }, call);
    });
  }

  /** Rows by id, by filter, or all of them. */
  get(question: GetQuestion, call: Call): Promise<GetResult> {
    return this.#alone(call, async (segments) => {
      const parts = checkInclude(question.include ?? ["metadatas", "documents"], GET_PARTS);
      const audience = checkAudience(question.audience);
      const filter = this.#filter(question);
      const start = countOfThings(question.offset ?? 0, "offset", 0);
      const { limit } = question;
      const stop = limit === undefined ? Number.POSITIVE_INFINITY : start + countOfThings(limit, "limit", 0);
      await segments.refresh(call);
      const here = (ids: Id[]) => ids.filter((id) => segments.directory.has(id));
      const names = question.ids === undefined ? null : here(idsOf(question.ids));
      return segments.inTurn(async () => {
        const passing = await this.#select(names, filter, stop);
        const found = await this.#rowsOf(passing.slice(start, stop), parts, call);
        if (found.ownersOnly && audience === "others") this.#refuseOthers("unsealed vectors");
        return found;
      }, call);
    });
  }

  /** Rows stored and not deleted, as of the server's latest answer. */
  count(call: Call): Promise<number> {
    return this.#alone(call, async (segments) => segments.directory.length);
  }

  /** Which of these ids are here. */
  has(ids: unknown, call: Call): Promise<boolean[]> {
    return this.#alone(call, async (segments) => segments.locate(idsOf(ids)).map((place) => place !== null));
  }

  /** The rows closest to each of the queries. */
  query(question: QueryQuestion, call: Call): Promise<QueryResult> {
    return this.#alone(call, async (segments) => {
      const parts = checkInclude(question.include ?? ["distances", "scores"], QUERY_PARTS);
      const audience = checkAudience(question.audience);
      const noisy = ["sealed", "sealed-query"].includes(segments.description.spec.mode);
      if (noisy && audience === "others") this.#refuseOthers("results");
      const rows = this.#rows(question.queryEmbeddings, "queryEmbeddings");
      const filter = this.#filter(question);
      const { nResults } = question;
      const within = question.within === undefined ? null : finite(question.within, "within");
      const count =
        nResults === undefined ? (within === null ? 10 : null) : countOfThings(nResults, "nResults");
      const among = question.ids === undefined ? null : idsOf(question.ids);
      const wanted = GET_PARTS.filter((part) => (parts as string[]).includes(part));
      const { found, beside } = await segments.inTurn(async () => {
        const { skipQuarantined = false } = question;
        const found = await search(
          segments,
          { rows, count, within, where: filter, among, skipQuarantined },
          call,
        );
        const nothing = found.length > 0 && found.every(({ ids }) => ids.length === 0);
        if (filter !== null && within === null && among === null && nothing) await this.#sayWhy(filter);
        const beside: GetResult[] = [];
        for (const { ids } of found) beside.push(await this.#rowsOf(ids, wanted, call));
        return { found, beside };
      }, call);
      const part = <T>(name: QueryPart, of: (matches: Matches, rows: GetResult) => T) =>
        parts.includes(name) ? found.map((matches, i) => of(matches, beside[i] as GetResult)) : null;
      const own = noisy || found.some(({ exact }) => !exact) || beside.some(({ ownersOnly }) => ownersOnly);
      if (own && audience === "others") this.#refuseOthers("results");
      return {
        ids: found.map(({ ids }) => ids),
        distances: part("distances", ({ distances }) => distances),
        scores: part("scores", ({ scores }) => scores),
        metadatas: part("metadatas", (_, { metadatas }) => metadatas ?? []),
        documents: part("documents", (_, { documents }) => documents ?? []),
        embeddings: part("embeddings", (_, { embeddings }) => embeddings ?? []),
        include: parts,
        ownersOnly: own,
        checked: found.every(({ checked }) => checked),
      };
    });
  }

  /** Bring `count`, `has` and `info` up to date. */
  refresh(call: Call): Promise<void> {
    return this.#alone(call, (segments) => segments.refresh(call));
  }

  /** What two people compare to know that they see one history. */
  checkpoint(call: Call): Promise<string> {
    return this.#alone(call, async (segments) => {
      await segments.refresh(call);
      return segments.states.checkpoint();
    });
  }

  /** That the history of the collection has the state of this checkpoint. */
  expect(checkpoint: string, call: Call): Promise<void> {
    return this.#alone(call, async (segments) => {
      await segments.refresh(call);
      segments.states.expect(checkpoint);
    });
  }

  /** Use a segment again that is in quarantine. */
  release(segment: string, call: Call): Promise<void> {
    return this.#alone(call, (segments) => segments.inTurn(() => segments.release(segment, call), call));
  }

  /** The bytes of a card for somebody who may add rows and read none, and its fingerprint. */
  writerCard(writer: string, call: Call): Promise<{ bytes: Uint8Array; fingerprint: string }> {
    return this.#alone(call, async (segments) => {
      const { owner, description } = segments;
      const card = owner.writerCard(writer, [...description.filterable], centerOf(segments));
      const made = { bytes: card.toBytes(), fingerprint: card.fingerprint };
      card.free();
      return made;
    });
  }

  /** Have the server read and check every stored block. */
  verify(call: Call): Promise<{ files: number; bytes: number; strays: number }> {
    return this.#alone(call, ({ store }) => store.verify(call));
  }

  /** Have the server delete what no present state needs. */
  purge(call: Call): Promise<void> {
    return this.#alone(call, ({ store }) => store.purge(call));
  }

  /** What is stored and what protects it. */
  info(call: Call) {
    return this.#alone(call, async (segments) => {
      const { description, directory } = segments;
      const writers: { [name: string]: number } = {};
      const rows = segments.entries().map((segment) => {
        const origin = directory.origin(unhex(segment.id));
        const live = segment.rows - segment.deleted.length;
        if (origin?.kind === "writer")
          writers[origin.writer ?? ""] = (writers[origin.writer ?? ""] ?? 0) + live;
        return {
          id: segment.id,
          rows: segment.rows,
          deleted: segment.deleted.length,
          bytes: { ...segment.blobs },
          writer: WRAP in segment.blobs ? (origin?.writer ?? null) : null,
        };
      });
      const pin = segments.states.pin();
      return {
        ...this.facts(),
        rows: directory.length,
        keyId: description.keyId,
        epoch: description.epoch,
        queryKey: queryKey(segments),
        version: segments.store.version,
        authenticated: description.authenticated,
        state: pin === null ? null : { sequence: pin.sequence, lineage: pin.lineage },
        security: description.spec.security(),
        segments: rows,
        writers,
        appended: [...segments.appended],
        refused: Object.fromEntries(segments.reasons),
        quarantine: Object.fromEntries(segments.held),
        ignored: directory.aside().map(({ id, segmentId }) => ({ id, segment: hex(segmentId) })),
      };
    });
  }

  /** Let go of what it holds; `why` is told to whoever uses it afterwards. */
  async close(why = "closed"): Promise<void> {
    if (this.#closed !== "") return;
    this.#closed = why;
    await this.#segments.lock.run(async () => this.#segments.free());
  }

  async #alone<T>(call: Call, work: (segments: Segments) => Promise<T>): Promise<T> {
    return this.#segments.lock.run(async () => {
      if (this.#closed !== "")
        throw new CiphervecError(`this collection was ${this.#closed}; get it again from the client.`);
      call.signal?.throwIfAborted();
      this.#segments.call = call;
      await this.#segments.settle(call);
      return work(this.#segments);
    });
  }

  get #dimension(): number {
    return this.#segments.description.spec.dimension;
  }

  get #metric(): Metric {
    return this.#segments.description.spec.metric as Metric;
  }

  #rows(flat: Flat, what: string): Rows {
    return rowsOf(flat, this.#dimension, this.#metric, what);
  }

  #filter({ where, whereDocument }: { where?: unknown; whereDocument?: unknown }): Filter | null {
    const { native, description } = this.#segments;
    return rowFilter(native, where, whereDocument, description.filterable);
  }

  /** Throws InvalidInput, with what to do instead. */
  #refuseOthers(what: string): never {
    const { collection, mode } = this.#segments.description.spec;
    throw new InvalidInput(
      `${what} of "${collection}", mode "${mode}", are the key owner's own: they carry noise of the key, which this client can't hide. In ` +
        'mode "sealed" the Python package answers others, with noise that hides it; results of mode "sealed-index" are for anybody, once ' +
        "optimize() has sealed segments of release 0.1 again.",
    );
  }

  /** Warn about rows whose document changes and whose vector does not. */
  #sayStale(old: Uint8Array[], records: Uint8Array[]): void {
    const stale = old.map(recordOf).filter(({ document }, i) => {
      return document !== null && document !== recordOf(records[i] as Uint8Array).document;
    }).length;
    if (stale > 0)
      this.#segments.warn(
        `${stale} ${stale === 1 ? "row" : "rows"} got another document and kept the vector of the old one: searches find the new text by ` +
          "the meaning of the old. Give embeddings with the documents.",
      );
  }

  async #select(names: Id[] | null, filter: Filter | null, most = Number.POSITIVE_INFINITY): Promise<Id[]> {
    if (filter === null) return names ?? this.#segments.directory.ids();
    const passing = await matching(
      this.#segments,
      filter,
      true,
      names === null ? most : Number.POSITIVE_INFINITY,
    );
    if (passing.length === 0) await this.#sayWhy(filter);
    if (names === null) return passing;
    const allowed = new Set(passing);
    return names.filter((name) => allowed.has(name));
  }

  /** The parts of these rows. */
  async #rowsOf(ids: Id[], parts: GetPart[], call: Call): Promise<GetResult> {
    const segments = this.#segments;
    const vectors = parts.includes("embeddings") ? await readVectors(segments, ids, call) : null;
    const beside = parts.some((part) => part !== "embeddings") ? await readRecords(segments, ids) : [];
    const outdated = () =>
      segments.directory.segmentIds().some((id) => segments.directory.exactness(id) === "outdated");
    const bits = METRICS[this.#metric].bits;
    const { dimension } = segments.description.spec;
    return {
      ids,
      metadatas: parts.includes("metadatas") ? beside.map(({ metadata }) => metadata) : null,
      documents: parts.includes("documents") ? beside.map(({ document }) => document) : null,
      embeddings: vectors && ids.map((_, i) => vectors.rows.data.slice(i * dimension, (i + 1) * dimension)),
      include: parts,
      ownersOnly:
        !bits &&
        (vectors?.original.some((one) => !one) ?? false) &&
        (segments.description.spec.mode === "sealed" || outdated()),
    };
  }

  /** Warn about a filter that no row can pass as the collection is, which is mostly a slip. */
  async #sayWhy(where: Filter): Promise<void> {
    const why = this.#segments.directory.length > 0 ? await explain(this.#segments, where) : "";
    if (why !== "") this.#segments.warn(`no row of "${this.facts().name}" passes the filter: ${why}.`);
  }
}

/** Who will read it. Throws InvalidInput for another name than the two. */
function checkAudience(audience: unknown): Audience | null {
  if (audience === undefined || audience === null) return null;
  if (audience === "owner" || audience === "others") return audience;
  throw new InvalidInput(`audience must be "owner" or "others", got ${JSON.stringify(audience)}.`);
}

/** The parts asked for, in their order. Throws InvalidInput naming the ones there are. `ids` always come. */
function checkInclude<T extends string>(include: unknown, known: readonly T[]): T[] {
  if (!Array.isArray(include))
    throw new InvalidInput(`include must be a list of parts: ${known.join(", ")}.`);
  for (const name of include)
    if (name !== "ids" && !known.includes(name))
      throw new InvalidInput(`include has ${JSON.stringify(name)}; known parts are ${known.join(", ")}.`);
  return known.filter((name) => include.includes(name));
}

function fieldList(value: unknown): string[] {
  const fields = value ?? [];
  if (!Array.isArray(fields) || !fields.every((one) => typeof one === "string"))
    throw new InvalidInput("removeFields must be a list of field names.");
  return fields;
}

/** What queries are asked under; null where they are plain. */
function queryKey({ description, queryKeys }: Segments) {
  if (!["sealed", "sealed-query"].includes(description.spec.mode)) return null;
  const { epoch, used, refused, askedOutside } = queryKeys;
  return { session: epoch, queries: refused ? askedOutside : used, most: QUERIES_PER_KEY, refused };
}
