/** `@ciphervec/client/search`: what a page imports that searches collections and changes none, over a smaller wasm. */

import { type Engine, SearchEngine } from "./engine.js";
import { Identity as AnyIdentity, Keys as AnyKeys } from "./keys.js";

/** The key owner's secret, as in `@ciphervec/client`, in the Worker of an engine that only searches. */
export class Keys extends AnyKeys {
  protected static override shared(): Engine {
    return SearchEngine.shared();
  }
}

/** A person's pair, the same. */
export class Identity extends AnyIdentity {
  protected static override shared(): Engine {
    return SearchEngine.shared();
  }
}

export type { CollectionRow } from "./collections/client.js";
export { type EngineOptions, SearchEngine as Engine } from "./engine.js";
export * from "./errors.js";
export {
  type Bytes,
  type Expected,
  type FileOptions,
  type KeysProtection,
  type Protection,
  passphraseStrength,
} from "./keys.js";
export type { FloodingOptions, GetOptions, PrefetchOptions, QueryOptions, Selection } from "./options.js";
export { Passkey, type PasskeyOptions } from "./passkey.js";
export { type ClientOptions, SearchClient as Client } from "./search-client.js";
export { type CollectionInfo, SearchCollection as Collection } from "./search-collection.js";
export { MemoryStorage, type Storage } from "./storage/storage.js";
export type * from "./types.js";
