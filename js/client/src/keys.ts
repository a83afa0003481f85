/** Key files, passphrases and recovery phrases on the page. Keys stay in the Worker; the page has handles of them. */

import "./dispose.js";
import { Engine } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { Held } from "./held.js";
import { own } from "./ingest/bytes.js";
import { known, type Names } from "./known.js";
import { answer, Passkey, type PasskeyQuestion } from "./passkey.js";
import { type Handle, ROOT } from "./worker/messages.js";

/** The bytes of a file, as an input element or a fetch gives them. */
export type Bytes = Uint8Array | ArrayBuffer | Blob;

/** What is asked of a file of secret keys. */
export interface FileOptions {
  /** What the file is encrypted under. */
  passphrase?: string;
  /** Where the keys live: the shared Worker, unless given. */
  engine?: Engine;
}

/** What a file is written with: a passphrase, or the word that the key may lie in clear. */
export type Protection = { passphrase: string } | { allowPlaintext: true };
/** How a master key is written: as other secrets, or for a passkey. */
export type KeysProtection = Protection | { passkey: Passkey };
/** The same with either name. */
export type Written = { passphrase?: string; allowPlaintext?: boolean };

/** Whose keys they should be. */
export interface Expected {
  /** Refuse other keys than those of this id. */
  keyId?: string;
}

/** Where it is made. */
export const ENGINE: Names<{ engine?: Engine }> = { engine: true };
/** Of a file of secret keys. */
export const FILE: Names<FileOptions> = { passphrase: true, engine: true };
const EXPECTED: Names<Expected> = { keyId: true };
/** What a secret is written with, by either name. */
export const PROTECTION: Names<Written> = {
  passphrase: true,
  allowPlaintext: true,
};

/** Where a key file says what protects it, and that a wrapping key does. */
const KIND = 12;
const WRAPPED = 7;

/** What the Worker says of a pair. */
interface IdentityFacts {
  handle: Handle;
  name: string;
  fingerprint: string;
  recipient: Uint8Array;
  memberCard: Uint8Array;
}

const MADE = Symbol("made by this package");

abstract class Secret extends Held {
  constructor(made: typeof MADE, engine: Engine, handle: Handle) {
    if (made !== MADE) throw new InvalidInput("use generate(), fromFile() or fromPhrase().");
    super(engine, handle);
  }

  /** The engine of those that name none. */
  protected static shared(): Engine {
    return Engine.shared();
  }

  /** The bytes of a file, encrypted under the passphrase by scrypt and XChaCha20-Poly1305; in clear only where that is asked for. */
  async toFile(protection: Protection): Promise<Uint8Array> {
    const { passphrase, allowPlaintext } = known(protection as Written, PROTECTION, "toFile");
    return this.engine.call(this.handle, "toFile", [passphrase, allowPlaintext]);
  }

  /** Secrets are not written down. */
  toJSON(): never {
    throw new InvalidInput("a secret can't be written as JSON. Use toFile({passphrase}).");
  }
}

/**
 * The key owner's secret: 32 random bytes from which every other key is derived. They are in the Worker; this object is a name for them.
 *
 * Keep them with `toFile`, or write `recoveryPhrase` down on paper. Losing all of these loses the data.
 */
export class Keys extends Secret {
  /** The public name of this key, in hexadecimal. Everything sealed under it carries it. */
  readonly keyId: string;

  /** Not for callers. */
  constructor(made: typeof MADE, engine: Engine, { handle, keyId }: { handle: Handle; keyId: string }) {
    super(made, engine, handle);
    this.keyId = keyId;
  }

  /** A new key from the platform's cryptographic generator. */
  static async generate(options: { engine?: Engine } = {}): Promise<Keys> {
    const { engine = this.shared() } = known(options, ENGINE, "Keys.generate");
    return new this(MADE, engine, await engine.call(ROOT, "generateKeys", []));
  }

