/**
 * Passkeys that open key files, by WebAuthn's PRF extension. On the page: Workers can't ask an authenticator. No server takes part, so that
 * nothing is registered anywhere: a credential is of use for what its PRF gives alone.
 */

import { CiphervecError, InvalidInput } from "./errors.js";
import { own } from "./ingest/bytes.js";
import { known, type Names } from "./known.js";

/** Who a passkey is made for. */
export interface PasskeyOptions {
  /** What the person's password manager calls it. */
  name: string;
  /** The domain whose pages may use it: this page's, or one above it. This page's, unless given. */
  rp?: string;
  /** What the person reads when asked; the domain, unless given. */
  rpName?: string;
  /** Ends the question. */
  signal?: AbortSignal;
}

/** What is asked, to open a key file. */
export interface PasskeyQuestion {
  rp: string;
  credential: Uint8Array;
  salt: Uint8Array;
}

const PASSKEY: Names<PasskeyOptions> = { name: true, rp: true, rpName: true, signal: true };
const SALT = 32;
/** ES256, EdDSA and RS256. Nobody verifies a signature here; an authenticator wants to know which it could make. */
const ALGORITHMS = [-7, -8, -257].map((alg) => ({ type: "public-key" as const, alg }));

/** A credential of an authenticator that gives secrets of its own: the person's device, phone or security key. */
export class Passkey {
  /** The domain whose pages may use it. */
  readonly rp: string;
  /** Its public name. */
  readonly credential: Uint8Array;

  private constructor(rp: string, credential: Uint8Array) {
    this.rp = rp;
    this.credential = credential;
  }

  /**
   * Has the person make a passkey; call it where they clicked. Throws InvalidInput where the browser or the authenticator has no PRF, and
   * CiphervecError if the person declines.
   */
  static async create(options: PasskeyOptions): Promise<Passkey> {
    const here = typeof location === "undefined" ? "" : location.hostname;
    const { name, rp = here, rpName = rp, signal } = known(options, PASSKEY, "Passkey.create");
    const publicKey: PublicKeyCredentialCreationOptions = {
      challenge: random(),
      rp: { id: rp, name: rpName },
      user: { id: random(), name, displayName: name },
      pubKeyCredParams: ALGORITHMS,
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      extensions: { prf: {} },
    };
    const made = await asked((authenticators) =>
      authenticators.create({ publicKey, ...(signal && { signal }) }),
    );
    if (made.getClientExtensionResults().prf?.enabled !== true)
      throw new InvalidInput(
        "this authenticator can't open key files: it lacks WebAuthn's PRF extension. Delete the passkey that was made, and take another " +
          "authenticator, or toFile({ passphrase }).",
      );
    return new Passkey(rp, new Uint8Array(made.rawId));
  }

  /** A passkey that is there already, by its domain and the id of its credential. */
  static of(rp: string, credential: Uint8Array): Passkey {
    return new Passkey(rp, new Uint8Array(credential));
  }

  /** A new salt for a file, and what the authenticator gives for it. Not for callers. */
  async drawn(): Promise<{ question: PasskeyQuestion; output: Uint8Array }> {
    const question = { rp: this.rp, credential: this.credential, salt: random() };
    return { question, output: await answer(question) };
  }
}

/** What the authenticator gives. Throws CiphervecError if the person declines, InvalidInput where nothing can be asked. */
export async function answer({ rp, credential, salt }: PasskeyQuestion): Promise<Uint8Array> {
  const publicKey: PublicKeyCredentialRequestOptions = {
    challenge: random(),
    rpId: rp,
    allowCredentials: [{ type: "public-key", id: new Uint8Array(credential) }],
    userVerification: "required",
    extensions: { prf: { eval: { first: new Uint8Array(salt) } } },
  };
  const given = await asked((authenticators) => authenticators.get({ publicKey }), rp);
  const first = given.getClientExtensionResults().prf?.results?.first;
  if (first === undefined)
    throw new InvalidInput(
      `the authenticator gave nothing for a key file: it lacks WebAuthn's PRF extension.`,
    );
  // It goes to the Worker, and nothing of it stays on the page.
  const { buffer, byteOffset, byteLength } = first instanceof ArrayBuffer ? new Uint8Array(first) : first;
  return own(new Uint8Array(buffer.slice(byteOffset, byteOffset + byteLength)));
}

async function asked(
  ask: (authenticators: CredentialsContainer) => Promise<Credential | null>,
  rp?: string,
): Promise<PublicKeyCredential> {
  const authenticators = typeof navigator === "undefined" ? undefined : navigator.credentials;
  if (authenticators === undefined || typeof PublicKeyCredential === "undefined") {
    const of = rp === undefined ? "of its domain" : `of ${rp}`;
    throw new InvalidInput(`a passkey is asked for on a page ${of}, over HTTPS, in a browser with WebAuthn.`);
  }
  try {
    return (await ask(authenticators)) as PublicKeyCredential;
  } catch (error) {
    const { name, message } = error as DOMException;
    if (name === "SecurityError")
      throw new InvalidInput(
        `pages of ${location.hostname} may not use passkeys of ${rp ?? "that domain"}: ${message}`,
      );
    throw new CiphervecError(`the passkey was not used (${name}): ${message}`);
  }
}

function random(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(SALT));
}
