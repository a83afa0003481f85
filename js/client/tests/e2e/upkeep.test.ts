/** Upkeep by a page: segments are merged and sealed under other keys, restores are accepted, and Python reads on. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client, type ClientOptions, type Collection, Keys, Writer } from "@ciphervec/client";
import { beforeEach, describe, expect, test } from "vitest";
import { missing, python, type TestServer, vectors } from "../support/server.js";
import { withServer } from "../support/setup.js";

const DIMENSION = 16;
const ROWS = vectors(11, 60, DIMENSION);
const IDS = ROWS.map((_, i) => i);

describe.skipIf(missing !== "")("upkeep", () => {
  let server: TestServer;
  let keys: Keys;
  let turn = 0;
  let name = "";

  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  beforeEach(() => {
    name = `upkeep-${++turn}`;
  });

  const client = (more: Partial<ClientOptions> = {}) =>
    new Client({ url: server.url, keys, storage: "memory", onWarning: () => undefined, ...more });
  /** Three segments, of which one has a deleted row. */
  const made = async (of = client()): Promise<Collection> => {
    const docs = await of.createCollection({ name, dimension: DIMENSION, mode: "sealed-index" });
    for (let at = 0; at < 60; at += 20)
      await docs.add({
        ids: IDS.slice(at, at + 20),
        embeddings: ROWS.slice(at, at + 20),
        documents: IDS.slice(at, at + 20).map((i) => `text ${i}`),
      });
    await docs.delete({ ids: 5 });
    return docs;
  };
  const check = async (docs: Collection, segments: number) => {
    const found = await docs.get({ include: ["documents", "embeddings"] });
    expect(found.ids).toEqual(IDS.filter((i) => i !== 5));
    expect(found.documents?.[4]).toBe("text 4");
    expect(found.embeddings?.[4]).toEqual(ROWS[4]);
    const near = await docs.query({ queryEmbeddings: ROWS[33] as Float32Array, nResults: 1 });
    expect(near.ids).toEqual([[33]]);
    const info = await docs.info();
    expect([info.segments.length, info.segments.some((one) => one.deleted > 0)]).toEqual([segments, false]);
  };
  const byPython = async (own: Keys, code: string) => {
    const key = join(server.folder, `${name}-${own.keyId}.key`);
    await writeFile(key, await own.toFile({ allowPlaintext: true }));
    return python<unknown>(
      { url: server.url, name, key },
      `keys = ciphervec.Keys.load(given["key"])\ndocs = client(keys).get_collection(given["name"])\n${code}`,
    );
  };

  test("further fields are filterable, rows are packed for a slower network, and Python sees both", async () => {
    const docs = await client().createCollection({ name, dimension: DIMENSION });
    await docs.add({ ids: IDS, embeddings: ROWS, metadatas: IDS.map((i) => ({ even: i % 2 === 0 })) });
    expect(await docs.upgrade()).toBe(false);
    await docs.extendFilterable(["even"]);
    expect(docs.filterable).toEqual(["even"]);
    await expect(docs.extendFilterable(["even"])).rejects.toMatchObject({ name: "InvalidInput" });
    await expect(docs.optimize({ network: { megabits: 0, latencyMs: 1 } })).rejects.toMatchObject({
      name: "InvalidInput",
    });
    await docs.optimize({ network: { megabits: 10, latencyMs: 40 } });
    const near = await docs.query({
      queryEmbeddings: ROWS[33] as Float32Array,
      nResults: 1,
      where: { even: false },
    });
    expect(near.ids).toEqual([[33]]);
    const told = await docs.explain();
    expect([told.rows, told.rowsScanned, told.routed, told.routing]).toEqual([60, 60, false, null]);
    expect(told.traffic?.up).toBeGreaterThan(0);
    expect(told.text).toMatch(/shown to the server: nothing of the question/);
    expect(
      await byPython(
        keys,
        `network = docs.info()["packing"]["network"]
result = [docs.filterable, docs.info()["untagged"], network["megabits"], network["latency_ms"]]`,
      ),
    ).toEqual([["even"], 0, 10, 40]);
  });

  test("segments are merged, with their rows counted, and Python finds nothing left to do", async () => {
    const docs = await made();
    const steps: [number, number | null][] = [];
    await docs.optimize({
      onProgress: ({ phase, done, total }) => phase === "seal" && steps.push([done, total]),
    });
    expect(steps.at(-1)).toEqual([60, 60]);
    await check(docs, 1);
    const before = (await docs.info()).segments;
    await byPython(keys, "docs.optimize(); result = docs.count()");
    await docs.refresh();
    expect((await docs.info()).segments).toEqual(before);
    await docs.optimize({ reseal: true });
    await check(docs, 1);
  });

  test("a change of keys that is given up goes on with the next call, here or in Python, and the old keys are refused", async () => {
    for (const finish of ["here", "in Python"]) {
      name = `upkeep-${++turn}`;
      const docs = await made();
      const next = await Keys.generate();
      const giving = new AbortController();
      const rotating = docs.rotateKeys({
        keys: next,
        signal: giving.signal,
        onProgress: ({ phase }) => phase === "seal" && giving.abort(new Error("not now")),
      });
      await expect(rotating).rejects.toThrow("not now");
      expect((await docs.info()).rotatesFrom).toBe(keys.keyId);
      const anew = new Client({ url: server.url, keys: next, storage: "memory" });
      if (finish === "here") await docs.rotateKeys({ keys: next });
      else await byPython(next, "docs.rotate_keys(keys); result = 0");
      const again = await anew.getCollection({ name });
      await check(again, 3);
      expect((await again.info()).rotatesFrom).toBeNull();
      await again.rotateQueryKey();
      expect((await again.info()).epoch).toBe(2);
      await expect(client().getCollection({ name })).rejects.toMatchObject({ name: "WrongKey" });
      await next.dispose();
    }
    name = `upkeep-${++turn}`;
    await expect((await made()).rotateKeys({ keys: "mine" } as never)).rejects.toMatchObject({
      name: "InvalidInput",
    });
  });

  test("a restore is told, accepted by its owner, and followed by the others", async () => {
    const mine = client();
    const docs = await made(mine);
    const theirs = client();
    const seeing = await theirs.getCollection({ name });
    const url = `${server.url}/v1/collections/${name}/snapshots/s1`;
    expect((await fetch(url, { method: "PUT" })).ok).toBe(true);
    await docs.delete({ ids: IDS.slice(10).filter((i) => i !== 5) });
    await seeing.refresh();
    await expect(mine.acceptRestore({ name })).rejects.toMatchObject({ name: "InvalidInput" });
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ into: name });
    expect((await fetch(`${url}/restore`, { method: "POST", headers, body })).ok).toBe(true);
    const told = await mine.getCollection({ name }).catch((error: Error) => error);
    expect(told).toMatchObject({ name: "RollbackDetected" });
    expect((told as Error).message).toContain(`client.acceptRestore("${name}")`);
    const back = await mine.acceptRestore({ name });
    expect(await back.count()).toBe(59);
    await expect(seeing.refresh()).rejects.toThrow("accepted a restore at");
    await theirs.forget(name);
    expect(await (await theirs.getCollection({ name })).count()).toBe(59);
  });

  test("rows of writers are adopted or thrown away", async () => {
    const docs = await made();
    const { bytes } = await docs.writerCard("door");
    const writer = await Writer.open(bytes);
    for (const id of ["left", "right"]) {
      const batch = await writer.seal({ ids: [id], embeddings: [ROWS[1] as Float32Array] });
      await writer.send(batch, { url: server.url });
    }
    await docs.refresh();
    const written = (await docs.info()).segments.filter((one) => one.writer === "door");
    expect(written).toHaveLength(2);
    expect(await docs.discard({ segments: [(written[0] as { id: string }).id] })).toBe(1);
    expect(await docs.adopt()).toBe(1);
    expect([await docs.has(["left", "right"]), (await docs.info()).writers]).toEqual([[false, true], {}]);
  });

  test("rows without a direction are left out where that is asked for, with a warning", async () => {
    const told: string[] = [];
    const docs = await made(client({ onWarning: (text) => told.push(text) }));
    const zero = new Float32Array(DIMENSION);
    const given = { ids: ["a", "b"], embeddings: [zero, ROWS[0] as Float32Array], documents: ["x", "y"] };
    await expect(docs.add(given)).rejects.toMatchObject({ name: "InvalidRows" });
    expect(await docs.add({ ...given, onZero: "skip" })).toEqual(["b"]);
    expect(told.at(-1)).toBe('1 row of 2 left out: a zero vector has no direction: "a".');
    expect((await docs.get({ ids: ["b"] })).documents).toEqual(["y"]);
    await expect(docs.add({ ...given, onZero: "drop" as never })).rejects.toThrow('"refuse" or "skip"');
  });
});
