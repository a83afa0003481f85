/** Every class of the module does its round trip, without a server: its other half answers in the same process. Node. */
import { describe, expect, test } from "vitest";
import { backend, cosine, memory, random, rows, search, thrown, written } from "./module.js";

const D = 24;
const N = 300;
const MODES = ["sealed", "sealed-query", "sealed-index", "open"];

function half(mode: string, ids: search.Id[] = Array.from({ length: N }, (_, row) => row)) {
  const keys = search.Keys.generate();
  const spec = new search.IndexSpec("notes", D, "cosine", mode);
  const owner = new search.Owner(keys, spec);
  const vectors = rows(ids.length, D, 1);
  const sealed = owner.seal(vectors, ids);
  const directory = new search.SegmentDirectory();
  owner.addTo(directory, sealed.id, sealed.sidecar);
  const server = new search.ServerIndex(spec);
  server.setEvaluationKeys(owner.evaluation(0).toBytes());
  server.add(sealed.segment);
  return { keys, spec, owner, vectors, sealed, directory, server };
}

const row = (vectors: Float32Array, at: number) => vectors.subarray(at * D, (at + 1) * D);

describe.each(MODES)("mode %s", (mode) => {
  test("finds what the plain vectors give", () => {
    const { owner, vectors, sealed, directory, server } = half(mode);
    const asked = rows(2, D, 9);
    const query = owner.query(asked, directory);
    expect(query.rows).toBe(2);
    expect(query.nbytes).toBe(query.toBytes().length);
    const answer = server.evaluate(query.toBytes());
    const opened = owner.open(query, answer, directory, 10);
    expect(opened.exact).toBe(mode === "sealed-index" || mode === "open");
    expect(opened.checked).toBe(mode !== "open");
    for (const [at, { ids, scores }] of opened.answers.entries()) {
      const truth = Array.from({ length: N }, (_, id) => cosine(row(vectors, id), row(asked, at)));
      const best = truth.map((score, id) => ({ id, score })).sort((a, b) => b.score - a.score);
      expect(scores.length).toBe(10);
      for (const [rank, id] of ids.entries()) {
        expect(scores[rank]).toBeCloseTo(truth[Number(id)] ?? 9, 3);
        expect(scores[rank]).toBeCloseTo(best[rank]?.score ?? 9, 3);
      }
    }
    const opener = new search.AnswerOpener(owner, query, directory, 10);
    for (const step of [answer.length, 1000, 97]) {
      for (let start = 0; start < answer.length; start += step)
        opener.write(answer.slice(start, start + step));
      expect(opener.finish()).toEqual(opened);
      opener.write(answer.slice(0, 70));
      opener.restart();
    }
    const chosen = owner.open(query, answer, directory, 10, undefined, [3, 5, "unknown"]);
    expect([...(chosen.answers[0]?.ids ?? [])].sort()).toEqual([3, 5]);
    const near = owner.open(query, answer, directory, undefined, 0.3);
    expect(near.answers[0]?.scores.every((score) => score > 0.29)).toBe(true);
    const unsealed = owner.unseal(sealed.segment, directory, new Uint32Array([7]));
    expect(cosine(unsealed, row(vectors, 7))).toBeCloseTo(1, 4);
  });
});

test("the module says what it is", () => {
  expect(search.version()).toMatch(/^\d+\.\d+\.\d+$/);
  expect([search.backend(), search.queryVersion()]).toEqual([backend, 2]);
});

test("ids are text, integers and bigints, and come back as they went in", () => {
  const ids: search.Id[] = ["näher", 7, -7, "7", 2n ** 62n, Number.MAX_SAFE_INTEGER];
  const { directory, sealed } = half("sealed", ids);
  expect(directory.ids()).toEqual(ids);
  expect(directory.length).toBe(6);
  expect(directory.locate(2n ** 62n)).toEqual({ segmentId: sealed.id, row: 4 });
  expect(directory.locate(7n)).toEqual(directory.locate(7));
  expect(directory.locateMany(["7", 8])).toEqual([{ segmentId: sealed.id, row: 3 }, null]);
  expect([directory.has("7"), directory.has(8)]).toEqual([true, false]);
  for (const id of [1.5, Number.NaN, 2 ** 53, 2n ** 63n, null, undefined, {}, true] as never[]) {
    expect(thrown(() => directory.locate(id)).code).toBe("InvalidInput");
  }
});

