/** The photos of a key, sealed on a server: vectors, small pictures and names. The key holder's half. */

import {
  type Client,
  type Collection,
  CollectionNotFound,
  type Keys,
  type Progress,
} from "@ciphervec/client";
import { connect, type KeyFile } from "../connect.ts";
import { closest } from "../search.ts";
import type { Describer } from "./describe.ts";
import type { Photo } from "./pictures.ts";

const HITS = 6;

export interface Hit {
  name: string;
  small: string;
  score: number;
}

export class Album {
  readonly keys: Keys;
  readonly #client: Client;
  readonly #describer: Describer;
  #collection: Collection | null = null;

  private constructor(keys: Keys, client: Client, describer: Describer) {
    this.keys = keys;
    this.#client = client;
    this.#describer = describer;
  }

  /** Throws WrongKey for another passphrase. */
  static async begin(describer: Describer, file?: KeyFile): Promise<Album> {
    const { keys, client } = await connect(file);
    return new Album(keys, client, describer);
  }

  /** Vectors of two describers can't be compared: each has a collection. */
  get #name(): string {
    return `photos-${this.#describer.name}`;
  }

  /** How many photos are there under this key. Throws WrongKey where they are another's. */
  async count(): Promise<number> {
    try {
      this.#collection ??= await this.#client.getCollection({ name: this.#name });
    } catch (error) {
      if (error instanceof CollectionNotFound) return 0;
      throw error;
    }
    return this.#collection.count();
  }

  /** Describe, seal and store photos, all of them or none. One that is there already is replaced. */
  async add(photos: readonly Photo[], onProgress: (progress: Progress) => void): Promise<void> {
    const distinct = [...new Map(photos.map((photo) => [photo.id, photo])).values()];
    const embeddings = await Promise.all(distinct.map(({ pixels }) => this.#describer.describe(pixels)));
    this.#collection ??= await this.#client.getOrCreateCollection({
      name: this.#name,
      dimension: this.#describer.dimension,
      originals: false,
    });
    await this.#collection.upsert({
      ids: distinct.map(({ id }) => id),
      embeddings,
      documents: distinct.map(({ small }) => small),
      metadatas: distinct.map(({ name }) => ({ name })),
      onProgress,
    });
  }

  /** The photos that look most like this one. */
  async like(photo: Photo, onProgress: (progress: Progress) => void): Promise<Hit[]> {
    if (this.#collection === null) throw new Error("add photos first");
    const vector = await this.#describer.describe(photo.pixels);
    const found = await closest(this.#collection, vector, HITS, onProgress);
    return found.map(({ text, ...hit }) => ({ ...hit, small: text }));
  }

  /** Wipe the key in the Worker's memory, and close what was opened with it. */
  async end(): Promise<void> {
    await this.#client.close();
    await this.keys.dispose();
  }
}
