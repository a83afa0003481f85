/** A client's own log in a file, for Node: the core chains and signs its lines, and checks what the file holds before it goes on. */

import { closeSync, fstatSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { InvalidInput, StorageError } from "../errors.js";
import type { AuditPlace, Native, NativeAuditLog } from "../native.js";
import type { ClientLog, LogChoice } from "./storage.js";

const PIECE = 1 << 20;

/** Files that clients of this process write to. */
const written = new Set<string>();

/** A file as long as its whole lines. */
class LogFile implements AuditPlace {
  readonly name: string;
  readonly #file: number;
  #length = 0;

  constructor(path: string) {
    this.#file = openSync(path, "a+", 0o600);
    const { dev, ino } = fstatSync(this.#file, { bigint: true });
    this.name = `${dev}:${ino}`;
  }

  /** Each piece of what is there. */
  *pieces(): Generator<Uint8Array> {
    for (let at = 0; ; ) {
      const piece = new Uint8Array(PIECE);
      const count = readSync(this.#file, piece, 0, PIECE, at);
      if (count === 0) return;
      yield piece.subarray(0, count);
      at += count;
    }
  }

  /** Go on after so many bytes. */
  cut(length: number): void {
    ftruncateSync(this.#file, length);
    this.#length = length;
  }

  append(line: Uint8Array): void {
    if (fstatSync(this.#file).size !== this.#length)
      throw new Error("another process writes to it; give each client a file of its own");
    try {
      for (let done = 0; done < line.length; ) done += writeSync(this.#file, line, done);
    } catch (error) {
      ftruncateSync(this.#file, this.#length); // half a line is none
      throw error;
    }
    this.#length += line.length;
  }

  now(): number {
    return performance.now();
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Go on with the log in a file, or begin one. Throws StorageError, also for a file that holds something else; InvalidInput. */
export function openLog(native: Native, { path, key }: LogChoice): ClientLog {
  const secret = key === undefined ? undefined : keyOf(path, key);
  const check = new native.AuditCheck(secret);
  secret?.fill(0);
  const file = tried(path, () => new LogFile(path));
  let log: NativeAuditLog;
  try {
    if (written.has(file.name))
      throw unusable(path, "another client writes to it; give each a file of its own");
    log = tried(path, () => {
      for (const piece of file.pieces()) check.take(piece);
      file.cut(check.length());
      return check.open(file);
    });
  } catch (error) {
    file.close();
    throw error;
  }
  written.add(file.name);
  return {
    append: (line) => log.append(line),
    close: () => {
      written.delete(file.name);
      try {
        log.sign();
      } finally {
        log.free();
        file.close();
      }
    },
  };
}

/** The bytes of a key, or of the file at this path. */
function keyOf(log: string, key: string | Uint8Array): Uint8Array {
  const bytes = typeof key === "string" ? tried(log, () => new Uint8Array(readFileSync(key))) : key;
  if (bytes.length === 32) return bytes;
  throw new InvalidInput(
    `auditKey of ${log} has ${bytes.length} bytes, where 32 are expected; make one with \`ciphervec audit key\`.`,
  );
}

function unusable(path: string, why: string): StorageError {
  return new StorageError(`cannot write the audit log ${path}: ${why}`);
}

function tried<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw unusable(path, error instanceof Error ? error.message : String(error));
  }
}
