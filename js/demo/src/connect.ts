/** The key holder's client, for both pages: with a new key or that of a file, of the server that the page's address names. */

import { Client, Keys } from "@ciphervec/client";

/** A key file's bytes, and what decrypts them. */
export interface KeyFile {
  bytes: Uint8Array;
  passphrase: string;
}

/** This page's own origin, where its server is in front of it; else the address that the page was opened with. */
const SERVER = new URLSearchParams(location.search).get("server") ?? location.origin;

/** Throws WrongKey for another passphrase. */
export async function connect(file?: KeyFile): Promise<{ keys: Keys; client: Client }> {
  const keys =
    file === undefined
      ? await Keys.generate()
      : await Keys.fromFile(file.bytes, { passphrase: file.passphrase });
  return { keys, client: new Client({ url: SERVER, keys }) };
}
