/**
 * The classes of errors, the same on the page and in the Worker.
 *
 * Every message says what was expected, what came, and the next step. `CiphervecError` catches them all. The names are
 * those of the Python package, and `error.name` holds them, so that they survive minified code and another realm.
 */

/** Base of every error that ciphervec throws on purpose. */
export class CiphervecError extends Error {
  static readonly code: string = "CiphervecError";
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = (this.constructor as typeof CiphervecError).code;
  }
}

/** An argument has the wrong shape, type, range or name. */
export class InvalidInput extends CiphervecError {
  static override readonly code: string = "InvalidInput";
}

const SHOWN = 10;

/** Rows of a batch can't be used. Nothing was written. `rows` says what is wrong with each, by its number. */
export class InvalidRows extends InvalidInput {
  static override readonly code = "InvalidRows";
  readonly rows: ReadonlyMap<number, string>;
  constructor(message: string, rows: ReadonlyMap<number, string> = new Map()) {
    super(message);
    this.rows = rows;
  }

  /** The error about these rows; its message has the first ten. */
  static of(rows: ReadonlyMap<number, string>): InvalidRows {
    const ordered = new Map([...rows].sort((a, b) => a[0] - b[0]));
    const says = [...ordered.values()];
    if (says.length < 2) return new InvalidRows(says[0] ?? "no row is wrong", ordered);
    const more = says.length > SHOWN ? [`and ${says.length - SHOWN} more`] : [];
    const head = `${says.length} rows can't be used, and nothing was written:`;
    return new InvalidRows([head, ...says.slice(0, SHOWN), ...more].join("\n"), ordered);
  }
}

/** The key given is not the key this was sealed under; or a passphrase does not open a key file. */
export class WrongKey extends CiphervecError {
  static override readonly code = "WrongKey";
}

/** Bytes are truncated, altered, or were never ciphervec's. No result was computed from them. */
export class CorruptData extends CiphervecError {
  static override readonly code: string = "CorruptData";
  /** The ids of the segments that failed their check, in hexadecimal, if it is about some. */
  readonly segments: readonly string[];
  constructor(message: string, segments: readonly string[] = [], options?: ErrorOptions) {
    super(message, options);
    this.segments = segments;
  }
}

/** An answer, or a stored segment, is not what was sealed there. Nothing of it was returned. */
export class TamperedAnswer extends CorruptData {
  static override readonly code = "TamperedAnswer";
}

/** Segments of the owner's failed a check before, and a query would have to leave them out. Nothing was asked. */
export class Quarantined extends CorruptData {
  static override readonly code = "Quarantined";
}

/** An answer is not one to the query that somebody else made. Nothing of it was returned. */
export class MismatchedAnswer extends CorruptData {
  static override readonly code = "MismatchedAnswer";
}

/** The bytes are from a newer ciphervec than this one, or from a part of it that this package has not. */
export class UnsupportedVersion extends CorruptData {
  static override readonly code = "UnsupportedVersion";
}

/** A decrypted number is larger than its ciphertext may hold. It is not shown: that could give the key away. */
export class BoundExceeded extends CiphervecError {
  static override readonly code = "BoundExceeded";
}

/** What may be used once is not left in the number asked for. None was used. */
export class PoolExhausted extends CiphervecError {
  static override readonly code = "PoolExhausted";
}

/** More memory than WebAssembly addresses, or than there is. Nothing was done. */
export class OutOfMemory extends CiphervecError {
  static override readonly code = "OutOfMemory";
}

/** An id occurs twice in a batch, or is already in the collection. Nothing was added. */
export class DuplicateId extends CiphervecError {
  static override readonly code = "DuplicateId";
}

/** An id is not in the collection. Nothing was changed. */
export class UnknownId extends CiphervecError {
  static override readonly code = "UnknownId";
}

/** A collection of that name is already there. */
export class CollectionExists extends CiphervecError {
  static override readonly code = "CollectionExists";
}

/** No collection of that name is there, or not for this token. */
export class CollectionNotFound extends CiphervecError {
  static override readonly code = "CollectionNotFound";
}

