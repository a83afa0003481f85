/** Words: what people type and read, addresses, problems, and lines that come in pieces. */
import { describe, expect, it, vi } from "vitest";
import { changes, operationsOf, requestOf } from "../../src/api/openapi.ts";
import { problemOf, sentence } from "../../src/api/problem.ts";
import { lines } from "../../src/api/server.ts";
import * as format from "../../src/format.ts";
import { namesOf, steps } from "../../src/keys/client.ts";
import type { Step } from "../../src/keys/contract.ts";
import { line, top } from "../../src/load/shape.ts";
import { readVector } from "../../src/model/vector.ts";
import { complaint } from "../../src/pages/sign-in.tsx";
import {
  type CollectionChoices,
  collectionFault,
  commandLines,
  pythonLines,
  scriptLines,
  tokenLine,
} from "../../src/parts/recipe.ts";
import { ownScript } from "../../src/policy.ts";
import { linkTo, readRoute } from "../../src/router.ts";
import { allows } from "../../src/state.tsx";

describe("numbers", () => {
  it("have three digits and a unit", () => {
    expect([0, 1, 999, 1000, 1234, 999_400, 999_600, 2_400_000, 5e12].map(format.bytes)).toEqual([
      "0 bytes",
      "1 byte",
      "999 bytes",
      "1 kB",
      "1.23 kB",
      "999 kB",
      "1 MB",
      "2.4 MB",
      "5 TB",
    ]);
    expect([0.0004, 0.0124, 0.25, 1.5, 90].map(format.duration)).toEqual([
      "0.4 ms",
      "12.4 ms",
      "250 ms",
      "1.5 s",
      "90 s",
    ]);
    expect(format.counted(1, "row")).toBe("1 row");
    expect(format.counted(12_000, "row")).toBe("12,000 rows");
  });

  it("are drawn under a round top, with gaps where nothing is known", () => {
    expect([top([null], 1), top([3.2], 1), top([0.004], 0.001), top([99, 101], 1)]).toEqual([
      1, 5, 0.005, 200,
    ]);
    const points = [0, 1, 2, 3].map((at) => ({ at, value: at === 2 ? null : at }));
    expect(line(points, 0, 3, 3, 300, 30)).toBe("M0.0 30.0L100.0 20.0M300.0 0.0");
    expect(line([], 0, 0, 1, 10, 10)).toBe("");
  });
});

describe("vectors", () => {
  it("are read as people have them", () => {
    for (const text of [
      "1 2 -3.5",
      "[1, 2, -3.5]",
      "1\n2\n-3.5\n",
      "np.array([1.0, 2, -3.5])",
      "array([[1, 2, -3.5]], dtype=float32)",
      "1;2;-35e-1",
    ]) {
      expect(Array.from(readVector(text, 3)), text).toEqual([1, 2, -3.5]);
    }
  });

  it("are refused with the next step", () => {
    for (const [text, says] of [
      ["", /Paste 3 numbers/],
      ["1 2", /These are 2 numbers; the collection has 3/],
      ["1 2 NaN", /Number 3 is "NaN"/],
      ["1 2 1e999", /Number 3/],
      ["0 0 0", /no direction/],
    ] as const) {
      expect(() => readVector(text, 3)).toThrow(says);
    }
  });
});

describe("addresses", () => {
  it("come back as they went in", () => {
    for (const route of [
      { page: "collections" },
      { page: "load" },
      { page: "new" },
      { page: "playground" },
      { page: "tokens" },
      { page: "collection", name: "a.b_c-1", tab: "sight" },
      { page: "collection", name: "50%/x#y", tab: "query" },
    ] as const) {
      expect(readRoute(linkTo(route))).toEqual(route);
    }
    expect(readRoute("")).toEqual({ page: "collections" });
    expect(readRoute("#/collections/a")).toEqual({ page: "collection", name: "a", tab: "segments" });
    for (const hash of [
      "#/x",
      "#/collections",
      "#/collections/a/x",
      "#/collections/a/sight/y",
      "#/collections/%E0%A4",
      "#/load/x",
    ]) {
      expect(readRoute(hash), hash).toEqual({ page: "missing" });
    }
  });

  it("start scripts of this server's files alone", () => {
    vi.stubGlobal("location", new URL("https://db.example/#/load"));
    expect(ownScript("https://db.example/assets/worker.js")).toBe("https://db.example/assets/worker.js");
    expect(ownScript("/assets/worker.js")).toBe("/assets/worker.js");
    for (const bad of [
      "https://evil.example/assets/x.js",
      "//evil.example/assets/x.js",
      "data:text/javascript,1",
      "blob:https://db.example/1",
      "/v1/collections",
      "/assets/../v1",
    ]) {
      expect(() => ownScript(bad), bad).toThrow(TypeError);
    }
    vi.unstubAllGlobals();
  });
});

