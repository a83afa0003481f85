/** Types that callers write and read: ids, vectors, metadata, filters, results, progress. Both threads. */

/** A row's name: text of 1 to 65,535 bytes, or a whole number of 64 bits, a bigint beyond 2^53. `1` and `"1"` differ. */
export type Id = string | number | bigint;

/** A JSON value, and what is made one: a Date becomes its ISO 8601 text in UTC. */
export type Json = string | number | bigint | boolean | null | Date | Json[] | { [field: string]: Json };

/** What is kept beside a row: field names, not empty and without a leading `$`, to values. */
export type Metadata = { [field: string]: Json };

/** One vector. Under `hamming`: bits as booleans, 0/1 or -1/+1, or packed, eight a byte, in a Uint8Array. */
export type Vector =
  | readonly number[]
  | readonly boolean[]
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array;

/** One vector, several, or several end to end in one Float32Array. */
export type Vectors = Vector | readonly Vector[];

/** A list with an entry a row, or the entry of the only row. */
export type OneOrMany<T> = T | readonly T[];

export type Metric = "cosine" | "ip" | "l2" | "hamming";
/** What the server sees: neither vectors nor queries, the vectors, the queries, or everything. */
export type Mode = "sealed" | "sealed-query" | "sealed-index" | "open";
export type Precision = "standard" | "small" | "wide";

/** A vector of which most numbers are zero, such as of SPLADE: which are not, each once from 0 to 2^32 − 1, and what they are, not
 * below zero. */
export interface SparseVector {
  indices: readonly number[] | Uint32Array | Int32Array;
  values: readonly number[] | Float32Array;
}

/** What rows are ranked by beside their vectors: the words of their documents, by BM25 with Lucene's figures or others, or sparse vectors
 * that come with them. */
export type Sparse = "bm25" | { k1?: number; b?: number } | "vectors";

/**
 * That a row has many vectors of `width` numbers, as ColBERT and ColPali make them, and how they become the one that is sealed and searched,
 * of `dimension` numbers: see docs/late-interaction.md. What is left out is chosen.
 */
export interface Muvera {
  width: number;
  kSim?: number;
  repetitions?: number;
  dProj?: number;
  dimension?: number;
  seed?: number;
}

/**
 * How the order by vectors and that by words or sparse vectors are made one. `rrf` is the sum of 1 / (k + rank) over both, k 60 unless given;
 * `weighted` is `alpha` times the vectors' score and 1 − `alpha` times the words', each from 0 to 1, a half unless given; of each order the
 * first `window` are looked at, 100 unless given. `sparse` is by words or sparse vectors alone, and asks the server nothing. With `idf` the
 * indices of a sparse vector that is asked weigh more the fewer rows have them.
 */
export type Fusion =
  | "rrf"
  | "sparse"
  | { by: "rrf"; k?: number; window?: number; idf?: boolean }
  | { by: "weighted"; alpha?: number; window?: number; idf?: boolean }
  | { by: "sparse"; idf?: boolean };

type Scalar = string | number | bigint | boolean | null | Date;

/** What a field is compared with. */
export interface Condition {
  $eq?: Scalar;
  $ne?: Scalar;
  $gt?: string | number | bigint | Date;
  $gte?: string | number | bigint | Date;
  $lt?: string | number | bigint | Date;
  $lte?: string | number | bigint | Date;
  $in?: readonly Scalar[];
  $nin?: readonly Scalar[];
  $contains?: Scalar;
  $not_contains?: Scalar;
  $regex?: string;
  $not_regex?: string;
  $exists?: boolean;
  $not?: Condition | Scalar;
}

/** A filter on metadata, as the Python package takes it: fields to values or conditions, `$and`, `$or`, `$not`. */
export type Where = { [field: string]: Scalar | Condition | readonly Where[] | Where };

/** A filter on documents: texts or regular expressions that are in them or not, `$and`, `$or`. It is tested here, never by the server. */
export type WhereDocument =
  | { $contains: string }
  | { $not_contains: string }
  | { $regex: string }
  | { $not_regex: string }
  | { $and: readonly WhereDocument[] }
  | { $or: readonly WhereDocument[] };

