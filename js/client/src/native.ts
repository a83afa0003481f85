/**
 * The native module as the rest of the package sees it: what the wasm built from crates/wasm gives. Runs in the Worker.
 *
 * The declarations beside the wasm are made by its build, which need not have run for types to be checked here; a test holds them
 * against these.
 */

import type { Id } from "./types.js";

/** What lies in the wasm's memory until it is freed, which wipes it. */
export interface Freed {
  free(): void;
}

export interface Keys extends Freed {
  readonly keyId: string;
  toFile(passphrase?: string, allowPlaintext?: boolean): Uint8Array;
  recoveryPhrase(): string;
  same(other: Keys): boolean;
}

export interface Identity extends Freed {
  readonly recipient: Recipient;
  toFile(passphrase?: string, allowPlaintext?: boolean): Uint8Array;
}

export interface Recipient extends Freed {
  readonly name: string;
  readonly fingerprint: string;
  toBytes(): Uint8Array;
}

export interface SharedKeys extends Freed {
  readonly keyId: string;
  readonly recipients: { name: string; fingerprint: string }[];
  open(identity: Identity): Keys;
  toBytes(): Uint8Array;
}

export interface IndexSpec extends Freed {
  readonly collection: string;
  readonly dimension: number;
  readonly metric: string;
  readonly mode: string;
  readonly precision: string;
  readonly scheme: string;
  readonly storedScheme: string;
  readonly incarnation?: Uint8Array | undefined;
  security(): unknown;
  toBytes(): Uint8Array;
  equals(other: IndexSpec): boolean;
}

export interface EvaluationKeys extends Freed {
  toBytes(): Uint8Array;
}

export interface SealedSegment extends Freed {
  readonly id: Uint8Array;
  readonly rows: number;
  readonly segment: Uint8Array;
  readonly sidecar: Uint8Array;
}

export interface SealedQuery extends Freed {
  readonly nbytes: number;
  readonly rows: number;
  toBytes(): Uint8Array;
  expectMatching(segmentIds: Uint8Array[], masks: Uint8Array[]): void;
}

export interface Place {
  segmentId: Uint8Array;
  row: number;
}

export interface SegmentDirectory extends Freed {
  readonly length: number;
  expectUnconsumed(consumed: Uint8Array): void;
  refuse(segmentId: Uint8Array): void;
  refused(): Uint8Array[];
  quarantine(segmentId: Uint8Array): void;
  release(segmentId: Uint8Array): boolean;
  quarantined(): Uint8Array[];
  exactness(segmentId: Uint8Array): "exact" | "noisy" | "outdated" | null;
  shadowed(): Place[];
  settle(): void;
  aside(): (Place & { id: Id })[];
  authenticate(): void;
  origin(segmentId: Uint8Array): { kind: "owner" | "previous" | "writer"; writer: string | null } | null;
  remove(segmentId: Uint8Array): boolean;
  markDeleted(id: Id): Place | null;
  locateMany(ids: Id[]): (Place | null)[];
  has(id: Id): boolean;
  ids(): Id[];
  segmentIds(): Uint8Array[];
  names(segmentId: Uint8Array): (Id | null)[] | null;
  norms(ids: Id[]): Float64Array;
  rows(): { segmentId: Uint8Array; ids: (Id | null)[] }[];
  centre(segmentId: Uint8Array): Float32Array;
  centres(): Float32Array[];
  centreInUse(): Float32Array;
}

export interface Network {
  bytesPerSecond: number;
  roundTrip: number;
}

/** One query's hits, the closest first. */
export interface Found {
  ids: Id[];
  scores: Float64Array;
}

export interface Answers {
  answers: Found[];
  exact: boolean;
  checked: boolean;
  disqualified: Uint8Array[];
}

/** What an owner says of a collection with each commit. */
export interface StateFacts {
  origin: Uint8Array;
  lineage: Uint8Array;
  begun: bigint;
  sequence: bigint;
  epoch: number;
  segments: number;
  segmentsDigest: Uint8Array;
  description: Uint8Array;
  evaluation: Uint8Array;
  keyPair: Uint8Array;
  ancestors: Uint8Array[];
  aside: { segmentId: Uint8Array; rows: ArrayLike<number> }[];
  routing: Uint8Array;
  consumed: Uint8Array;
  quarantine: Uint8Array[];
}