/** No table of records of that name is on the server, or not for this token. */
export class TableNotFound extends CiphervecError {
  static override readonly code = "TableNotFound";
}

/** What keeps the client's state refused: a quota, a full disk, a browser that allows no storage. */
export class StorageError extends CiphervecError {
  static override readonly code = "StorageError";
}

/** The server does not accept the token, or none was given. */
export class AuthenticationError extends CiphervecError {
  static override readonly code = "AuthenticationError";
}

/** A server could not be reached, is overloaded, or failed. What was committed before is intact. */
export class ServerError extends CiphervecError {
  static override readonly code: string = "ServerError";
}

/** Others committed first, again and again. Nothing of this change was committed. */
export class Conflict extends ServerError {
  static override readonly code = "Conflict";
}

/** No answer came to a commit. All of the change is there, or nothing. */
export class CommitUncertain extends ServerError {
  static override readonly code = "CommitUncertain";
}

/** A server shows an older state of a collection than before, or another history. Nothing was taken from it. */
export class RollbackDetected extends CiphervecError {
  static override readonly code = "RollbackDetected";
}

/** A collection's public parameters are not those that were pinned when it was first used. */
export class PinMismatch extends CiphervecError {
  static override readonly code = "PinMismatch";
}

/** The Worker that holds the keys ended. Its keys are gone with it; what was committed is intact. */
export class WorkerLost extends CiphervecError {
  static override readonly code = "WorkerLost";
}

const CLASSES = [
  CiphervecError,
  InvalidInput,
  WrongKey,
  BoundExceeded,
  PoolExhausted,
  OutOfMemory,
  DuplicateId,
  UnknownId,
  CollectionExists,
  CollectionNotFound,
  TableNotFound,
  StorageError,
  AuthenticationError,
  ServerError,
  Conflict,
  CommitUncertain,
  RollbackDetected,
  PinMismatch,
  WorkerLost,
];
const OF_SEGMENTS = [CorruptData, TamperedAnswer, Quarantined, MismatchedAnswer, UnsupportedVersion];

/** An error as it crosses from one thread to the other. */
export interface ErrorMessage {
  name: string;
  message: string;
  rows?: ReadonlyMap<number, string>;
  segments?: readonly string[];
}

/** Write an error down. What is no error of ciphervec's keeps its name. */
export function toMessage(error: unknown): ErrorMessage {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const message: ErrorMessage = { name: error.name, message: error.message };
  if (error instanceof InvalidRows) message.rows = error.rows;
  if (error instanceof CorruptData) message.segments = error.segments;
  return message;
}

/** Read it back as the class that it was. */
export function fromMessage({ name, message, rows, segments }: ErrorMessage): Error {
  if (name === InvalidRows.code) return new InvalidRows(message, rows);
  const ofSegments = OF_SEGMENTS.find((one) => one.code === name);
  if (ofSegments !== undefined) return new ofSegments(message, segments);
  const known = CLASSES.find((one) => one.code === name);
  if (known !== undefined) return new known(message);
  if (name === "AbortError" || name === "TimeoutError") return new DOMException(message, name);
  const other = new Error(message);
  other.name = name;
  return other;
}

/** Whether an error, ours or the native module's, is of one of these names. */
export function isOneOf(error: unknown, ...names: string[]): boolean {
  return error instanceof Error && names.includes(error.name);
}

/** Run native code; what it throws comes as a class of this file. */
export function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw fromNative(error);
  }
}

/** What the native module throws, as a class of this file. Anything else is the same again. */
export function fromNative(error: unknown): unknown {
  if (error instanceof CiphervecError || !(error instanceof Error) || !("code" in error)) return error;
  const { segments, rows } = error as { segments?: Uint8Array[]; rows?: [number, string][] };
  const ids = segments?.map((one) => [...one].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
  return fromMessage({
    name: String(error.code),
    message: error.message,
    ...(ids && { segments: ids }),
    ...(rows && { rows: new Map(rows) }),
  });
}
