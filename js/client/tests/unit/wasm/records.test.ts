/** Filters and records, which the module reads: the cases that every client runs, and values as JavaScript has them. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { stringify } from "../../../src/ingest/json.js";
import { changed, changesOf, recordOf } from "../../../src/ingest/records.js";
import { rowFilter } from "../../../src/ingest/where.js";
import type { Native } from "../../../src/native.js";
import { search } from "./module.js";

interface Case {
  row?: object;
  where?: unknown;
  document?: string | null;
  where_document?: unknown;
  passes?: boolean;
  says?: string;
}

const native = search as unknown as Native;
const FILE = new URL("../../../../../vectors/client/filters.json", import.meta.url);
/** Whole numbers that JavaScript rounds are bigints. */
const LONG = /(?<=[[:,\s])-?\d{16,}(?=[\],}\s])/g;
const cases = JSON.parse(readFileSync(FILE, "utf8").replace(LONG, '"long $&"'), (_, value) =>
  typeof value === "string" && value.startsWith("long ") ? BigInt(value.slice(5)) : value,
) as { [part: string]: Case[] };

const record = (metadata: unknown, document: string | null = null): Uint8Array =>
  changed(native, new Uint8Array(0), changesOf(1, [metadata], [document])[0] as never);

function passes(where: unknown, whereDocument: unknown, of: Uint8Array): boolean | undefined {
  const filter = rowFilter(native, where, whereDocument, []);
  const found = filter?.matches(of);
  filter?.free();
  return found;
}

describe("filters", () => {
  test("the cases that every client runs", () => {
    for (const { row, where, passes: right } of cases["metadata"] as Case[])
      expect(passes(where, undefined, record(row)), stringify(where)).toBe(right);
    for (const { document, where_document, passes: right } of cases["documents"] as Case[])
      expect(passes(undefined, where_document, record(null, document)), String(document)).toBe(right);
    for (const { where, says } of cases["refused"] as Case[])
      expect(() => rowFilter(native, where, undefined, [])).toThrow(says as string);
    for (const { where_document, says } of cases["documents_refused"] as Case[])
      expect(() => rowFilter(native, undefined, where_document, [])).toThrow(says as string);
  });

  test("values that JSON has not", () => {
    const row = record({ at: new Date(Date.UTC(2024, 4, 1, 12)), n: 2n ** 62n });
    expect(passes({ at: new Date(Date.UTC(2024, 4, 1, 12)) }, undefined, row)).toBe(true);
    expect(passes({ n: 2n ** 62n }, undefined, row)).toBe(true);
    expect(passes({ n: { $lt: Number.POSITIVE_INFINITY } }, undefined, row)).toBe(true);
    expect(passes({ n: { $in: [Number.NaN, 2n ** 62n] } }, undefined, row)).toBe(true);
    expect(passes({ n: { $exists: true }, $not: { gone: undefined, at: 1 } }, undefined, row)).toBe(true);
    for (const bad of [{ n: Number.NaN }, { n: new Map() }, { n: "\ud800" }, { n: () => 1 }])
      expect(() => rowFilter(native, bad, undefined, [])).toThrow(/NaN|plain|Unicode|JSON/);
  });
});

describe("records", () => {
  test("there and back", () => {
    const metadata = { a: 1, b: [2n ** 60n, "ü"], "1": "x" };
    expect(recordOf(record(metadata, "text"))).toEqual({ metadata, document: "text" });
    expect(record(null).length).toBe(0);
  });

  test("what Python wrote and nobody changed keeps its text", () => {
    const old = new TextEncoder().encode(
      '{"metadata":{"price":2.0,"zero":-0.0,"10":1,"2":[1.50]},"document":"a"}',
    );
    const [change] = changesOf(1, [{ team: "blue" }], null);
    expect(new TextDecoder().decode(changed(native, old, change as never, ["2"]))).toBe(
      '{"metadata":{"price":2.0,"zero":-0.0,"10":1,"team":"blue"},"document":"a"}',
    );
  });

  test("what is no record is corrupt", () => {
    for (const bad of ["[]", '{"a": 1}', '{"metadata": 1}', '{"document": {}}', "{", "null"])
      expect(() =>
        changed(native, new TextEncoder().encode(bad), { metadata: null, document: null }),
      ).toThrow("record");
    expect(() => recordOf(Uint8Array.of(0xff))).toThrow("record");
  });
});
