/** Problems of requests in words for people, each with the next step. */

/** What went wrong with a request, in words for people. */
export class Problem extends Error {
  readonly status: number;
  /** What to do next, if something can be done. */
  readonly hint: string | undefined;
  /** By which the server's log knows the request. */
  readonly request: string | undefined;

  constructor(status: number, message: string, hint?: string, request?: string) {
    super(message);
    this.name = "Problem";
    this.status = status;
    this.hint = hint;
    this.request = request;
  }
}

/** The problem that an answer's body describes (RFC 9457); whatever a proxy said instead is not shown. */
export async function problemOf(response: Response): Promise<Problem> {
  const request = response.headers.get("x-request-id") ?? undefined;
  const says: unknown = await response.json().catch(() => null);
  const { detail, title, hint } = (typeof says === "object" && says !== null ? says : {}) as Record<
    string,
    unknown
  >;
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  const words = text(detail) ?? text(title) ?? `the answer was ${response.status}, without a reason`;
  return new Problem(response.status, sentence(words), hintFor(response, text(hint)), request);
}

/** The problem of a request that got no answer. */
export function unreachable(cause: unknown): Problem {
  if (cause instanceof Problem) return cause;
  if (cause instanceof DOMException && cause.name === "AbortError")
    return new Problem(0, "It was cancelled.");
  return new Problem(
    0,
    "The server does not answer.",
    "See whether it runs, and whether this machine reaches it. The page tries again when you do.",
  );
}

function hintFor(response: Response, hint: string | undefined): string | undefined {
  const wait = response.headers.get("retry-after");
  if (wait !== null && /^\d+$/.test(wait)) {
    return `Try again in ${wait} ${wait === "1" ? "second" : "seconds"}.`;
  }
  if (response.status === 401) return "Sign in with a token that is live: ciphervec token create makes one.";
  return hint === undefined ? undefined : sentence(hint);
}

/** A capital at the front, a full stop at the end. */
export function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}
