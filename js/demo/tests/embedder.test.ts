/** The page's embedder gives the vectors of the Python demo for some hundred texts. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Embedder, type ModelHead } from "../src/embedder.ts";
import { exported } from "./exported.ts";

const LARGEST_DIFFERENCE = 1e-5;
const folder = exported();

function bytes(name: string): ArrayBuffer {
  const file = readFileSync(`${folder}/${name}`);
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.byteLength) as ArrayBuffer;
}
const json = (name: string) => JSON.parse(readFileSync(`${folder}/${name}`, "utf8"));

describe.skipIf(folder === undefined)("the embedder, beside scikit-learn", () => {
  const head: ModelHead = folder === undefined ? undefined : json("model.json");

  it("gives the vectors of Python", () => {
    const texts: string[] = json("known.json");
    const wanted = new Float32Array(bytes("known.bin"));
    const got = new Embedder(head, bytes("model.bin")).embed(texts);
    expect(texts.length).toBeGreaterThan(300);
    expect(got.length).toBe(wanted.length);
    let worst = 0;
    got.forEach((value, i) => {
      worst = Math.max(worst, Math.abs(value - (wanted[i] ?? Number.NaN)));
    });
    expect(worst).toBeLessThanOrEqual(LARGEST_DIFFERENCE);
  });

  it("finds the passage that a question is about", () => {
    const passages: [string, string][] = json("passages.json");
    const embedder = new Embedder(head, bytes("model.bin"));
    const rows = embedder.embed(passages.map(([name, text]) => `${name.replace(/[._]+/g, " ")}. ${text}`));
    const asked = embedder.embed(["Which function copies a whole directory tree?"]);
    const scores = passages.map((_, row) =>
      asked.reduce((sum, x, i) => sum + x * (rows[row * embedder.dimension + i] ?? 0), 0),
    );
    const best = passages[scores.indexOf(Math.max(...scores))];
    expect(best?.[0]).toMatch(/copy/);
  });

  it("refuses files that are not of one another", () => {
    expect(() => new Embedder(head, new ArrayBuffer(8))).toThrow(/model.bin has 8 bytes, expected \d+/);
    expect(() => new Embedder({ ...head, format: 2 }, bytes("model.bin"))).toThrow(/format 2, expected 1/);
  });
});
