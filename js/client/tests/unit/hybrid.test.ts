/** What hybrid search is asked, as callers write it and as the core takes it; what it cannot be says why. */

import { expect, test } from "vitest";
import { InvalidInput, InvalidRows } from "../../src/errors.js";
import { hybridOf, sparseKind, sparseVectors } from "../../src/ingest/hybrid.js";

test("what rows are ranked by", () => {
  expect(sparseKind("vectors")).toBe("vectors");
  expect(sparseKind("bm25")).toEqual({ k1: 1.2, b: 0.75 });
  expect(sparseKind({ b: 0.4 })).toEqual({ k1: 1.2, b: 0.4 });
  for (const wrong of ["bm26", 3, null, { k: 1 }, { k1: "a" }, { k1: Number.NaN }])
    expect(() => sparseKind(wrong)).toThrow(InvalidInput);
});

test("sparse vectors have ascending indices and weights above zero", () => {
  const found = sparseVectors(
    [{ indices: [7, 3, 9], values: [0.5, 2, 0] }, null, { indices: new Uint32Array([1]), values: [0.1] }],
    "sparse",
  );
  expect(found).toEqual([
    { indices: Uint32Array.of(3, 7), values: Float32Array.of(2, 0.5) },
    null,
    { indices: Uint32Array.of(1), values: Float32Array.of(0.1) },
  ]);
  expect(sparseVectors({ indices: [2 ** 32 - 1], values: [1] }, "sparse")[0]?.indices[0]).toBe(2 ** 32 - 1);
  for (const wrong of [
    { indices: [1], values: [1, 2] },
    { indices: [1, 1], values: [1, 2] },
    { indices: [-1], values: [1] },
    { indices: [1.5], values: [1] },
    { indices: [2 ** 32], values: [1] },
    { indices: [1], values: [-1] },
    { indices: [1], values: [Number.NaN] },
    { indices: [1], values: [1e39] },
    { values: [1] },
    "text",
  ])
    expect(() => sparseVectors([{ indices: [], values: [] }, wrong], "sparse")).toThrow(InvalidRows);
  expect(() => sparseVectors([null], "sparse", 2)).toThrow("expected 2, got 1");
});

test("a question beside vectors", () => {
  expect(hybridOf({})).toBeUndefined();
  const vector = { indices: [1], values: [1] };
  const native = [{ indices: Uint32Array.of(1), values: Float32Array.of(1) }];
  expect(hybridOf({ fusion: "rrf", queryTexts: "a" })).toEqual({
    texts: ["a"],
    k: 60,
    window: 100,
    idf: false,
  });
  expect(hybridOf({ fusion: { by: "rrf", k: 0, window: 5 }, queryTexts: ["a", "b"] })).toEqual({
    texts: ["a", "b"],
    k: 0,
    window: 5,
    idf: false,
  });
  expect(hybridOf({ fusion: { by: "weighted", alpha: 0, idf: true }, sparse: vector })).toEqual({
    vectors: native,
    alpha: 0,
    window: 100,
    idf: true,
  });
  expect(hybridOf({ fusion: "sparse", sparse: [vector] })).toEqual({
    vectors: native,
    window: 100,
    idf: false,
  });
  for (const [wrong, says] of [
    [{ queryTexts: "a" }, "go with fusion"],
    [{ sparse: vector }, "go with fusion"],
    [{ fusion: "rrf" }, "queryTexts or sparse"],
    [{ fusion: "rrf", queryTexts: "a", sparse: vector }, "queryTexts or sparse"],
    [{ fusion: "best", queryTexts: "a" }, "fusion must be"],
    [{ fusion: { by: "rrf", alpha: 1 }, queryTexts: "a" }, "fusion must be"],
    [{ fusion: { by: "rrf", window: 0 }, queryTexts: "a" }, "window"],
    [{ fusion: { by: "weighted", alpha: "x" }, queryTexts: "a" }, "alpha"],
    [{ fusion: "rrf", queryTexts: [1] }, "queryTexts must be"],
    [{ fusion: "rrf", sparse: [null] }, "each query"],
  ] as const)
    expect(() => hybridOf(wrong)).toThrow(says);
});
