/** Hybrid search from JavaScript, against a server: BM25 beside a reference, sparse vectors, filters, changes; and that no word of a
 * question or a document reaches the server. */

import { Client, InvalidInput, type Keys, type SparseVector } from "@ciphervec/client";
import { describe, expect, test } from "vitest";
import { missing, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

const TEXTS = ["pump for cold water", "valve GX-4711", "seal for the pump, for water", "hot water valve", ""];
const ROWS = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
  [1, 1, 0],
  [0, 1, 1],
];
const words = (text: string): string[] => text.toLowerCase().match(/[a-z0-9]+/g) ?? [];

/** BM25 with Lucene's figures, of every row with one of the words. */
function bm25(question: string, texts: readonly string[]): number[] {
  const documents = texts.map(words);
  const filled = documents.filter((one) => one.length > 0);
  const mean = filled.reduce((sum, one) => sum + one.length, 0) / filled.length;
  return documents.map((document) => {
    let score = 0;
    for (const word of words(question)) {
      const having = filled.filter((one) => one.includes(word)).length;
      const times = document.filter((one) => one === word).length;
      const rare = Math.log(1 + (filled.length - having + 0.5) / (having + 0.5));
      score += (rare * times * 2.2) / (times + 1.2 * (0.25 + (0.75 * document.length) / mean));
    }
    return score;
  });
}