  /**
   * Read a key file, of this package or of another of ciphervec's. A file that a passkey opens asks the person for it: call this where they
   * clicked. Throws WrongKey, CorruptData, UnsupportedVersion, InvalidInput; CiphervecError if the person declines.
   */
  static async fromFile(file: Bytes, options: FileOptions & Expected = {}): Promise<Keys> {
    const names = { ...FILE, ...EXPECTED };
    const { passphrase, keyId, engine = this.shared() } = known(options, names, "Keys.fromFile");
    const data = await bytesOf(file);
    if (data[KIND] === WRAPPED) {
      const question: PasskeyQuestion | undefined = await engine.call(ROOT, "passkeyQuestion", [
        new Uint8Array(data),
      ]);
      if (question !== undefined) {
        const output = await answer(question);
        return new this(MADE, engine, await engine.call(ROOT, "keysFromPasskey", [data, output, keyId]));
      }
    }
    return new this(MADE, engine, await engine.call(ROOT, "keysFromFile", [data, passphrase, keyId]));
  }

  /** As for other secrets; or for a passkey, which then opens the file instead of a passphrase. Keep a copy by another way: it may get lost. */
  override async toFile(protection: KeysProtection): Promise<Uint8Array> {
    if (!("passkey" in protection)) return super.toFile(protection);
    const { passkey } = known(protection, { passkey: true }, "toFile");
    if (!(passkey instanceof Passkey)) throw new InvalidInput("passkey must be what Passkey.create() made.");
    const { question, output } = await passkey.drawn();
    return this.engine.call(this.handle, "toPasskeyFile", [question, output]);
  }

  /** The key that `recoveryPhrase` gave; case and spaces don't matter. With `keyId` wrong words are found out for sure. */
  static async fromPhrase(words: string, options: { engine?: Engine } & Expected = {}): Promise<Keys> {
    const names = { ...ENGINE, ...EXPECTED };
    const { keyId, engine = this.shared() } = known(options, names, "Keys.fromPhrase");
    return new this(MADE, engine, await engine.call(ROOT, "keysFromPhrase", [String(words), keyId]));
  }

  /** The key that somebody shared with the holder of `identity`. Throws WrongKey for somebody else, CorruptData. */
  static async openShared(shared: Bytes, identity: Identity, expected: Expected = {}): Promise<Keys> {
    const { keyId } = known(expected, EXPECTED, "Keys.openShared");
    const { engine } = identity;
    const data = await bytesOf(shared);
    return new this(MADE, engine, await engine.call(ROOT, "openShared", [data, identity.handle, keyId]));
  }

  /** The key as 24 English words (BIP-39), to be written down: whoever reads them has it. JavaScript can't wipe the text. */
  recoveryPhrase(): Promise<string> {
    return this.engine.call(this.handle, "recoveryPhrase", []);
  }

  /** Seal the key to people's public keys (HPKE with X-Wing): each of them opens the bytes with `openShared`, and nobody else. */
  async share(recipients: readonly Bytes[]): Promise<Uint8Array> {
    const people = await Promise.all(recipients.map(bytesOf));
    return this.engine.call(this.handle, "share", [people]);
  }

  /**
   * The keys of the tenant of this name, which can be handed out alone: they open what is sealed under them and nothing else. They
   * follow from these keys and the name, so there is nothing to keep. Throws InvalidInput.
   */
  async forTenant(name: string): Promise<Keys> {
    return new Keys(MADE, this.engine, await this.engine.call(this.handle, "forTenant", [String(name)]));
  }

  /** The keys of one collection, in the same way. */
  async forCollection(name: string): Promise<Keys> {
    return new Keys(MADE, this.engine, await this.engine.call(this.handle, "forCollection", [String(name)]));
  }

  /** Whether two are the same key. */
  same(other: Keys): Promise<boolean> {
    return this.engine.call(this.handle, "same", [other.handle]);
  }
}

/** What a member's card says. */
export interface MemberCardFacts {
  name: string;
  fingerprint: string;
}

