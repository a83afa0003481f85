/** What callers pass: JSON, filters, vectors, ids. Known answers are of Python, printed by the expression beside them. */

import { describe, expect, test } from "vitest";
import { InvalidInput, InvalidRows } from "../../src/errors.js";
import { distinct, flatten, freshIds, idsOf, rowsOf } from "../../src/ingest/arrays.js";
import { fromBase64, toBase64 } from "../../src/ingest/bytes.js";
import { parse, plain, stringify } from "../../src/ingest/json.js";
import { changesOf } from "../../src/ingest/records.js";

describe("JSON", () => {
  test("whole numbers beyond 2^53 stay what they are", () => {
    const text =
      '{"a": 1152921504606846976, "b": [9007199254740991, -12345678901234567890], "c": 1.2345678901234567890, "d": 1e400}';
    const value = parse(text);
    expect(value).toEqual({
      a: 2n ** 60n,
      b: [2 ** 53 - 1, -12345678901234567890n],
      c: 1.2345678901234567,
      d: Infinity,
    });
    expect(stringify({ a: 2n ** 60n, ü: ["\u2028", null, true, -0.5] })).toBe(
      '{"a":1152921504606846976,"ü":["\u2028",null,true,-0.5]}',
    );
  });

  test("a reader of long numbers reads what JSON.parse reads, and nothing else", () => {
    const long = "1234567890123456789";
    for (const good of [
      '{"x\\u00e9\\n": "\\ud83d\\ude00", "": {}}',
      "[]",
      "[[], [1, 2.5e-3, -0]]",
      "true",
      ' {"__proto__": 1} ',
    ])
      expect(parse(`[${long}, ${good}]`)).toEqual([BigInt(long), JSON.parse(good)]);
    for (const bad of ["{", "[1,]", '{"a" 1}', "01", "nul", '"\n"', "1 2", "{'a': 1}", "[1}", "-"]) {
      expect(() => JSON.parse(bad)).toThrow();
      expect(() => parse(`[${long}, ${bad}]`)).toThrow(SyntaxError);
    }
    expect(() => parse(`${"[".repeat(5000)}${long}`)).toThrow(SyntaxError);
  });

  test("values are made plain or refused by their place", () => {
    // datetime(2024, 5, 1, 12, tzinfo=timezone.utc).isoformat(), and with 1500 microseconds
    expect(plain(new Date(Date.UTC(2024, 4, 1, 12)), "x")).toBe("2024-05-01T12:00:00+00:00");
    expect(plain(new Date(Date.UTC(2024, 4, 1, 12, 0, 0, 1)), "x")).toBe("2024-05-01T12:00:00.001000+00:00");
    expect(plain({ a: 5n, b: undefined }, "x")).toEqual({ a: 5 });
    const bad: [unknown, string][] = [
      [Number.NaN, "x is NaN"],
      [{ a: [1, () => 1] }, "x.a[1]"],
      [new Map(), "Map"],
      ["\ud800", "Unicode"],
      [new Date(Number.NaN), "invalid Date"],
    ];
    for (const [value, says] of bad) expect(() => plain(value, "x")).toThrow(says);
    const endless: unknown[] = [];
    endless.push(endless);
    expect(() => plain(endless, "x")).toThrow(InvalidInput);
  });
});

describe("arrays", () => {
  const rows = (value: unknown, dimension = 3, metric: "cosine" | "l2" | "hamming" = "l2") =>
    Array.from(rowsOf(flatten(value), dimension, metric).data);

  test("one row, several, and rows end to end", () => {
    for (const one of [[1, 2, 3], Float32Array.of(1, 2, 3), Float64Array.of(1, 2, 3), [[1, 2, 3]]])
      expect(rows(one)).toEqual([1, 2, 3]);
    expect(rows(Float32Array.of(1, 2, 3, 4, 5, 6))).toEqual([1, 2, 3, 4, 5, 6]);
    expect(rows([])).toEqual([]);
  });

  test.each([
    [[1, 2], "3 dimensions"],
    [
      [
        [1, 2, 3],
        [1, 2],
      ],
      "row 1",
    ],
    [[[1, 2, 3], "abc"], "row 1"],
    ["abc", "Embed texts"],
    [[1, "2", 3], "at 1"],
    [[true, false, true], "hamming"],
    [BigInt64Array.of(1n, 2n, 3n), "bigints"],
  ])("%# is refused", (value, says) => {
    expect(() => rows(value)).toThrow(says);
  });

  test("every row that is wrong is named", () => {
    const error = (() => {
      try {
        rows(
          [
            [0, 0, 0],
            [1, 2, 3],
            [1, Number.NaN, 3],
            [1e39, 0, 0],
          ],
          3,
          "cosine",
        );
      } catch (caught) {
        return caught;
      }
    })();
    expect(error).toBeInstanceOf(InvalidRows);
    expect([...(error as InvalidRows).rows.keys()]).toEqual([0, 2, 3]);
    expect((error as Error).message).toContain("3 rows can't be used, and nothing was written");
  });

  test("bits in every form", () => {
    const signs = [1, -1, 1, 1, -1, -1, -1, 1, -1, 1];
    const bits = signs.map((one) => one > 0);
    // numpy.packbits([1, 0, 1, 1, 0, 0, 0, 1, 0, 1])
    for (const given of [signs, bits, bits.map(Number), Uint8Array.of(177, 64), [Uint8Array.of(177, 64)]])
      expect(rows(given, 10, "hamming")).toEqual(signs);
    expect(() => rows(Uint8Array.of(177, 65), 10, "hamming")).toThrow("last 6 bits");
    expect(() => rows([1, 0, -1], 3, "hamming")).toThrow("mixed");
    expect(() => rows([1, 2, 1], 3, "hamming")).toThrow("value 2");
  });

  test("ids", () => {
    expect(idsOf(["a", 1, 5n, 2n ** 60n])).toEqual(["a", 1, 5, 2n ** 60n]);
    expect(idsOf("one")).toEqual(["one"]);
    for (const bad of ["", 1.5, 2 ** 53, 2n ** 63n, true, null, "\udc00", "x".repeat(65_536)])
      expect(() => idsOf([bad])).toThrow(InvalidRows);
    expect(() => distinct(["a", 1, "1", "a"])).toThrow("position 3");
    expect(new Set(freshIds(50)).size).toBe(50);
    expect(freshIds(1)[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  test("base64 is what it is, and nothing near it", () => {
    const bytes = Uint8Array.from({ length: 9000 }, (_, i) => (i * 7) & 255);
    expect(fromBase64(toBase64(bytes))).toEqual(bytes);
    for (const bad of ["a", "a===", "ab=c", "a b=", "ab==\n", 5, null])
      expect(() => fromBase64(bad)).toThrow(SyntaxError);
  });
});

describe("records", () => {
  test("faults of rows are told at once", () => {
    expect(() => changesOf(3, [{ $a: 1 }, { a: Number.NaN }, {}], ["", 5, null])).toThrow(
      /2 rows[\s\S]*metadatas\[0\][\s\S]*metadatas\[1\]/,
    );
    expect(() => changesOf(2, [{}], null)).toThrow("expected 2, got 1");
  });
});
