/**
 * Session: paths and bodies enter; answers of a server leave, after as many attempts as it takes. Key owner's side.
 *
 * A request is sent again after a lost connection and after 429, 502, 503 and 504. All of them may be: a commit carries a key by
 * which the server knows it again, and the others change nothing twice.
 */

import { ServerError } from "../errors.js";
import { concat, utf8 } from "../ingest/bytes.js";
import type { Progress } from "../types.js";
import type { Token } from "./address.js";
import { errorOf, losesUploads, type Reply, words } from "./problem.js";
import { Attempts, RETRY_STATUS, retryAfter } from "./retry.js";
import { type Fetch, Lost, type Request, type Sink, send } from "./transport.js";

const API = "1";
const MAX_BODY = 256 << 20;
/** Bytes of an upload that go in one request. */
const PIECE = 4 << 20;
const SMALLEST_PIECE = 64 << 10;
const LONGEST_ERROR = 1 << 20;

/** What one call of a user's is done under. */
export interface Call {
  signal?: AbortSignal;
  progress?: (progress: Progress) => void;
}

/** No answer came. `sent` says whether the server may have acted on the request nevertheless. */
export class Unanswered extends ServerError {
  readonly sent: boolean;
  constructor(message: string, sent: boolean) {
    super(message);
    this.sent = sent;
  }
}

/** What is fetched has another length than was announced. */
export class Changed extends ServerError {}

export interface CallParts {
  body?: Uint8Array;
  headers?: { [name: string]: string };
  /** Statuses that are answers. */
  ok?: readonly number[];
  /** Bytes of the longest answer, where no sink takes it. */
  limit?: number;
  /** Where the body of a 200 goes. */
  sink?: Sink;
  /** Called before each attempt after the first. */
  again?: () => void;
}

/** A server, a token, and how patient to be. */
export class Session {
  readonly url: string;
  readonly #fetch: Fetch;
  readonly #token: Token | null;
  readonly #timeout: number;
  readonly #retries: number;
  readonly #warn: (message: string) => void;
  /** Whether something answered, or that none did was told: a wrong address is not to be waited for in silence. */
  #told = false;

  constructor(
    fetch: Fetch,
    url: string,
    token: Token | null,
    timeout: number,
    retries: number,
    warn: (message: string) => void = () => {},
  ) {
    this.url = url;
    this.#fetch = fetch;
    this.#token = token;
    this.#timeout = timeout;
    this.#retries = retries;
    this.#warn = warn;
  }

  /**
   * Send a request until it is answered. Other statuses than `ok` are thrown as the errors of `errorOf`. `doing` starts the
   * message of an error: "cannot read 'faces'". Throws Unanswered, a ServerError, when no answer came in time.
   */
  async call(method: string, path: string, doing: string, call: Call, parts: CallParts = {}): Promise<Reply> {
    const { body, headers, ok = [200], limit = MAX_BODY, sink, again } = parts;
    const attempts = new Attempts(this.#timeout, this.#retries, call.signal);
    const request = this.#request(method, path, body ?? null, headers);
    let sent = false;
    for (;;) {
      let wait: number | null = null;
      let failure: Error;
      try {
        const reply = await this.#attempt(request, attempts, limit, call, sink);
        this.#told = true;
        if (ok.includes(reply.status)) {
          this.#checkApi(reply, doing);
          return reply;
        }
        failure = errorOf(reply, doing, this.url);
        if (!RETRY_STATUS.has(reply.status)) throw failure;
        if (reply.status === 502 || reply.status === 504) {
          sent = true; // a proxy's word, which can't know
          failure = this.#unanswered(doing, words(reply), sent);
        }
        wait = retryAfter(reply.headers);
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        sent ||= error.sent;
        failure = this.#unanswered(doing, error.message, sent);
        if (error.final) throw failure;
      }
      if (!(await attempts.again(wait))) throw failure;
      if (!this.#told) {
        this.#told = true;
        this.#warn(`${failure.message} Trying again, up to ${this.#retries} times.`);
      }
      again?.();
    }
  }

  /** The object in an answer. Throws ServerError. */
  json(reply: Reply, doing: string): { [field: string]: unknown } {
    try {
      const content: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(reply.body));
      if (typeof content === "object" && content !== null && !Array.isArray(content))
        return content as { [field: string]: unknown };
    } catch {
      // Said below.
    }
    throw new ServerError(
      `${doing}: ${this.url} answered with something else than JSON. Is this the right URL?`,
    );
  }

