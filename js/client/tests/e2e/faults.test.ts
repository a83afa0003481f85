/** What goes wrong between a client and its server, and what a server may try: nothing is added twice, lost or believed. */

import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type ClientOptions, type Collection, Engine, Keys, MemoryStorage } from "@ciphervec/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Answered, TestProxy } from "../support/proxy.js";
import { closest, missing, type TestServer, vectors } from "../support/server.js";
import { withServer } from "../support/setup.js";

const DIMENSION = 16;
const ROWS = vectors(9, 200, DIMENSION);
const row = (i: number) => ROWS[i] as Float32Array;

describe.skipIf(missing !== "")("faults", () => {
  let server: TestServer;
  let keys: Keys;
  let proxy: TestProxy;
  let turn = 0;
  let name = "";

  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  beforeEach(async () => {
    name = `faults-${++turn}`;
    proxy = await TestProxy.before(server.url);
  });
  afterEach(() => proxy.close());

  const client = (more: Partial<ClientOptions> = {}) =>
    new Client({
      url: proxy.url,
      keys,
      storage: "memory",
      timeout: 8_000,
      onWarning: () => undefined,
      ...more,
    });
  const made = async (of = client(), more: object = {}): Promise<Collection> => {
    const docs = await of.createCollection({ name, dimension: DIMENSION, mode: "sealed-index", ...more });
    await docs.add({
      ids: ROWS.map((_, i) => i),
      embeddings: ROWS,
      documents: ROWS.map((_, i) => `text ${i}`),
    });
    return docs;
  };

  test("the ranking is that of the plain rows, and the rows are there after kill -9 of the server", async () => {
    const docs = await made();
    const found = await docs.query({ queryEmbeddings: ROWS.slice(0, 5), nResults: 10 });
    expect(found.ids).toEqual(ROWS.slice(0, 5).map((one) => closest(ROWS, one, 10)));
    await server.down();
    const asking = docs.query({ queryEmbeddings: row(0), nResults: 3 });
    setTimeout(() => void server.up(), 300);
    expect((await asking).ids).toEqual([closest(ROWS, row(0), 3)]);
  });

  test("a commit whose answer was lost is sent again under the same key, and made once", async () => {
    const docs = await made();
    proxy.seen.length = 0;
    let cuts = 0;
    proxy.fate = async ({ path }, answer) => {
      const given = await answer(); // the server has done it
      return path.endsWith("/commits") && cuts++ < 2 ? "cut" : given;
    };
    await docs.add({ ids: ["once"], embeddings: [row(3)] });
    const commits = proxy.seen.filter(({ path }) => path.endsWith("/commits"));
    expect(commits.length).toBe(3);
    expect(new Set(commits.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    expect(await (await client({ url: server.url }).getCollection({ name })).count()).toBe(201);
  });

  test("a commit that no answer ever comes to is uncertain, and the next call looks", async () => {
    const docs = await made(client({ timeout: 1_500, retries: 1 }));
    proxy.fate = async ({ path }, answer) => {
      const given = await answer();
      return path.endsWith("/commits") ? "cut" : given;
    };
    await expect(docs.add({ ids: ["perhaps"], embeddings: [row(3)] })).rejects.toMatchObject({
      name: "CommitUncertain",
    });
    proxy.fate = (_, answer) => answer();
    expect(await docs.has(["perhaps"])).toEqual([true]);
    await expect(docs.add({ ids: ["perhaps"], embeddings: [row(3)] })).rejects.toMatchObject({
      name: "DuplicateId",
    });
  });

  test("two clients that write at once both get their rows in, and an id once", async () => {
    const one = await made();
    const two = await client({ url: server.url }).getCollection({ name });
    await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        (i % 2 ? one : two).add({ ids: [`row ${i}`], embeddings: [row(i)] }),
      ),
    );
    const both = await Promise.allSettled(
      [one, two].map((docs) => docs.add({ ids: ["same"], embeddings: [row(0)] })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(both.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { name: "DuplicateId" },
    });
    await Promise.all([one.refresh(), two.refresh()]);
    expect([await one.count(), await two.count()]).toEqual([207, 207]);
  });

  test("busy servers are waited for as long as they say, and no longer than the timeout", async () => {
    const docs = await made();
    let busy = 2;
    proxy.fate = async (_, answer) =>
      busy-- > 0
        ? {
            status: 503,
            headers: { "retry-after": "0", "content-type": "application/json" },
            body: new Uint8Array(0),
          }
        : answer();
    expect((await docs.query({ queryEmbeddings: row(1), nResults: 1 })).ids).toEqual([[1]]);
    busy = 1e9;
    const slow = await client({ timeout: 700 })
      .getCollection({ name })
      .catch((error: Error) => error);
    expect(slow).toMatchObject({ name: "ServerError" });
    expect((slow as Error).message).toContain("busy");
  });

  test("a call that is given up closes its request, and nothing of it is done", async () => {
    const docs = await made();
    proxy.fate = async ({ path }, answer) => {
      if (path.endsWith("/query")) await new Promise((resolve) => setTimeout(resolve, 3_000));
      return answer();
    };
    const giving = new AbortController();
    const began = performance.now();
    const asking = docs.query({ queryEmbeddings: row(0), signal: giving.signal });
    setTimeout(() => giving.abort(new Error("not wanted any more")), 100);
    await expect(asking).rejects.toThrow("not wanted any more");
    expect(performance.now() - began).toBeLessThan(2_000);
    // The same while records are read.
    proxy.fate = ({ path }, answer) => (path.endsWith("/records") ? new Promise(() => undefined) : answer());
    const fresh = await client({ storage: "memory" }).getCollection({ name });
    const reading = fresh.get({ ids: [1], signal: AbortSignal.timeout(300) });
    await expect(reading).rejects.toMatchObject({ name: "TimeoutError" });
    proxy.fate = (_, answer) => answer();
    expect((await fresh.get({ ids: [1] })).documents).toEqual(["text 1"]);
    await expect(docs.add({ embeddings: [row(0)], signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(await docs.count()).toBe(200);
  });

  test("no answer that was altered is believed, wherever a byte was changed", async () => {
    const docs = await made();
    const altered = (path: RegExp, change: (body: Uint8Array) => Uint8Array) => {
      proxy.fate = async (exchange, answer) => {
        const given = await answer();
        return path.test(exchange.path) && given.status === 200
          ? { ...given, body: change(given.body) }
          : given;
      };
    };
    for (const at of [0.01, 0.3, 0.6, 0.99]) {
      altered(/query$/, (body) =>
        body.map((byte, i) => (i === Math.floor(at * body.length) ? byte ^ 4 : byte)),
      );
      const asked = docs.query({ queryEmbeddings: row(0), nResults: 3 });
      await expect(asked).rejects.toMatchObject({
        name: expect.stringMatching(/CorruptData|TamperedAnswer|WrongKey|UnsupportedVersion/),
      });
      // What failed a check is in quarantine, for every client of the owner's, until it is released.
      proxy.fate = (_, answer) => answer();
      const again = await client().getCollection({ name });
      for (const segment of Object.keys((await again.info()).quarantine)) await again.release(segment);
      await docs.refresh();
      expect((await again.query({ queryEmbeddings: row(0), nResults: 3 })).ids).toEqual([
        closest(ROWS, row(0), 3),
      ]);
    }
    altered(/query$/, (body) => body.subarray(0, body.length >> 1));
    await expect(
      (await client().getCollection({ name })).query({ queryEmbeddings: row(0) }),
    ).rejects.toThrow();
    for (const [path, change] of [
      [/sidecar$/, (body: Uint8Array) => body.map((byte, i) => (i === body.length >> 1 ? byte ^ 1 : byte))],
      [/state$/, (body: Uint8Array) => body.map((byte, i) => (i === 90 ? byte ^ 1 : byte))],
      [/evaluation$/, () => Uint8Array.of(1)],
      [/collections\/[^/]+$/, () => new TextEncoder().encode('{"name": 5, "segments": {}}')],
      [/collections\/[^/]+$/, (body: Uint8Array) => body.subarray(0, 40)],
    ] as const) {
      altered(path, change);
      await expect(client({ retries: 0, timeout: 3_000 }).getCollection({ name })).rejects.toMatchObject({
        name: expect.stringMatching(/CorruptData|RollbackDetected|ServerError|PinMismatch/),
      });
    }
  });

  test("a server that shows an older state, or another history, is found out, also after a restart of this client", async () => {
    const storage = new MemoryStorage();
    const first = client({ storage });
    const docs = await made(first);
    const old = await snapshot(name, proxy);
    await docs.add({ ids: ["later"], embeddings: [row(5)] });
    await docs.delete({ ids: [0, 1] });
    proxy.fate = old.replay;
    await expect(docs.refresh()).rejects.toMatchObject({ name: "RollbackDetected" });
    await expect(docs.query({ queryEmbeddings: row(0) })).rejects.toMatchObject({ name: "RollbackDetected" });
    const next = client({ storage });
    await expect(next.getCollection({ name })).rejects.toMatchObject({ name: "RollbackDetected" });
    // The head and the version are the server's own words: it may claim the new ones beside the old segments.
    proxy.fate = (_, answer) => answer();
    const now = await snapshot(name, proxy);
    proxy.fate = async (exchange, answer) => {
      const given = await old.replay(exchange, answer);
      if (given === "cut" || !exchange.path.endsWith(name)) return given;
      const body = { ...old.state, version: now.state["version"], head: now.state["head"] };
      return { ...given, status: 200, body: new TextEncoder().encode(JSON.stringify(body)) };
    };
    await expect(client({ storage }).getCollection({ name })).rejects.toMatchObject({
      name: "RollbackDetected",
    });
    // One without a memory has nothing to hold it against but what the owner signed, which is whole.
    expect(await (await client({ storage: new MemoryStorage() }).getCollection({ name })).count()).toBe(200);
    proxy.fate = (_, answer) => answer();
    expect(await (await client({ storage }).getCollection({ name })).count()).toBe(199);
  });

  test("a collection that was dropped and made anew elsewhere is not taken for the old one until its owner says so", async () => {
    const storage = new MemoryStorage();
    await made(client({ storage }));
    const other = client({ url: server.url });
    await other.deleteCollection({ name });
    await other.createCollection({ name, dimension: DIMENSION, mode: "sealed-index" });
    const back = client({ storage });
    await expect(back.getCollection({ name })).rejects.toMatchObject({
      name: expect.stringMatching(/PinMismatch|RollbackDetected/),
    });
    await back.forget(name);
    expect(await (await back.getCollection({ name })).count()).toBe(0);
  });

  test("what a folder holds is encrypted, bound to its place, and of no use under other keys", async () => {
    const folder = await mkdtemp(join(tmpdir(), "ciphervec-state-"));
    try {
      const storage = { folder };
      const docs = await made(client({ storage }), { filterable: ["team"] });
      await docs.query({ queryEmbeddings: row(0), include: ["documents"] });
      const trusted = await readdir(join(folder, "trust"));
      expect(trusted.length).toBe(1);
      expect((await readdir(join(folder, "blobs"))).length).toBeGreaterThan(1);
      const entry = join(folder, "trust", trusted[0] as string);
      const bytes = await readFile(entry);
      for (const word of [name, "127.0.0.1", "version", "lineage"]) expect(bytes.includes(word)).toBe(false);
      // What was fetched once is not fetched again.
      proxy.seen.length = 0;
      await client({ storage }).getCollection({ name });
      expect(proxy.seen.filter(({ path }) => path.includes("sidecar"))).toEqual([]);

      const strangers = await Keys.generate();
      await expect(client({ storage, keys: strangers }).getCollection({ name })).rejects.toMatchObject({
        name: expect.stringMatching(/PinMismatch|WrongKey/),
      });
      for (const [change, says] of [
        [(data: Buffer) => data.subarray(0, 20), "damaged"],
        [(data: Buffer) => data.map((byte, i) => (i === data.length - 3 ? byte ^ 1 : byte)), "damaged"],
        [(data: Buffer) => data.map((byte, i) => (i === 8 ? 9 : byte)), "version 9"],
      ] as const) {
        await writeFile(entry, change(bytes));
        await expect(client({ storage }).getCollection({ name })).rejects.toThrow(says);
      }
      await writeFile(entry, bytes);
      // A damaged blob costs its fetching.
      for (const one of await readdir(join(folder, "blobs")))
        await writeFile(join(folder, "blobs", one), "junk");
      expect(await (await client({ storage }).getCollection({ name })).count()).toBe(200);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("a storage without room costs the cache alone; one that can't be written at all is an error that says what to do", async () => {
    const full = new (class extends MemoryStorage {
      prefix = "blobs/";
      override async set(place: string, data: Uint8Array) {
        if (place.startsWith(this.prefix)) throw new DOMException("no room", "QuotaExceededError");
        await super.set(place, data);
      }
    })();
    const docs = await made(client({ storage: full }));
    expect(
      (await docs.query({ queryEmbeddings: row(2), nResults: 1, include: ["documents"] })).documents,
    ).toEqual([["text 2"]]);
    full.prefix = "trust/";
    const refusal = await docs.add({ ids: ["x"], embeddings: [row(0)] }).catch((error: Error) => error);
    expect(refusal).toMatchObject({ name: "StorageError" });
    full.prefix = "none";
    expect(await docs.has(["x"])).toEqual([false]); // nothing was sent that could not be remembered
    await docs.add({ ids: ["x"], embeddings: [row(0)] });
    expect(await docs.has(["x"])).toEqual([true]);
  });

  test("a Worker that ends takes its keys with it, and every call says so", async () => {
    const engine = new Engine();
    const lost = await Keys.generate({ engine });
    const docs = await client({ keys: lost }).createCollection({ name, dimension: DIMENSION });
    await docs.add({ embeddings: ROWS.slice(0, 5) });
    proxy.fate = () => new Promise(() => undefined);
    const asking = docs.query({ queryEmbeddings: row(0) });
    setTimeout(() => engine.stop(), 50);
    await expect(asking).rejects.toMatchObject({ name: "WorkerLost" });
    await expect(docs.count()).rejects.toMatchObject({ name: "WorkerLost" });
    await expect(lost.recoveryPhrase()).rejects.toThrow("load the keys again");
  });

  test("disposed keys open nothing any more, and are no text of anything", async () => {
    const here = await Keys.generate();
    const docs = await client({ keys: here }).createCollection({ name, dimension: DIMENSION });
    expect(() => JSON.stringify(here)).toThrow("secret");
    here[Symbol.dispose]();
    await expect(here.toFile({ passphrase: "x" })).rejects.toThrow("disposed");
    await expect(docs.add({ embeddings: [row(0)] })).rejects.toThrow("disposed");
    await here.dispose(); // once more is fine
  });

  test("key files: another passphrase, damage, other versions, other keys", async () => {
    const file = await keys.toFile({ passphrase: "right" });
    await expect(Keys.fromFile(file, { passphrase: "wrong" })).rejects.toMatchObject({ name: "WrongKey" });
    await expect(Keys.fromFile(file)).rejects.toMatchObject({ name: "InvalidInput" });
    await expect(Keys.fromFile(file, { passphrase: "right", keyId: "0".repeat(16) })).rejects.toMatchObject({
      name: "WrongKey",
    });
    await expect(Keys.fromFile(file.subarray(0, 50), { passphrase: "right" })).rejects.toMatchObject({
      name: "CorruptData",
    });
    await expect(Keys.fromFile(new Blob(["not a key"]))).rejects.toMatchObject({ name: "CorruptData" });
    const newer = file.map((byte, i) => (i === 8 ? 99 : byte));
    await expect(Keys.fromFile(newer, { passphrase: "right" })).rejects.toMatchObject({
      name: expect.stringMatching(/UnsupportedVersion|CorruptData/),
    });
    await expect(keys.toFile({} as never)).rejects.toMatchObject({ name: "InvalidInput" });
    const words = await keys.recoveryPhrase();
    expect(words.split(" ").length).toBe(24);
    expect(await keys.same(await Keys.fromPhrase(`  ${words.toUpperCase()} `, { keyId: keys.keyId }))).toBe(
      true,
    );
    await expect(Keys.fromPhrase("abandon ".repeat(24))).rejects.toMatchObject({ name: "InvalidInput" });
  });

  test("in this thread, without a Worker, the same", async () => {
    const engine = new Engine({ worker: false });
    const here = await Keys.generate({ engine });
    const docs = await client({ keys: here }).createCollection({ name, dimension: DIMENSION, mode: "open" });
    const vectors = ROWS.slice(0, 3);
    await docs.add({ ids: [1, 2, 3], embeddings: vectors });
    expect((await docs.query({ queryEmbeddings: row(1), within: 0.001 })).ids).toEqual([[2]]);
    expect(vectors[0]?.length).toBe(DIMENSION); // what the caller passed is still the caller's
  });
});

/** What the server shows of a collection now, to be shown again later. */
async function snapshot(name: string, proxy: TestProxy) {
  const kept = new Map<string, Answered>();
  const get = async (path: string) => {
    const got = await fetch(proxy.url + path);
    const body = new Uint8Array(await got.arrayBuffer());
    kept.set(path, { status: got.status, headers: Object.fromEntries(got.headers), body });
    return body;
  };
  const state = JSON.parse(new TextDecoder().decode(await get(`/v1/collections/${name}`))) as {
    [field: string]: unknown;
  };
  await get(`/v1/collections/${name}/attachments/state`);
  for (const { id, blobs } of state["segments"] as { id: string; blobs: object }[])
    for (const blob of Object.keys(blobs)) await get(`/v1/collections/${name}/segments/${id}/${blob}`);
  const replay = async (
    exchange: { path: string; method: string },
    answer: () => Promise<Answered>,
  ): Promise<Answered | "cut"> => {
    const then = kept.get(exchange.path);
    if (then !== undefined && exchange.method === "GET") return then;
    const given = await answer();
    if (!exchange.path.endsWith("/query")) return given;
    return {
      ...given,
      headers: {
        ...given.headers,
        "ciphervec-version": String(state["version"]),
        "ciphervec-head": String(state["head"]),
      },
    };
  };
  return { state, replay };
}
