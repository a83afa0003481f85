/**
 * Gives every decoder bytes that were flipped, cut, lengthened, spliced and forged, as the native tests of hostile
 * bytes do. They are read, or refused with an error of a known kind: nothing traps, nothing panics, and the module
 * works on. Node.
 */
import { afterAll, describe, expect, test } from "vitest";
import { lookup, MASTER, random, rows, search, vector, written } from "./module.js";

const D = 5;
/** Their frames are long, and slow to read. */
const RING = new Set(["sealed", "sealed-query"]);
const KINDS = new Set([
  "BoundExceeded",
  "CiphervecError",
  "CorruptData",
  "DuplicateId",
  "InvalidInput",
  "MismatchedAnswer",
  "OutOfMemory",
  "PoolExhausted",
  "TamperedAnswer",
  "UnsupportedVersion",
  "WrongKey",
]);

interface Sample {
  name: string;
  bytes: Uint8Array;
  decode: (bytes: Uint8Array) => unknown;
  /** How it protects itself against chance, so that changed bytes can be made to fit again. */
  checksum: "none" | "last" | "frame";
  times?: number;
}

function fit(checksum: Sample["checksum"], bytes: Uint8Array): void {
  const hash = new search.Blake3();
  if (checksum === "last" && bytes.length >= 32) {
    hash.update(bytes.slice(0, -32));
    bytes.set(hash.digest(), bytes.length - 32);
  } else if (checksum === "frame" && bytes.length >= 64) {
    new DataView(bytes.buffer).setBigUint64(24, BigInt(bytes.length - 64), true);
    hash.update(bytes.slice(0, 32));
    hash.update(bytes.slice(64));
    bytes.set(hash.digest(), 32);
  }
  hash.free();
}

