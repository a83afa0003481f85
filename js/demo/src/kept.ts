/** Keeps a key file in this browser's local storage, encrypted under its passphrase. */

const NAME = "ciphervec-demo-key-file";

/** The file that was kept in this browser, or null. */
export function read(): Uint8Array<ArrayBuffer> | null {
  const kept = localStorage.getItem(NAME);
  return kept === null ? null : Uint8Array.from(atob(kept), (character) => character.charCodeAt(0));
}

export function write(file: Uint8Array): void {
  localStorage.setItem(NAME, btoa(Array.from(file, (byte) => String.fromCharCode(byte)).join("")));
}
