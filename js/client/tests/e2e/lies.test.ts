/** A check that failed is remembered and told, whatever the server does with the rest of the answer, and whoever else asks. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions, type Collection, type Keys } from "@ciphervec/client";
import { blake3 } from "@noble/hashes/blake3.js";
import { describe, expect, test } from "vitest";
import type { Answered, TestProxy } from "../support/proxy.js";
import { closest, missing, python, type TestServer, vectors } from "../support/server.js";
import { withLiar, withServer } from "../support/setup.js";

const DIMENSION = 16;
const ROWS = vectors(5, 40, DIMENSION);
/** In segments whose answers are held against sums: of few rows nothing depends on what comes. */
const MORE_ROWS = vectors(5, 400, DIMENSION);
const row = (i: number) => ROWS[i] as Float32Array;
const MODES = ["sealed", "sealed-query", "sealed-index"] as const;
/** Bytes before the bitmap of a segment: its name, its rows, its level, whether it is filtered. */
const BITMAP = 16 + 4 + 1 + 1;
/** Queries in a message, and rows, whose answer is opened as it comes. */
const [MANY, LONG] = [1024, 1400];

type Change = (answer: Uint8Array) => Uint8Array;

/** A frame with other bytes at `at`, and a checksum that fits. */
function forged(answer: Uint8Array, at: number, change: (byte: number) => number, length = 1): Uint8Array {
  const data = answer.map((byte, i) => (at <= i && i < at + length ? change(byte) : byte));
  data.set(blake3(Buffer.concat([data.subarray(0, 32), data.subarray(64)])), 32);
  return data;
}

/** Makes a collection as release 0.1 did, whose states are not authenticated, with 20 rows of team a and 20 of team b. */
const BEFORE = `
sys.path.insert(0, given["tests"])
from ciphervec.collections.spec import Choices
import former
keys = ciphervec.Keys.load(given["key"])
owner = client(keys)
former.create(owner, Choices.new(given["name"], len(given["rows"][0]), "cosine", "sealed", "standard", ["team"]))
docs = owner.get_collection(given["name"])
rows = np.array(given["rows"], np.float32)
docs.add(list(range(40)), rows, metadatas=[{"team": "a" if row < 20 else "b"} for row in range(40)])
result = docs.info()["authenticated"]
`;

const shifted: Change = (answer) => forged(answer, answer.length - 9, (byte) => byte ^ 0x55, 8);

