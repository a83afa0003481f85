/** Reads the public header of a stored blob. See docs/formats.md. */

/** One field of a header, and where it lies. */
export interface Field {
  name: string;
  value: string;
  from: number;
  to: number;
}

const KINDS: Record<number, string> = {
  1: "spec",
  2: "segment",
  3: "query",
  4: "response",
  5: "evaluation keys",
  6: "public key",
  8: "ciphertexts",
  10: "encrypted vectors",
  13: "wrapped segment key",
  22: "query that names segments",
};
const SCHEMES = [
  "plain",
  "compact",
  "ring",
  "Paillier",
  "Damgård–Jurik",
  "Okamoto–Uchiyama",
  "ElGamal",
  "CKKS",
  "private lookup",
];
const HEADER = 64;
const SEGMENT = 2;

/** The fields of a frame's header; none where the bytes are no frame. */
export function readFrame(bytes: Uint8Array): Field[] {
  const magic = new TextDecoder("latin1").decode(bytes.subarray(0, 4));
  if (magic !== "CVEC" || bytes.length < HEADER) return [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kind = view.getUint8(7);
  const fields: Field[] = [
    { name: "magic", value: "CVEC", from: 0, to: 4 },
    { name: "version", value: String(view.getUint16(4, true)), from: 4, to: 6 },
    { name: "scheme", value: SCHEMES[view.getUint8(6)] ?? "another", from: 6, to: 7 },
    { name: "kind", value: KINDS[kind] ?? "another", from: 7, to: 8 },
    { name: "parameters", value: hex(bytes.subarray(8, 16)), from: 8, to: 16 },
    { name: "key id", value: hex(bytes.subarray(16, 24)), from: 16, to: 24 },
    { name: "length", value: view.getBigUint64(24, true).toLocaleString("en"), from: 24, to: 32 },
    { name: "checksum", value: `${hex(bytes.subarray(32, 36))}…`, from: 32, to: 64 },
  ];
  if (kind === SEGMENT && bytes.length >= HEADER + 32) {
    fields.push(
      { name: "segment", value: `${hex(bytes.subarray(64, 68))}…`, from: 64, to: 80 },
      { name: "index", value: hex(bytes.subarray(80, 88)), from: 80, to: 88 },
      { name: "rows", value: view.getUint32(88, true).toLocaleString("en"), from: 88, to: 92 },
      { name: "level", value: String(view.getUint8(92)), from: 92, to: 93 },
    );
  }
  return fields;
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
