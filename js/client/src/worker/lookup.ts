/** Private lookup in the Worker, which holds the key: encrypts indices of tables or of texts' tokens, and decrypts answers. */

import { InvalidInput } from "../errors.js";
import type { LookupClient, LookupFacts, LookupNative } from "../native.js";
import { type Codes, type TextAnswers, TextReader } from "../text/reader.js";

/** What a client is made of: a fresh key for a description, or a key file; with a reader, for texts. */
export interface LookupChoices {
  description?: Uint8Array | undefined;
  file?: Uint8Array | undefined;
  passphrase?: string | undefined;
  reader?: Uint8Array | undefined;
}

/** Tokens as they cross from the page: of each one index a table, and where documents begin. */
export type Tokens = Pick<Codes, "indices" | "offsets">;

export class LookupEngine {
  readonly #client: LookupClient;
  readonly #reader: TextReader | null;

  /** Throws CorruptData, UnsupportedVersion, WrongKey, InvalidInput. */
  constructor(native: LookupNative, { description, file, passphrase, reader }: LookupChoices) {
    this.#reader = reader === undefined ? null : new TextReader(reader);
    if (file !== undefined) this.#client = native.LookupClient.fromFile(file, passphrase);
    else if (description !== undefined) this.#client = native.LookupClient.generate(description);
    else throw new InvalidInput("a description of tables, or a key file, is needed; none was given.");
    const { tables, columns, pooling } = this.facts();
    const fits =
      this.#reader === null ||
      (tables === this.#reader.tables && columns === this.#reader.bias.length && pooling === "mean");
    if (!fits) {
      this.#client.free();
      throw new InvalidInput("the key was made for other tables than those of this classifier.");
    }
  }

  facts(): LookupFacts & { keyId: string; classes: readonly (string | number)[] | null } {
    return { ...this.#client.facts(), keyId: this.#client.keyId, classes: this.#reader?.classes ?? null };
  }

  /** Evaluation keys that the server needs first; null where it needs none. Not secret. */
  keys(): Uint8Array | null {
    return this.#client.keys() ?? null;
  }

  /** Tokens, encrypted. Throws InvalidInput for an index that the tables don't have, a document over the limit. */
  query({ indices, offsets }: Tokens): Uint8Array {
    return this.#client.query(indices, offsets);
  }

  /** The rows of an answer. Throws WrongKey, InvalidInput, CorruptData. */
  decode(answer: Uint8Array): Float64Array[] {
    const numbers = this.#client.decode(answer);
    const { columns } = this.#client.facts();
    return Array.from({ length: numbers.length / columns }, (_, i) =>
      numbers.slice(i * columns, (i + 1) * columns),
    );
  }

  /** Texts, encrypted; of each, whether it was cut off, and how many of its tokens are unknown. */
  encrypt(texts: readonly string[]): { query: Uint8Array; truncated: boolean[]; unknown: number[] } {
    const { indices, offsets, truncated, unknown } = this.#texts().codes(texts);
    return { query: this.#client.query(indices, offsets), truncated, unknown };
  }

  /** Labels and margins. */
  answers(answer: Uint8Array): TextAnswers {
    return this.#texts().answers(this.decode(answer));
  }

  toFile(passphrase: string | undefined, plain: boolean | undefined): Uint8Array {
    return this.#client.toFile(passphrase, plain);
  }

  free(): void {
    this.#client.free();
  }

  #texts(): TextReader {
    if (this.#reader === null)
      throw new InvalidInput("this client looks up indices; texts need a classifier's reader.");
    return this.#reader;
  }
}