  /**
   * A blob of that many bytes; null where there is none. What arrived before a connection was lost is not fetched again.
   * Throws ServerError, and of these Changed where it has another length.
   */
  async fetch(path: string, length: number, doing: string, call: Call): Promise<Uint8Array | null> {
    const attempts = new Attempts(this.#timeout, this.#retries, call.signal);
    // Not made ahead: how long it is to be is the server's word.
    let came: Uint8Array[] = [];
    let had = 0;
    for (;;) {
      const from = had;
      let wait: number | null = null;
      let failure: Error;
      try {
        const request = this.#request("GET", path, null, from > 0 ? { Range: `bytes=${from}-` } : undefined);
        let error: Uint8Array[] | null = null;
        const { status, headers } = await send(
          this.#fetch,
          request,
          attempts.left,
          call.signal,
          (response) => {
            if (response.status === 200) {
              came = [];
              had = 0;
            } else if (response.status !== 206) error = [];
            else if (!response.headers.get("content-range")?.startsWith(`bytes ${from}-`))
              throw new Lost("the server sent another range than was asked for", { sent: true, final: true });
            let wrong = 0;
            return (piece) => {
              if (error !== null) {
                wrong += piece.length;
                if (wrong > LONGEST_ERROR) throw tooLong(LONGEST_ERROR);
                error.push(piece);
                return;
              }
              if (had + piece.length > length) throw tooLong(length);
              came.push(piece);
              had += piece.length;
              call.progress?.({ phase: "read", done: had, total: length });
            };
          },
        );
        const reply: Reply = { status, headers, body: concat(error ?? []), failed: attempts.failed };
        if (status === 404) return null;
        if (status === 416)
          throw new Changed(`${doing}: ${length} bytes expected, fewer are there. Open it again.`);
        if (status === 200 || status === 206) {
          this.#checkApi(reply, doing);
          if (had !== length)
            throw new Changed(`${doing}: ${length} bytes expected, ${had} came. Open it again.`);
          return concat(came);
        }
        failure = errorOf(reply, doing, this.url);
        if (!RETRY_STATUS.has(status)) throw failure;
        wait = retryAfter(headers);
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        failure = this.#unanswered(doing, error.message, false);
        if (error.final) throw new Changed(failure.message);
      }
      if (had > from) attempts.progressed();
      if (!(await attempts.again(wait))) throw failure;
    }
  }

  /**
   * Bring a blob to the server piece by piece, each acknowledged; the upload's id. `step(sent)` is called after each. After a
   * lost connection it goes on where the server says it is. Throws ServerError, StorageError.
   */
  async upload(
    path: string,
    data: Uint8Array,
    doing: string,
    call: Call,
    step: (sent: number) => void,
  ): Promise<string> {
    // A server that restarted may have forgotten the upload.
    for (let turn = 0; turn < 3; turn++) {
      const upload = await this.#newUpload(path, data.length, doing, call);
      if (await this.#pieces(`${path}/${upload}`, data, doing, call, step)) return upload;
    }
    throw losesUploads(doing, this.url);
  }

  async #newUpload(path: string, length: number, doing: string, call: Call): Promise<string> {
    const reply = await this.call("POST", path, doing, call, {
      body: utf8(JSON.stringify({ length })),
      headers: { "Content-Type": "application/json" },
      ok: [201],
    });
    const { upload } = this.json(reply, doing);
    if (typeof upload !== "string" || !/^[0-9A-Za-z]{32}$/.test(upload))
      throw new ServerError(
        `${doing}: ${this.url} named an upload in another way than by 32 hexadecimal digits.`,
      );
    return upload;
  }

  /** Whether all of it arrived; false when the server does not know the upload any more. */
  async #pieces(
    path: string,
    data: Uint8Array,
    doing: string,
    call: Call,
    step: (sent: number) => void,
  ): Promise<boolean> {
    let offset = 0;
    let size = PIECE;
    let stuck = 0;
    while (offset < data.length) {
      const reply = await this.call("PATCH", path, doing, call, {
        body: data.subarray(offset, offset + size),
        headers: { "Upload-Offset": String(offset), "Content-Type": "application/octet-stream" },
        ok: [204, 404, 409, 413],
      });
      if (reply.status === 404) return false;
      if (reply.status === 413) {
        if (size <= SMALLEST_PIECE) throw errorOf(reply, doing, this.url);
        size >>= 1;
        continue;
      }
      const says = reply.headers.get("upload-offset") ?? "";
      const now = /^\d{1,15}$/.test(says) ? Number(says) : -1;
      if (now < 0 || now > data.length)
        throw new ServerError(`${doing}: ${this.url} says that an upload is at no byte of it. Try again.`);
      stuck = now <= offset ? stuck + 1 : 0;
      if (stuck > this.#retries + 1)
        throw new ServerError(`${doing}: an upload stays at byte ${now} on ${this.url}. Ask its operator.`);
      offset = now;
      step(offset);
    }
    return true;
  }

  async #attempt(
    request: Request,
    attempts: Attempts,
    limit: number,
    call: Call,
    sink?: Sink,
  ): Promise<Reply> {
    const kept: Uint8Array[] = [];
    const { status, headers } = await send(this.#fetch, request, attempts.left, call.signal, (response) => {
      const streamed = response.status === 200 ? sink : undefined;
      const says = response.headers.get("content-length") ?? "";
      streamed?.restart(response.headers, /^\d{1,15}$/.test(says) ? Number(says) : null);
      // What went wrong is said in few bytes, whatever was asked for.
      const most = response.ok ? (streamed?.most ?? limit) : LONGEST_ERROR;
      let length = 0;
      return (piece) => {
        length += piece.length;
        if (length > most) throw tooLong(most);
        if (streamed !== undefined) streamed.write(piece);
        else kept.push(piece);
      };
    });
    return { status, headers, body: concat(kept), failed: attempts.failed };
  }

  #request(
    method: string,
    path: string,
    body: Uint8Array | null,
    headers?: { [name: string]: string },
  ): Request {
    const every: { [name: string]: string } = { "Ciphervec-Api": API, ...headers };
    if (this.#token !== null) every["Authorization"] = this.#token.header();
    return { method, url: this.url + path, headers: every, body };
  }

  #unanswered(doing: string, says: string, sent: boolean): Unanswered {
    return new Unanswered(
      `${doing}: ${this.url} did not answer: ${says}. Check that it runs and can be reached from here; from a page of another ` +
        "origin, that it allows this one.",
      sent,
    );
  }

  #checkApi(reply: Reply, doing: string): void {
    if (reply.headers.get("ciphervec-api") !== API)
      throw new ServerError(
        `${doing}: ${this.url} does not speak version ${API} of ciphervec's HTTP interface. Check the URL, and the versions on ` +
          "both sides.",
      );
  }
}

function tooLong(most: number): Lost {
  return new Lost(`the answer is longer than the ${most} bytes expected`, { sent: true, final: true });
}