/** What a server may see of the rows that are read: nothing, which they are, which segments they lie in, or that some are, because all records are read. */
export type Fetch = "private" | "rows" | "segments" | "collection";

/** What there is to know of private fetches of metadata and documents. */
export interface PrivateFetch {
  /** The table that rows are fetched from: rows in it, bytes of each, how many rows are much longer and have a table of their own,
   * bytes of each there, the bytes of both in the server's memory, and what one row, and ten, are predicted to take. Null where
   * there is none. */
  table: {
    rows: number;
    placeBytes: number;
    longRows: number;
    longPlaceBytes: number;
    tableBytes: number;
    seconds: number;
    secondsOfTen: number;
  } | null;
  /** Why there is none. */
  refused: string | null;
  /** How many failed a check: each may have told the server whether one row was among those asked for. */
  failures: number;
  /** Whether none is made any more, because one failed. */
  ended: boolean;
}

export type GetPart = "metadatas" | "documents" | "embeddings" | "multiEmbeddings" | "sparseEmbeddings";
/** What becomes of rows whose vector is zero, where the metric compares directions alone. */
export type OnZero = "refuse" | "skip";
/** Who will read a result. */
export type Audience = "owner" | "others";
export type QueryPart = "distances" | "scores" | GetPart;

/** Parallel lists, an entry a row; null where a part was not asked for. */
export interface GetResult {
  ids: Id[];
  metadatas: (Metadata | null)[] | null;
  documents: (string | null)[] | null;
  embeddings: Float32Array[] | null;
  /** The vectors of each row, where they were asked for: each number within half a 127th of its vector's largest. */
  multiEmbeddings?: Float32Array[][];
  /** The sparse vector of each row, as it was put in, null where it has none; where they were asked for. */
  sparseEmbeddings?: (SparseVector | null)[];
  include: GetPart[];
  /** Whether vectors among them carry noise of the encryption: such are the key owner's own, and shown to others give
   * the key away. JSON.stringify refuses them until `audience: "owner"` asks for them. */
  ownersOnly: boolean;
}

/** A list for each query, the closest first; null where a part was not asked for. */
export interface QueryResult {
  ids: Id[][];
  /** Lower is closer: 1 − cosine, 1 − inner product, squared Euclidean, or differing bits; minus the score of a fusion. */
  distances: number[][] | null;
  /** Higher is closer: cosine, inner product, or minus the distance; or that of a fusion. */
  scores: number[][] | null;
  metadatas: (Metadata | null)[][] | null;
  documents: (string | null)[][] | null;
  embeddings: Float32Array[][] | null;
  multiEmbeddings?: Float32Array[][][];
  sparseEmbeddings?: (SparseVector | null)[][];
  /** Of each query of many vectors, how far a score may be from MaxSim of the matrices that were put in. */
  bounds?: number[];
  include: QueryPart[];
  /** Whether scores carry noise of the encryption, as in modes `sealed` and `sealed-query`: such are the key owner's
   * own, and many of them shown to others give the key away. JSON.stringify refuses them until `audience: "owner"` asks for
   * them. */
  ownersOnly: boolean;
  /** Whether every block of rows that the answer rests on was checked: what the server answered is what those rows give to
   * the queries. What is not checked is as good as the server that answered. */
  checked: boolean;
  /** The standard deviation, as a cosine, of the noise that was added to every score for others. */
  flooding: number | null;
}

/**
 * That a query is to ask about a few clusters of near rows instead of all rows, which shows the server which. What is left out is chosen
 * when the rows are clustered. Filters and ids choose among the rows of these clusters, and no others are scanned for them.
 */
export interface Clusters {
  /** Of equally many rows. */
  count?: number | null;
  /** That are scanned for a query. */
  probes?: number | null;
  /** Beside these, so that the server can't tell which are the real ones; as many unless given. */
  decoys?: number | null;
  /** The share of the ten nearest rows that is to be found: 0.95 unless given. */
  recall?: number;
  /** Has to be said in mode `sealed-query`, where the server has the rows, and with them about the centroids. */
  serverLearnsQueries?: boolean;
  /**
   * That all clusters are scanned, and folded under encryption to those near the question: the server learns nothing of which they are.
   * There are no decoys then.
   */
  oblivious?: boolean;
}