describe("tokens", () => {
  it("are looked at before they are sent", () => {
    expect(complaint(`cv1_${"Az0-_".repeat(8)}abc`)).toBeNull();
    expect(complaint("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl")).toBeNull();
    expect(complaint("")).toMatch(/Paste/);
    expect(complaint("hunter2")).toMatch(/begins with cv1_/);
    expect(complaint("cv1_abc")).toMatch(/this has 3/);
    expect(complaint(`cv1_${"a".repeat(44)}`)).toMatch(/this has 44/);
  });

  it("say what they may use at most", () => {
    expect(format.limits(undefined)).toEqual([]);
    expect(format.limits({ rate: "20/s" })).toEqual(["20/s"]);
    const all = { rate: "100/m", burst: 40, queries_per_day: 10_000, max_bytes: 10e9, max_rows: 1 };
    expect(format.limits(all)).toEqual([
      "100/m",
      "40 at once",
      "10,000 queries a day",
      "10 GB stored",
      "1 row stored",
    ]);
    expect(format.limits({ max_bytes: 0 })).toEqual(["0 bytes stored"]);
  });

  it("allow what the server allows", () => {
    const own = (verbs: string[], collections: string[]) =>
      ({
        required: true,
        metrics: false,
        operator: false,
        token: { verbs, collections },
      }) as unknown as Parameters<typeof allows>[0];
    expect(allows(own(["read"], ["faces"]), "read", "faces")).toBe(true);
    expect(allows(own(["read"], ["faces"]), "read", "faces2")).toBe(false);
    expect(allows(own(["read"], ["fac*"]), "read", "faces2")).toBe(true);
    expect(allows(own(["read"], ["*"]), "query", "faces")).toBe(false);
    expect(allows(own(["admin"], ["*"]), "query", "faces")).toBe(true);
    const identity = {
      grants: [
        { verbs: ["read"], collections: ["a"] },
        { verbs: ["admin"], collections: ["b*"] },
      ],
    };
    const named = { required: true, metrics: false, operator: false, identity } as unknown as Parameters<
      typeof allows
    >[0];
    expect(allows(named, "read", "a") && allows(named, "write", "bee")).toBe(true);
    expect(allows(named, "write", "a") || allows(named, "read", "c")).toBe(false);
    expect(allows({ required: false, metrics: true, operator: true }, "admin", "faces")).toBe(true);
  });
});

describe("problems", () => {
  const answer = (status: number, body: unknown, headers: Record<string, string> = {}) =>
    new Response(typeof body === "string" ? body : JSON.stringify(body), { status, headers });

  it("say what the server says, and the next step", async () => {
    const busy = await problemOf(
      answer(503, { detail: "too many operations are under way" }, { "retry-after": "1" }),
    );
    expect([busy.message, busy.hint]).toEqual([
      "Too many operations are under way.",
      "Try again in 1 second.",
    ]);
    const conflict = await problemOf(
      answer(409, { title: "there is one", hint: "take another name" }, { "x-request-id": "ab" }),
    );
    expect([conflict.message, conflict.hint, conflict.request]).toEqual([
      "There is one.",
      "Take another name.",
      "ab",
    ]);
  });

  it("of a proxy show nothing that it wrote", async () => {
    const proxy = await problemOf(answer(502, "<script>alert(1)</script>"));
    expect(proxy.message).toBe("The answer was 502, without a reason.");
    expect((await problemOf(answer(500, { detail: { a: 1 } }))).message).toContain("500");
    expect(sentence("is it?")).toBe("Is it?");
  });
});

describe("lines", () => {
  it("come whole, however they are cut", async () => {
    const pieces = ['{"a":', "1}\n", '{"b":2}\n{"c"', ":3}"];
    const body = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    const got: string[] = [];
    for await (const one of lines(new Response(body))) got.push(one);
    expect(got).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
  });
});

