/**
 * Options: what a caller passes to a method, held to the names that the method knows. A name that is not known is refused, as Python
 * refuses an argument: a `filter:` that nobody reads would return rows that the caller meant to leave out. Both threads.
 */

import type {
  ClientOptions,
  CreateOptions,
  GetCollectionOptions,
  GetTableOptions,
  PutTableOptions,
} from "./client.js";
import type {
  AddOptions,
  AdoptOptions,
  DeleteOptions,
  DiscardOptions,
  FloodingOptions,
  GetOptions,
  MergeOptions,
  OptimizeOptions,
  PrefetchOptions,
  QueryOptions,
  ReclusterOptions,
  RotateOptions,
  SealOptions,
  Selection,
  UpdateOptions,
} from "./collection.js";
import { InvalidInput } from "./errors.js";
import { checkDepth } from "./ingest/nesting.js";
import type { AddMemberOptions } from "./members.js";
import type { CallOptions, Clusters } from "./types.js";

/** Every name that an interface has: the compiler holds a table to it. */
export type Names<T> = { readonly [K in keyof Required<T>]: true };

export const CALL: Names<CallOptions> = { signal: true, onProgress: true };
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
export const ROTATE: Names<RotateOptions> = { keys: true, overlap: true, ...CALL };
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

export const CLIENT: Names<ClientOptions> = {
  url: true,
  keys: true,
  token: true,
  storage: true,
  insecure: true,
  timeout: true,
  retries: true,
  cacheBytes: true,
  auditLog: true,
  auditKey: true,
  onWarning: true,
  engine: true,
};
export const NAMED: Names<{ name: string } & CallOptions> = { name: true, ...CALL };
export const OPEN: Names<GetCollectionOptions> = { ...NAMED, allowOpen: true, expect: true };
export const GET_TABLE: Names<GetTableOptions> = { ...NAMED, fingerprint: true };
export const PUT_TABLE: Names<PutTableOptions> = { ...NAMED, table: true };
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
export const CLUSTERS: Names<Clusters> = {
  count: true,
  probes: true,
  decoys: true,
  recall: true,
  serverLearnsQueries: true,
  oblivious: true,
};

/** The options, if the method knows each of them. Throws InvalidInput, naming the one that it doesn't and those that it does. */
export function known<T extends object>(
  given: T,
  names: { readonly [name: string]: true },
  method: string,
): T {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new InvalidInput(
      `${method} takes an object of options, such as {${Object.keys(names)[0]}: …}, got ${shown(given)}.`,
    );
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(names, name)) {
      const near = nearest(name, Object.keys(names));
      throw new InvalidInput(
        `${method} has no option "${name}"${near === null ? "." : `; did you mean "${near}"?`} ` +
          `It takes ${Object.keys(names).join(", ")}.`,
      );
    }
  }
  const { where, whereDocument, metadatas } = given as { [name: string]: unknown };
  checkDepth(where, "where");
  checkDepth(whereDocument, "whereDocument");
  if (Array.isArray(metadatas)) metadatas.forEach((one, i) => void checkDepth(one, `metadatas[${i}]`));
  else checkDepth(metadatas, "metadatas");
  return given;
}

function shown(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}

/** The name that begins so, or is a slip or two away; null where none is. */
export function nearest(name: string, names: readonly string[]): string | null {
  const begun = names.find((one) => name !== "" && one.toLowerCase().startsWith(name.toLowerCase()));
  if (begun !== undefined) return begun;
  const [found] = names
    .map((one) => ({ one, far: distance(name.toLowerCase(), one.toLowerCase()) }))
    .sort((a, b) => a.far - b.far);
  return found !== undefined && found.far <= 2 ? found.one : null;
}

/** How many letters must be put in, taken out or exchanged to make one word of the other. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const exchanged = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, exchanged));
    }
    row = next;
  }
  return row[b.length] as number;
}
