/**
 * The files of vectors/ that a client reads, read by the wasm, and made again where nothing in them is drawn. Where the format allows it, an
 * independent implementation (noble's scrypt, BLAKE3, XChaCha20-Poly1305, X-Wing) reads them too. vectors/SOURCES.md says what they hold.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chacha20poly1305, xchacha20poly1305 } from "@noble/ciphers/chacha.js";
import { blake3 } from "@noble/hashes/blake3.js";
import { scrypt } from "@noble/hashes/scrypt.js";
import { shake256 } from "@noble/hashes/sha3.js";
import { ml_kem768_x25519 as XWing } from "@noble/post-quantum/hybrid.js";
import { beforeAll, describe, expect, test } from "vitest";
import { concat, hex, utf8 } from "../../src/ingest/bytes.js";
import { answer, Passkey } from "../../src/passkey.js";
import { lookup } from "../../src/platform/node-engine.js";
import type { Keys, Owner, StateFacts } from "../wasm/ciphervec.js";
import * as native from "../wasm/ciphervec.js";

const FOLDER = fileURLToPath(new URL("../../../../vectors/", import.meta.url));
const get = (...path: string[]): Uint8Array => new Uint8Array(readFileSync(join(FOLDER, ...path)));
const MASTER = utf8("a published key protects nothing");
const ROWS = Float32Array.of(1, 0, 0, 0.6, 0.8, 0, -2, 1, 2);
const QUERY = Float32Array.of(0, 3, 4);
const DISTANCES = [12, 21.2, 26];
const SEGMENT = utf8("segment of three");
const EPOCH = 5;

const u64 = (value: number): Uint8Array => {
  const out = new Uint8Array(8);
  new DataView(out.buffer).setBigUint64(0, BigInt(value), true);
  return out;
};
const u16 = (value: number): Uint8Array => Uint8Array.of(value >> 8, value & 255);
const framed = (...parts: Uint8Array[]): Uint8Array =>
  concat(parts.flatMap((part) => [u64(part.length), part]));
/** BLAKE3's derive_key of the master key, as docs/sealed.md has it. */
const derived = (purpose: string, ...parts: Uint8Array[]): Uint8Array =>
  blake3(concat([MASTER, framed(...parts)]), { context: utf8(`ciphervec v1 ${purpose}`) });
/** What opens an envelope: nonce 24, ciphertext, tag. */
const opened = (key: Uint8Array, sealed: Uint8Array, associated: Uint8Array): Uint8Array =>
  xchacha20poly1305(key, sealed.subarray(0, 24), associated).decrypt(sealed.subarray(24));

let keys: Keys;
beforeAll(() => {
  native.initSync({ module: readFileSync(new URL("../wasm/ciphervec_bg.wasm", import.meta.url)) });
  keys = native.Keys.fromMaster(MASTER);
});

const INDEXES = [
  ...["open", "sealed-index", "sealed-index-small", "sealed-index-wide", "sealed-query", "sealed"].map(
    (name) => ["v1", name] as const,
  ),
  ...["sealed-index", "sealed-index-small", "sealed-index-wide"].map((name) => ["v2", name] as const),
];