test("a directory knows what it was told", () => {
  const { owner, sealed, directory } = half("sealed-index");
  expect(directory.segmentIds()).toEqual([sealed.id]);
  expect(directory.levels()).toEqual(new Map([[0, N]]));
  expect(directory.exactness(sealed.id)).toBe("exact");
  expect(directory.exactness(new Uint8Array(16))).toBe(null);
  expect(directory.origin(sealed.id)).toEqual({ kind: "owner", writer: null });
  expect(directory.markDeleted(5)).toEqual({ segmentId: sealed.id, row: 5 });
  expect(directory.markDeleted(5)).toBe(null);
  expect(directory.names(sealed.id)?.[5]).toBe(null);
  expect(directory.rows()[0]?.ids[6]).toBe(6);
  expect([...directory.norms([6, 5])]).toEqual([1, 0]);
  expect(owner.uncheckedBlocks(directory)).toBe(0);
  directory.quarantine(sealed.id);
  expect(directory.quarantined()).toEqual([sealed.id]);
  expect([directory.release(sealed.id), directory.release(sealed.id)]).toEqual([true, false]);
  directory.refuse(sealed.id);
  expect(directory.refused()).toEqual([sealed.id]);
  expect([directory.remove(sealed.id), directory.length]).toEqual([true, 0]);
});

test("a later row takes an id over, and the earlier is to be deleted", () => {
  const { owner, directory, sealed } = half("sealed", ["a", "b"]);
  const again = owner.seal(rows(1, D, 3), ["b"]);
  expect(thrown(() => owner.addTo(directory, again.id, again.sidecar)).code).toBe("DuplicateId");
  owner.addTo(directory, again.id, again.sidecar, undefined, undefined, "stored");
  expect(directory.shadowed()).toEqual([{ segmentId: sealed.id, row: 1 }]);
  expect(directory.repeated()).toEqual(["b"]);
  directory.settle();
  expect(directory.shadowed()).toEqual([]);
});

test("keys come back from files, words and shares", () => {
  const keys = search.Keys.generate();
  const file = keys.toFile("correct horse");
  expect(search.keyFileLabel(file)).toEqual({ keyId: keys.keyId, sort: "master", encrypted: true });
  expect(search.Keys.fromFile(file, "correct horse").same(keys)).toBe(true);
  expect(thrown(() => search.Keys.fromFile(file, "wrong")).code).toBe("WrongKey");
  expect(thrown(() => search.Keys.fromFile(file)).code).toBe("InvalidInput");
  expect(thrown(() => keys.toFile()).message).toContain("allowPlaintext");
  expect(search.Keys.fromFile(keys.toFile(undefined, true)).same(keys)).toBe(true);
  const words = keys.recoveryPhrase();
  expect(words.split(" ").length).toBe(24);
  expect(search.Keys.fromRecoveryPhrase(words).same(keys)).toBe(true);
  expect(thrown(() => search.Keys.fromRecoveryPhrase("abandon ship")).code).toBe("InvalidInput");
  const alice = search.Identity.generate("alice");
  const bob = search.Identity.fromFile(search.Identity.generate("bob").toFile("pass"), "pass");
  const shared = search.SharedKeys.seal(keys, [alice.recipient.toBytes()]);
  const read = search.SharedKeys.fromBytes(shared.toBytes());
  const { name, fingerprint } = alice.recipient;
  expect(read.recipients).toEqual([{ name, fingerprint }]);
  expect([read.keyId, read.open(alice).same(keys)]).toEqual([keys.keyId, true]);
  expect(thrown(() => read.open(bob)).code).toBe("WrongKey");
}, 60_000);

/** The master keys are those of test_tenant_keys.py, of another implementation of BLAKE3. */
test("keys for a tenant and a collection are those of the formula", () => {
  const keys = search.Keys.fromMaster(new Uint8Array(32).fill(1));
  const of = (master: string) => search.Keys.fromMaster(Uint8Array.from(Buffer.from(master, "hex")));
  const tenant = of("5da07a86be8c4452fceb96e6fc76be636eb2dbd421016641e3310fd07fa43d37");
  const collection = of("04df785fbebc1026d3f440e7cade03364230054620cb42639411af0d5bdd8194");
  expect(keys.forTenant("acme").same(tenant)).toBe(true);
  expect(keys.forCollection("acme").same(collection)).toBe(true);
  expect(keys.forTenant("Acme").same(tenant)).toBe(false);
  expect(thrown(() => keys.forTenant("")).message).toContain("1 to 255 bytes");
});

