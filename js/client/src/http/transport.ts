/**
 * Transport over `fetch`, one attempt each.
 *
 * Nothing is followed, cached or sent along: no redirect, no cookie, no referrer.
 */

/** One request: method, whole URL, headers, body. */
export interface Request {
  method: string;
  url: string;
  headers: [string, string][];
  body: Uint8Array | null;
}

/** An answer, whose body is read piece by piece. */
export interface Answer {
  status: number;
  headers: [string, string][];
  /** The next bytes; undefined at the end. Rejects with Lost. */
  read(): Promise<Uint8Array | undefined>;
  /** Read no more of it. */
  cancel(): void;
}

/** No answer, or a part of one. `sent`: the server may have seen the request; `final`: trying again is pointless. */
export class Lost extends Error {
  readonly sent: boolean;
  readonly final: boolean;
  constructor(says: string, { sent, final = false }: { sent: boolean; final?: boolean }) {
    super(says);
    this.name = "Lost";
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

/** One attempt, body and all, for so many milliseconds. Rejects with Lost, and with what `signal` was aborted with. */
export async function send(
  carrier: Fetch,
  request: Request,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  signal?.throwIfAborted();
  const ending = new AbortController();
  const stop = () => ending.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    ending.abort();
  }, ms);
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    ending.abort();
  };
  const failed = (error: unknown, answered: boolean): unknown => {
    end();
    if (signal?.aborted) return signal.reason;
    if (late) return new Lost("no answer in time", { sent: true });
    return error instanceof Lost ? error : lost(error, answered);
  };
  try {
    const response = await carrier(request.url, {
      method: request.method,
      headers: { ...PLAIN, ...Object.fromEntries(request.headers) },
      body: request.body as BodyInit | null,
      redirect: "manual",
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
      signal: ending.signal,
    });
    if (SENDS_PLAIN) refuseCompressed(response);
    const reader = response.body?.getReader();
    return {
      status: response.status,
      headers: [...response.headers],
      async read() {
        try {
          const piece = await reader?.read();
          if (piece?.value !== undefined && !piece.done) return piece.value;
          end();
          return undefined;
        } catch (error) {
          throw failed(error, true);
        }
      },
      cancel: end,
    };
  } catch (error) {
    throw failed(error, false);
  }
}

/** Wait, unless the signal is aborted meanwhile: then throws its reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const give = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", give);
      resolve();
    }, ms);
    if (signal?.aborted) give();
    else signal?.addEventListener("abort", give, { once: true });
  });
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
