/** Rows of many vectors, as callers write them and as the core takes them; what they cannot be says why. */

import { expect, test } from "vitest";
import { manyOf } from "../../src/collections/batch.js";
import { DuplicateId, InvalidInput } from "../../src/errors.js";
import { flattenAll, muveraOf, tokensOf } from "../../src/ingest/multi.js";

test("how many vectors become one", () => {
  expect(muveraOf({ width: 128 })).toEqual({ width: 128 });
  expect(muveraOf({ width: 8, kSim: 0, seed: 0, dimension: 16 })).toEqual({
    width: 8,
    kSim: 0,
    seed: 0,
    dimension: 16,
  });
  for (const wrong of [null, 128, {}, { width: 0 }, { width: 8, ksim: 2 }, { width: 8, seed: 1.5 }])
    expect(() => muveraOf(wrong)).toThrow(InvalidInput);
});

test("a matrix has its width and its numbers", () => {
  const given = [
    [
      [1, 2],
      [3, 4],
    ],
    null,
    Float32Array.of(1, 2, 3, 4, 5, 6),
    [[7, 8, 9]],
  ];
  const found = tokensOf(flattenAll(given, "multiEmbeddings"), 2);
  expect(found).toEqual([
    { width: 2, values: Float32Array.of(1, 2, 3, 4) },
    { width: 2, values: Float32Array.of(1, 2, 3, 4, 5, 6) },
    { width: 3, values: Float32Array.of(7, 8, 9) }, // which the core refuses
  ]);
  for (const wrong of ["text", [[[1, 2], [3]]], [["text"]]])
    expect(() => flattenAll(wrong, "multiEmbeddings")).toThrow(InvalidInput);
});

test("rows have a matrix each", () => {
  const multiEmbeddings = flattenAll([[[1, 2]], [[3, 4]]], "multiEmbeddings");
  const rows = manyOf({ ids: ["a", "b"], multiEmbeddings, documents: ["one", "two"] }, 2);
  expect([rows.ids, rows.multi?.length, rows.embeddings.length]).toEqual([["a", "b"], 2, 0]);
  expect(() => manyOf({ ids: ["a"], multiEmbeddings }, 2)).toThrow("expected 1, got 2");
  expect(() => manyOf({ ids: ["a", "a"], multiEmbeddings }, 2)).toThrow(DuplicateId);
  expect(() => manyOf({ multiEmbeddings: [null] }, 2)).toThrow(InvalidInput);
});
