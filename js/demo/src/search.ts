/** The key holder's half of the demo, in the page and its Worker: seals passages and answers questions. */

import {
  type Client,
  type Collection,
  CollectionNotFound,
  type Keys,
  type Progress,
} from "@ciphervec/client";
import { connect, type KeyFile } from "./connect.ts";
import type { Embedder } from "./embedder.ts";

const COLLECTION = "stdlib";
const HITS = 5;

/** A passage: the dotted name of what it documents, and its text. */
export type Passage = [name: string, text: string];

export interface Hit {
  name: string;
  text: string;
  score: number;
}

/** The rows closest to a vector, with their documents and names. */
export async function closest(
  collection: Collection,
  vector: Float32Array,
  nResults: number,
  onProgress: (progress: Progress) => void,
): Promise<Hit[]> {
  const include = ["scores", "documents", "metadatas"] as const;
  const found = await collection.query({
    queryEmbeddings: vector,
    nResults,
    include: [...include],
    onProgress,
  });
  return (found.ids[0] ?? []).map((_, i) => ({
    name: String(found.metadatas?.[0]?.[i]?.["name"] ?? ""),
    text: found.documents?.[0]?.[i] ?? "",
    score: found.scores?.[0]?.[i] ?? Number.NaN,
  }));
}

/** What is embedded of a passage, as the Python demo does: a paragraph far down rarely repeats what it is about. */
export function searchable([name, text]: Passage): string {
  return `${name.replace(/[._]+/g, " ")}. ${text}`;
}

/** A key and the collection of it, if there is one. */
export class Search {
  readonly keys: Keys;
  readonly #client: Client;
  #collection: Collection | null = null;

  private constructor(keys: Keys, client: Client) {
    this.keys = keys;
    this.#client = client;
  }

  /** Connect, with a new key or that of a file. Throws WrongKey for another passphrase. */
  static async begin(file?: KeyFile): Promise<Search> {
    const { keys, client } = await connect(file);
    return new Search(keys, client);
  }

  /** How many passages are sealed under this key; null if there is no collection. Throws WrongKey where it is another's. */
  async find(): Promise<number | null> {
    try {
      this.#collection = await this.#client.getCollection({ name: COLLECTION });
    } catch (error) {
      if (error instanceof CollectionNotFound) return null;
      throw error;
    }
    return await this.#collection.count();
  }

  /** Embed, seal and store the passages, as one segment: all of them are there, or none. */
  async seal(
    passages: readonly Passage[],
    embedder: Embedder,
    onProgress: (progress: Progress) => void,
  ): Promise<void> {
    const embeddings = embedder.embed(passages.map(searchable));
    const { dimension } = embedder;
    const collection = await this.#client.getOrCreateCollection({
      name: COLLECTION,
      dimension,
      originals: false,
    });
    await collection.add({
      ids: passages.map((_, row) => row),
      embeddings,
      documents: passages.map(([, text]) => text),
      metadatas: passages.map(([name]) => ({ name })),
      onProgress,
    });
    this.#collection = collection;
  }

  /** The passages closest to a vector. */
  async ask(vector: Float32Array, onProgress: (progress: Progress) => void): Promise<Hit[]> {
    if (this.#collection === null) throw new Error("seal the passages first");
    return closest(this.#collection, vector, HITS, onProgress);
  }

  /** Wipe the key in the Worker's memory, and close what was opened with it. */
  async end(): Promise<void> {
    await this.#client.close();
    await this.keys.dispose();
  }
}
