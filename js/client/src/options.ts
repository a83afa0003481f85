/**
 * Options: what a caller passes to a method, and the names that it may have. A name that is not known is refused, as Python
 * refuses an argument: a `filter:` that nobody reads would return rows that the caller meant to leave out.
 */

import { CALL, NAMED, type Names } from "./known.js";
import type {
  Audience,
  CallOptions,
  Clusters,
  Fetch,
  Fusion,
  GetPart,
  Id,
  Metadata,
  Metric,
  Mode,
  Muvera,
  OneOrMany,
  OnZero,
  Precision,
  QueryPart,
  Role,
  Sparse,
  SparseVector,
  Vector,
  Vectors,
  Where,
  WhereDocument,
} from "./types.js";

/** Which collection to open. */
export interface GetCollectionOptions extends CallOptions {
  name: string;
  /** Take one in mode `open` although there are keys. */
  allowOpen?: boolean;
  /** A checkpoint that its history must have. */
  expect?: string;
}

/** What a collection is made with. */
export interface CreateOptions extends CallOptions {
  /** 1 to 128 of `A-Z a-z 0-9 . _ -`. */
  name: string;
  /** Numbers per vector, 1 to 16,384. Left out with `multi`, which has it. */
  dimension?: number;
  /** `cosine` unless given. */
  metric?: Metric;
  /** What the server sees; `sealed` unless given. */
  mode?: Mode;
  precision?: Precision;
  /** Metadata fields on which the server may test equality; it learns which rows have equal values there. */
  filterable?: readonly string[];
  /** Keep each vector as it is put in, sealed like a document, for `get` to return it to the last bit; so it is unless false. */
  originals?: boolean;
  /** Rank rows by the words of their documents too, or by sparse vectors, for `query({ fusion })`. They are sealed beside the rows. */
  sparse?: Sparse;
  /** Rows have many vectors each, which MaxSim ranks; under metric `ip`. */
  multi?: Muvera;
  /** Ask about a few clusters of near rows instead of all of them, which shows the server their names; see `Collection.recluster`. */
  routing?: Clusters;
}

/** Rows to seal: one, or lists of the same length. */
export interface SealOptions extends CallOptions {
  /** Left out, random ones are made up. */
  ids?: OneOrMany<Id>;
  embeddings: Vectors;
  metadatas?: OneOrMany<Metadata | null>;
  documents?: OneOrMany<string | null>;
}

/** Sparse vectors of rows, in a collection made with `sparse: "vectors"`. */
interface SparseRows {
  /** An entry a row, null where it has none; of rows that are changed, those stay that have null here. */
  sparseEmbeddings?: OneOrMany<SparseVector | null>;
}

/** Matrices of rows, in a collection made with `multi`. */
interface MultiRows {
  /** In place of embeddings, the vectors of each row; of rows that are changed, those stay that have null here. */
  multiEmbeddings?: readonly (Vectors | null)[];
}

/** Rows to store. */
export interface AddOptions extends Omit<SealOptions, "embeddings">, SparseRows, MultiRows {
  embeddings?: Vectors;
  /** Of rows whose vector is zero, where the metric compares directions alone: refuse all rows, unless given, or leave those out with a warning. */
  onZero?: OnZero;
}

/** Changes of rows that are here. */
export interface UpdateOptions extends CallOptions, SparseRows, MultiRows {
  ids: OneOrMany<Id>;
  /** Left out, vectors stay; so do those of rows that have null here. */
  embeddings?: Vectors | readonly (Vector | null)[];
  /** Fields that are laid over those that are there. */
  metadatas?: OneOrMany<Metadata | null>;
  documents?: OneOrMany<string | null>;
  /** Fields that go. */
  removeFields?: readonly string[];
}

/** Rows of which some may be here. */
export interface MergeOptions extends CallOptions, SparseRows, MultiRows {
  ids: OneOrMany<Id>;
  /** Those of rows that have null here, and of all where they are left out, stay. */
  embeddings?: Vectors | readonly (Vector | null)[];
  /** Fields that are laid over those that are there; a null takes its field away. */
  metadatas?: OneOrMany<Metadata | null>;
  documents?: OneOrMany<string | null>;
  /** What becomes of a row that is here: `merge` unless given; `keep` leaves it alone. */
  known?: "merge" | "keep";
  /** What becomes of a row that is not here: `add` unless given. */
  unknown?: "add" | "skip";
}

export interface PrefetchOptions extends CallOptions {
  /** 8 unless given. */
  queries?: number;
}

export interface ReclusterOptions extends CallOptions {
  /** What recall is measured with, where you know what will be asked; a sample of the rows unless given. */
  questions?: Vectors;
}

/** Which rows. */
export interface Selection extends CallOptions {
  ids?: OneOrMany<Id>;
  where?: Where;
  whereDocument?: WhereDocument;
}

export interface DeleteOptions extends Selection {
  /** That an id is not here is no error. */
  missingOk?: boolean;
}

export interface GetOptions extends Selection {
  /** Metadata and documents, unless given. */
  include?: readonly (GetPart | "ids")[];
  limit?: number;
  offset?: number;
  /** Who will read it, see `QueryOptions`. */
  audience?: Audience;
  /** What the server may see of which rows they are, see `QueryOptions`. Without ids or a filter they come with their segments unless given. */
  fetch?: Fetch;
}

