/** Node: where the engine keeps bytes, in a folder. */

import { FolderStorage } from "../storage/folder.js";
import { refused, type Storage } from "../storage/storage.js";

/** Where bytes are kept. Throws StorageError. */
export function storage(
  choice: { kind: "indexeddb"; database: string } | { kind: "folder"; path: string },
): Storage {
  if (choice.kind === "indexeddb") throw refused("IndexedDB", new Error("Node has none; name a folder"));
  return new FolderStorage(choice.path);
}
