/** Calls the server's HTTP interface with one token, and checks its answers. Holds no key. */
import { Problem, problemOf, unreachable } from "./problem";
import type {
  About,
  CollectionState,
  Compaction,
  ListedCollection,
  OwnToken,
  Snapshot,
  TokenState,
  Verification,
} from "./types";

interface Asked {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** One piece of a blob, and how long the blob is. */
export interface Piece {
  bytes: Uint8Array;
  total: number;
}

/** Whatever was answered, refusals too. */
export interface Answer {
  status: number;
  reason: string;
  seconds: number;
  headers: [string, string][];
  content: Uint8Array;
}

/** The server that this page came from, asked with one token. */
export class Server {
  readonly #token: string | null;

  constructor(token: string | null) {
    this.#token = token;
  }

  /** The token, for what asks the server by itself. */
  get token(): string | null {
    return this.#token;
  }

  about = (signal?: AbortSignal) => this.#json<About>("/v1", { signal });
  own = (signal?: AbortSignal) => this.#json<OwnToken>("/v1/token", { signal });

  tokens = async (signal?: AbortSignal): Promise<TokenState[]> =>
    (await this.#json<{ tokens: TokenState[] }>("/v1/tokens", { signal })).tokens;

  collections = async (signal?: AbortSignal): Promise<ListedCollection[]> =>
    (await this.#json<{ collections: ListedCollection[] }>("/v1/collections", { signal })).collections;

  collection = (name: string, signal?: AbortSignal) => this.#json<CollectionState>(path(name), { signal });

  metrics = async (signal?: AbortSignal): Promise<string> => (await this.#ask("/metrics", { signal })).text();

  snapshots = async (name: string, signal?: AbortSignal): Promise<Snapshot[]> =>
    (await this.#json<{ snapshots: Snapshot[] }>(`${path(name)}/snapshots`, { signal })).snapshots;

  takeSnapshot = (name: string, snapshot: string) =>
    this.#ask(`${path(name)}/snapshots/${encodeURIComponent(snapshot)}`, { method: "PUT" });

  dropSnapshot = (name: string, snapshot: string) =>
    this.#ask(`${path(name)}/snapshots/${encodeURIComponent(snapshot)}`, { method: "DELETE" });

  restore = (name: string, snapshot: string, into: string) =>
    this.#ask(`${path(name)}/snapshots/${encodeURIComponent(snapshot)}/restore`, {
      method: "POST",
      body: { into },
    });

  purge = (name: string) => this.#ask(`${path(name)}/purge`, { method: "POST" });
  compact = (name: string) => this.#json<Compaction>(`${path(name)}/compact`, { method: "POST" });

  /** Reads every stored block; `progress` hears of bytes done and to do. */
  async verify(
    name: string,
    progress: (done: number, total: number) => void,
    signal?: AbortSignal,
  ): Promise<Verification> {
    const headers = { accept: "application/x-ndjson" };
    const response = await this.#ask(`${path(name)}/verify`, { method: "POST", headers, signal });
    for await (const line of lines(response)) {
      const said = JSON.parse(line) as Partial<Verification> & {
        done?: number;
        total?: number;
        failed?: string;
      };
      if (said.failed !== undefined) {
        throw new Problem(500, "The verification failed.", "The server's log says why.");
      }
      if (said.sound !== undefined) return said as Verification;
      progress(said.done ?? 0, said.total ?? 0);
    }
    throw new Problem(0, "The connection broke off before the verification ended.", "Start it again.");
  }

  /** Bytes `from` to `from + length` of a segment's blob, as they are stored. */
  async blob(
    name: string,
    segment: string,
    blob: string,
    from: number,
    length: number,
    signal?: AbortSignal,
  ): Promise<Piece> {
    const where = `${path(name)}/segments/${segment}/${encodeURIComponent(blob)}`;
    const headers = { range: `bytes=${from}-${from + length - 1}` };
    const response = await this.#ask(where, { headers, signal });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const total = Number(response.headers.get("content-range")?.split("/")[1] ?? bytes.length);
    return { bytes, total };
  }

  document = (signal?: AbortSignal) => this.#json<unknown>("/openapi.json", { signal });

  /** A request as a person put it together, and its answer, whatever it is. */
  async send(
    method: string,
    target: string,
    headers: Record<string, string>,
    body: string | Blob | null,
  ): Promise<Answer> {
    const type = typeof body === "string" ? "application/json" : "application/octet-stream";
    const from = performance.now();
    try {
      const response = await fetch(target, {
        method,
        headers: { ...this.#headers(), ...(body === null ? {} : { "content-type": type }), ...headers },
        body,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
      const content = new Uint8Array(await response.arrayBuffer());
      const { status, statusText: reason } = response;
      const seconds = (performance.now() - from) / 1000;
      return { status, reason, seconds, headers: [...response.headers], content };
    } catch (cause) {
      throw unreachable(cause);
    }
  }

  #headers(): Record<string, string> {
    const own: Record<string, string> = { "ciphervec-api": "1" };
    if (this.#token !== null) own["authorization"] = `Bearer ${this.#token}`;
    return own;
  }

  async #json<T>(where: string, asked: Asked): Promise<T> {
    const response = await this.#ask(where, asked);
    try {
      return (await response.json()) as T;
    } catch (cause) {
      throw unreachable(cause);
    }
  }

  async #ask(where: string, { method = "GET", body, headers = {}, signal }: Asked): Promise<Response> {
    const sent: Record<string, string> = { ...this.#headers(), ...headers };
    if (body !== undefined) sent["content-type"] = "application/json";
    let response: Response;
    try {
      response = await fetch(where, {
        method,
        headers: sent,
        body: body === undefined ? null : JSON.stringify(body),
        signal: signal ?? null,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
      });
    } catch (cause) {
      throw unreachable(cause);
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}

function path(name: string): string {
  return `/v1/collections/${encodeURIComponent(name)}`;
}

/** The lines of an answer, as they come. */
export async function* lines(response: Response): AsyncGenerator<string> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) if (part !== "") yield part;
    }
  } catch (cause) {
    throw unreachable(cause);
  }
  if (rest !== "") yield rest;
}