/** One edit: a byte set, eight set, one put in, one taken out, a piece repeated, the end cut off. */
function change(bytes: Uint8Array, next: () => number): Uint8Array<ArrayBuffer> {
  const at = Math.floor(next() * (next() < 0.7 ? Math.min(bytes.length, 256) : bytes.length));
  const [before, after] = [bytes.slice(0, at), bytes.slice(at)];
  const byte = () => Math.floor(next() * 256);
  const joined = (...parts: Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
  switch (Math.floor(next() * 6)) {
    case 0:
      return joined(before, Uint8Array.of(byte()), after.slice(1));
    case 1:
      return joined(before, new Uint8Array(8).fill(next() < 0.5 ? 255 : byte()), after.slice(8));
    case 2:
      return joined(before, Uint8Array.of(byte()), after);
    case 3:
      return joined(before, after.slice(1));
    case 4:
      return joined(before, after.slice(0, Math.floor(next() * 64)), after);
    default:
      return bytes.slice(0, Math.max(0, bytes.length - Math.floor(next() * 64)));
  }
}

const unexpected: string[] = [];

function meets({ name, decode }: Sample, bytes: Uint8Array): boolean {
  try {
    const made = decode(bytes) as { free?: () => void } | undefined;
    made?.free?.();
    return true;
  } catch (error) {
    const code = (error as { code?: string }).code ?? "";
    if (!(error instanceof Error && KINDS.has(code))) unexpected.push(`${name}: ${String(error)}`);
    return false;
  }
}

function halves(mode: string): Sample[] {
  const spec = new search.IndexSpec("faces", D, "l2", mode);
  const keys = search.Keys.fromMaster(MASTER);
  const owner = new search.Owner(keys, spec);
  const vectors = rows(3, D, 1);
  const sealed = owner.seal(vectors, ["alpha", 7, "ω"]);
  const directory = new search.SegmentDirectory();
  owner.addTo(directory, sealed.id, sealed.sidecar);
  const evaluation = owner.evaluation(0).toBytes();
  const server = (segment?: Uint8Array) => {
    const made = new search.ServerIndex(spec);
    made.setEvaluationKeys(evaluation);
    if (segment) made.add(segment);
    return made;
  };
  const [holding, empty] = [server(sealed.segment), server()];
  const query = owner.query(vectors.subarray(0, D), directory);
  const routed = owner.query(vectors.subarray(0, D), directory, 0, undefined, [sealed.id]).toBytes();
  const asked = query.toBytes();
  const answer = holding.evaluate(asked);
  const handed = (bytes: Uint8Array) => {
    const opener = new search.AnswerOpener(owner, query, directory, 3);
    for (let at = 0; at < bytes.length; at += 37) opener.write(bytes.slice(at, at + 37));
    try {
      return opener.finish();
    } finally {
      opener.free();
    }
  };
  const taken = (bytes: Uint8Array) => {
    const id = empty.add(bytes);
    try {
      empty.evaluate(asked);
    } finally {
      empty.remove(id);
    }
  };
  const sample = (
    kind: string,
    bytes: Uint8Array,
    decode: Sample["decode"],
    times = RING.has(mode) ? 40 : 150,
  ): Sample => ({
    name: `${kind} of ${mode}`,
    bytes,
    decode,
    checksum: "frame",
    times,
  });
  const samples = [
    sample("segment", sealed.segment, taken),
    sample("rows of a segment", sealed.segment, (bytes) => owner.unseal(bytes, directory)),
    sample("query", asked, (bytes) => holding.evaluate(bytes)),
    sample("routed query", routed, (bytes) => holding.evaluate(bytes)),
    sample("answer", answer, (bytes) => owner.open(query, bytes, directory, 3)),
    sample("answer in pieces", answer, handed),
    {
      name: `sidecar of ${mode}`,
      bytes: sealed.sidecar,
      checksum: "none" as const,
      decode: (bytes: Uint8Array) => owner.addTo(new search.SegmentDirectory(), sealed.id, bytes),
    },
  ];
  if (evaluation.length > 0) {
    const read = (bytes: Uint8Array) => search.EvaluationKeys.fromBytes(bytes);
    samples.push(sample("evaluation keys", evaluation, read, 25));
    samples.push(
      sample("evaluation keys at a server", evaluation, (bytes) => empty.setEvaluationKeys(bytes), 25),
    );
  }
  return samples;
}

function small(): Sample[] {
  const keys = search.Keys.fromMaster(MASTER);
  const spec = new search.IndexSpec("doors", 3, "cosine", "sealed-index");
  const owner = new search.Owner(keys, spec);
  const card = owner.writerCard("door 3", ["colour", "größe"]);
  const made = written(card.toBytes(), rows(1, 3, 1), 1);
  const alice = search.Identity.generate("alice");
  const shared = search.SharedKeys.seal(keys, [
    alice.recipient.toBytes(),
    search.Identity.generate("bob").recipient.toBytes(),
  ]);
  const tag = owner.filterTag("colour", new Uint8Array(3));
  const sample = (
    name: string,
    bytes: Uint8Array,
    decode: Sample["decode"],
    checksum: Sample["checksum"] = "frame",
  ) => ({
    name,
    bytes,
    decode,
    checksum,
    times: 400,
  });
  const wrapped = (bytes: Uint8Array) =>
    owner.addTo(new search.SegmentDirectory(), made.id, made.sidecar, undefined, bytes);
  const asked = new search.Probe(spec).query(rows(1, 3, 2));
  const plain = keys.toFile(undefined, true);
  const stated = new search.IndexSpec(
    "vectors",
    8,
    "l2",
    "sealed",
    "standard",
    "lattice",
    undefined,
    new Uint8Array(16).fill(1),
  );
  const author = new search.Owner(keys, stated);
  return [
    sample("probe", asked, (bytes) => owner.readQuery(bytes)),
    sample("description", spec.toBytes(), (bytes) => search.IndexSpec.fromBytes(bytes)),
    sample("recipient", alice.recipient.toBytes(), (bytes) => search.Recipient.fromBytes(bytes)),
    sample("shared keys", shared.toBytes(), (bytes) => search.SharedKeys.fromBytes(bytes)),
    sample("shared keys, opened", shared.toBytes(), (bytes) =>
      search.SharedKeys.fromBytes(bytes).open(alice),
    ),
    sample("card", card.toBytes(), (bytes) => search.WriterCard.fromBytes(bytes)),
    sample("wrapped key", made.wrap, wrapped),
    sample("records", made.records, (bytes) => search.RecordBatch.fromBytes(bytes), "none"),
    sample(
      "filter tags",
      new search.FilterTags([[tag], []]).toBytes(),
      (bytes) => search.FilterTags.fromBytes(bytes),
      "none",
    ),
    sample("key file", plain, (bytes) => search.Keys.fromFile(bytes), "last"),
    sample(
      "label",
      vector("v1/at-rest/encrypted.key"),
      (bytes) => search.keyFileLabel(bytes) && undefined,
      "last",
    ),
    sample(
      "person's file",
      alice.toFile(undefined, true),
      (bytes) => search.Identity.fromFile(bytes),
      "last",
    ),
    sample("state", vector("v1/at-rest/state"), (bytes) => author.openState(bytes), "none"),
    sample("sealed keys", owner.sealKeys(keys), (bytes) => owner.openKeys(bytes), "none"),
  ];
}

function lookups(): Sample[] {
  const get = (file: string) => vector(`v1/lookup-histogram/${file}`);
  const client = lookup.LookupClient.fromFile(get("plain.key"));
  return [
    {
      name: "lookup's description",
      bytes: get("description"),
      checksum: "frame",
      decode: (bytes) => lookup.LookupClient.generate(bytes),
    },
    {
      name: "lookup's answer",
      bytes: get("answer"),
      checksum: "frame",
      decode: (bytes) => client.decode(bytes),
    },
    {
      name: "lookup's key file",
      bytes: get("plain.key"),
      checksum: "last",
      decode: (bytes) => lookup.LookupClient.fromFile(bytes),
    },
  ];
}

const SAMPLES = [
  ...small(),
  ...["open", "sealed-index", "sealed-query", "sealed"].flatMap(halves),
  ...lookups(),
];

describe.each(SAMPLES)("$name", (sample) => {
  const { bytes, checksum, times = 100 } = sample;
  const long = bytes.length > 4000;

  test("as it is, it is read", () => {
    expect(meets(sample, bytes)).toBe(true);
  });

  test("cut and lengthened, flipped and edited, with and without a checksum that fits", () => {
    const lengths = [
      0,
      1,
      7,
      8,
      31,
      32,
      63,
      64,
      65,
      80,
      bytes.length - 33,
      bytes.length - 1,
      bytes.length + 1,
      bytes.length + 999,
    ];
    for (const length of lengths.filter((length) => length >= 0)) {
      const other = new Uint8Array(length);
      other.set(bytes.slice(0, length));
      meets(sample, other);
      fit(checksum, other);
      meets(sample, other);
    }
    const next = random(bytes.length);
    for (let round = 0; round < times; round++) {
      let edited = bytes;
      for (let edits = 1 + Math.floor(next() * 3); edits > 0; edits--) edited = change(edited, next);
      if (round % 4) fit(checksum, edited);
      meets(sample, edited);
    }
    for (let bit = 0; bit < Math.min(bytes.length * 8, 800); bit += long ? 29 : 3) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      meets(sample, flipped);
      if (bit % 2) {
        fit(checksum, flipped);
        meets(sample, flipped);
      }
    }
    // After all of it the module works on, and reads what is whole.
    expect(meets(sample, bytes)).toBe(true);
  }, 60_000);
});

afterAll(() => {
  expect(unexpected).toEqual([]);
});