/**
 * A person's pair, to which those who hold keys can seal them: X-Wing, that is ML-KEM-768 with X25519. Who has one can be a member of
 * collections: a client is made with it in the place of keys.
 */
export class Identity extends Secret {
  readonly name: string;
  /** 32 hexadecimal digits that name the public half: compare them by another way than it came. */
  readonly fingerprint: string;
  /** The bytes of the public half, for whoever shares keys with this person. */
  readonly recipient: Uint8Array;
  /** The bytes of a card, for owners of collections who make this person a member: `members.add`. */
  readonly memberCard: Uint8Array;

  /** Not for callers. */
  constructor(made: typeof MADE, engine: Engine, facts: IdentityFacts) {
    super(made, engine, facts.handle);
    this.name = facts.name;
    this.fingerprint = facts.fingerprint;
    this.recipient = facts.recipient;
    this.memberCard = facts.memberCard;
  }

  /** A new pair for the person of this name, 1 to 64 bytes: those who share see it. */
  static async generate(name: string, options: { engine?: Engine } = {}): Promise<Identity> {
    const { engine = this.shared() } = known(options, ENGINE, "Identity.generate");
    return new this(MADE, engine, await engine.call(ROOT, "generateIdentity", [String(name)]));
  }

  /** Read what `toFile` wrote. Throws WrongKey, CorruptData, UnsupportedVersion, InvalidInput. */
  static async fromFile(file: Bytes, options: FileOptions = {}): Promise<Identity> {
    const { passphrase, engine = this.shared() } = known(options, FILE, "Identity.fromFile");
    return new this(
      MADE,
      engine,
      await engine.call(ROOT, "identityFromFile", [await bytesOf(file), passphrase]),
    );
  }

  /** Whose card it is: compare the fingerprint with its holder. Throws CorruptData, UnsupportedVersion. */
  static async readMemberCard(card: Bytes, options: { engine?: Engine } = {}): Promise<MemberCardFacts> {
    const { engine = this.shared() } = known(options, ENGINE, "Identity.readMemberCard");
    return engine.call(ROOT, "readMemberCard", [await bytesOf(card)]);
  }
}

/** A copy of the bytes, which may go to the Worker. Throws InvalidInput. */
export async function bytesOf(file: Bytes): Promise<Uint8Array> {
  if (file instanceof Uint8Array) return own(new Uint8Array(file));
  if (file instanceof ArrayBuffer) return own(new Uint8Array(file.slice(0)));
  if (typeof Blob !== "undefined" && file instanceof Blob)
    return own(new Uint8Array(await file.arrayBuffer()));
  throw new InvalidInput(
    `bytes expected (a Uint8Array, an ArrayBuffer, a Blob or File), got ${typeof file}.`,
  );
}

const COMMON =
  /pass(word|wort|phrase)?|qwert[yz]\w*|letmein|admin|welcome|secret|iloveyou|monkey|dragon|ciphervec|abc(def)?|0?1?2?345?6?7?8?9?0?|asdf\w*|test|default|changeme|master/gi;
const ALPHABETS: readonly (readonly [RegExp, number])[] = [
  [/[a-z]/, 26],
  [/[A-Z]/, 26],
  [/[0-9]/, 10],
  [/[^a-zA-Z0-9]/, 33],
];
const LEAST_BITS = 50;

/**
 * About how many bits a passphrase is worth, and whether a file under it holds if it is copied. Common words count as one character,
 * repeated characters little.
 */
export function passphraseStrength(passphrase: string): { bits: number; enough: boolean } {
  const rest = passphrase.replace(COMMON, "*");
  const size = ALPHABETS.reduce((sum, [pattern, letters]) => sum + (pattern.test(rest) ? letters : 0), 0);
  const characters = [...rest];
  const effective = Math.min(characters.length, 3 * new Set(characters).size);
  const bits = effective * Math.log2(Math.max(size, 2));
  return { bits, enough: bits >= LEAST_BITS };
}
