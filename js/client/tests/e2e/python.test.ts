/** The same collections from Python and from JavaScript: what either wrote, the other reads, bit for bit. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, type Id, Keys, type Metric, type Mode, Writer } from "@ciphervec/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missing, python, TestServer, TURNS, vectors } from "../support/server.js";

describe.skipIf(missing !== "")("beside Python", () => {
  let server: TestServer;
  let folder: string;

  beforeAll(async () => {
    server = await TestServer.start();
    folder = await mkdtemp(join(tmpdir(), "ciphervec-keys-"));
  });
  afterAll(async () => {
    await server?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const client = (keys: Keys) =>
    new Client({ url: server.url, keys, onWarning: (message) => expect.unreachable(message) });
  const inPython = <T>(given: object, code: string) => python<T>({ url: server.url, folder, ...given }, code);

  const CASES: [Mode, Metric][] = [
    ["sealed", "l2"],
    ["sealed-query", "ip"],
    ["sealed-index", "hamming"],
    ["open", "cosine"],
  ];

  test.each(CASES)(
    "what Python wrote is read, found, changed and given back: %s, %s",
    async (mode, metric) => {
      const name = `from-python-${mode}-${metric}`;
      const made = await inPython<{ ids: Id[][]; distances: number[][]; vectors: number[][] }>(
        { mode, metric, name },
        `
keys = ciphervec.Keys.generate()
keys.save(f"{given['folder']}/{given['name']}.key", passphrase="four words by dice")
rows = numbers(1, 400, 48)
if given["metric"] == "hamming":
    rows = np.where(rows > 0, 1, -1).astype(np.float32)
docs = client(keys).create_collection(given["name"], 48, given["metric"], given["mode"], filterable=["team", "share"])
ids = [f"person {i}" if i % 3 else i for i in range(400)]
docs.add(ids, rows, metadatas=[{"team": "red" if i % 2 else "blue", "n": i, "share": i / 8, "big": 2**60 + i, "Ünï": [i, None, "ß😀"]} for i in range(400)],
         documents=[f"notes on {i} 😀" for i in range(400)])
docs.delete(["person 1", 3])
found = docs.query(rows[:3], n_results=5, audience="owner")
result = {"ids": found["ids"], "distances": found["distances"], "vectors": rows.tolist()}
`,
      );
      const keys = await Keys.fromFile(await readFile(join(folder, `${name}.key`)), {
        passphrase: "four words by dice",
      });
      const docs = await client(keys).getCollection({ name, allowOpen: mode === "open" });
      expect(await docs.count()).toBe(398);
      const rows = made.vectors.map((row) => Float32Array.from(row));
      const found = await docs.query({
        queryEmbeddings: rows.slice(0, 3),
        nResults: 5,
        include: ["distances"],
      });
      expect(found.ids).toEqual(made.ids);
      // Opened by the same code from the same sealed bytes; queries have a noise of their own in two modes.
      const digits = mode === "sealed-index" || mode === "open" ? 12 : metric === "cosine" ? 3 : 1; // lengths scale it
      found.distances?.forEach((one, i) => {
        one.forEach((distance, j) => {
          expect(distance).toBeCloseTo(made.distances[i]?.[j] as number, digits);
        });
      });
      const got = await docs.get({
        ids: ["person 2", 6, "6"],
        include: ["metadatas", "documents", "embeddings"],
      });
      expect(got.ids).toEqual(["person 2", 6]);
      expect(got.documents).toEqual(["notes on 2 😀", "notes on 6 😀"]);
      expect(got.metadatas?.[0]).toEqual({
        team: "blue",
        n: 2,
        share: 0.25,
        big: 2n ** 60n + 2n,
        Ünï: [2, null, "ß😀"],
      });
      expect(got.embeddings).toEqual([rows[2], rows[6]]);
      // Tags that Python made are those that are made here: of texts, of whole and of other numbers.
      for (const [where, expected] of [
        [{ team: "red", n: { $lt: 8 } }, ["person 5", "person 7"]],
        [{ share: 1 }, ["person 8"]],
        [{ share: 0.625 }, ["person 5"]],
      ] as const)
        expect((await docs.get({ where: { ...where } })).ids).toEqual(expected);
      const red = await docs.query({
        queryEmbeddings: rows[4] as Float32Array,
        nResults: 1,
        where: { share: 0.625 },
      });
      expect(red.ids).toEqual([["person 5"]]);

      await docs.update({
        ids: ["person 2"],
        metadatas: [{ n: -2, at: new Date(0) }],
        removeFields: ["share"],
      });
      await docs.upsert({
        ids: ["person 4", "new", 2n ** 62n],
        embeddings: rows.slice(10, 13),
        documents: ["a", "b", "c"],
      });
      await docs.delete({ where: { n: { $gte: 300 } } });
      const after = await inPython<{ [name: string]: unknown }>(
        { name },
        `
keys = ciphervec.Keys.load(f"{given['folder']}/{given['name']}.key", passphrase="four words by dice")
docs = client(keys).get_collection(given["name"], allow_open=True)
got = docs.get(["person 2", "person 4", "new", 2**62])
kept = docs.get(["new", "person 2"], include=["embeddings"])["embeddings"]
result = {"count": docs.count(), "ids": [str(one) for one in got["ids"]], "metadatas": got["metadatas"], "documents": got["documents"],
          "kept": kept.tolist(), "red": docs.count() - len(docs.get(where={"team": "blue"})["ids"]),
          "nearest": docs.query(kept[:1], n_results=1, audience="owner")["ids"]}
`,
      );
      expect(after["count"]).toBe(298 + 2);
      expect(after["ids"]).toEqual(["person 2", "person 4", "new", String(2n ** 62n)]);
      expect(after["documents"]).toEqual(["notes on 2 😀", "a", "b", "c"]);
      expect(after["metadatas"]).toEqual([
        { team: "blue", n: -2, big: 2 ** 60, Ünï: [2, null, "ß😀"], at: "1970-01-01T00:00:00+00:00" },
        null,
        null,
        null,
      ]);
      expect(after["kept"]).toEqual([rows[11], rows[2]].map((row) => Array.from(row as Float32Array)));
      expect(["person 10", "new", 10, 11, "person 11"]).toContain((after["nearest"] as Id[][])[0]?.[0]);
      await keys.dispose();
    },
  );

  test("what JavaScript wrote Python reads, with a key file and a recovery phrase from here", async () => {
    const keys = await Keys.generate();
    await writeFile(join(folder, "js.key"), await keys.toFile({ passphrase: "another four words" }));
    const rows = vectors(3, 300, 32);
    const docs = await client(keys).createCollection({
      name: "from-js",
      dimension: 32,
      filterable: ["lang"],
    });
    await docs.add({
      ids: rows.map((_, i) => (i % 2 ? i : `row ${i}`)),
      embeddings: rows,
      metadatas: rows.map((_, i) => ({
        lang: i % 5 ? "en" : "de",
        ratio: i / 7,
        deep: { a: [i] },
        huge: 2n ** 61n,
      })),
      documents: rows.map((_, i) => `text ${i} ü`),
    });
    // Small ones, which are sealed again together as Python does it.
    for (let i = 0; i < 20; i++)
      await docs.add({ ids: [`late ${i}`], embeddings: [rows[i] as Float32Array] });
    const asked = await docs.query({ queryEmbeddings: rows.slice(0, 2), nResults: 4 });
    const seen = await inPython<{ [name: string]: unknown }>(
      { rows: rows.map((row) => Array.from(row)), words: await keys.recoveryPhrase() },
      `
keys = ciphervec.Keys.load(f"{given['folder']}/js.key", passphrase="another four words")
assert keys == ciphervec.Keys.from_recovery_phrase(given["words"])
rows = np.array(given["rows"], np.float32)
docs = client(keys).get_collection("from-js")
got = docs.get(["row 4", 5], include=["metadatas", "documents", "embeddings"])
info = docs.info()
result = {"count": docs.count(), "key": keys.key_id, "documents": got["documents"], "metadatas": got["metadatas"], "same": bool((got["embeddings"] == rows[4:6]).all()),
          "german": len(docs.get(where={"lang": "de"})["ids"]), "ids": docs.query(rows[:2], n_results=4, audience="owner")["ids"],
          "authenticated": info["authenticated"], "filterable": list(docs.filterable), "where": docs.query(rows[0], n_results=1, where={"lang": "de"}, audience="owner")["ids"]}
docs.add("from python", rows[0])
docs.delete(["late 3"])
`,
    );
    expect(seen).toMatchObject({
      count: 320,
      key: keys.keyId,
      same: true,
      german: 60,
      authenticated: true,
      filterable: ["lang"],
    });
    expect(seen["documents"]).toEqual(["text 4 ü", "text 5 ü"]);
    expect(seen["metadatas"]).toEqual(
      [4, 5].map((i) => ({ lang: i % 5 ? "en" : "de", ratio: i / 7, deep: { a: [i] }, huge: 2 ** 61 })),
    );
    expect(seen["where"]).toEqual([["row 0"]]);
    expect(new Set((seen["ids"] as Id[][])[0])).toEqual(new Set(asked.ids[0]));
    // What Python has done meanwhile is taken in.
    expect(await docs.has(["from python", "late 3", "late 4"])).toEqual([false, true, true]);
    await docs.refresh();
    expect(await docs.has(["from python", "late 3", "late 4"])).toEqual([true, false, true]);
    expect((await docs.info()).segments.length).toBeLessThan(15);
    await keys.dispose();
  });

  test("cards work both ways: each side writes what the other reads", async () => {
    const keys = await Keys.generate();
    await writeFile(join(folder, "cards.key"), await keys.toFile({ allowPlaintext: true }));
    const rows = vectors(5, 30, 16);
    const docs = await client(keys).createCollection({ name: "cards", dimension: 16, mode: "sealed-index" });
    const card = await docs.writerCard("door 3");
    await writeFile(join(folder, "door.card"), card.bytes);
    const python = await inPython<{ card: number[]; fingerprint: string }>(
      { rows: rows.map((row) => Array.from(row)), fingerprint: card.fingerprint },
      `
rows = np.array(given["rows"], np.float32)
writer = ciphervec.Writer(f"{given['folder']}/door.card", fingerprint=given["fingerprint"])
writer.add_to(given["url"], [f"py {i}" for i in range(30)], rows, documents=[f"seen {i}" for i in range(30)])
keys = ciphervec.Keys.load(f"{given['folder']}/cards.key")
made = client(keys).get_collection("cards").writer_card("window")
result = {"card": list(made.to_bytes()), "fingerprint": made.fingerprint}
`,
    );
    await docs.refresh();
    expect(await docs.count()).toBe(30);
    expect((await docs.info()).writers).toEqual({ "door 3": 30 });
    const hits = await docs.query({
      queryEmbeddings: rows[7] as Float32Array,
      nResults: 1,
      include: ["documents"],
    });
    expect(hits.documents).toEqual([["seen 7"]]);

    await expect(
      Writer.open(Uint8Array.from(python.card), { fingerprint: "0".repeat(32) }),
    ).rejects.toMatchObject({
      name: "PinMismatch",
    });
    const writer = await Writer.open(Uint8Array.from(python.card), { fingerprint: python.fingerprint });
    expect(writer.facts).toMatchObject({ collection: "cards", writer: "window", dimension: 16 });
    const batch = await writer.seal({
      ids: ["js 1", "js 2"],
      embeddings: rows.slice(0, 2),
      documents: ["one", "two"],
    });
    await writer.send(batch, { url: server.url });
    await writer.send(batch.bytes, { url: server.url }); // once more changes nothing
    const there = await inPython<unknown>(
      {},
      `
keys = ciphervec.Keys.load(f"{given['folder']}/cards.key")
docs = client(keys).get_collection("cards")
result = [docs.count(), docs.get(["js 1", "js 2"])["documents"], docs.adopt()]
`,
    );
    expect(there).toEqual([32, ["one", "two"], 32]);
    await docs.refresh();
    expect(await docs.count()).toBe(32);
    expect((await docs.info()).writers).toEqual({});
    await keys.dispose();
  });

  test("keys shared with a person here are opened there, and the other way round", async () => {
    const { Identity } = await import("@ciphervec/client");
    const alice = await Identity.generate("alice");
    await writeFile(join(folder, "alice.pub"), alice.recipient);
    const shared = await inPython<{ shared: number[]; key: string; derived: string; bob: number[] }>(
      {},
      `
from pathlib import Path
keys = ciphervec.Keys.generate()
bob = ciphervec.Identity.generate("bob")
bob.save(f"{given['folder']}/bob.key", passphrase="bob has four words")
made = keys.share([Path(f"{given['folder']}/alice.pub").read_bytes()])
derived = keys.for_tenant("naïve 名").for_collection("books").key_id
result = {"shared": list(made.to_bytes()), "key": keys.key_id, "derived": derived, "bob": list(bob.recipient.to_bytes())}
`,
    );
    const opened = await Keys.openShared(Uint8Array.from(shared.shared), alice);
    expect(opened.keyId).toBe(shared.key);
    const derived = await (await opened.forTenant("naïve 名")).forCollection("books");
    expect(derived.keyId).toBe(shared.derived);
    const back = await opened.share([Uint8Array.from(shared.bob)]);
    await writeFile(join(folder, "to-bob"), back);
    const there = await inPython<string>(
      {},
      `
bob = ciphervec.Identity.load(f"{given['folder']}/bob.key", passphrase="bob has four words")
result = ciphervec.Keys.open_shared(f"{given['folder']}/to-bob", bob).key_id
`,
    );
    expect(there).toBe(opened.keyId);
    const bob = await Identity.fromFile(await readFile(join(folder, "bob.key")), {
      passphrase: "bob has four words",
    });
    expect(bob.name).toBe("bob");
    expect(await (await Keys.openShared(back, bob)).same(opened)).toBe(true);
    await expect(Keys.openShared(back, alice)).rejects.toMatchObject({ name: "WrongKey" });
  });

  test.skipIf(!existsSync(TURNS)).each(["sealed", "sealed-query", "sealed-index"] as const)(
    "JavaScript, Rust and Python write one collection in turns: %s",
    async (mode) => {
      const keys = await Keys.generate();
      const name = `turns-${mode}`;
      const file = join(folder, `${name}.key`);
      await writeFile(file, await keys.toFile({ allowPlaintext: true }));
      const docs = await client(keys).createCollection({ name, dimension: 16, mode });
      await docs.add({
        ids: ["js"],
        embeddings: [Array.from({ length: 16 }, (_, i) => i + 1)],
        metadatas: [{ n: 2.5, big: 2n ** 60n }],
        documents: ["row js"],
      });
      const rust = await promisify(execFile)(TURNS, [server.url, file, name, "rust"]);
      expect(rust.stdout.split("\n")).toEqual([
        "2 rust",
        'js\t{"n":2.5,"big":1152921504606846976}\trow js',
        "",
      ]);
      const there = await inPython<[Id[], object[]]>(
        { name },
        `
docs = client(ciphervec.Keys.load(f"{given['folder']}/{given['name']}.key")).get_collection(given["name"])
docs.add(ids=["python"], embeddings=np.eye(16, dtype=np.float32)[:1], metadatas=[{"n": 1.0}], documents=["row python"])
docs.update(ids=["js"], metadatas=[{"seen": True}])
got = docs.get(ids=["js", "rust"])
result = [got["ids"], got["metadatas"]]
`,
      );
      expect(there).toEqual([
        ["js", "rust"],
        [
          { n: 2.5, big: 2 ** 60, seen: true },
          { by: "rust", n: 1 },
        ],
      ]);
      const got = await docs.get({ ids: ["js", "rust", "python"] });
      expect(got.documents).toEqual(["row js", "row rust", "row python"]);
      expect(got.metadatas?.[0]).toEqual({ n: 2.5, big: 2n ** 60n, seen: true });
    },
  );
});