describe("the key holder's half", () => {
  it("knows which ids somebody may have meant", () => {
    expect(namesOf("7")).toEqual([7, "7"]);
    expect(namesOf("9007199254740993")).toEqual([9007199254740993n, "9007199254740993"]);
    expect(namesOf("page 7")).toEqual(["page 7"]);
  });

  it("tells steps apart that the client counts from one moment", () => {
    const told: Step[] = [];
    const tell = steps((step) => told.push(step));
    tell({ phase: "encrypt", done: 9, total: 9, ms: 2 });
    tell({ phase: "upload", done: 100, total: 100 });
    tell({ phase: "server", done: 0, total: null, ms: 30 });
    tell({ phase: "download", done: 50, total: 80, ms: 35 });
    tell({ phase: "read", done: 1, total: 2 });
    tell({ phase: "open", done: 80, total: 80, ms: 4 });
    expect(told).toEqual([
      { phase: "encrypt", ms: 2, bytes: null },
      { phase: "upload", ms: null, bytes: 100 },
      { phase: "server", ms: 30, bytes: null },
      { phase: "download", ms: 5, bytes: 50 },
      { phase: "open", ms: 4, bytes: null },
    ]);
  });
});

describe("operations", () => {
  const document = {
    paths: {
      "/v1/things/{name}": {
        get: {
          operationId: "one",
          tags: ["things"],
          parameters: [{ name: "name", in: "path", required: true }],
        },
        put: {
          operationId: "put",
          parameters: [
            { name: "name", in: "path", required: true },
            { name: "part", in: "query" },
            { name: "If-Match", in: "header" },
            { name: "cookie", in: "cookie" },
          ],
          requestBody: { content: { "application/octet-stream": {} } },
        },
        description: { operationId: "none" },
      },
    },
  };

  it("are read with what they take", () => {
    const [one, put, ...more] = operationsOf(document);
    expect(more).toEqual([]);
    expect(one).toMatchObject({ method: "GET", group: "things", body: null });
    expect(put).toMatchObject({ method: "PUT", group: "others", body: "bytes" });
    expect(one !== undefined && changes(one)).toBe(false);
    expect(put !== undefined && changes(put)).toBe(true);
    expect(operationsOf(null)).toEqual([]);
  });

  it("become requests, whole or not at all", () => {
    const put = operationsOf(document)[1];
    if (put === undefined) throw new Error("no operation");
    expect(requestOf(put, {})).toBeNull();
    expect(requestOf(put, { name: "a/b ?" })).toEqual({ target: "/v1/things/a%2Fb%20%3F", headers: {} });
    expect(requestOf(put, { name: "a", part: "x&y", "If-Match": '"3"' })).toEqual({
      target: "/v1/things/a?part=x%26y",
      headers: { "if-match": '"3"' },
    });
  });
});

describe("recipes", () => {
  const given: CollectionChoices = {
    url: "https://vectors.example",
    name: "faces",
    dimension: "512",
    metric: "cosine",
    mode: "sealed",
    filterable: "lang, a field",
    token: true,
  };

  it("are the lines of each client", () => {
    expect(commandLines(given)).toContain(
      "ciphervec create https://vectors.example faces --dim 512 --filterable lang --filterable a --filterable field " +
        "--keys my.key --token-file admin.token",
    );
    expect(pythonLines({ ...given, filterable: "lang", metric: "l2" })).toContain(
      'client.create_collection("faces", 512, metric="l2", filterable=["lang"])',
    );
    expect(scriptLines({ ...given, mode: "open", token: false, filterable: "" })).toBe(
      'import { Client } from "@ciphervec/client";\n\nconst client = new Client({ url: "https://vectors.example" });\n' +
        'const collection = await client.createCollection({ name: "faces", dimension: 512, mode: "open" });',
    );
  });

  it("are not written for what no server takes", () => {
    expect(collectionFault(given)).toBe("");
    for (const name of ["", ".", "a b", "-a", "a..b", "x".repeat(129)])
      expect(collectionFault({ ...given, name })).toContain("A name has");
    for (const dimension of ["", "0", "1.5", "16385"])
      expect(collectionFault({ ...given, dimension })).toContain("The dimension");
  });

  it("have words that a shell takes whole", () => {
    expect(tokenLine({ name: "it's", collection: "*", verbs: ["read", "query"], expires: "30d" })).toBe(
      "ciphervec token create --data db --collection '*' --permission read --permission query --expires 30d --name 'it'\\''s'",
    );
  });
});
