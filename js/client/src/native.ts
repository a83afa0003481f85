/**
 * The native module as the rest of the package sees it: what the wasm built from crates/wasm gives. Runs in the Worker.
 *
 * The declarations beside the wasm are made by its build, which need not have run for types to be checked here; a test holds them
 * against these.
 */

import type { Answer, Request } from "./http/transport.js";
import type { PasskeyQuestion } from "./passkey.js";
import type {
  Clustered,
  Clusters,
  Explanation,
  Fetch,
  FloodingPlan,
  Id,
  Member,
  MemberChange,
  OnZero,
  PrivateFetch,
  Progress,
  TableInfo,
  TableRow,
} from "./types.js";

/** What lies in the wasm's memory until it is freed, which wipes it. */
export interface Freed {
  free(): void;
}

export interface Keys extends Freed {
  readonly keyId: string;
  toFile(passphrase?: string, allowPlaintext?: boolean): Uint8Array;
  toPasskeyFile(rp: string, credential: Uint8Array, salt: Uint8Array, output: Uint8Array): Uint8Array;
  recoveryPhrase(): string;
  forTenant(name: string): Keys;
  forCollection(name: string): Keys;
  same(other: Keys): boolean;
}

export interface Identity extends Freed {
  readonly recipient: Recipient;
  readonly memberCard: MemberCard;
  toFile(passphrase?: string, allowPlaintext?: boolean): Uint8Array;
}

export interface Recipient extends Freed {
  readonly name: string;
  readonly fingerprint: string;
  toBytes(): Uint8Array;
}

export interface MemberCard extends Freed {
  readonly name: string;
  readonly fingerprint: string;
  toBytes(): Uint8Array;
}

