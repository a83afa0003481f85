/** Problem details: an HTTP answer that is not the one hoped for enters; the error that a caller would catch leaves. */

import {
  AuthenticationError,
  type CiphervecError,
  CollectionNotFound,
  InvalidInput,
  ServerError,
  StorageError,
} from "../errors.js";

const LONGEST = 600;
const MOST_READ = 65_536;

/** An answer: status, headers, body, and how many attempts failed before it. */
export interface Reply {
  status: number;
  headers: Headers;
  body: Uint8Array;
  failed: number;
}

/** The JSON object of a problem; empty where the answer has none. */
export function problemOf(reply: Reply): { [field: string]: unknown } {
  try {
    const content: unknown = JSON.parse(new TextDecoder().decode(reply.body.subarray(0, MOST_READ)));
    if (typeof content === "object" && content !== null) return content as { [field: string]: unknown };
  } catch {
    // What is no JSON explains nothing.
  }
  return {};
}

/** What the server says went wrong and what to do, in one line of printable characters. */
export function words(reply: Reply): string {
  const { detail, hint } = problemOf(reply);
  const said = [detail, hint]
    .filter((part): part is string => typeof part === "string" && part.trim() !== "")
    .map((part) => part.trim().replace(/\.+$/, ""))
    .join(". ");
  return printable(said, LONGEST) || `status ${reply.status} without an explanation`;
}

/** Whether a request that names uploads was refused because the server no longer has all of them: they expired, or it was started
 * again. */
export function uploadsGone(reply: Reply): boolean {
  const offset = reply.status === 409 && problemOf(reply)["type"] === "urn:ciphervec:upload-offset";
  return reply.status === 404 || offset;
}

/** What is thrown where uploads are gone each time before they are used. */
export function losesUploads(doing: string, server: string): ServerError {
  return new ServerError(`${doing}: ${server} loses uploads. Try again later, or ask its operator.`);
}

/** The server failed at a request, so that it may have acted on it. */
export class Failed extends ServerError {}

/** The error for an answer that nobody expected. `doing` starts the message: "cannot read 'faces'". */
export function errorOf(reply: Reply, doing: string, server: string): CiphervecError {
  const says = words(reply);
  const { status } = reply;
  if (status === 401)
    return new AuthenticationError(
      `${doing}: ${server} does not accept the token (${says}). Pass another one; it comes from \`ciphervec token create\` on ` +
        "the server.",
    );
  if (status === 403)
    return new AuthenticationError(
      `${doing}: ${server} forbids it (${says}). Ask its operator for a token with more rights.`,
    );
  if (status === 404)
    return new CollectionNotFound(
      `${doing}: ${server} says ${says}. Use createCollection to make a collection, or a token that may see this one.`,
    );
  if (status === 0 || (status >= 300 && status < 400))
    return new ServerError(
      `${doing}: ${server} redirects to ${printable(reply.headers.get("location") ?? "elsewhere", 200)}, which is not ` +
        "followed: the token would go there. Use that URL itself if it is right.",
    );
  if (status === 507) return new StorageError(`${doing}: the disk of ${server} is full: ${says}.`);
  if ([400, 405, 413, 415, 422].includes(status))
    return new InvalidInput(`${doing}: ${server} refuses it: ${says}.`);
  const stopped = problemOf(reply)["type"] === "urn:ciphervec:stopped";
  if (status === 429 || (status === 503 && !stopped))
    return new ServerError(
      `${doing}: ${server} is busy and stayed so (${says}). Try again later, or allow a longer timeout.`,
    );
  const request = (reply.headers.get("x-request-id") ?? "").replace(/[^A-Za-z0-9_-]/g, "").slice(0, 64);
  const which = request === "" ? "" : ` The request is ${request} in its log.`;
  return new Failed(
    `${doing}: ${server} failed with status ${status} (${says}).${which} Try again, or ask its operator.`,
  );
}

function printable(value: string, longest: number): string {
  return value.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ").slice(0, longest);
}
