/** Checks a server's URL, and holds a token that never shows itself. */

import { InvalidInput } from "../errors.js";

/** A bearer token. Its text is in the header of requests and nowhere else. */
export class Token {
  readonly #text: string;

  /** Throws InvalidInput on what can't stand in a header; the message doesn't repeat it. */
  constructor(text: string) {
    if (!/^[\x21-\x7e]{1,16384}$/.test(text))
      throw new InvalidInput(
        "the token must be 1 to 16,384 visible ASCII characters without spaces, as `ciphervec token create` printed it or an identity provider signed it.",
      );
    this.#text = text;
  }

  /** The value of `Authorization`. */
  header(): string {
    return `Bearer ${this.#text}`;
  }
}

/**
 * Scheme, host and path without a slash at the end. Throws InvalidInput, also on plain HTTP to another machine unless
 * `insecure`.
 */
export function baseUrl(url: unknown, insecure: boolean): string {
  const given = url instanceof URL ? url.href : url;
  let parts: URL;
  try {
    parts = new URL(String(given));
  } catch {
    throw new InvalidInput(
      `the URL of a server starts with https:// (or http:// on this machine); got ${String(given)}.`,
    );
  }
  if (parts.protocol !== "https:" && parts.protocol !== "http:")
    throw new InvalidInput(`the URL of a server starts with https://; got ${parts.protocol}//.`);
  if (parts.username !== "" || parts.password !== "")
    throw new InvalidInput("the URL holds a user or a password; take them out, and pass a token instead.");
  if (parts.search !== "" || parts.hash !== "")
    throw new InvalidInput(
      `a server's URL has a host and no "?" or "#"; got ${parts.origin}${parts.pathname}?…`,
    );
  if (parts.protocol === "http:" && !insecure && !isLoopback(parts.hostname))
    throw new InvalidInput(
      `${parts.origin} is plain HTTP to another machine: anybody in between reads the token and alters answers. Use ` +
        "https://, or say insecure: true where the network itself is trusted.",
    );
  return parts.origin + parts.pathname.replace(/\/+$/, "");
}

/** Whether a host name or address is this machine. */
export function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(host)
  );
}