export interface QueryOptions extends Selection {
  /** Left out with `fusion: "sparse"` alone. */
  queryEmbeddings?: Vectors;
  /** In a collection made with `multi`, in place of them: the vectors of each query. Scores are MaxSim's then. */
  queryMultiEmbeddings?: readonly Vectors[];
  /** How many of the closest rows MaxSim ranks for each query: 100 unless given. */
  candidates?: number;
  /** Hybrid search, in a collection made with `sparse`: one order of that by vectors and that by words or sparse vectors. Scores are those of
   * the fusion, and distances minus these. It goes with filters, ids and `audience`, not with `within`. The words of all rows are read once
   * and kept in memory; what is asked of the server is the vectors. */
  fusion?: Fusion;
  /** With `fusion`: a text for each query, whose words are asked. */
  queryTexts?: OneOrMany<string>;
  /** With `fusion`, instead of them: a sparse vector for each query. */
  sparse?: OneOrMany<SparseVector>;
  /** 10 unless given. */
  nResults?: number;
  /** Keep the rows at a distance of at most this, all of them unless `nResults` is given too. */
  within?: number;
  /** Distances and scores, unless given. `fetch` says what reading the others shows the server. */
  include?: readonly (QueryPart | "ids")[];
  /** Ask about the others where segments failed a check before, with a warning, instead of rejecting with `Quarantined`. */
  skipQuarantined?: boolean;
  /**
   * Who will read it. Results that carry noise of the key (`ownersOnly`) are the key owner's own: JSON.stringify refuses them until
   * `"owner"` is named. `"others"` gives, in mode `sealed`, what anybody may see: hits are ranked here by their own vectors, where
   * all of these may be read: up to a megabyte, or what was read before. Elsewhere, and where `flooding` is named, scores carry noise that
   * hides the key's, and are counted in the client's storage, see `floodingPlan`. In `sealed-query` it is refused for them.
   */
  audience?: Audience;
  /** The standard deviation of that noise, as a cosine: 2^-12 to 2^-4. */
  flooding?: number;
  /**
   * What the server may see of the hits, where their metadata, documents or vectors are read: nothing (`"private"`, up to 100 rows at once),
   * which rows they are, which segments these are in, or that some are read (`"collection"`: the records of all, once). Unless given, in the
   * modes that hide queries, if rows are not routed: up to a megabyte all rows are read, else `"private"`, which rejects with InvalidInput
   * before anything is asked where the server does not offer it, or says that it takes a second or longer. In the others `"segments"`.
   */
  fetch?: Fetch;
}

export interface FloodingOptions extends CallOptions {
  /** The standard deviation of the noise, as a cosine: 2^-8 unless given. */
  flooding?: number;
}

export interface OptimizeOptions extends CallOptions {
  /** Seal every row again, with new noise. */
  reseal?: boolean;
  /** What answers travel over from now on: rows of modes `sealed` and `sealed-query` are packed for it. A gigabit a second unless given;
   * the token needs the verb admin. */
  network?: { megabits: number; latencyMs: number };
}

export interface AdoptOptions extends CallOptions {
  /** Let rows whose id was here before they came replace the others; they go unless given. */
  takeOver?: boolean;
}

export interface DiscardOptions extends CallOptions {
  /** Their ids, as `info` lists them. */
  segments: readonly string[];
}

/** How somebody is added. */
export interface AddMemberOptions extends CallOptions {
  /** `member` unless given. */
  role?: Role;
}

const ROWS = { ids: true, embeddings: true, metadatas: true, documents: true } as const;
const SELECTION: Names<Selection> = { ids: true, where: true, whereDocument: true, ...CALL };
export const SEAL: Names<SealOptions> = { ...ROWS, ...CALL };
export const ADD: Names<AddOptions> = {
  ...SEAL,
  sparseEmbeddings: true,
  multiEmbeddings: true,
  onZero: true,
};
export const OPTIMIZE: Names<OptimizeOptions> = { reseal: true, network: true, ...CALL };
export const ADD_MEMBER: Names<AddMemberOptions> = { role: true, ...CALL };
export const ADOPT: Names<AdoptOptions> = { takeOver: true, ...CALL };
export const DISCARD: Names<DiscardOptions> = { segments: true, ...CALL };
export const UPDATE: Names<UpdateOptions> = {
  ...ROWS,
  sparseEmbeddings: true,
  multiEmbeddings: true,
  removeFields: true,
  ...CALL,
};
export const MERGE: Names<MergeOptions> = {
  ...ROWS,
  sparseEmbeddings: true,
  multiEmbeddings: true,
  known: true,
  unknown: true,
  ...CALL,
};
export const FLOODING: Names<FloodingOptions> = { flooding: true, ...CALL };
export const PREFETCH: Names<PrefetchOptions> = { queries: true, ...CALL };
export const RECLUSTER: Names<ReclusterOptions> = { questions: true, ...CALL };
export const DELETE: Names<DeleteOptions> = { ...SELECTION, missingOk: true };
export const GET: Names<GetOptions> = {
  ...SELECTION,
  include: true,
  limit: true,
  offset: true,
  audience: true,
  fetch: true,
};
export const QUERY: Names<QueryOptions> = {
  ...SELECTION,
  queryEmbeddings: true,
  queryMultiEmbeddings: true,
  candidates: true,
  queryTexts: true,
  sparse: true,
  fusion: true,
  nResults: true,
  within: true,
  include: true,
  audience: true,
  flooding: true,
  skipQuarantined: true,
  fetch: true,
};

export const OPEN: Names<GetCollectionOptions> = { ...NAMED, allowOpen: true, expect: true };
export const CREATE: Names<CreateOptions> = {
  ...NAMED,
  dimension: true,
  metric: true,
  mode: true,
  precision: true,
  filterable: true,
  originals: true,
  routing: true,
  sparse: true,
  multi: true,
};