describe.skipIf(missing !== "")("lies", () => {
  let server: TestServer;
  let keys: Keys;
  let proxy: TestProxy;
  let folder = "";
  let name = "";

  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  withLiar(
    () => server.url,
    "lies",
    (...made) => {
      [name, proxy, folder] = made;
    },
  );

  const client = (more: Partial<ClientOptions> = {}) =>
    new Client({ url: proxy.url, keys, storage: "memory", onWarning: () => undefined, ...more });
  const made = async (more: object = {}, of = client(), rows = ROWS): Promise<Collection> => {
    const docs = await of.createCollection({ name, dimension: DIMENSION, ...more });
    const half = rows.length / 2;
    for (const start of [0, half])
      await docs.add({
        ids: rows.slice(start, start + half).map((_, i) => start + i),
        embeddings: rows.slice(start, start + half),
      });
    return docs;
  };
  const everything = async (docs: Collection, queries = [row(0)]) =>
    (await docs.query({ queryEmbeddings: queries, nResults: MORE_ROWS.length })).ids[0]?.length;
  const asked = () => proxy.seen.filter(({ path }) => path.endsWith("/query")).length;
  /** Change the answers to queries. */
  const lie = (change: (given: Answered) => Answered | Promise<Answered>) => {
    proxy.fate = async ({ path }, answer) => {
      const given = await answer();
      return path.endsWith("/query") && given.status === 200 ? change(given) : given;
    };
  };
  const tells = (change: Change) => lie((given) => ({ ...given, body: change(given.body) }));
  const honest = () => {
    proxy.fate = (_, answer) => answer();
  };
  const segmentOf = async (docs: Collection, at = 0) =>
    Buffer.from((await docs.info()).segments[at]?.id ?? "", "hex");

  test.each(MODES)(
    "what another client found while the server answers is not passed over: %s",
    async (mode) => {
      const first = await made({ mode }, client(), MORE_ROWS);
      const second = await client({ url: server.url }).getCollection({ name });
      expect(await everything(second)).toBe(MORE_ROWS.length);
      tells(shifted);
      await expect(everything(first)).rejects.toMatchObject({ name: "TamperedAnswer" });
      // The version of its answer tells it of the commit that names the segment.
      await expect(everything(second)).rejects.toMatchObject({ name: "Quarantined" });
    },
  );

  test.each([1, MANY + 1])(
    "what another call found is not passed over, in none of the messages: %d queries",
    async (queries) => {
      const docs = await made({ mode: "sealed-index" });
      const messages = Math.ceil(queries / MANY);
      let goOn: () => void = () => undefined;
      const waits = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      let late: () => void = () => undefined;
      const isLate = new Promise<void>((resolve) => {
        late = resolve;
      });
      let came = 0;
      lie(async (given) => {
        if (++came < messages) return given;
        if (came > messages) return { ...given, body: shifted(given.body) };
        late();
        await waits;
        return given;
      });
      const slow = everything(
        docs,
        Array.from({ length: queries }, (_, i) => row(i % ROWS.length)),
      ).catch((error: Error) => error);
      await isLate;
      await expect(everything(docs)).rejects.toMatchObject({ name: "TamperedAnswer" });
      goOn();
      expect(await slow).toMatchObject({ name: "Quarantined" });
    },
  );

  test("clients that share a storage ask no more, where nothing can be committed either", async () => {
    const storage = { folder: join(folder, "state") };
    const clients = Array.from({ length: 3 }, () => client({ storage }));
    const opened = [await made({ mode: "sealed-index" }, clients[0])];
    for (const one of clients.slice(1)) opened.push(await one.getCollection({ name }));
    for (const docs of opened) expect(await everything(docs)).toBe(ROWS.length);
    proxy.fate = async ({ path }, answer) => {
      if (path.endsWith("/commits"))
        return { status: 403, headers: { "ciphervec-api": "1" }, body: Buffer.from("{}") };
      const given = await answer();
      return path.endsWith("/query") ? { ...given, body: shifted(given.body) } : given;
    };
    await expect(everything(opened[0] as Collection)).rejects.toMatchObject({ name: "TamperedAnswer" });
    const before = asked();
    for (const docs of opened) await expect(everything(docs)).rejects.toMatchObject({ name: "Quarantined" });
    expect(asked()).toBe(before);
  });

  describe("in an answer that is opened as it comes", () => {
    const long = vectors(6, LONG, 4);
    const many = (docs: Collection) => docs.query({ queryEmbeddings: long.slice(0, MANY), nResults: 1 });
    const filled = async (of?: Client) => {
      const docs = await (of ?? client()).createCollection({ name, dimension: 4, mode: "sealed-index" });
      await docs.add({ ids: long.map((_, i) => i), embeddings: long });
      return docs;
    };
    /** Of the words, and no checksum that fits. */
    const shift: Change = (answer) =>
      answer.map((byte, i) => (i === Math.floor(answer.length / 3) ? byte ^ 1 : byte));

    test.each([0, 3])(
      "a check that failed is not forgotten where the rest is cut: %d retries",
      async (retries) => {
        const docs = await filled(client({ retries }));
        lie((given) => ({ ...given, body: shift(given.body).subarray(0, -100), broken: true }));
        await expect(many(docs)).rejects.toMatchObject({ name: "TamperedAnswer" });
        expect(asked()).toBe(retries === 0 ? 1 : 2);
        const segment = (await segmentOf(docs)).toString("hex");
        expect(Object.keys((await docs.info()).quarantine)).toEqual([segment]);
        honest();
        const before = asked();
        await expect(many(docs)).rejects.toMatchObject({ name: "Quarantined" });
        expect(asked()).toBe(before);
        await docs.release(segment);
        expect((await many(docs)).ids[7]).toEqual([7]);
      },
    );

    test("one that is damaged has failed its check, and one of another state is not opened at all", async () => {
      const docs = await filled();
      tells(shift);
      await expect(many(docs)).rejects.toMatchObject({ name: "TamperedAnswer" });
      await docs.release((await segmentOf(docs)).toString("hex"));
      let lies = 1;
      lie((given) => {
        if (lies-- <= 0) return given;
        const headers = {
          ...given.headers,
          "ciphervec-version": String(Number(given.headers["ciphervec-version"]) + 1),
        };
        return { ...given, headers, body: shift(given.body) };
      });
      expect((await many(docs)).ids[7]).toEqual([7]);
      expect((await docs.info()).quarantine).toEqual({});
    });
  });

  describe.each(MODES)("about a filter, %s", (mode) => {
    const teams = async (of: (i: number) => string, parts: number[]) => {
      const docs = await client().createCollection({
        name,
        dimension: DIMENSION,
        mode,
        filterable: ["team"],
      });
      for (const [i, start] of parts.entries()) {
        const ids = ROWS.map((_, id) => id).slice(start, parts[i + 1] ?? ROWS.length);
        await docs.add({
          ids,
          embeddings: ids.map(row),
          metadatas: ids.map((id) => ({ team: of(id) })),
        });
      }
      return docs;
    };
    const where = { team: "a" };

    test.each(["near", "far"])("other rows than it chooses are refused, hits or not: %s", async (place) => {
      const docs = await teams((id) => (id < 20 ? "a" : "b"), [0]);
      const query = place === "near" ? row(25) : row(25).map((value, i) => (i % 2 ? -value : 0.01 - value));
      const ask = () => docs.query({ queryEmbeddings: query, nResults: 3, where });
      expect((await ask()).ids).toEqual([closest(ROWS.slice(0, 20), query, 3)]);
      const segment = await segmentOf(docs);
      const before = asked();
      tells((answer) => {
        const at = Buffer.from(answer).indexOf(segment) + BITMAP + (25 >> 3);
        return forged(answer, at, (byte) => byte | (1 << (25 % 8)));
      });
      await expect(ask()).rejects.toMatchObject({ name: "TamperedAnswer" });
      expect(asked()).toBe(before + 1);
      honest();
      await expect(ask()).rejects.toMatchObject({ name: "Quarantined" });
    });

    test("rows that it chooses and that are left out are missed", async () => {
      const docs = await teams((id) => (id % 20 < 5 ? "a" : "b"), [0, 20]);
      const ask = () => docs.query({ queryEmbeddings: row(39), nResults: ROWS.length, where });
      expect((await ask()).ids[0]?.length).toBe(10);
      const segment = await segmentOf(docs);
      tells((answer) => forged(answer, Buffer.from(answer).indexOf(segment) + BITMAP, (byte) => byte & ~1));
      await expect(ask()).rejects.toMatchObject({ name: "TamperedAnswer" });
    });
  });

  test("tags that no owner authenticates choose nothing: the server is asked about all rows, once", async () => {
    const key = join(folder, "my.key");
    await writeFile(key, await keys.toFile({ allowPlaintext: true }));
    const given = { url: server.url, name, key, rows: ROWS.map((one) => [...one]) };
    const tests = fileURLToPath(new URL("../../../../python/tests/support", import.meta.url));
    expect(await python<boolean>({ ...given, tests }, BEFORE)).toBe(false);
    const docs = await client().getCollection({ name });
    const ask = (more: object) => docs.query({ queryEmbeddings: row(25), nResults: 3, ...more });
    expect((await ask({})).ids).toEqual([closest(ROWS, row(25), 3)]);
    proxy.seen.length = 0;
    expect((await ask({ where: { team: "a" } })).ids).toEqual([closest(ROWS.slice(0, 20), row(25), 3)]);
    expect((await ask({})).ids).toEqual([closest(ROWS, row(25), 3)]);
    // A query with tags is longer.
    const [filtered, plain] = proxy.seen.filter(({ path }) => path.endsWith("/query"));
    expect([asked(), filtered?.body.length]).toEqual([2, plain?.body.length]);
  });
});
