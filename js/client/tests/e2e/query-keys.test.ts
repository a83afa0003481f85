/** Query keys that a client takes by itself: each serves so many queries and no more, whatever is lost on the way. */

import { Client, type ClientOptions, type Collection, type Keys } from "@ciphervec/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Answered, type Exchange, TestProxy } from "../support/proxy.js";
import { closest, missing, type TestServer, vectors } from "../support/server.js";
import { withServer } from "../support/setup.js";

const DIMENSION = 16;
const MOST = 1024;
const SESSIONS = 2 ** 31;
const ROWS = vectors(11, 60, DIMENSION);
const row = (i: number) => ROWS[i % ROWS.length] as Float32Array;
const some = (count: number) => Array.from({ length: count }, (_, i) => row(i));

const number = (body: Uint8Array, at: number) =>
  new DataView(body.buffer, body.byteOffset).getUint32(at, true);
const keysOf = ({ seen }: TestProxy) =>
  seen.filter(({ path }) => path.endsWith("/query-keys")).map(({ body }) => number(body, 104));
/** How many queries were sent under each epoch, as often as they were. */
const usedOf = ({ seen }: TestProxy) => {
  const used = new Map<number, number>();
  for (const { body } of seen.filter(({ path }) => path.endsWith("/query")))
    used.set(number(body, 77), (used.get(number(body, 77)) ?? 0) + number(body, 72));
  return used;
};
const problem = (status: number, type: string): Answered => ({
  status,
  headers: { "ciphervec-api": "1", "content-type": "application/problem+json" },
  body: new TextEncoder().encode(JSON.stringify({ type: `urn:ciphervec:${type}`, detail: type })),
});

describe.skipIf(missing !== "")("query keys", () => {
  let server: TestServer;
  let keys: Keys;
  let proxy: TestProxy;
  let turn = 0;
  let name = "";
  let warned: string[] = [];

  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  beforeEach(async () => {
    name = `keys-${++turn}`;
    warned = [];
    proxy = await TestProxy.before(server.url);
  });
  afterEach(() => proxy.close());

  const client = (more: Partial<ClientOptions> = {}) =>
    new Client({
      url: proxy.url,
      keys,
      timeout: 8_000,
      onWarning: (message) => warned.push(message),
      ...more,
    });
  const made = async (of = client(), more: object = {}): Promise<Collection> => {
    const docs = await of.createCollection({ name, dimension: DIMENSION, mode: "sealed", ...more });
    await docs.add({ ids: ROWS.map((_, i) => i), embeddings: ROWS });
    return docs;
  };
  const ask = async (docs: Collection, count: number) => {
    const found = await docs.query({ queryEmbeddings: some(count), nResults: 1 });
    expect(found.ids).toEqual(some(count).map((one) => closest(ROWS, one, 1)));
  };

  test.each(["sealed", "sealed-query"])("a key serves so many queries exactly: %s", async (mode) => {
    const docs = await made(client(), { mode });
    await ask(docs, 600);
    await ask(docs, MOST - 600);
    await ask(docs, 1);
    await ask(docs, MOST);
    expect([...usedOf(proxy).values()]).toEqual([MOST, 1, MOST]);
    expect(keysOf(proxy)).toEqual([...usedOf(proxy).keys()]);
    expect(keysOf(proxy).every((epoch) => epoch >= SESSIONS)).toBe(true);
    const { queryKey, epoch } = await docs.info();
    expect(queryKey).toEqual({ session: keysOf(proxy)[2], queries: MOST, most: MOST, refused: false });
    expect(epoch).toBe(0);
    expect(warned).toEqual([]);
  });

  test("what was sent again counts, and goes under another key where none is left", async () => {
    const docs = await made();
    let cuts = 1;
    proxy.fate = async ({ path }, answer) => {
      const given = await answer();
      return path.endsWith("/query") && cuts-- > 0 ? "cut" : given;
    };
    await ask(docs, 1);
    expect([...usedOf(proxy).values()]).toEqual([2]);
    await ask(docs, MOST - 3);
    cuts = 1;
    await ask(docs, 1);
    expect([...usedOf(proxy).values()]).toEqual([MOST, 1]);
  });

  test("keys that a server has lost are brought again, and the same bytes answered", async () => {
    const docs = await made();
    await ask(docs, 1);
    await server.down();
    await server.up();
    await ask(docs, 1);
    expect(new Set(keysOf(proxy)).size).toBe(1);
    expect(keysOf(proxy).length).toBe(2);
    const bodies = proxy.seen.filter(({ path }) => path.endsWith("/query")).map(({ body }) => body.join());
    expect(new Set(bodies).size).toBe(2);
    expect(bodies.at(-1)).toBe(bodies.at(-2));
  });

  test("a server that keeps no keys gets an end, and all that was sent is counted", async () => {
    const docs = await made();
    proxy.fate = ({ path }, answer) =>
      path.endsWith("/query") ? Promise.resolve(problem(409, "query-keys-missing")) : answer();
    await expect(ask(docs, 1)).rejects.toMatchObject({ name: "ServerError" });
    const [sent] = usedOf(proxy).values();
    expect(sent).toBe(4);
    expect((await docs.info()).queryKey?.queries).toBeGreaterThanOrEqual(4);
  });

  const old = ({ path }: Exchange, answer: () => Promise<Answered>) =>
    path.endsWith("/query-keys") ? Promise.resolve(problem(404, "not-found")) : answer();

  test("an older server is asked under the collection's key, and said to be", async () => {
    const docs = await made();
    proxy.fate = old;
    await ask(docs, 2);
    await ask(docs, 1);
    expect(warned.length).toBe(1);
    expect(warned[0]).toContain("takes no query keys of its clients");
    expect([...usedOf(proxy)]).toEqual([[0, 3]]);
    expect((await docs.info()).queryKey).toEqual({ session: null, queries: 3, most: MOST, refused: true });
    await ask(docs, MOST);
    expect(warned.length).toBe(2);
  });

  test("a server that took keys before is not believed to be older", async () => {
    const docs = await made();
    await ask(docs, 1);
    proxy.fate = old;
    for (let turn = 0; turn < 2; turn++)
      await expect(ask(docs, MOST)).rejects.toMatchObject({ name: "PinMismatch" });
    expect([...usedOf(proxy).values()]).toEqual([1]);
  });

  test("keys of another that claim the session end it", async () => {
    const docs = await made();
    let first = true;
    proxy.fate = ({ path }, answer) => {
      if (!path.endsWith("/query-keys") || !first) return answer();
      first = false;
      return Promise.resolve(problem(409, "exists"));
    };
    await ask(docs, 1);
    expect(new Set(keysOf(proxy)).size).toBe(2);
    expect([...usedOf(proxy).keys()]).toEqual([keysOf(proxy)[1]]);
  });
});
