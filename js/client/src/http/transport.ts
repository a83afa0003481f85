/**
 * Transport over `fetch`: requests enter, answers leave, one attempt each. Key owner's side.
 *
 * Nothing is followed, cached or sent along: no redirect, no cookie, no referrer.
 */

/** One request: method, whole URL, headers, body. */
export interface Request {
  method: string;
  url: string;
  headers: { [name: string]: string };
  body: Uint8Array | null;
}

/** Where the body of a 200 goes as it comes; an attempt that fails is followed by another `restart`. */
export interface Sink {
  /** An answer begins; what came before is forgotten. `length` is how long it will be, where that is known. */
  restart(headers: Headers, length: number | null): void;
  /** Its next bytes. */
  write(piece: Uint8Array): void;
  /** The most bytes that it takes. */
  readonly most: number;
}

/** No answer, or a part of one. `sent`: the server may have seen the request; `final`: trying again is pointless. */
export class Lost extends Error {
  readonly sent: boolean;
  readonly final: boolean;
  constructor(says: string, { sent, final = false }: { sent: boolean; final?: boolean }) {
    super(says);
    this.sent = sent;
    this.final = final;
  }
}

/** What sends: `fetch`, or a stand-in for tests. */
export type Fetch = (url: string, options: RequestInit) => Promise<Response>;

/** What every request asks for: the interface compresses nothing, and few bytes could become any number of them. */
const PLAIN = { "Accept-Encoding": "identity" };
/** Whether that is sent. A browser leaves it out and says for itself what it takes; then only the bytes that come out are counted. */
const SENDS_PLAIN = new globalThis.Request("http://localhost", { headers: PLAIN }).headers.has(
  "accept-encoding",
);

const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "EHOSTUNREACH",
]);
const CERTIFICATE = /CERT|SIGNED|UNABLE_TO_VERIFY|ALTNAME/;

/**
 * One attempt, for so many milliseconds; the answer's status and headers, its body having gone to `sink(response)`. Throws Lost, and
 * what `signal` was aborted with.
 */
export async function send(
  carrier: Fetch,
  request: Request,
  ms: number,
  signal: AbortSignal | undefined,
  sink: (response: Response) => (piece: Uint8Array) => void,
): Promise<{ status: number; headers: Headers }> {
  signal?.throwIfAborted();
  const ending = new AbortController();
  const stop = () => ending.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    ending.abort();
  }, ms);
  let answered = false;
  try {
    const response = await carrier(request.url, {
      method: request.method,
      headers: { ...PLAIN, ...request.headers },
      body: request.body as BodyInit | null,
      redirect: "manual",
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
      signal: ending.signal,
    });
    answered = true;
    if (SENDS_PLAIN) refuseCompressed(response);
    const take = sink(response);
    if (response.body !== null) {
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        take(value);
      }
    }
    return { status: response.status, headers: response.headers };
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (late) throw new Lost("no answer in time", { sent: true });
    // What a sink refuses is its own: only the connection's faults are worth another attempt.
    if (answered && !(error instanceof TypeError || isAbort(error))) throw error;
    throw lost(error, answered);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    ending.abort();
  }
}

function refuseCompressed({ headers }: Response): void {
  const coding = (headers.get("content-encoding") ?? "").trim().toLowerCase();
  if (coding !== "" && coding !== "identity")
    throw new Lost(
      `the answer is compressed (${coding.slice(0, 20)}), which was not asked for: few bytes could become any number of them`,
      { sent: true, final: true },
    );
}

function lost(error: unknown, answered: boolean): Lost {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : null;
  const code = cause !== null && "code" in cause ? String(cause.code) : "";
  const says = [error instanceof Error ? error.message : String(error), cause?.message]
    .filter(Boolean)
    .join(": ");
  const offline = globalThis.navigator !== undefined && "onLine" in navigator && navigator.onLine === false;
  if (CERTIFICATE.test(code))
    return new Lost(`its certificate is not trusted (${says})`, { sent: false, final: true });
  return new Lost(offline ? `this machine is offline (${says})` : says, {
    sent: answered || !(offline || NOT_SENT.has(code)),
  });
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
