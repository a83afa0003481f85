/** `@ciphervec/client`: what callers import. */

export { Client, type ClientOptions, type CreateOptions } from "./client.js";
export {
  type AddOptions,
  type AdoptOptions,
  Collection,
  type CollectionInfo,
  type DeleteOptions,
  type DiscardOptions,
  type FloodingOptions,
  type GetOptions,
  type MergeOptions,
  type OptimizeOptions,
  type PrefetchOptions,
  type QueryOptions,
  type ReclusterOptions,
  type RotateOptions,
  type SealOptions,
  type Selection,
  type UpdateOptions,
} from "./collection.js";
export type { CollectionRow } from "./collections/client.js";
export { Engine, type EngineOptions } from "./engine.js";
export * from "./errors.js";
export {
  type Bytes,
  type Expected,
  type FileOptions,
  Identity,
  Keys,
  type KeysProtection,
  type MemberCardFacts,
  type Protection,
  passphraseStrength,
} from "./keys.js";
export { type AddMemberOptions, Members } from "./members.js";
export { Passkey, type PasskeyOptions } from "./passkey.js";
export { MemoryStorage, type Storage } from "./storage/storage.js";
export {
  type BuildOptions,
  type GetManyOptions,
  PrivateTable,
  RemoteTable,
  type RemoteTableInfo,
  type TableInfo,
  type TableKey,
  type TableRecords,
  type TableRow,
} from "./tables.js";
export type * from "./types.js";
export { type SendOptions, Writer, type WriterFacts, type WrittenBatch } from "./writer.js";