/** What flooding allows, and what of it is left, as a client's storage counts it. */
export interface FloodingPlan {
  /** Of the noise in every score, as a cosine. */
  deviation: number;
  /** How many queries, each alone, may rank every live row in its life (0 where one is more than a query key hides); how many are left. */
  queries: number;
  queriesLeft: number;
  /** How many rows may be ranked under one query key, over all queries; the same under the present one. */
  rowsAnEpoch: number;
  rowsLeft: number;
}

/** What `recluster` made. */
export interface Clustered {
  /** 0: there are too few rows for any. */
  clusters: number;
  /** Of a cluster, padding included. */
  rowsEach: number;
  probes: number;
  decoys: number;
  /** The share of the ten nearest rows that so many probes find, measured on questions of the key holder's. */
  recall: number;
  /** The same for 1, 2, … probes; empty where the clusters were begun by an earlier call. */
  recalls: number[];
  /** Rows that stayed so, because their records are too long. */
  unrouted: number;
}

/** What is being done, as far as it got. `done` and `total` are rows while sealing, else bytes; `ms` what it took. */
export interface Progress {
  phase: "read" | "seal" | "upload" | "encrypt" | "server" | "download" | "open";
  done: number;
  total: number | null;
  ms?: number;
}

/** What every call that may take a while takes. */
export interface CallOptions {
  /** Ends the call: its requests are closed, and what was not committed is not. */
  signal?: AbortSignal;
  /** Told what is being done. */
  onProgress?: (progress: Progress) => void;
}

/** What one question costs and shows the server. */
export interface Explanation {
  /** Rows that count. */
  rows: number;
  /** Rows that a question scans: of clusters and decoys, padding included, and the unrouted ones. */
  rowsScanned: number;
  /** Rows that every question scans. */
  unrouted: number;
  routed: boolean;
  /** null where nothing is clustered. `recall` is the share of the ten nearest rows that the probes found when it was. */
  routing: {
    clusters: number;
    rowsEach: number;
    probes: number;
    decoys: number;
    padding: number;
    recall: number;
  } | null;
  /** Bytes of the latest lone question, of its answer, and of what of that had been fetched ahead; null before the first. */
  traffic: { up: number; down: number; ahead: number } | null;
  /** Questions whose half of the answer is here already, and what these take in memory. */
  tokens: number;
  tokenBytes: number;
  /** What a question shows the server beside sizes and times. */
  leak: string;
  /** All of it in a few lines. */
  text: string;
}

/** What a member may do: an owner changes the list and the keys, and commits; a member commits; a reader reads. */
export type Role = "owner" | "member" | "reader";

/** One who is on the list of a collection. */
export interface Member {
  /** As the person wrote it. */
  name: string;
  /** 32 hexadecimal digits that name the person's keys: compare them with their holder by another way. */
  fingerprint: string;
  role: Role;
}

/** One change of the list. */
export interface MemberChange {
  what: "founded" | "added" | "removed" | "rekeyed";
  /** Whom it is about; null where the keys alone were changed. */
  who: string | null;
  role: Role | null;
  /** Who signed it. */
  by: string;
  /** Seconds since 1970, by that person's word. */
  time: number;
}

/** A table, as a server lists it. */
export interface TableRow {
  name: string;
  records: number;
  recordBytes: number;
  sealed: boolean;
  bytes: number;
  /** By the server's word: the publisher's counts. */
  fingerprint: string;
}

/** What is public of a table. */
export interface TableInfo {
  records: number;
  /** The most bytes that a record may have. */
  recordBytes: number;
  /** Whether its owner sealed the records: the server reads neither them nor their keys. */
  sealed: boolean;
  /** 64 hexadecimal digits that stand for the table: who knows them can be shown no other record under a key. */
  fingerprint: string;
  /** Buckets that a key may be in. */
  places: number;
  /** Records of a bucket: a client sees the others of each that it asks for. */
  bucketRecords: number;
  buckets: number;
}