describe.each(INDEXES)("%s/%s", (version, name) => {
  const read = (file: string) => get(version, name, file);
  const open = () => {
    const spec = native.IndexSpec.fromBytes(read("spec"));
    const owner = new native.Owner(keys, spec);
    const directory = new native.SegmentDirectory();
    const id = read("segment").slice(64, 80);
    owner.addTo(directory, id, read("sidecar"), undefined, undefined, "new");
    return { spec, owner, directory, id };
  };

  test("the description is written as it was, the sidecar names the rows, the answer ranks them", () => {
    const { spec, owner, directory, id } = open();
    expect(spec.toBytes()).toEqual(read("spec"));
    expect(directory.names(id)).toEqual(["one", 2, "three"]);
    const query = owner.query(QUERY, directory, EPOCH, [], undefined, "first");
    // Where rows and queries are encrypted, an answer opens with its own query alone.
    if (name !== "sealed") {
      const { answers } = owner.open(query, read("response"), directory, 3);
      expect(answers[0]?.ids).toEqual(["three", 2, "one"]);
      answers[0]?.scores.forEach((score, i) => {
        expect(Math.abs(score - (DISTANCES[i] as number))).toBeLessThan(0.01);
      });
    }
    const rows = owner.unseal(read("segment"), directory);
    const lengths = [1, 1, 3];
    rows.forEach((value, i) => {
      expect(Math.abs(value - (ROWS[i] as number) / (lengths[Math.floor(i / 3)] as number))).toBeLessThan(
        2e-3,
      );
    });
    expect(directory.exactness(id)).toBe(
      version === "v2"
        ? "exact"
        : name === "open"
          ? "exact"
          : name.startsWith("sealed-index")
            ? "outdated"
            : "noisy",
    );
  });

  test("plain queries are the bytes that they were; a bit changed anywhere in the answer is found out, or changes nothing", () => {
    const { owner, directory } = open();
    const query = owner.query(QUERY, directory, EPOCH, [], undefined, "first");
    if (name === "open") expect(query.toBytes()).toEqual(read("query"));
    const response = read("response");
    const step = Math.max(1, Math.floor(response.length / 40));
    for (let at = 0; at < response.length; at += step) {
      const changed = response.map((byte, i) => (i === at ? byte ^ 16 : byte));
      try {
        const { answers } = owner.open(query, changed, directory, 3);
        // Formats of release 0.1 have no witness: there the words themselves are not vouched for.
        if (version === "v2") expect(answers[0]?.ids).toEqual(["three", 2, "one"]);
      } catch (error) {
        expect((error as Error).name).toMatch(
          /CorruptData|TamperedAnswer|WrongKey|UnsupportedVersion|InvalidInput/,
        );
      }
    }
    for (const length of [0, 1, 63, response.length - 1])
      expect(() => owner.open(query, response.subarray(0, length), directory, 3)).toThrow();
  });

  // What mode `open` stores is under a published key.
  test.skipIf(name === "open")(
    "the sidecar is an envelope that noble opens, under a key derived as docs/sealed.md says",
    () => {
      const { id } = open();
      // What follows the header of the description's frame: none of these indexes has an incarnation.
      const binding = read("spec").subarray(64);
      const sidecar = read("sidecar");
      const place = framed(utf8("ciphervec v1 sidecar"), binding, id);
      const plain = opened(
        derived("aead", binding),
        sidecar.subarray(12),
        framed(utf8("sidecar"), sidecar.subarray(0, 12), place),
      );
      expect(new DataView(plain.buffer, plain.byteOffset).getUint32(0, true)).toBe(3);
      expect(new TextDecoder().decode(plain)).toContain("onethree");
    },
  );
});

