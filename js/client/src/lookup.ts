/** `@ciphervec/client/lookup`: private lookup in tables that a server holds, and classification of encrypted texts. Page. */

import { Held } from "./held.js";
import "./dispose.js";
import { Engine, whole } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { own } from "./ingest/bytes.js";
import {
  type Bytes,
  bytesOf,
  ENGINE,
  FILE,
  type FileOptions,
  PROTECTION,
  type Protection,
  type Written,
} from "./keys.js";
import { known } from "./known.js";
import type { LookupFacts } from "./native.js";
import type { TextAnswers } from "./text/reader.js";
import { type Handle, ROOT } from "./worker/messages.js";

export type { LookupFacts } from "./native.js";
export type { TextAnswers } from "./text/reader.js";

/** The index of a token that stands for nothing; in all tables or in none. */
export const PADDING = -1;

/** A token: the row of the only table, or of each table one. */
export type Token = number | readonly number[];

type Facts = LookupFacts & { keyId: string; classes: readonly (string | number)[] | null };

abstract class Half extends Held {
  protected readonly all: Facts;

  constructor(engine: Engine, { handle, facts }: { handle: Handle; facts: Facts }) {
    super(engine, handle);
    this.all = facts;
  }

  /** What the server's description says: strategy, pooling, sizes, and by how much a number may be off. */
  get facts(): LookupFacts {
    const { keyId: _, classes: __, ...facts } = this.all;
    return facts;
  }

  /** The public name of the key, in hexadecimal. */
  get keyId(): string {
    return this.all.keyId;
  }

  /** Evaluation keys for the server's `register`, made anew at each call; null where the strategy needs none. Not secret. */
  keys(): Promise<Uint8Array | null> {
    return this.engine.call(this.handle, "keys", []);
  }

  /** The bytes of a key file, encrypted under the passphrase; in clear only where that is asked for. Python reads it. */
  async toFile(protection: Protection): Promise<Uint8Array> {
    const { passphrase, allowPlaintext } = known(protection as Written, PROTECTION, "toFile");
    return this.engine.call(this.handle, "toFile", [passphrase, allowPlaintext]);
  }
}

/** Who looks up: a secret key, made for the tables that a server described. */
export class LookupClient extends Half {
  /** A fresh key. Rejects with CorruptData or UnsupportedVersion for anything but a server's description. */
  static async generate(description: Bytes, options: { engine?: Engine } = {}): Promise<LookupClient> {
    const { engine = Engine.shared() } = known(options, ENGINE, "LookupClient.generate");
    return new LookupClient(engine, await opened(engine, { description: await bytesOf(description) }));
  }

  /** Read what `toFile`, or Python's `save`, wrote. Rejects with WrongKey, CorruptData. */
  static async fromFile(file: Bytes, options: FileOptions = {}): Promise<LookupClient> {
    const { passphrase, engine = Engine.shared() } = known(options, FILE, "LookupClient.fromFile");
    return new LookupClient(engine, await opened(engine, { file: await bytesOf(file), passphrase }));
  }

  /** Documents, encrypted: the tokens of each; where nothing is pooled, a single one, of which every row comes back. */
  async query(documents: readonly (readonly Token[])[]): Promise<Uint8Array> {
    const { tables, pooling } = this.facts;
    if (pooling === "none" && documents.length !== 1)
      throw new InvalidInput(
        `these tables give every row: pass one list of tokens, got ${documents.length}.`,
      );
    const tokens = documents.flat() as Token[];
    const indices = new Int32Array(tokens.length * tables);
    tokens.forEach((token, i) => {
      const rows = typeof token === "number" ? [token] : token;
      if (rows.length !== tables || !rows.every((row) => Number.isInteger(row) && Math.abs(row) < 2 ** 31))
        throw new InvalidInput(
          `token ${i} must have a whole number for each of ${tables} tables, got ${JSON.stringify(token)}.`,
        );
      indices.set(rows, i * tables);
    });
    const each = pooling === "none" ? tokens.map(() => 1) : documents.map((one) => one.length);
    const offsets = new Uint32Array(each.length + 1);
    each.forEach((length, i) => {
      offsets[i + 1] = (offsets[i] as number) + length;
    });
    return this.engine.call(this.handle, "query", [{ indices: own(indices), offsets: own(offsets) }]);
  }

  /** A row for each document, or for each token where nothing is pooled. Rejects with WrongKey, InvalidInput, CorruptData. */
  async decode(answer: Bytes): Promise<Float64Array[]> {
    return this.engine.call(this.handle, "decode", [await bytesOf(answer)]);
  }
}

/** Who has texts to classify: a reader, which is public, and a secret key. */
export class TextClient extends Half {
  /** A fresh key for the tables that a server described. `reader` is what Python's `model.reader().to_bytes()` gives. */
  static async generate(
    reader: Bytes,
    description: Bytes,
    options: { engine?: Engine } = {},
  ): Promise<TextClient> {
    const { engine = Engine.shared() } = known(options, ENGINE, "TextClient.generate");
    const choices = { reader: await bytesOf(reader), description: await bytesOf(description) };
    return new TextClient(engine, await opened(engine, choices));
  }

  /** The same with a key that was kept. */
  static async fromFile(reader: Bytes, file: Bytes, options: FileOptions = {}): Promise<TextClient> {
    const { passphrase, engine = Engine.shared() } = known(options, FILE, "TextClient.fromFile");
    return new TextClient(
      engine,
      await opened(engine, { reader: await bytesOf(reader), file: await bytesOf(file), passphrase }),
    );
  }

  get classes(): readonly (string | number)[] {
    return this.all.classes ?? [];
  }

  /** Texts, encrypted; of each, whether it was cut off, and how many of its tokens the classifier doesn't know. */
  encrypt(texts: readonly string[]): Promise<{ query: Uint8Array; truncated: boolean[]; unknown: number[] }> {
    return this.engine.call(this.handle, "encrypt", [texts]);
  }

  /** Labels and margins. A text without tokens has the bias as its margin. Rejects with WrongKey, InvalidInput, CorruptData. */
  async decode(answer: Bytes): Promise<TextAnswers> {
    return this.engine.call(this.handle, "answers", [await bytesOf(answer)]);
  }
}

function opened(engine: Engine, choices: object): Promise<{ handle: Handle; facts: Facts }> {
  return whole(engine).call(ROOT, "openLookup", [choices]);
}