/** Who sealed a writer's segment, and when in milliseconds since 1970. */
export interface WrittenFacts {
  writer: string;
  time: bigint;
  segmentId: Uint8Array;
}

export type AnswerFormat = "first" | "short";

export interface Owner extends Freed {
  readonly keyId: string;
  readonly maskSeed: Uint8Array;
  evaluation(epoch: number): EvaluationKeys;
  holdEvaluation(data: Uint8Array): void;
  openKeys(sealed: Uint8Array): Keys;
  writerCard(writer: string, filterable: string[], centre?: Float32Array): WriterCard;
  knowsCard(card: WriterCard): boolean;
  openKeyPair(sealed: Uint8Array): void;
  publicKey(): EvaluationKeys;
  seal(
    vectors: Float32Array,
    ids: Id[],
    expected?: number,
    network?: Network,
    centre?: Float32Array,
  ): SealedSegment;
  addTo(
    directory: SegmentDirectory,
    segmentId: Uint8Array,
    sidecar: Uint8Array,
    deletedRows?: Uint32Array,
    wrap?: Uint8Array,
    standing?: "new" | "stored" | "appended",
    aside?: Uint32Array,
  ): void;
  written(segmentId: Uint8Array, wrap: Uint8Array): WrittenFacts;
  sealState(facts: StateFacts): Uint8Array;
  openState(sealed: Uint8Array): StateFacts & { key: string };
  unseal(segment: Uint8Array, directory: SegmentDirectory, rows?: Uint32Array): Float32Array;
  /** Does ahead what opening an answer to the query takes beside the answer itself. */
  prepare(query: SealedQuery, directory: SegmentDirectory): void;
  query(
    vectors: Float32Array,
    directory: SegmentDirectory,
    epoch?: number,
    tags?: Uint8Array[],
    segments?: Uint8Array[],
    format?: AnswerFormat,
    centre?: Float32Array,
  ): SealedQuery;
  open(
    query: SealedQuery,
    response: Uint8Array,
    directory: SegmentDirectory,
    count?: number,
    threshold?: number,
    allow?: Id[],
    newer?: Uint8Array[],
  ): Answers;
  sealRecords(segmentId: Uint8Array, ids: Id[], payloads: Uint8Array[]): RecordBatch;
  openRecord(
    segmentId: Uint8Array,
    records: RecordBatch,
    row: number,
    id: Id,
    directory: SegmentDirectory,
  ): Uint8Array;
  filterTag(field: string, value: Uint8Array): Uint8Array;
}

export interface AnswerOpener extends Freed {
  restart(): void;
  write(piece: Uint8Array): void;
  finish(): Answers;
}

export interface WriterCard extends Freed {
  readonly spec: IndexSpec;
  readonly writer: string;
  readonly keyId: string;
  readonly filterable: string[];
  readonly fingerprint: string;
  toBytes(): Uint8Array;
}

export interface Writer extends Freed {
  seal(
    vectors: Float32Array,
    ids: Id[],
    payloads: Uint8Array[],
    expected?: number,
  ): {
    id: Uint8Array;
    rows: number;
    segment: Uint8Array;
    sidecar: Uint8Array;
    records: Uint8Array | null;
    wrap: Uint8Array;
  };
}

export interface RecordBatch extends Freed {
  readonly length: number;
  toBytes(): Uint8Array;
}

export interface FilterTags extends Freed {
  readonly length: number;
  /** 1 where a row carries all of them, a byte a row. */
  matches(allOf: Uint8Array[]): Uint8Array;
  toBytes(): Uint8Array;
}

export interface Filter extends Freed {
  readonly complete: boolean;
  matches(record: Uint8Array): boolean;
  tags(owner: Owner): Uint8Array[];
  /** A byte a row, 1 where it may pass; and one more, 1 where that is all there is to test. */
  bound(owner: Owner, tags: FilterTags, rows: number): Uint8Array;
}