test("records open for their row, their id and their key alone", () => {
  const { owner, sealed, directory, spec } = half("sealed", ["a", "b"]);
  const payloads = [new Uint8Array([1, 2, 3]), new Uint8Array(0)];
  const batch = owner.sealRecords(sealed.id, ["a", "b"], payloads);
  const records = search.RecordBatch.fromBytes(batch.toBytes());
  expect([records.length, records.nbytes]).toEqual([2, batch.toBytes().length]);
  expect(owner.openRecord(sealed.id, records, 0, "a", directory)).toEqual(payloads[0]);
  expect(owner.openRecord(sealed.id, records, 1, "b", directory)).toEqual(payloads[1]);
  for (const [row, id] of [
    [1, "a"],
    [0, "b"],
    [2, "b"],
  ] as const) {
    expect(thrown(() => owner.openRecord(sealed.id, records, row, id, directory)).code).toBe("CorruptData");
  }
  const other = new search.Owner(search.Keys.generate(), spec);
  expect(thrown(() => other.openRecord(sealed.id, records, 0, "a", directory)).code).toBe("CorruptData");
  expect(thrown(() => owner.sealRecords(sealed.id, ["a"], payloads)).code).toBe("InvalidInput");
});

test("filters choose rows at the server", () => {
  const { owner, spec, sealed, directory } = half("sealed", ["a", "b", "c"]);
  const [red, blue] = ["red", "blue"].map((value) =>
    owner.filterTag("colour", new TextEncoder().encode(value)),
  );
  if (!red || !blue) throw new Error("two tags");
  const tags = new search.FilterTags([[red], [blue], [red, blue]]);
  expect([...tags.matches([red])]).toEqual([1, 0, 1]);
  expect(search.FilterTags.fromBytes(tags.toBytes()).length).toBe(3);
  const server = new search.ServerIndex(spec);
  server.setEvaluationKeys(owner.evaluation(3).toBytes());
  server.add(sealed.segment, tags.toBytes());
  const query = owner.query(rows(1, D, 5), directory, 3, [red]);
  const answer = server.evaluate(query.toBytes());
  const opened = owner.open(query, answer, directory, 3);
  expect([...(opened.answers[0]?.ids ?? [])].sort()).toEqual(["a", "c"]);
  expect(thrown(() => query.expectMatching([sealed.id], [])).code).toBe("InvalidInput");
  expect(thrown(() => query.expectMatching([sealed.id.slice(1)], [tags.matches([red])])).code).toBe(
    "InvalidInput",
  );
  query.expectMatching([sealed.id], [tags.matches([red])]);
  expect(owner.open(query, answer, directory, 3)).toEqual(opened);
  // Whether or not they are hits, which whoever chose them would learn.
  for (const chosen of [tags.matches([red, blue]), tags.matches([blue]), new Uint8Array(3)]) {
    const other = owner.query(rows(1, D, 5), directory, 3, [red]);
    other.expectMatching([sealed.id], [chosen]);
    const refused = thrown(() => owner.open(other, server.evaluate(other.toBytes()), directory, 1));
    expect([refused.code, refused.segments]).toEqual(["TamperedAnswer", [sealed.id]]);
  }
});

test("states open for the key that sealed them", () => {
  const { owner } = half("sealed", ["a"]);
  const bytes = (length: number, value: number) => new Uint8Array(length).fill(value);
  const leaf = search.stateLeaf({
    segmentId: bytes(16, 1),
    rows: 3,
    deleted: [1],
    blobs: ["rows"],
    digests: { rows: bytes(32, 2) },
  });
  const facts: search.StateFacts = {
    origin: bytes(16, 1),
    lineage: bytes(16, 2),
    begun: 2n ** 40n,
    sequence: 5n,
    epoch: 7,
    segments: 1,
    segmentsDigest: search.stateDigest(leaf),
    description: bytes(32, 3),
    evaluation: bytes(32, 4),
    keyPair: bytes(32, 0),
    ancestors: [bytes(16, 6)],
    aside: [{ segmentId: bytes(16, 8), rows: new Uint32Array([0, 2]) }],
    routing: bytes(32, 0),
    consumed: new Uint8Array(32),
    quarantine: [],
  };
  const sealed = owner.sealState(facts);
  expect(search.stateName(sealed).length).toBe(16);
  expect(owner.openState(sealed)).toEqual({ ...facts, key: owner.keyId });
  for (const wrong of [
    { ...facts, epoch: -1 },
    { ...facts, begun: 3 },
    { ...facts, origin: bytes(15, 1) },
    null,
  ]) {
    expect(thrown(() => owner.sealState(wrong as never)).code).toBe("InvalidInput");
  }
});

