/** Answers of the HTTP interface, as its OpenAPI document has them. */

export interface ListedCollection {
  name: string;
  rows: number;
  bytes: number;
}

export interface SegmentState {
  id: string;
  rows: number;
  /** Bytes of each blob; absent for a token that may query but not read. */
  blobs?: Record<string, number>;
  deleted: number[];
}

export interface CollectionState {
  name: string;
  version: number;
  head: string;
  /** Base64 of a JSON document of the owner's. */
  meta: string;
  segments: SegmentState[];
  attachments: Record<string, number>;
  query_version?: number;
  statistics: {
    rows: number;
    deleted: number;
    segments: number;
    bytes: number;
    resident: number;
    degraded: boolean;
  };
}

export type Verb = "read" | "query" | "append" | "write" | "run" | "keep" | "admin" | "metrics";

/** What a token or an identity may use; what is left out is not limited. */
export interface Limits {
  /** Requests in a time: `20/s`. */
  rate?: string;
  burst?: number;
  queries_per_day?: number;
  max_bytes?: number;
  max_rows?: number;
}

export interface TokenState {
  id: string;
  name: string;
  collections: string[];
  verbs: Verb[];
  created: string;
  expires?: string;
  revoked?: string;
  limits?: Limits;
  state: "live" | "expired" | "revoked" | "not yet valid";
}

/** Permissions on some collections. */
export interface Grant {
  collections: string[];
  verbs: Verb[];
}

/** Whom a token names that an identity provider signed. */
export interface IdentityState {
  id: string;
  issuer: string;
  subject: string;
  grants: Grant[];
  limits?: Limits;
  expires: string;
}

export interface OwnToken {
  /** Whether the server asks for a token at all. */
  required: boolean;
  metrics: boolean;
  operator: boolean;
  token?: TokenState;
  identity?: IdentityState;
}

export interface Verification {
  sound: boolean;
  files: number;
  bytes: number;
  strays: number;
  problems: { file: string; offset: number }[];
}

export interface Compaction {
  segments_dropped: number;
  files_before: number;
  files_after: number;
  bytes_moved: number;
}

export interface Snapshot {
  name: string;
  version: number;
  rows: number;
  bytes: number;
}

export interface About {
  server: string;
  api: number;
}