describe("key files", () => {
  const PASSPHRASE = "published, too";
  /** Opened as crates/owner/src/protect/keyfile.rs says: version u32, kind u8, log2 N, r, p, key id 16, salt 32, envelope; BLAKE3 of all before. */
  const byNoble = (file: Uint8Array, passphrase: string): Uint8Array => {
    const [logN, r, p] = [file[13] as number, file[14] as number, file[15] as number];
    expect(blake3(file.subarray(0, -32))).toEqual(file.slice(-32));
    const key = scrypt(utf8(passphrase), file.slice(32, 64), { N: 2 ** logN, r, p, dkLen: 32 });
    return opened(key, file.subarray(64, -32), file.subarray(0, 64));
  };

  test("of a known answer, and of the wasm, are opened by scrypt and XChaCha20-Poly1305 of noble", () => {
    expect(byNoble(get("v1", "at-rest", "encrypted.key"), PASSPHRASE)).toEqual(MASTER);
    const made = keys.toFile("words of the wasm");
    expect(byNoble(made, "words of the wasm")).toEqual(MASTER);
    expect(native.Keys.fromFile(made, "words of the wasm").same(keys)).toBe(true);
    expect(hex(derived("key-id").slice(0, 8))).toBe(keys.keyId);
  });

  test("for a passkey are opened by what its PRF gave, by noble too, and by nothing else", async () => {
    const [credential, salt, output] = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte)) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ];
    const file = keys.toPasskeyFile("example.org", credential, salt, output);
    const uri = `passkey:example.org/${"01".repeat(32)}`;
    // The URI behind 32 bytes, the salt and the sealed file key behind that, each with its length as u16 before it.
    const [after, sealed] = [32 + 2 + uri.length, 32 + 2 + uri.length + 2 + 32 + 24 + 32 + 16];
    expect(new TextDecoder().decode(file.subarray(34, after))).toBe(uri);
    const wrapping = blake3(output, { context: utf8("ciphervec v1 passkey") });
    const bound = Uint8Array.from([...utf8(uri), ...salt]);
    const fileKey = opened(wrapping, file.subarray(after + 2 + 32, sealed), bound);
    expect(opened(fileKey, file.subarray(sealed, -32), file.subarray(0, sealed))).toEqual(MASTER);
    expect(native.passkeyQuestion(file)).toEqual({ rp: "example.org", credential, salt });
    expect(native.passkeyQuestion(keys.toFile("a passphrase"))).toBeUndefined();
    expect(native.Keys.fromPasskeyFile(file, output).same(keys)).toBe(true);
    expect(() => native.Keys.fromPasskeyFile(file, salt)).toThrow("gave another key");
    // No authenticator is here.
    await expect(answer({ rp: "example.org", credential, salt })).rejects.toThrow("a page of example.org");
    await expect(Passkey.create({ name: "Ada" })).rejects.toThrow("a page of its domain");
  });

  test("whose name is not that of the key inside are refused", () => {
    // Both of vectors/v1/at-rest are named by sixteen bytes of 0xc1.
    expect(() => native.Keys.fromFile(get("v1", "at-rest", "plain.key"))).toThrow("5007dd28318a6a36");
    expect(() => native.Keys.fromFile(get("v1", "at-rest", "encrypted.key"), PASSPHRASE)).toThrow(
      "c1c1c1c1c1c1c1c1",
    );
    expect(() => native.Keys.fromFile(get("v1", "at-rest", "encrypted.key"), "another")).toThrow();
  });

  test("of release 0.1 are read", () => {
    expect(native.Keys.fromFile(get("v1", "collections-0.1", "plain.key")).keyId).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe("what lies beside segments", () => {
  const binding = utf8("vectors");
  const name = (id: string | number): Uint8Array =>
    typeof id === "string" ? concat([Uint8Array.of(1), utf8(id)]) : concat([Uint8Array.of(0), u64(id)]);

  test.each(["records", "records-2"])("%s, by noble", (file) => {
    const bytes = get("v1", "at-rest", file);
    expect(native.RecordBatch.fromBytes(bytes).length).toBe(3);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const tags = view.getUint32(8, true) === 1 ? 3 * 16 : 0;
    const offsets = [0, 1, 2, 3].map((i) => Number(view.getBigUint64(16 + tags + 8 * i, true)));
    const start = bytes.length - (offsets[3] as number);
    const record = (row: number, id: string | number) =>
      opened(
        MASTER,
        bytes.subarray(start + (offsets[row] as number), start + (offsets[row + 1] as number)),
        framed(utf8("ciphervec v1 record"), binding, SEGMENT, Uint8Array.of(row, 0, 0, 0), name(id)),
      );
    expect(new TextDecoder().decode(record(0, "one"))).toBe("first");
    expect(record(1, 2).length).toBe(0);
    expect(() => record(0, "two")).toThrow();
  });

  test("filter tags are written as they were", () => {
    const tags = native.FilterTags.fromBytes(get("v1", "at-rest", "tags"));
    expect(tags.length).toBe(3);
    expect(tags.toBytes()).toEqual(get("v1", "at-rest", "tags"));
  });

  const owner = (): Owner =>
    new native.Owner(
      keys,
      new native.IndexSpec(
        "vectors",
        8,
        "l2",
        "sealed",
        "standard",
        "lattice",
        undefined,
        new Uint8Array(16).fill(1),
      ),
    );
  const filled = (length: number, byte: number) => new Uint8Array(length).fill(byte);
  const facts = (routing: number): StateFacts => ({
    consumed: filled(32, 0),
    quarantine: [],
    origin: filled(16, 1),
    lineage: filled(16, 2),
    begun: 1_790_000_000n,
    sequence: 2n,
    epoch: 1,
    segments: 1,
    segmentsDigest: native.stateDigest(
      native.stateLeaf({
        segmentId: SEGMENT,
        rows: 3,
        deleted: [1],
        blobs: ["rows", "sidecar"],
        digests: { sidecar: filled(32, 3) },
      }),
    ),
    description: filled(32, 4),
    evaluation: filled(32, 5),
    keyPair: filled(32, 0),
    ancestors: [filled(16, 6), filled(16, 7)],
    aside: [{ segmentId: filled(16, 8), rows: Uint32Array.of(0, 2) }],
    routing: filled(32, routing),
  });

  test.each([
    ["state", 0],
    ["state-2", 9],
  ])("%s is made again to the byte, and vouched for by a keyed BLAKE3", (file, routing) => {
    const bytes = get("v1", "at-rest", file);
    const own = owner();
    expect(own.sealState(facts(routing))).toEqual(bytes);
    expect(own.openState(bytes)).toEqual({ key: keys.keyId, ...facts(routing) });
    const spec = get("v1", "at-rest", "incarnation");
    expect(native.IndexSpec.fromBytes(spec).toBytes()).toEqual(spec);
    for (let at = 0; at < bytes.length; at++)
      expect(() => own.openState(bytes.map((byte, i) => (i === at ? byte ^ 1 : byte)))).toThrow();
    const name = blake3(bytes, { context: utf8("ciphervec v1 state-name") }).slice(0, 16);
    expect(native.stateName(bytes)).toEqual(name);
  });

  test("BLAKE3 of the wasm is noble's, at every length about a block and a chunk", () => {
    for (const length of [0, 1, 63, 64, 65, 1023, 1024, 1025, 3 << 20]) {
      const data = Uint8Array.from({ length }, (_, i) => i % 251);
      expect(native.blake3(data)).toEqual(blake3(data));
    }
  });
});

describe("cards", () => {
  const read = (file: string) => get("v1", "writers", file);

  test("the owner writes the same card again, and opens what a writer sealed", () => {
    const owner = new native.Owner(keys, new native.IndexSpec("doors", 3, "l2", "sealed-index"));
    const card = native.WriterCard.fromBytes(read("card"));
    expect(card.fingerprint).toBe("86420de4c7d4f8070ac117c4ce627238");
    expect(owner.writerCard("door 3", ["colour", "größe"]).toBytes()).toEqual(read("card"));
    expect(owner.knowsCard(card)).toBe(true);
    const directory = new native.SegmentDirectory();
    const id = read("segment").slice(64, 80);
    owner.addTo(directory, id, read("sidecar"), undefined, read("wrap"), "appended");
    expect(directory.origin(id)).toEqual({ kind: "writer", writer: "door 3" });
    expect(directory.names(id)).toEqual(["one", 2]);
    const records = native.RecordBatch.fromBytes(read("records"));
    expect(new TextDecoder().decode(owner.openRecord(id, records, 0, "one", directory))).toBe("first");
    expect(() =>
      native.WriterCard.fromBytes(read("card").map((byte, i) => (i === 200 ? byte ^ 1 : byte))),
    ).toThrow();
  });
});

describe("keys shared with people", () => {
  const read = (file: string) => get("v1", "sharing", file);
  const SUITE = concat([utf8("HPKE"), u16(0x647a), u16(0x0011), u16(0x0003)]);
  const prefixed = (bytes: Uint8Array) => concat([u16(bytes.length), bytes]);
  /** LabeledDerive of draft-ietf-hpke-pq for a one-stage KDF, here SHAKE256. */
  const derive = (suite: Uint8Array, ikm: Uint8Array, label: string, context: Uint8Array, length: number) =>
    shake256(concat([ikm, utf8("HPKE-v1"), suite, prefixed(utf8(label)), u16(length), context]), {
      dkLen: length,
    });
  /** A pair in clear: its seed stands where a master key would. */
  const pair = (file: Uint8Array) => {
    const seed = file.slice(36, 68);
    const dk = derive(concat([utf8("KEM"), u16(0x647a)]), seed, "DeriveKeyPair", new Uint8Array(0), 32);
    return XWing.keygen(dk);
  };

  test("each of them opens it, and has the public key that X-Wing of noble makes of the seed", () => {
    const shared = native.SharedKeys.fromBytes(read("shared-keys"));
    expect(shared.recipients.map(({ name }) => name)).toEqual(["alice", "bob"]);
    expect(shared.toBytes()).toEqual(read("shared-keys"));
    for (const name of ["alice", "bob"]) {
      const identity = native.Identity.fromFile(read(`${name}.key`));
      expect(identity.recipient.toBytes()).toEqual(read(`${name}.pub`));
      expect(shared.open(identity).same(keys)).toBe(true);
      const { publicKey } = pair(read(`${name}.key`));
      expect(Buffer.from(read(`${name}.pub`)).includes(Buffer.from(publicKey))).toBe(true);
    }
  });

  test("noble's X-Wing, SHAKE256 and ChaCha20-Poly1305 take the master key out of the file", () => {
    const bytes = read("shared-keys");
    const alice = native.Identity.fromFile(read("alice.key"));
    const { secretKey } = pair(read("alice.key"));
    const at = Buffer.from(bytes).indexOf(Buffer.from(alice.recipient.fingerprint, "hex"));
    const length = bytes[at + 16] as number;
    const start = at + 18 + length;
    const sharedSecret = XWing.decapsulate(bytes.slice(start, start + 1120), secretKey);
    const sealed = bytes.slice(start + 1120, start + 1168);
    // HPKE's info: what crates/owner/src/sharing.rs says.
    const list = blake3(
      concat(
        native.SharedKeys.fromBytes(bytes).recipients.map(({ name, fingerprint }) =>
          concat([new Uint8Array(Buffer.from(fingerprint, "hex")), u64(utf8(name).length), utf8(name)]),
        ),
      ),
      { context: utf8("ciphervec v1 recipients") },
    );
    const fingerprint = new Uint8Array(Buffer.from(alice.recipient.fingerprint, "hex"));
    // Before the list of recipients: suite, the key's name, their number.
    const keyName = bytes.slice(66, 82);
    const info = framed(utf8("ciphervec v1 shared-keys"), bytes.slice(4, 6), keyName, list, fingerprint);
    const context = concat([Uint8Array.of(0), prefixed(new Uint8Array(0)), prefixed(info)]);
    const secret = derive(
      SUITE,
      concat([prefixed(new Uint8Array(0)), prefixed(sharedSecret)]),
      "secret",
      context,
      32 + 12 + 64,
    );
    expect(chacha20poly1305(secret.subarray(0, 32), secret.subarray(32, 44)).decrypt(sealed)).toEqual(MASTER);
  });
});

test("a lookup by counts: the kept key opens the kept answer", async () => {
  const read = (file: string) => get("v1", "lookup-histogram", file);
  const { LookupClient } = await lookup();
  const client = LookupClient.fromFile(read("plain.key"));
  expect(client.facts()).toMatchObject({
    strategy: "histogram",
    pooling: "mean",
    limit: 4,
    tables: 2,
    rows: 3,
    columns: 2,
  });
  const found = client.decode(read("answer"));
  [-0.25, 2, 3, -3.75, 0, 0].forEach((expected, i) => {
    expect(Math.abs((found[i] as number) - expected)).toBeLessThan(Math.min(1e-3, client.facts().errorBound));
  });
  expect(
    LookupClient.generate(read("description")).query(Int32Array.of(0, 1), Uint32Array.of(0, 1)).length,
  ).toBe(LookupClient.generate(read("description")).query(Int32Array.of(2, 2), Uint32Array.of(0, 1)).length);
  // And the key file is written as it was: nothing in it is drawn.
  expect(client.toFile(undefined, true)).toEqual(read("plain.key"));
});