test("a writer seals what the owner alone opens", () => {
  const { owner, spec } = half("sealed-index", ["a"]);
  const card = owner.writerCard("door 3", ["colour"]);
  const read = search.WriterCard.fromBytes(card.toBytes());
  expect([read.writer, read.filterable, read.keyId]).toEqual(["door 3", ["colour"], owner.keyId]);
  expect([read.fingerprint, owner.knowsCard(read)]).toEqual([card.fingerprint, true]);
  expect(read.spec.equals(spec)).toBe(true);
  const vector = rows(1, D, 4);
  const made = written(read.toBytes(), vector, "x");
  const directory = new search.SegmentDirectory();
  owner.addTo(directory, made.id, made.sidecar, undefined, made.wrap);
  expect(directory.origin(made.id)).toEqual({ kind: "writer", writer: "door 3" });
  const records = search.RecordBatch.fromBytes(made.records);
  const record = new TextDecoder().decode(owner.openRecord(made.id, records, 0, "x", directory));
  expect(record).toBe('{"metadata":{"a":1}}');
  const server = new search.ServerIndex(spec);
  server.add(made.rows);
  const query = owner.query(vector, directory);
  expect(owner.open(query, server.evaluate(query.toBytes()), directory, 1).answers[0]?.ids).toEqual(["x"]);
});

test("keys that are changed open what those before sealed", () => {
  const { keys, owner, spec, sealed } = half("sealed", ["a"]);
  const next = search.Keys.generate();
  const both = search.Owner.withPrevious(next, spec, owner.maskSeed, keys);
  const directory = new search.SegmentDirectory();
  both.addTo(directory, sealed.id, sealed.sidecar);
  expect(directory.origin(sealed.id)?.kind).toBe("previous");
  const carried = both.openKeys(both.sealKeys(keys));
  expect(carried.same(keys)).toBe(true);
  expect(thrown(() => owner.openKeys(both.sealKeys(keys))).code).toBe("CorruptData");
});

test("a device without a key asks, and its query is opened by the owner", () => {
  const { owner, spec, vectors, directory, server } = half("sealed-index");
  const asked = new search.Probe(spec).query(row(vectors, 8));
  const query = owner.readQuery(asked);
  expect(owner.open(query, server.evaluate(asked), directory, 1).answers[0]?.ids).toEqual([8]);
});

test("an answer that was changed in a segment's words is told from a damaged one, and names the segment", () => {
  const { owner, sealed, directory, server, vectors } = half("sealed-index");
  const query = owner.query(row(vectors, 8), directory);
  const answer = server.evaluate(query.toBytes());
  const damaged = answer.slice();
  damaged[answer.length - 9] = (damaged[answer.length - 9] ?? 0) ^ 1;
  expect(thrown(() => owner.open(query, damaged, directory, 1)).code).toBe("CorruptData");
  // One that is opened as it comes has been looked at by the time that it is found damaged, or comes again.
  const opener = new search.AnswerOpener(owner, query, directory, 1);
  for (const ends of [() => opener.finish(), () => opener.restart()]) {
    opener.write(damaged);
    const found = thrown(ends);
    expect([found.code, found.segments]).toEqual(["TamperedAnswer", [sealed.id]]);
  }
  opener.write(damaged.slice(0, 40));
  opener.restart();
  opener.write(answer);
  expect(opener.finish().answers[0]?.ids).toEqual([8]);
  const hash = new search.Blake3();
  hash.update(damaged.slice(0, 32));
  hash.update(damaged.slice(64));
  damaged.set(hash.digest(), 32);
  const tampered = thrown(() => owner.open(query, damaged, directory, 1));
  expect([tampered.name, tampered.code, tampered.segments]).toEqual([
    "TamperedAnswer",
    "TamperedAnswer",
    [sealed.id],
  ]);
});

