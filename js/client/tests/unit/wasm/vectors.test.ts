/** Every file of vectors/ that a client reads is read in WebAssembly, and what has nothing random in it is made again. Node. */
import { describe, expect, test } from "vitest";
import { lookup, MASTER, search, thrown, vector } from "./module.js";

const ROWS = [1, 0, 0, 0.6, 0.8, 0, -2, 1, 2];
const QUERY = new Float32Array([0, 3, 4]);
/** |x − q|² of the three rows. */
const DISTANCES = [26, 21.2, 12];
const COMPACT = ["sealed-index", "sealed-index-small", "sealed-index-wide"];
const FORMER = ["open", ...COMPACT, "sealed-query", "sealed"].map((name) => `v1/${name}`);
const WITNESSED = COMPACT.map((name) => `v2/${name}`);

const fill = (length: number, value: number) => new Uint8Array(length).fill(value);
const keys = () => search.Keys.fromMaster(MASTER);

function opened(folder: string) {
  const get = (file: string) => vector(`${folder}/${file}`);
  const spec = search.IndexSpec.fromBytes(get("spec"));
  expect(spec.toBytes()).toEqual(get("spec"));
  const owner = new search.Owner(keys(), spec);
  const server = new search.ServerIndex(spec);
  if (spec.mode === "sealed" || spec.mode === "sealed-query") {
    expect(search.EvaluationKeys.fromBytes(get("evaluation-keys")).epoch).toBe(5);
    server.setEvaluationKeys(get("evaluation-keys"));
    owner.holdEvaluation(get("evaluation-keys"));
  }
  const id = server.add(get("segment"));
  const directory = new search.SegmentDirectory();
  owner.addTo(directory, id, get("sidecar"));
  return { get, owner, server, id, directory };
}

describe.each([...FORMER, ...WITNESSED])("%s", (folder) => {
  test("opens, and answers with the same bytes", () => {
    const { get, owner, server, id, directory } = opened(folder);
    expect(server.evaluate(get("query"))).toEqual(get("response"));
    // An encrypted query's answer opens with that query alone.
    const query = owner.query(QUERY, directory, 5, undefined, undefined, "first");
    const found = owner.open(query, server.evaluate(query.toBytes()), directory, 3);
    expect(found.answers[0]?.ids).toEqual(["three", 2, "one"]);
    for (const [rank, score] of [...(found.answers[0]?.scores ?? [])].reverse().entries()) {
      expect(score).toBeCloseTo(DISTANCES[rank] ?? 0, 1);
    }
    if (folder.startsWith("v2")) {
      expect([found.exact, directory.exactness(id)]).toEqual([true, "exact"]);
      expect(query.toBytes()).toEqual(get("query"));
    }
    const rows = owner.unseal(get("segment"), directory);
    const units = [1, 0, 0, 0.6, 0.8, 0, -2 / 3, 1 / 3, 2 / 3];
    for (const [at, unit] of units.entries()) expect(rows[at]).toBeCloseTo(unit, 2);
    expect(rows.length).toBe(ROWS.length);
  });
});

test.each(["sealed", "sealed-query"])("answers of version 2 to %s do not move", (name) => {
  const { owner, server, directory } = opened(`v1/${name}`);
  expect(server.evaluate(vector(`answers-v2/${name}/query`))).toEqual(vector(`answers-v2/${name}/response`));
  // An encrypted query's answer opens with that query alone.
  const query = owner.query(QUERY, directory, 5);
  const answer = server.evaluate(query.toBytes());
  expect(owner.open(query, answer, directory, 3).answers[0]?.ids).toEqual(["three", 2, "one"]);
});

test.each(COMPACT)("the pruned segment of %s opens without its row", (name) => {
  const { get, owner } = opened(`v1/${name}`);
  const directory = new search.SegmentDirectory();
  const id = new search.ServerIndex(search.IndexSpec.fromBytes(get("spec"))).add(get("pruned"));
  owner.addTo(directory, id, get("sidecar"), new Uint32Array([1]));
  const rows = owner.unseal(get("pruned"), directory, new Uint32Array([0, 2]));
  for (const [at, unit] of [1, 0, 0, -2 / 3, 1 / 3, 2 / 3].entries()) expect(rows[at]).toBeCloseTo(unit, 2);
});

test("a writer's card is written again, and its segment opens", () => {
  const get = (file: string) => vector(`v1/writers/${file}`);
  const spec = new search.IndexSpec("doors", 3, "l2", "sealed-index");
  const owner = new search.Owner(keys(), spec);
  const card = owner.writerCard("door 3", ["colour", "größe"]);
  expect(card.toBytes()).toEqual(get("card"));
  expect(search.WriterCard.fromBytes(get("card")).fingerprint).toBe("86420de4c7d4f8070ac117c4ce627238");
  const server = new search.ServerIndex(spec);
  const id = server.add(get("segment"));
  const directory = new search.SegmentDirectory();
  owner.addTo(directory, id, get("sidecar"), undefined, get("wrap"));
  expect(directory.origin(id)).toEqual({ kind: "writer", writer: "door 3" });
  const records = search.RecordBatch.fromBytes(get("records"));
  expect(owner.openRecord(id, records, 0, "one", directory)).toEqual(new TextEncoder().encode("first"));
  expect(owner.openRecord(id, records, 1, 2, directory).length).toBe(0);
  const query = owner.query(new Float32Array([1, 2, -2]), directory);
  const found = owner.open(query, server.evaluate(query.toBytes()), directory, 2);
  expect(found.answers[0]?.ids).toEqual(["one", 2]);
});

