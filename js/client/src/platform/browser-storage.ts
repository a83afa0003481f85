/** Browser: where the engine keeps bytes, and that it writes no log. Runs in the Worker. */

import { InvalidInput } from "../errors.js";
import { IndexedDbStorage } from "../storage/indexeddb.js";
import { refused, type Storage } from "../storage/storage.js";

/** Where bytes are kept. Throws StorageError. */
export function storage(
  choice: { kind: "indexeddb"; database: string } | { kind: "folder"; path: string },
): Storage {
  if (choice.kind === "folder") throw refused("a folder", new Error("a browser has none"));
  if (typeof indexedDB === "undefined") throw refused("IndexedDB", new Error("this browser has none"));
  return new IndexedDbStorage(choice.database);
}

/** A page has no file to write a log to. Throws InvalidInput. */
export function openLog(): never {
  throw new InvalidInput("auditLog names a file, and a page has none: only Node writes a client's log.");
}