test("descriptions, packing and the statement of security", () => {
  const { owner, spec, directory } = half("sealed");
  const { bits, degree, postQuantum, coreSvp } = spec.security();
  expect([bits, degree, postQuantum, (coreSvp ?? 0) > 100]).toEqual([128, 4096, true, true]);
  expect(owner.packing(100_000)?.level).toBeGreaterThan(2);
  expect(owner.packing(3_000_000_000)?.answerBytes).toBe(2 ** 32 - 1);
  expect(half("open", ["a"]).owner.packing(10)).toBe(null);
  expect(owner.repack(directory, 1_000_000).length).toBe(0);
  expect(thrown(() => new search.IndexSpec("notes", 0)).code).toBe("InvalidInput");
  const paillier = new search.IndexSpec("notes", D, "cosine", "sealed-index", "standard", "paillier");
  const other = new search.Owner(search.Keys.generate(), paillier);
  expect(thrown(() => other.generateKeyPair()).message).toContain("native client");
});

test("what does not fit into 32 bits is named before it is tried", () => {
  const { owner } = half("sealed", ["a"]);
  const huge = new Float32Array(2 ** 30 - (2 ** 30 % D));
  const failure = thrown(() => owner.query(huge, new search.SegmentDirectory()));
  expect([failure.code, failure.message.includes("4096 MiB")]).toEqual(["OutOfMemory", true]);
  expect(owner.query(rows(1, D, 1), new search.SegmentDirectory()).rows).toBe(1);
});

test("secrets are gone from memory once they are freed", () => {
  const found = (secret: Uint8Array) => Buffer.from(memory.buffer).includes(Buffer.from(secret));
  const next = random(77);
  const master = Uint8Array.from({ length: 32 }, () => next() * 256);
  const spec = new search.IndexSpec("notes", D);
  const keys = search.Keys.fromMaster(master);
  const owner = new search.Owner(keys, spec);
  expect(found(master)).toBe(true);
  const words = keys.recoveryPhrase();
  const text = new TextEncoder();
  expect(found(text.encode(words))).toBe(false);
  search.Keys.fromRecoveryPhrase(words).free();
  expect(found(text.encode(words))).toBe(false);
  const passphrase = "a passphrase that is nowhere else";
  const file = keys.toFile(passphrase);
  search.Keys.fromFile(file, passphrase).free();
  expect(found(text.encode(passphrase))).toBe(false);
  search.Keys.fromFile(keys.toFile(undefined, true)).free();
  keys.free();
  owner.free();
  expect(found(master)).toBe(false);
}, 60_000);

test("answers are checked with the rows that are deleted", () => {
  const { owner, sealed, directory, server } = half("sealed-index");
  const query = owner.query(rows(1, D, 9), directory);
  const answer = server.evaluate(query.toBytes());
  for (let id = 0; id < N; id += 3) directory.markDeleted(id);
  expect(owner.open(query, answer, directory, N).answers[0]?.ids.length).toBe(200);
  const words = answer.length - 4 * N;
  const forged = (at: number, bytes: number[]) => {
    const copy = answer.slice();
    copy.set(bytes, words + 4 * at);
    copy.set(search.blake3(new Uint8Array([...copy.slice(0, 32), ...copy.slice(64)])), 32);
    return copy;
  };
  // A deleted row that is left out, and rows that are shifted by a bit, or by half of the range.
  const shifted = (at: number, byte: number, by: number) =>
    forged(
      at,
      [...answer.slice(words + 4 * at, words + 4 * at + 4)].map((one, i) => (i === byte ? one ^ by : one)),
    );
  for (const other of [forged(0, [0, 0, 0, 0]), shifted(0, 0, 1), shifted(1, 0, 1), shifted(7, 2, 4)])
    expect(thrown(() => owner.open(query, other, directory, 1)).code).toBe("TamperedAnswer");
  expect(owner.open(query, answer, directory, 1).checked).toBe(true);
  // A frame that says a row was taken out of it: nobody does that to segments with check sums.
  const kept = N - 1;
  const frame = new Uint8Array(128 + 64 + kept * D * 4);
  frame.set(sealed.segment.slice(0, 128));
  frame.set(sealed.segment.slice(128, 128 + kept * D * 4), 192);
  const view = new DataView(frame.buffer);
  view.setBigUint64(24, BigInt(frame.length - 64), true);
  view.setUint8(64 + 29, 1);
  view.setUint32(64 + 32, kept, true);
  for (let at = 1; at < N; at++) frame[128 + (at >> 3)] = (frame[128 + (at >> 3)] ?? 0) | (1 << (at & 7));
  frame.set(search.blake3(new Uint8Array([...frame.slice(0, 32), ...frame.slice(64)])), 32);
  expect(thrown(() => owner.unseal(frame, directory, new Uint32Array([1]))).code).toBe("TamperedAnswer");
});