describe.skipIf(missing !== "")("hybrid search", () => {
  let server: TestServer;
  let keys: Keys;

  withServer((started, made) => {
    [server, keys] = [started, made];
  });

  const client = () => new Client({ url: server.url, keys, storage: "memory" });

  test.each(["sealed", "sealed-query", "sealed-index"] as const)("by words, in mode %s", async (mode) => {
    const docs = await client().createCollection({
      name: `words-${mode}`,
      dimension: 3,
      mode,
      sparse: "bm25",
    });
    expect(docs.sparse).toEqual({ k1: 1.2, b: 0.75 });
    await docs.add({ ids: [0, 1, 2, 3, 4], embeddings: ROWS, documents: TEXTS });
    const question = "cold water, gx 4711";
    const scores = bm25(question, TEXTS);
    const order = [0, 1, 2, 3].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0));
    const alone = await docs.query({ queryTexts: question, fusion: "sparse" });
    expect(alone.ids).toEqual([order]);
    alone.scores?.[0]?.forEach((score, i) => void expect(score).toBeCloseTo(scores[order[i] ?? 0] ?? 0, 12));
    expect(alone.distances?.[0]).toEqual(alone.scores?.[0]?.map((score) => -score));
    expect([alone.ownersOnly, JSON.stringify(alone).length > 0]).toEqual([false, true]);
    // By the vector the order is 0, 3 and then rows that are equally far; by words another.
    const rrf = await docs.query({
      queryEmbeddings: [[1, 0.1, 0]],
      queryTexts: [question],
      fusion: { by: "rrf", k: 1, window: 2 },
      nResults: 2,
      audience: "owner",
    });
    const [near, said] = [[0, 3], order.slice(0, 2)];
    const rank = (list: number[], row: number) => (list.includes(row) ? 1 / (2 + list.indexOf(row)) : 0);
    const fused = [...new Set([...near, ...said])]
      .map((row) => [row, rank(near, row) + rank(said, row)] as const)
      .sort(([, a], [, b]) => b - a)
      .slice(0, 2);
    expect(rrf.ids).toEqual([fused.map(([row]) => row)]);
    expect(rrf.scores).toEqual([fused.map(([, score]) => score)]);
    const weighted = await docs.query({
      queryEmbeddings: [0, 0, 1],
      queryTexts: "gx",
      fusion: { by: "weighted", alpha: 0 },
      nResults: 1,
      include: ["documents"],
    });
    expect(weighted.documents).toEqual([["valve GX-4711"]]);
    const some = { queryTexts: ["water", "nowhere"], fusion: "sparse", ids: [2, 3] } as const;
    expect((await docs.query(some)).ids.map((ids) => [...ids].sort())).toEqual([[2, 3], []]);
    await docs.delete({ ids: [3] });
    await docs.update({ ids: [1], documents: ["all new"], embeddings: [[0, 1, 0]] });
    const other = await client().getCollection({ name: `words-${mode}` });
    expect((await other.query({ queryTexts: "valve gx", fusion: "sparse" })).ids).toEqual([[]]);
    expect((await other.query({ queryTexts: "new", fusion: "sparse" })).ids).toEqual([[1]]);
  });

  test("by sparse vectors", async () => {
    const docs = await client().createCollection({
      name: "sparse",
      dimension: 3,
      mode: "sealed-index",
      sparse: "vectors",
    });
    expect(docs.sparse).toBe("vectors");
    const row = (...pairs: [number, number][]): SparseVector => ({
      indices: pairs.map(([index]) => index),
      values: pairs.map(([, weight]) => weight),
    });
    await docs.add({
      ids: ["a", "b", "c"],
      embeddings: ROWS.slice(0, 3),
      sparseEmbeddings: [row([7, 1], [3, 2]), null, row([3, 0.5])],
    });
    const asked = { sparse: row([3, 4]), fusion: "sparse" } as const;
    expect(await docs.query(asked)).toMatchObject({ ids: [["a", "c"]], scores: [[8, 2]] });
    const rare = Math.log(1 + 1.5 / 2.5);
    const idf = await docs.query({ ...asked, fusion: { by: "sparse", idf: true } });
    expect(idf.scores?.[0]?.[0]).toBeCloseTo(8 * rare, 12);
    await docs.merge({ ids: ["b"], sparseEmbeddings: [row([3, 9])] });
    await docs.update({ ids: ["a"], metadatas: [{ n: 1 }] });
    expect((await docs.query(asked)).ids).toEqual([["b", "a", "c"]]);
    const fused = await docs.query({
      queryEmbeddings: [0, 0, 1],
      ...asked,
      fusion: { by: "weighted", alpha: 0.9 },
      nResults: 1,
    });
    expect(fused.ids).toEqual([["c"]]);
  });

  test("a collection that is there is ranked by words", async () => {
    const docs = await client().createCollection({ name: "later", dimension: 3, mode: "sealed-index" });
    expect(docs.sparse).toBeNull();
    await docs.add({ ids: [0, 1], embeddings: ROWS.slice(0, 2), documents: TEXTS.slice(0, 2) });
    await expect(docs.query({ queryTexts: "gx", fusion: "sparse" })).rejects.toThrow("made without sparse");
    await docs.setSparse({ k1: 0.9, b: 0.4 });
    expect(docs.sparse).toEqual({ k1: 0.9, b: 0.4 });
    expect((await docs.query({ queryTexts: "gx", fusion: "sparse" })).ids).toEqual([[1]]);
    await docs.optimize({ reseal: true });
    expect((await docs.query({ queryTexts: "pump", fusion: "sparse" })).ids).toEqual([[0]]);
  });

  test("what cannot be asked says why", async () => {
    const docs = await client().createCollection({ name: "wrong", dimension: 3, sparse: { k1: 2 } });
    await docs.add({ embeddings: ROWS.slice(0, 1), documents: ["a"] });
    const q = { queryEmbeddings: [1, 0, 0] };
    for (const [wrong, says] of [
      [{ queryTexts: "a", fusion: "rrf" }, "needs queryEmbeddings"],
      [{ ...q, queryTexts: "a", fusion: "sparse" }, "asks no vectors"],
      [{ ...q, queryTexts: ["a", "b"], fusion: "rrf" }, "expected 1, got 2"],
      [{ ...q, queryTexts: "a", fusion: { by: "weighted", alpha: 2 } }, "from 0 to 1"],
      [{ ...q, sparse: { indices: [1], values: [1] }, fusion: "rrf" }, "words of documents"],
      [{ ...q, queryTexts: "a", fusion: "rrf", within: 1 }, "within"],
      [{ queryTexts: "a", fusion: { by: "sparse", idf: true } }, "idf"],
      [{}, "needs queryEmbeddings"],
    ] as const)
      await expect(docs.query(wrong as never)).rejects.toThrow(says);
    await expect(
      docs.add({ embeddings: ROWS.slice(0, 1), sparseEmbeddings: { indices: [1], values: [1] } }),
    ).rejects.toThrow("made with sparse vectors");
    await expect(client().createCollection({ name: "x", dimension: 3, sparse: { k1: -1 } })).rejects.toThrow(
      InvalidInput,
    );
    await expect(
      client().getOrCreateCollection({ name: "wrong", dimension: 3, sparse: "vectors" }),
    ).rejects.toThrow(InvalidInput);
    expect(await docs.count()).toBe(1);
  });
});
