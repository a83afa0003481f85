/** A lying server against the client, one thing at a time: nothing of it ends the Worker, and nothing of it is believed. */

import { Client, type Collection, type Keys, Writer } from "@ciphervec/client";
import { blake3 } from "@noble/hashes/blake3.js";
import { describe, expect, test } from "vitest";
import type { Answered, TestProxy } from "../support/proxy.js";
import { missing, type TestServer, vectors } from "../support/server.js";
import { withLiar, withServer } from "../support/setup.js";

const ROWS = vectors(5, 40, 16);
const row = (i: number) => ROWS[i] as Float32Array;

interface Listed {
  version: number;
  segments: { id: string; rows: number }[];
}

const SAYS = { "ciphervec-api": "1" };

describe.skipIf(missing !== "")("attacks", () => {
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
    "attacks",
    (...made) => {
      [name, proxy, folder] = made;
    },
  );

  const client = (storage: "memory" | { folder: string } = "memory") =>
    new Client({ url: proxy.url, keys, storage, timeout: 5_000, retries: 1, onWarning: () => undefined });
  const filled = async (more: object = {}, storage?: { folder: string }): Promise<Collection> => {
    const docs = await client(storage).createCollection({ name, dimension: 16, ...more });
    await docs.add({ ids: ROWS.map((_, i) => i), embeddings: ROWS });
    return docs;
  };
  /** The listing is what the server says, changed. */
  const listing = (change: (said: Listed) => void) => {
    proxy.fate = async (exchange, answer) => {
      if (exchange.method !== "GET" || exchange.path !== `/v1/collections/${name}`) return answer();
      const got = await fetch(server.url + exchange.path);
      const said = (await got.json()) as Listed;
      change(said);
      return {
        status: 200,
        headers: Object.fromEntries(got.headers),
        body: Buffer.from(JSON.stringify(said)),
      };
    };
  };
  const written = async (docs: Collection): Promise<void> => {
    const writer = await Writer.open((await docs.writerCard("door")).bytes);
    const more = vectors(6, 10, 16);
    await writer.send(await writer.seal({ ids: more.map((_, i) => 100 + i), embeddings: more }), {
      url: server.url,
    });
  };

  test("a date that is none to wait for", async () => {
    const docs = await filled();
    let told = 0;
    proxy.fate = async (_, answer) =>
      told++ > 0
        ? answer()
        : {
            status: 503,
            headers: { ...SAYS, "retry-after": "Sun, 06 Nov 1994 08:18446744073709551615:37 GMT" },
            body: Buffer.from("{}"),
          };
    expect(await docs.refresh().then(() => docs.count())).toBe(40);
  });

  test("rows of a segment beyond all memory, and an answer that has them", async () => {
    const docs = await filled({ mode: "sealed-index", filterable: ["team"] });
    await written(docs);
    listing((said) => {
      for (const one of said.segments) if (one.rows === 10) one.rows = 2 ** 32 - 1;
    });
    const reader = await client().getCollection({ name });
    expect(Object.values((await reader.info()).refused)).toHaveLength(1);
    expect(await reader.count()).toBe(40);
    await reader.query({ queryEmbeddings: row(1), nResults: 1, where: { team: "a" } }).catch(() => undefined);
    expect((await reader.query({ queryEmbeddings: row(1), nResults: 1 })).ids).toEqual([[1]]);
  });

  test("a writer's segment of fewer rows than were sealed, which a deletion would take whole", async () => {
    await written(await filled());
    listing((said) => {
      for (const one of said.segments) if (one.rows === 10) one.rows = 1;
    });
    const owner = await client().getCollection({ name });
    await owner.add({ ids: [500], embeddings: [row(3)] });
    await expect(owner.delete({ ids: [100] })).rejects.toMatchObject({ name: "UnknownId" });
    proxy.fate = (_, answer) => answer();
    const honest = await client().getCollection({ name });
    expect(await honest.count()).toBe(41);
    expect(Object.values((await honest.info()).refused)).toHaveLength(1);
  });

  test("nothing new, of which another tab has seen more", async () => {
    const one = await filled({}, { folder });
    const two = await client({ folder }).getCollection({ name });
    await one.delete({ ids: [7] });
    proxy.fate = async (exchange, answer) =>
      exchange.headers["if-none-match"] === undefined
        ? answer()
        : { status: 304, headers: SAYS, body: new Uint8Array() };
    await expect(two.refresh()).rejects.toMatchObject({ name: "RollbackDetected" });
    await expect(two.get({ ids: [7] })).rejects.toMatchObject({ name: "RollbackDetected" });
  });

  test("a refresh that was refused stays refused", async () => {
    const docs = await filled();
    await docs.add({ ids: [900], embeddings: [row(1)] });
    listing((said) => {
      said.version = 1;
    });
    await expect(docs.refresh()).rejects.toMatchObject({ name: "RollbackDetected" });
    await expect(docs.count()).rejects.toMatchObject({ name: "RollbackDetected" });
    await expect(docs.add({ ids: [901], embeddings: [row(2)] })).rejects.toMatchObject({
      name: "RollbackDetected",
    });
  });

  test("quarantine outlives forget()", async () => {
    const wide = vectors(5, 400, 16);
    const made = await client().createCollection({ name, dimension: 16, mode: "sealed-index" });
    await made.add({ ids: wide.map((_, i) => i), embeddings: wide });
    let asked = 0;
    proxy.fate = async (exchange, answer): Promise<Answered> => {
      if (exchange.path.endsWith("/commits")) return { status: 403, headers: SAYS, body: Buffer.from("{}") };
      const got = await answer();
      if (!exchange.path.endsWith("/query") || got.status !== 200) return got;
      asked++;
      const body = got.body.map((byte, i) =>
        i >= got.body.length - 9 && i < got.body.length - 1 ? byte ^ 0x55 : byte,
      );
      body.set(blake3(Buffer.concat([body.subarray(0, 32), body.subarray(64)])), 32);
      return { ...got, body };
    };
    const ask = async () =>
      (await client({ folder }).getCollection({ name })).query({ queryEmbeddings: row(0), nResults: 1 });
    await expect(ask()).rejects.toMatchObject({ name: "TamperedAnswer" });
    await client({ folder }).forget(name);
    asked = 0;
    await expect(ask()).rejects.toMatchObject({ name: "Quarantined" });
    expect(asked).toBe(0);
  });

  test("a byte at a time keeps no call open", { timeout: 60_000 }, async () => {
    await filled();
    proxy.fate = async (exchange, answer) => {
      if (!exchange.path.endsWith("/sidecar")) return answer();
      const got = await answer();
      const from = Number(/bytes=(\d+)-/.exec(String(exchange.headers.range))?.[1] ?? 0);
      const whole = await fetch(server.url + exchange.path).then(
        async (all) => new Uint8Array(await all.arrayBuffer()),
      );
      const headers = {
        ...got.headers,
        "content-range": `bytes ${from}-${whole.length - 1}/${whole.length}`,
      };
      return { status: from > 0 ? 206 : 200, headers, body: whole.subarray(from, from + 1), broken: true };
    };
    await expect(client().getCollection({ name })).rejects.toThrow();
  });
});
