/** What the pages need of the key holder's half; `client.ts` beside it gets it from `@ciphervec/client`. */

export interface Row {
  id: string;
  metadata: Record<string, unknown> | null;
  document: string | null;
  vector: Float32Array | null;
}

export interface Hit {
  id: string;
  /** Higher is closer. */
  score: number;
  metadata: Record<string, unknown> | null;
  document: string | null;
}

export const PHASES = ["encrypt", "upload", "server", "download", "open"] as const;
export type Phase = (typeof PHASES)[number];

/** A step of a query: milliseconds it has taken, and bytes where some travelled. */
export interface Step {
  phase: Phase;
  ms: number | null;
  bytes: number | null;
}

/** A collection under its keys. */
export interface OpenCollection {
  readonly dimension: number;
  count(): Promise<number>;
  /** Rows in their order, from number `from` on. */
  rows(from: number, count: number, parts: { vectors: boolean }, signal?: AbortSignal): Promise<Row[]>;
  /** The vector under an id. */
  vector(id: string, signal?: AbortSignal): Promise<Float32Array>;
  /** With `parts.texts` metadata and documents are read too, which shows the server which segments the hits are in. */
  query(
    vector: Float32Array,
    count: number,
    parts: { texts: boolean },
    told: (step: Step) => void,
    signal?: AbortSignal,
  ): Promise<{ hits: Hit[]; ownersOnly: boolean }>;
}

/** Keys that were opened in this page. */
export interface KeyHolder {
  /** 16 hex digits, as the server knows the key; null where there is none, as for collections in mode open. */
  readonly keyId: string | null;
  open(collection: string): Promise<OpenCollection>;
  /** Wipes the keys; nothing can be opened afterwards. */
  dispose(): void;
}

/** What opening keys is told beside the keys. */
export interface UnlockOptions {
  token: string | null;
  /** Whether this browser keeps, encrypted, what it has seen of collections, so that an older state is noticed later. */
  remember: boolean;
  /** Told what does not stop anything and should be known. */
  warn: (message: string) => void;
}
