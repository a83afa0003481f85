/** Late interaction from JavaScript, against a server: MaxSim beside a reference, changes, and what is refused. */

import { Client, InvalidInput, type Keys } from "@ciphervec/client";
import { describe, expect, test } from "vitest";
import { missing, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

const WIDTH = 6;
const MULTI = { width: WIDTH, kSim: 2, repetitions: 3, dProj: 4, dimension: 32, seed: 1 };

/** Tokens of numbers from −1 to 1, by a small generator of its own. */
function tokens(count: number, seed: number): number[][] {
  let state = seed * 7919 + 1;
  const next = () => {
    state = (state * 48271) % 2147483647;
    return (2 * state) / 2147483647 - 1;
  };
  return Array.from({ length: count }, () => Array.from({ length: WIDTH }, next));
}

const product = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);
const maxSim = (query: number[][], document: number[][]) =>
  query.reduce((sum, one) => sum + Math.max(...document.map((other) => product(one, other))), 0);

describe.skipIf(missing !== "")("late interaction", () => {
  let server: TestServer;
  let keys: Keys;

  withServer((started, made) => {
    [server, keys] = [started, made];
  });

  const client = () => new Client({ url: server.url, keys, storage: "memory" });

  test.each(["sealed", "sealed-query", "sealed-index"] as const)("by MaxSim, in mode %s", async (mode) => {
    const pages = await client().createCollection({
      name: `pages-${mode}`,
      metric: "ip",
      mode,
      multi: MULTI,
    });
    expect(pages.multi).toEqual(MULTI);
    const rows = new Map(Array.from({ length: 20 }, (_, i) => [i, tokens(1 + (i % 5), i)]));
    await pages.add({ ids: [...rows.keys()], multiEmbeddings: [...rows.values()] });
    const query = tokens(3, 99);
    rows.set(4, query);
    await pages.update({ ids: [4, 5], multiEmbeddings: [query, null], documents: ["four", "five"] });
    await pages.delete({ ids: [6] });
    rows.delete(6);
    const found = await pages.query({
      queryMultiEmbeddings: [query],
      nResults: 20,
      include: ["scores", "multiEmbeddings"],
      audience: "owner",
    });
    const [bound = 0] = found.bounds ?? [];
    expect(found.ids[0]?.length).toBe(19);
    found.ids[0]?.forEach((id, i) => {
      const given = rows.get(id as number) ?? [];
      expect(Math.abs((found.scores?.[0]?.[i] ?? 0) - maxSim(query, given))).toBeLessThanOrEqual(bound);
      const kept = found.multiEmbeddings?.[0]?.[i] ?? [];
      expect(kept.length).toBe(given.length);
      kept.forEach((token, j) => {
        token.forEach((x, k) => void expect(Math.abs(x - (given[j]?.[k] ?? 0))).toBeLessThan(0.004));
      });
    });
    expect((await pages.get({ ids: [5] })).documents).toEqual(["five"]);
  });

  test("what does not go is refused", async () => {
    const made = client();
    const pages = await made.createCollection({ name: "many", metric: "ip", multi: MULTI });
    const one = [tokens(1, 1)];
    await expect(pages.add({ embeddings: [[1]] })).rejects.toThrow(InvalidInput);
    await expect(pages.add({ multiEmbeddings: [[[1, 2]]] })).rejects.toThrow("vectors of 2 numbers");
    await expect(pages.query({ queryMultiEmbeddings: one, within: 1 })).rejects.toThrow("within");
    await expect(pages.query({ queryMultiEmbeddings: one, candidates: 0 })).rejects.toThrow(InvalidInput);
    const plain = await made.createCollection({ name: "plain", metric: "ip", dimension: 32 });
    expect(plain.multi).toBe(null);
    await expect(plain.add({ multiEmbeddings: one })).rejects.toThrow("made with multi");
    await expect(made.createCollection({ name: "other", multi: MULTI })).rejects.toThrow("metric");
  });
});
