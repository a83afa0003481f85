/** Filters and records, which the module reads: the cases that every client runs, and values as JavaScript has them. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { stringify } from "../../../src/ingest/json.js";
import { changesOf } from "../../../src/ingest/records.js";
import { filterText } from "../../../src/ingest/where.js";
import { search } from "./module.js";

interface Case {
  row?: object;
  where?: unknown;
  document?: string | null;
  where_document?: unknown;
  passes?: boolean;
  says?: string;
}

const FILE = new URL("../../../../../vectors/client/filters.json", import.meta.url);
/** Whole numbers that JavaScript rounds are bigints. */
const LONG = /(?<=[[:,\s])-?\d{16,}(?=[\],}\s])/g;
const cases = JSON.parse(readFileSync(FILE, "utf8").replace(LONG, '"long $&"'), (_, value) =>
  typeof value === "string" && value.startsWith("long ") ? BigInt(value.slice(5)) : value,
) as { [part: string]: Case[] };

function record(metadata: unknown, document: string | null = null): Uint8Array {
  const { metadatas, documents } = changesOf(1, [metadata], [document]);
  return search.mergeRecord(new Uint8Array(0), metadatas?.[0] ?? undefined, documents?.[0] ?? undefined, []);
}

const filterOf = (where: unknown, whereDocument: unknown) =>
  new search.Filter(filterText(where, "where"), filterText(whereDocument, "whereDocument"), []);

function passes(where: unknown, whereDocument: unknown, of: Uint8Array): boolean {
  const filter = filterOf(where, whereDocument);
  const found = filter.matches(of);
  filter.free();
  return found;
}

describe("filters", () => {
  test("the cases that every client runs", () => {
    for (const { row, where, passes: right } of cases["metadata"] as Case[])
      expect(passes(where, undefined, record(row)), stringify(where)).toBe(right);
    for (const { document, where_document, passes: right } of cases["documents"] as Case[])
      expect(passes(undefined, where_document, record(null, document)), String(document)).toBe(right);
    for (const { where, says } of cases["refused"] as Case[])
      expect(() => filterOf(where, undefined)).toThrow(says as string);
    for (const { where_document, says } of cases["documents_refused"] as Case[])
      expect(() => filterOf(undefined, where_document)).toThrow(says as string);
  });

  test("values that JSON has not", () => {
    const row = record({ at: new Date(Date.UTC(2024, 4, 1, 12)), n: 2n ** 62n });
    expect(passes({ at: new Date(Date.UTC(2024, 4, 1, 12)) }, undefined, row)).toBe(true);
    expect(passes({ n: 2n ** 62n }, undefined, row)).toBe(true);
    expect(passes({ n: { $lt: Number.POSITIVE_INFINITY } }, undefined, row)).toBe(true);
    expect(passes({ n: { $in: [Number.NaN, 2n ** 62n] } }, undefined, row)).toBe(true);
    expect(passes({ n: { $exists: true }, $not: { gone: undefined, at: 1 } }, undefined, row)).toBe(true);
    for (const bad of [{ n: Number.NaN }, { n: new Map() }, { n: "\ud800" }, { n: () => 1 }])
      expect(() => filterOf(bad, undefined)).toThrow(/NaN|plain|Unicode|JSON/);
  });
});

describe("records", () => {
  test("what Python wrote and nobody changed keeps its text", () => {
    const old = new TextEncoder().encode(
      '{"metadata":{"price":2.0,"zero":-0.0,"10":1,"2":[1.50]},"document":"a"}',
    );
    const { metadatas } = changesOf(1, [{ team: "blue" }], null);
    expect(new TextDecoder().decode(search.mergeRecord(old, String(metadatas?.[0]), undefined, ["2"]))).toBe(
      '{"metadata":{"price":2.0,"zero":-0.0,"10":1,"team":"blue"},"document":"a"}',
    );
  });
});
