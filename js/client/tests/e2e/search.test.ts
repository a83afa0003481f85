/** The client that only searches, beside the one that has all: they find the same, and the one has nothing that changes a collection. */

import * as whole from "@ciphervec/client";
import { Client, Engine, Identity, InvalidInput, Keys } from "@ciphervec/client/search";
import { describe, expect, test } from "vitest";
import { missing, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

const DIMENSION = 8;
const ROWS = Array.from({ length: 40 }, (_, i) =>
  Array.from({ length: DIMENSION }, (_, j) => Math.sin(i * 7 + j * 3)),
);
const NFKC = "ﬁne ＷＡＴＥＲ, e\u0301te\u0301";

describe.skipIf(missing !== "")("a client that only searches", () => {
  let server: TestServer;
  let owner: whole.Keys;

  withServer((started, made) => {
    [server, owner] = [started, made];
  });

  const searching = async () => {
    const keys = await Keys.fromPhrase(await owner.recoveryPhrase(), { keyId: owner.keyId });
    return new Client({ url: server.url, keys, storage: "memory" });
  };

  test.each(["sealed", "sealed-query", "sealed-index"] as const)(
    "finds the same, in mode %s",
    async (mode) => {
      const writer = new whole.Client({ url: server.url, keys: owner, storage: "memory" });
      const name = `searched-${mode}`;
      const sealed = await writer.createCollection({
        name,
        dimension: DIMENSION,
        mode,
        sparse: "bm25",
        filterable: ["even"],
      });
      await sealed.add({
        ids: ROWS.map((_, i) => i),
        embeddings: ROWS,
        metadatas: ROWS.map((_, i) => ({ even: i % 2 === 0, i })),
        documents: ROWS.map((_, i) => (i === 3 ? NFKC : `row ${i}`)),
      });
      const read = await (await searching()).getCollection({ name });
      for (const question of [
        { queryEmbeddings: ROWS.slice(3, 6), nResults: 5, include: ["documents", "metadatas"] },
        { queryEmbeddings: [ROWS[7] ?? []], where: { even: true, i: { $gt: 4 } }, include: ["documents"] },
        { queryTexts: "fine water été", fusion: "sparse" },
        { queryTexts: ["row 9"], queryEmbeddings: [ROWS[2] ?? []], fusion: "rrf", nResults: 4 },
      ] as whole.QueryOptions[])
        expect((await read.query(question)).ids).toEqual((await sealed.query(question)).ids);
      expect((await read.query({ queryTexts: "fine water été", fusion: "sparse" })).ids).toEqual([[3]]);
      const which = { ids: [5, 39], include: ["documents", "metadatas"] } as const;
      expect(await read.get({ ...which, fetch: "private" })).toEqual(await sealed.get(which));
      expect(await read.count()).toBe(40);
      expect(await read.checkpoint()).toBe(await sealed.checkpoint());
      await sealed.delete({ ids: [0] });
      await read.refresh();
      expect(await read.has([0, 1])).toEqual([false, true]);
      expect((await read.info()).rows).toBe(39);
    },
  );

  test("opens a member's collections", async () => {
    const person = await whole.Identity.generate("ada");
    const writer = new whole.Client({ url: server.url, keys: person, storage: "memory" });
    const made = await writer.createCollection({ name: "shared", dimension: DIMENSION });
    await made.add({ ids: ["a"], embeddings: [ROWS[1] ?? []] });
    const passphrase = "four words of dice please";
    const same = await Identity.fromFile(await person.toFile({ passphrase }), { passphrase });
    const read = await new Client({ url: server.url, keys: same, storage: "memory" }).getCollection({
      name: "shared",
    });
    expect((await read.query({ queryEmbeddings: [ROWS[1] ?? []] })).ids).toEqual([["a"]]);
  });

  test("has nothing that writes, and its keys are in an engine of its own", async () => {
    const client = await searching();
    const read = await client.getCollection({ name: "searched-sealed" });
    for (const name of ["add", "delete", "optimize", "rotateKeys", "members", "release"])
      expect(name in read, name).toBe(false);
    for (const name of ["createCollection", "deleteCollection", "acceptRestore", "putTable", "getTable"])
      expect(name in client, name).toBe(false);
    const keys = await Keys.generate();
    expect(keys).toBeInstanceOf(whole.Keys);
    expect(keys.engine).toBeInstanceOf(Engine);
    expect(() => new whole.Client({ url: server.url, keys })).toThrow(InvalidInput);
    await expect(whole.Writer.open(new Uint8Array(8), { engine: keys.engine })).rejects.toThrow(
      "only searches",
    );
    const logged = new Client({ url: server.url, keys, storage: "memory", auditLog: "log" });
    await expect(logged.listCollections()).rejects.toThrow("writes no log");
  });
});
