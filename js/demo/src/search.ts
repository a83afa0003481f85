/** Search: a key, the passages and a question enter; sealed rows and hits leave. The key holder's half, in the page and its Worker. */

import { Client, type Collection, CollectionNotFound, Keys, type Progress } from "@ciphervec/client";
import type { Embedder } from "./embedder.ts";

const COLLECTION = "stdlib";
const BATCH = 3000;
const HITS = 5;

/** A passage: the dotted name of what it documents, and its text. */
export type Passage = [name: string, text: string];

export interface Hit {
  name: string;
  text: string;
  score: number;
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
  static async begin(file?: { bytes: Uint8Array; passphrase: string }): Promise<Search> {
    const keys =
      file === undefined ? await Keys.generate() : await Keys.fromFile(file.bytes, file.passphrase);
    return new Search(keys, new Client({ url: location.origin, keys }));
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

  /** Embed, seal and store the passages. `step` hears how many are done, and what is done with the others. */
  async seal(
    passages: readonly Passage[],
    embedder: Embedder,
    step: (done: number, progress: Progress | null) => void,
  ): Promise<void> {
    const collection = await this.#client.getOrCreateCollection({
      name: COLLECTION,
      dimension: embedder.dimension,
    });
    for (let start = 0; start < passages.length; start += BATCH) {
      const batch = passages.slice(start, start + BATCH);
      step(start, null);
      await collection.add(
        {
          ids: batch.map((_, i) => start + i),
          embeddings: embedder.embed(batch.map(searchable)),
          documents: batch.map(([, text]) => text),
          metadatas: batch.map(([name]) => ({ name })),
        },
        { onProgress: (progress) => step(start, progress) },
      );
    }
    this.#collection = collection;
    step(passages.length, null);
  }

  /** The passages closest to a vector. */
  async ask(vector: Float32Array, onProgress: (progress: Progress) => void): Promise<Hit[]> {
    if (this.#collection === null) throw new Error("seal the passages first");
    const found = await this.#collection.query(
      { queryEmbeddings: vector, nResults: HITS, include: ["scores", "documents", "metadatas"] },
      { onProgress },
    );
    return (found.ids[0] ?? []).map((_, i) => ({
      name: String(found.metadatas?.[0]?.[i]?.["name"] ?? ""),
      text: found.documents?.[0]?.[i] ?? "",
      score: found.scores?.[0]?.[i] ?? Number.NaN,
    }));
  }

  /** Wipe the key, and end what holds it. */
  end(): void {
    this.#client[Symbol.dispose]();
    this.keys[Symbol.dispose]();
  }
}
