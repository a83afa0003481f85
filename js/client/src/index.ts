/** `@ciphervec/client`: what callers import. */

export { Client, type ClientOptions } from "./client.js";
export { Collection, type RotateOptions } from "./collection.js";
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
export { Members } from "./members.js";
export type {
  AddMemberOptions,
  AddOptions,
  AdoptOptions,
  CreateOptions,
  DeleteOptions,
  DiscardOptions,
  FloodingOptions,
  GetOptions,
  MergeOptions,
  OptimizeOptions,
  PrefetchOptions,
  QueryOptions,
  ReclusterOptions,
  SealOptions,
  Selection,
  UpdateOptions,
} from "./options.js";
export { Passkey, type PasskeyOptions } from "./passkey.js";
export type { CollectionInfo } from "./search-collection.js";
export { MemoryStorage, type Storage } from "./storage/storage.js";
export {
  type BuildOptions,
  type GetManyOptions,
  PrivateTable,
  RemoteTable,
  type RemoteTableInfo,
  type TableKey,
  type TableRecords,
} from "./tables.js";
export type * from "./types.js";
export { type SendOptions, Writer, type WriterFacts, type WrittenBatch } from "./writer.js";
