/** What the client refuses by name, and whom it answers, against a server and in its Worker. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Client, Collection, type Engine, InvalidInput, type Keys } from "@ciphervec/client";
import { describe, expect, test } from "vitest";
import { missing, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

describe.skipIf(missing !== "")("options", () => {
  let server: TestServer;
  let keys: Keys;

  withServer((started, made) => {
    [server, keys] = [started, made];
  });

  const made = async (
    name: string,
    mode: "sealed" | "sealed-query" | "sealed-index",
    said: string[] = [],
  ) => {
    const client = new Client({ url: server.url, keys, onWarning: (message) => void said.push(message) });
    const docs = await client.createCollection({ name, dimension: 3, mode });
    await docs.add({
      ids: ["a", "b"],
      embeddings: [
        [1, 0, 0],
        [0, 1, 0],
      ],
      metadatas: [{ t: "mine" }, { t: "theirs" }],
      documents: ["mine", "theirs"],
    });
    return docs;
  };

  test("a client shows the server its next token", async () => {
    const shown: (string | undefined)[] = [];
    const other = createServer((request, reply) => {
      shown.push(request.headers.authorization);
      reply.writeHead(403, { "content-type": "application/problem+json" }).end("{}");
    });
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const client = new Client({ url, keys, token: "one", storage: "memory", onWarning: () => undefined });
    await expect(client.listCollections()).rejects.toThrow();
    await client.setToken(" two ");
    await expect(client.listCollections()).rejects.toThrow();
    await expect(client.setToken("a b")).rejects.toThrow(InvalidInput);
    await expect(client.listCollections()).rejects.toThrow();
    expect(shown).toEqual(["Bearer one", "Bearer two", "Bearer two"]);
    await client.close();
    other.close();
  });

  test("a misspelt filter returns no other tenant's rows", async () => {
    const docs = await made("slips", "sealed");
    const q = { queryEmbeddings: [0, 1, 0] };
    for (const call of [
      docs.query({ ...q, wher: { t: "mine" } } as never),
      docs.query({ ...q, filter: { t: "mine" } } as never),
      docs.query({ ...q, nResult: 1 } as never),
      docs.get({ wher: { t: "mine" } } as never),
      docs.delete({ ids: ["a"], wher: { t: "mine" } } as never),
      docs.add({ ids: ["c"], embeddings: [[0, 0, 1]], metadata: [{ t: "x" }], document: ["lost"] } as never),
    ])
      await expect(call).rejects.toThrow(/has no option "/);
    expect(await docs.count()).toBe(2);
    expect((await docs.query({ ...q, where: { t: "mine" } })).ids).toEqual([["a"]]);
  });

  test("the Worker refuses them too, whoever sends them", async () => {
    const docs = await made("worker", "sealed");
    const { engine } = keys;
    const sent: unknown[] = [];
    const call = engine.call.bind(engine);
    const spy = new Proxy(engine, {
      get: (of, name) =>
        name === "call"
          ? (target: never, method: string, args: object[], options: never) => {
              sent.push(method);
              return call(target, method, [{ ...args[0], wher: { t: "mine" } }], options);
            }
          : Reflect.get(of, name),
    });
    const { handle } = await call<{ handle: never }>((await clientHandle(server.url, keys)) as never, "get", [
      { name: "worker" },
    ]);
    const behind = new Collection(spy as Engine, { handle, facts: {} as never });
    for (const ask of [
      behind.get(),
      behind.query({ queryEmbeddings: [1, 0, 0] }),
      behind.delete({ ids: ["a"] }),
    ])
      await expect(ask).rejects.toThrow('has no option "wher"');
    expect(sent).toEqual(["get", "query", "delete"]);
    expect(await docs.count()).toBe(2);
  });

  test.each(["sealed", "sealed-query"] as const)("results of %s are the owner's own", async (mode) => {
    const docs = await made(`own-${mode}`, mode);
    const q = { queryEmbeddings: [0, 1, 0], nResults: 1 };
    if (mode === "sealed-query")
      await expect(docs.query({ ...q, audience: "others" })).rejects.toThrow("owner's own");
    await expect(docs.query({ ...q, audience: "everybody" } as never)).rejects.toThrow("audience must be");
    const found = await docs.query(q);
    expect(found.ids).toEqual([["b"]]);
    expect(() => JSON.stringify(found)).toThrow(InvalidInput);
    expect(() => JSON.stringify({ ...found })).toThrow('audience: "owner"');
    const named = await docs.query({ ...q, audience: "owner" });
    expect(JSON.parse(JSON.stringify(named)).ids).toEqual([["b"]]);
  });

  test("others are answered with noise that is counted, where that lasts", async () => {
    const docs = await made("others", "sealed");
    const q = { queryEmbeddings: [0, 1, 0], nResults: 1, audience: "others", flooding: 2 ** -4 } as const;
    const before = await docs.floodingPlan({ flooding: 2 ** -4 });
    const found = await docs.query(q);
    expect(JSON.parse(JSON.stringify(found)).ids).toEqual([["b"]]);
    const after = await docs.floodingPlan({ flooding: 2 ** -4 });
    expect(after.queriesLeft).toBe(before.queriesLeft - 1);
    expect(after.rowsLeft).toBe(before.rowsAnEpoch - 2);
    const { flooding: _noise, ...exact } = q;
    const ranked = await docs.query(exact);
    expect([ranked.ids, ranked.scores, ranked.flooding, found.flooding]).toEqual([
      [["b"]],
      [[1]],
      null,
      2 ** -4,
    ]);
    expect((await docs.floodingPlan({ flooding: 2 ** -4 })).queriesLeft).toBe(after.queriesLeft);
    await expect(docs.query({ ...q, flooding: 1 })).rejects.toThrow("2^-12 to 2^-4");
    await expect(docs.query({ ...q, include: ["embeddings"] })).rejects.toThrow("owner's own");
    const forgetful = new Client({ url: server.url, keys, storage: "memory" });
    const again = await forgetful.getCollection({ name: "others" });
    await expect(again.query(q)).rejects.toThrow("remembers nothing");
  });

  test("results of sealed-index are for anybody", async () => {
    const docs = await made("exact", "sealed-index");
    const found = await docs.query({ queryEmbeddings: [0, 1, 0], nResults: 1, audience: "others" });
    expect(JSON.parse(JSON.stringify(found)).ids).toEqual([["b"]]);
    expect((await docs.get({ include: ["embeddings"], audience: "others" })).ownersOnly).toBe(false);
  });

  test("a new document that keeps the old vector is said", async () => {
    const said: string[] = [];
    const docs = await made("stale", "sealed", said);
    await docs.update({ ids: ["a", "b"], documents: ["mine", "about boats"] });
    expect(said).toEqual([
      expect.stringMatching(/^1 row got another document and kept the vector of the old one/),
    ]);
    await docs.update({ ids: ["a"], documents: ["other"], embeddings: [[0, 0, 1]] });
    await docs.update({ ids: ["a"], metadatas: [{ t: "ours" }] });
    expect(said.length).toBe(1);
  });

  test("what is nested 500 deep is refused, and arrays of the caller's stay", async () => {
    const docs = await made("deep", "sealed-index");
    let where: object = { t: "mine" };
    for (let i = 0; i < 499; i++) where = { $and: [where] };
    await expect(docs.get({ where: where as never })).rejects.toThrow(/nested 999 deep; the limit is 100/);
    await expect(docs.add({ embeddings: [[1, 1, 1]], metadatas: [where as never] })).rejects.toThrow(
      "the limit is 100",
    );
    const ids = Int32Array.of(7);
    const row = Float32Array.of(0, 0, 1);
    await docs.add({ ids: ids as never, embeddings: row });
    expect([...ids, ...row]).toEqual([7, 0, 0, 1]);
  });
});

/** The handle of another client of these keys. */
async function clientHandle(url: string, keys: Keys): Promise<unknown> {
  const choices = {
    url,
    token: null,
    keys: keys.handle,
    storage: { kind: "memory" },
    insecure: false,
    timeout: 60_000,
    retries: 1,
    cacheBytes: 1 << 20,
  };
  return (await keys.engine.call<{ handle: unknown }>(0, "openClient", [choices])).handle;
}
