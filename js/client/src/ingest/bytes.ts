/** Bytes as text, hexadecimal and base64, and back; random bytes and comparisons. */

const DIGITS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const CHUNK = 0x2000;

export const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: true }).decode(bytes);

/** Lower-case digits. */
export function hex(bytes: Uint8Array): string {
  let out = "";
  for (const byte of bytes) out += DIGITS[byte];
  return out;
}

/** The bytes of hexadecimal digits, which were looked at before. */
export function unhex(digits: string): Uint8Array {
  const out = new Uint8Array(digits.length >> 1);
  for (let i = 0; i < out.length; i++) out[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  return out;
}

export function toBase64(bytes: Uint8Array): string {
  let out = "";
  for (let at = 0; at < bytes.length; at += CHUNK)
    out += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(out);
}

/** Throws a SyntaxError for what is not base64 as it is written. */
export function fromBase64(value: unknown): Uint8Array {
  if (
    typeof value !== "string" ||
    !/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value)
  )
    throw new SyntaxError("not base64");
  const binary = atob(value);
  const out = new Uint8Array(binary.length);
  for (let i = 0; i < out.length; i++) out[i] = binary.charCodeAt(i);
  return out;
}

/** All of them, one after the other. */
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const out = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

/** Bytes from the platform's cryptographic generator. */
export function random(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length));
}

const ours = new WeakSet<ArrayBufferLike>();

/** Mark memory as this package's own: it may go to the Worker without a copy, after which it is empty here. */
export function own<T extends ArrayBufferView>(view: T): T {
  ours.add(view.buffer);
  return view;
}

/** Whether it was marked so. */
export const isOwn = (buffer: ArrayBufferLike): boolean => ours.has(buffer);