export interface NativeMembers extends Freed {
  list(host: Host): Promise<Member[]>;
  changes(host: Host): Promise<MemberChange[]>;
  found(host: Host, by: Identity): Promise<void>;
  add(host: Host, card: Uint8Array, role: string): Promise<Member>;
  appoint(host: Host, who: string, role: string): Promise<Member>;
  remove(host: Host, who: string): Promise<void>;
  reseal(host: Host): Promise<void>;
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

export interface WriterCard extends Freed {
  readonly spec: IndexSpec;
  readonly writer: string;
  readonly keyId: string;
  readonly filterable: string[];
  readonly fingerprint: string;
  toBytes(): Uint8Array;
}

/** What the core asks of the world, for one call. What it rejects with is `Lost`, a StorageError, or why the call was ended. */
export interface Host {
  send(request: Request, ms: number): Promise<Answer>;
  sleep(ms: number): Promise<void>;
  /** Milliseconds since some moment, and since 1970. */
  now(): number;
  clock(): number;
  get(name: string): Promise<Uint8Array | undefined>;
  set(name: string, data: Uint8Array): Promise<void>;
  delete(name: string): Promise<void>;
  list(prefix: string): Promise<{ name: string; bytes: number }[]>;
  lock(name: string): Promise<(() => void) | undefined>;
  readonly durable: boolean;
  warn(text: string): void;
  progress(phase: Progress["phase"], done: number, total: number | undefined, ms: number | undefined): void;
  meanwhile(work: () => void): void;
  readonly ended: boolean;
  /** Bytes of bodies until now. */
  readonly sent: number;
  readonly received: number;
  /** Whether there is a log, and what writes a line to it. */
  readonly logs: boolean;
  noted(line: string): void;
}

/** A file that a log is written to. */
export interface AuditPlace {
  /** All of it, or it throws and there is nothing of it. */
  append(line: Uint8Array): void;
  /** Milliseconds since some moment. */
  now(): number;
}

export interface NativeAuditLog extends Freed {
  append(line: string): void;
  sign(): void;
}

/** What a log holds already: it is gone on with after so many bytes. `open` ends it. */
export interface NativeAuditCheck extends Freed {
  take(piece: Uint8Array): void;
  length(): number;
  open(place: AuditPlace): NativeAuditLog;
}

/** A sparse vector, its indices ascending. */
export interface NativeSparse {
  indices: Uint32Array;
  values: Float32Array;
}

export type NativeSparseKind = "vectors" | { k1: number; b: number };

/** What is asked beside vectors: `k` for reciprocal ranks, `alpha` for a weighted sum, neither for words alone. */
export interface NativeHybrid {
  texts?: string[];
  vectors?: NativeSparse[];
  k?: number;
  alpha?: number;
  window: number;
  idf: boolean;
}

/** A matrix: vectors of `width` numbers, end to end. */
export interface NativeTokens {
  width: number;
  values: Float32Array;
}

export interface NativeMuvera {
  width: number;
  kSim?: number;
  repetitions?: number;
  dProj?: number;
  dimension?: number;
  seed?: number;
}

/** Rows: vectors end to end, metadata as JSON. */
export interface NativeRows {
  ids?: Id[];
  embeddings: Float32Array;
  metadatas?: (string | null)[];
  documents?: (string | null)[];
  sparse?: (NativeSparse | null)[];
  multi?: NativeTokens[];
  onZero?: OnZero;
}

/** Which rows; filters as JSON. */
export interface NativeSelection {
  ids?: Id[];
  where?: string;
  whereDocument?: string;
}

/** What is read of them. */
interface NativeParts {
  records: boolean;
  embeddings: boolean;
  multi: boolean;
  sparseVectors: boolean;
  audience: "owner" | "others" | null;
  fetch?: Fetch;
}

export interface NativeListed {
  ids: Id[];
  metadatas: (string | null)[] | null;
  documents: (string | null)[] | null;
  embeddings: Float32Array[] | null;
  matrices: NativeTokens[] | null;
  weights: (NativeSparse | null)[] | null;
}

/** One query's hits, the closest first. */
export interface NativeHits extends NativeListed {
  distances: Float64Array;
  scores: Float64Array;
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
  routing: Required<Clusters> | null;
  sparse: NativeSparseKind | null;
  multi: Required<NativeMuvera> | null;
}

export interface NativeCollection extends Freed {
  facts(): CollectionFacts;
  checkChoices(choices: object): Promise<void>;
  add(host: Host, rows: NativeRows): Promise<Id[]>;
  upsert(host: Host, rows: NativeRows): Promise<Id[]>;
  update(host: Host, rows: NativeRows & { there?: boolean[]; removeFields: string[] }): Promise<void>;
  merge(host: Host, rows: NativeRows & { there?: boolean[]; keep: boolean; skip: boolean }): Promise<number>;
  delete(host: Host, which: NativeSelection & { missingOk: boolean }): Promise<number>;
  get(
    host: Host,
    question: NativeSelection & NativeParts & { offset: number; limit?: number },
  ): Promise<NativeListed & { ownersOnly: boolean }>;
  query(
    host: Host,
    question: NativeSelection &
      NativeParts & {
        queryEmbeddings: Float32Array;
        queryTokens?: NativeTokens[];
        candidates?: number;
        nResults?: number;
        within?: number;
        hybrid?: NativeHybrid;
        skipQuarantined: boolean;
      },
  ): Promise<{
    hits: NativeHits[];
    bounds: Float64Array;
    ownersOnly: boolean;
    checked: boolean;
    flooding?: number;
  }>;
  floodingPlan(host: Host, flooding: number): Promise<FloodingPlan>;
  prefetch(host: Host, queries: number): Promise<number>;
  recluster(host: Host, given: { questions?: Float32Array }): Promise<Clustered>;
  count(host: Host): Promise<number>;
  has(host: Host, ids: Id[]): Promise<Uint8Array>;
  refresh(host: Host): Promise<void>;
  checkpoint(host: Host): Promise<string>;
  expect(host: Host, checkpoint: string): Promise<void>;
  release(host: Host, segment: string): Promise<void>;
  privateFetch(host: Host): Promise<PrivateFetch>;
  resumePrivateFetch(host: Host): Promise<void>;
  writerCard(host: Host, writer: string): Promise<{ bytes: Uint8Array; fingerprint: string }>;
  verify(host: Host): Promise<{ files: number; bytes: number; strays: number }>;
  purge(host: Host): Promise<void>;
  optimize(host: Host, reseal: boolean): Promise<void>;
  packFor(host: Host, megabits: number, latencyMs: number): Promise<void>;
  upgrade(host: Host): Promise<boolean>;
  explain(host: Host): Promise<Explanation>;
  extendFilterable(host: Host, fields: string[]): Promise<void>;
  setSparse(host: Host, sparse: NativeSparseKind): Promise<void>;
  adopt(host: Host, takeOver: boolean): Promise<number>;
  discard(host: Host, segments: string[]): Promise<number>;
  rotateKeys(host: Host, keys: Keys, overlap: boolean): Promise<void>;
  rotateQueryKey(host: Host): Promise<void>;
  info(host: Host): Promise<object>;
}

/** A table in memory: keys are texts, numbers, bigints or bytes. */
export interface NativeTable extends Freed {
  facts(): TableInfo;
  toBytes(): Uint8Array;
  get(key: unknown): Uint8Array | null;
  open(keys: Keys, key: unknown): Uint8Array | null;
  verify(): void;
}

export interface NativeRemoteTable extends Freed {
  facts(): TableInfo;
  get(host: Host, keys: unknown[], bound: number | undefined): Promise<(Uint8Array | null)[]>;
  failures(host: Host): Promise<{ failures: number; ended: boolean }>;
  resume(host: Host): Promise<void>;
}

export interface NativeClient extends Freed {
  readonly url: string;
  setToken(token: string): void;
  checkNew(choices: object): void;
  createCollection(host: Host, choices: object): Promise<NativeCollection>;
  getCollection(
    host: Host,
    name: string,
    allowOpen: boolean,
    expect: string | undefined,
  ): Promise<NativeCollection>;
  listCollections(host: Host): Promise<{ name: string; rows: number; bytes: number }[]>;
  deleteCollection(host: Host, name: string): Promise<void>;
  acceptRestore(host: Host, name: string): Promise<NativeCollection>;
  forget(host: Host, name: string): Promise<void>;
  getTable(host: Host, name: string, fingerprint: string | undefined): Promise<NativeRemoteTable>;
  putTable(host: Host, name: string, file: Uint8Array): Promise<TableRow>;
  listTables(host: Host): Promise<TableRow[]>;
  deleteTable(host: Host, name: string): Promise<void>;
}

export interface NativeWriter extends Freed {
  readonly card: WriterCard;
  seal(host: Host, rows: NativeRows): { bytes: Uint8Array; rows: number };
  send(
    host: Host,
    url: string,
    token: string | undefined,
    insecure: boolean,
    batch: Uint8Array,
  ): Promise<void>;
}

/** The module of a page that only searches. */
export type SearchNative = Pick<
  Native,
  | "version"
  | "backend"
  | "passkeyQuestion"
  | "Keys"
  | "Identity"
  | "Recipient"
  | "SharedKeys"
  | "MemberCard"
  | "Client"
>;

/** The module. */
export interface Native {
  version(): string;
  backend(): string;
  passkeyQuestion(data: Uint8Array): PasskeyQuestion | undefined;
  Keys: {
    generate(): Keys;
    fromMaster(master: Uint8Array): Keys;
    fromFile(data: Uint8Array, passphrase?: string): Keys;
    fromPasskeyFile(data: Uint8Array, output: Uint8Array): Keys;
    fromRecoveryPhrase(words: string): Keys;
  };
  Identity: { generate(name: string): Identity; fromFile(data: Uint8Array, passphrase?: string): Identity };
  Recipient: { fromBytes(data: Uint8Array): Recipient };
  MemberCard: { fromBytes(data: Uint8Array): MemberCard };
  Members: { of(collection: NativeCollection): NativeMembers };
  SharedKeys: {
    seal(keys: Keys, recipients: Uint8Array[]): SharedKeys;
    fromBytes(data: Uint8Array): SharedKeys;
  };
  Client: {
    withKeys(keys: Keys, options: object): NativeClient;
    withIdentity(identity: Identity, options: object): NativeClient;
    withoutKeys(options: object): NativeClient;
  };
  AuditCheck: new (key?: Uint8Array) => NativeAuditCheck;
  KeyedTable: {
    plain(names: unknown[], contents: Uint8Array[], recordBytes: number, seed?: Uint8Array): NativeTable;
    sealed(keys: Keys, names: unknown[], contents: Uint8Array[], recordBytes: number): NativeTable;
    fromBytes(file: Uint8Array): NativeTable;
  };
  Writer: new (card: Uint8Array, fingerprint?: string) => NativeWriter;
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