test("states and the index of an incarnation are written again", () => {
  const spec = new search.IndexSpec(
    "vectors",
    8,
    "l2",
    "sealed",
    "standard",
    "lattice",
    undefined,
    fill(16, 1),
  );
  expect(spec.toBytes()).toEqual(vector("v1/at-rest/incarnation"));
  expect(search.IndexSpec.fromBytes(spec.toBytes()).incarnation).toEqual(fill(16, 1));
  const owner = new search.Owner(keys(), spec);
  const leaf = search.stateLeaf({
    segmentId: new TextEncoder().encode("segment of three"),
    rows: 3,
    deleted: [1],
    blobs: ["rows", "sidecar"],
    digests: { sidecar: fill(32, 3) },
  });
  const facts: search.StateFacts = {
    origin: fill(16, 1),
    lineage: fill(16, 2),
    begun: 1_790_000_000n,
    sequence: 2n,
    epoch: 1,
    segments: 1,
    segmentsDigest: search.stateDigest(leaf),
    description: fill(32, 4),
    evaluation: fill(32, 5),
    keyPair: fill(32, 0),
    ancestors: [fill(16, 6), fill(16, 7)],
    aside: [{ segmentId: fill(16, 8), rows: new Uint32Array([0, 2]) }],
    routing: fill(32, 0),
  };
  const routed = { ...facts, routing: fill(32, 9) };
  for (const [name, stated] of [
    ["state", facts],
    ["state-2", routed],
  ] as const) {
    const sealed = vector(`v1/at-rest/${name}`);
    expect(owner.sealState(stated)).toEqual(sealed);
    expect(owner.openState(sealed)).toEqual({ ...stated, key: keys().keyId });
  }
});

test("people's files and what was shared with them open", () => {
  const get = (file: string) => vector(`v1/sharing/${file}`);
  const shared = search.SharedKeys.fromBytes(get("shared-keys"));
  expect(shared.toBytes()).toEqual(get("shared-keys"));
  expect(shared.recipients.map(({ name }) => name)).toEqual(["alice", "bob"]);
  for (const name of ["alice", "bob"]) {
    const person = search.Identity.fromFile(get(`${name}.key`));
    expect(person.recipient.toBytes()).toEqual(get(`${name}.pub`));
    expect(person.toFile(undefined, true)).toEqual(get(`${name}.key`));
    expect(search.Recipient.fromBytes(get(`${name}.pub`)).name).toBe(name);
    expect(shared.open(person).recoveryPhrase()).toBe(keys().recoveryPhrase());
  }
});

test("key files open with their passphrase, and that of release 0.1 is written again", () => {
  const sealed = vector("v1/at-rest/encrypted.key");
  expect(search.keyFileLabel(sealed)).toEqual({ keyId: "c1".repeat(8), sort: "master", encrypted: true });
  expect(thrown(() => search.Keys.fromFile(sealed, "another")).code).toBe("WrongKey");
  // It opens, and names another key than the one in it.
  for (const [file, passphrase] of [
    ["encrypted", "published, too"],
    ["plain", undefined],
  ] as const) {
    const other = thrown(() => search.Keys.fromFile(vector(`v1/at-rest/${file}.key`), passphrase));
    expect(other.message).toContain("the key id in the key file");
  }
  const released = vector("v1/collections-0.1/plain.key");
  expect(search.Keys.fromFile(released).toFile(undefined, true)).toEqual(released);
}, 60_000);

test("records and filter tags of every version are read", () => {
  for (const name of ["records", "records-2"]) {
    const bytes = vector(`v1/at-rest/${name}`);
    expect(search.RecordBatch.fromBytes(bytes).length).toBe(3);
    expect(search.RecordBatch.fromBytes(bytes).toBytes()).toEqual(bytes);
  }
  const tags = vector("v1/at-rest/tags");
  expect(search.FilterTags.fromBytes(tags).toBytes()).toEqual(tags);
  expect([...search.FilterTags.fromBytes(tags).matches([])]).toEqual([1, 1, 1]);
});

test.each(["paillier-index", "elgamal-index"])("%s is read, and its keys are for a native client", (name) => {
  const bytes = vector(`v1/${name}/spec`);
  const spec = search.IndexSpec.fromBytes(bytes);
  expect([spec.toBytes(), spec.scheme]).toEqual([bytes, name.replace("-index", "")]);
  const owner = new search.Owner(keys(), spec);
  const refused = thrown(() => owner.openKeyPair(vector(`v1/${name}/key-pair`)));
  expect([refused.code, refused.message.includes("native client")]).toEqual(["InvalidInput", true]);
});

test("a lookup by counts opens to its numbers, with the key of its file", () => {
  const get = (file: string) => vector(`v1/lookup-histogram/${file}`);
  const client = lookup.LookupClient.fromFile(get("plain.key"));
  expect(client.toFile(undefined, true)).toEqual(get("plain.key"));
  const { strategy, tables, rows, columns, errorBound } = client.facts();
  expect([strategy, tables, rows, columns]).toEqual(["histogram", 2, 3, 2]);
  const means = [-0.25, 2, 3, -3.75, 0, 0];
  const found = client.decode(get("answer"));
  expect(found.length).toBe(means.length);
  for (const [at, mean] of means.entries())
    expect(Math.abs((found[at] ?? 9) - mean)).toBeLessThan(errorBound);
  const indices = new Int32Array([0, 1, 2, 2, -1, -1, 1, 0]);
  expect(client.query(indices, new Uint32Array([0, 2, 4, 4])).length).toBe(get("query").length);
  expect(lookup.LookupClient.generate(get("description")).keyId).not.toBe(client.keyId);
});