export interface FieldKinds extends Freed {
  add(records: Uint8Array[]): void;
  whyNone(filter: Filter): string;
}

/** The module. */
export interface Native {
  version(): string;
  queryVersion(): number;
  backend(): string;
  blake3(data: Uint8Array): Uint8Array;
  stateLeaf(facts: {
    segmentId: Uint8Array;
    rows: number;
    deleted: ArrayLike<number>;
    blobs: string[];
    digests: Record<string, Uint8Array>;
  }): Uint8Array;
  stateDigest(leaves: Uint8Array): Uint8Array;
  stateName(sealed: Uint8Array): Uint8Array;
  stateCheckpoint(sequence: bigint, name: Uint8Array): string;
  readCheckpoint(text: string): { sequence: bigint; name: Uint8Array } | null;
  consumedAfter(before: Uint8Array, written: readonly WrittenFacts[]): Uint8Array;
  Keys: {
    generate(): Keys;
    fromMaster(master: Uint8Array): Keys;
    fromFile(data: Uint8Array, passphrase?: string): Keys;
    fromRecoveryPhrase(words: string): Keys;
  };
  Identity: { generate(name: string): Identity; fromFile(data: Uint8Array, passphrase?: string): Identity };
  Recipient: { fromBytes(data: Uint8Array): Recipient };
  SharedKeys: {
    seal(keys: Keys, recipients: Uint8Array[]): SharedKeys;
    fromBytes(data: Uint8Array): SharedKeys;
  };
  IndexSpec: {
    new (
      collection: string,
      dimension: number,
      metric?: string,
      mode?: string,
      precision?: string,
      scheme?: string,
      bits?: number,
      incarnation?: Uint8Array,
    ): IndexSpec;
    fromBytes(data: Uint8Array): IndexSpec;
  };
  Owner: {
    new (keys: Keys, spec: IndexSpec, maskSeed?: Uint8Array): Owner;
    withPrevious(keys: Keys, spec: IndexSpec, maskSeed: Uint8Array | undefined, previous: Keys): Owner;
  };
  SegmentDirectory: new () => SegmentDirectory;
  AnswerOpener: new (
    owner: Owner,
    query: SealedQuery,
    directory: SegmentDirectory,
    count?: number,
    threshold?: number,
    allow?: Id[],
  ) => AnswerOpener;
  WriterCard: { fromBytes(data: Uint8Array): WriterCard };
  Writer: new (card: WriterCard) => Writer;
  RecordBatch: { fromBytes(data: Uint8Array): RecordBatch };
  mergeRecord(
    record: Uint8Array,
    metadata: string | undefined,
    document: string | undefined,
    removed: string[],
  ): Uint8Array;
  recordTags(owner: Owner, filterable: string[], record: Uint8Array): Uint8Array[];
  Filter: new (metadata: string | undefined, document: string | undefined, filterable: string[]) => Filter;
  FieldKinds: new () => FieldKinds;
  FilterTags: { new (rows: Uint8Array[][]): FilterTags; fromBytes(data: Uint8Array): FilterTags };
}

/** What a server says of its tables. */
export interface LookupFacts {
  strategy: string;
  pooling: string;
  limit: number;
  tables: number;
  rows: number;
  columns: number;
  padding: boolean;
  errorBound: number;
}

export interface LookupClient extends Freed {
  readonly keyId: string;
  facts(): LookupFacts;
  keys(): Uint8Array | undefined;
  query(indices: Int32Array, offsets: Uint32Array): Uint8Array;
  decode(answer: Uint8Array): Float64Array;
  toFile(passphrase?: string, allowPlaintext?: boolean): Uint8Array;
}

/** The module of private lookup, apart from the other so that who searches loads none of it. */
export interface LookupNative {
  LookupClient: {
    generate(description: Uint8Array): LookupClient;
    fromFile(data: Uint8Array, passphrase?: string): LookupClient;
  };
}
