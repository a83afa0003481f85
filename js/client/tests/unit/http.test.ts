/** What goes over the wire and what a server may say: frames, states, addresses, pauses, lost connections. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { newChange, type StoredSegment } from "../../src/collections/change.js";
import { difference } from "../../src/collections/difference.js";
import { Mutex } from "../../src/collections/mutex.js";
import { baseUrl, Token } from "../../src/http/address.js";
import { checkName } from "../../src/http/database.js";
import { decodeAdded, encode, placeOf } from "../../src/http/frame.js";
import { latest, type Pin, pinAfter } from "../../src/http/pin.js";
import { errorOf } from "../../src/http/problem.js";
import { Attempts, retryAfter } from "../../src/http/retry.js";
import { Session } from "../../src/http/session.js";
import { committed, readState } from "../../src/http/state.js";
import type { Fetch, Sink } from "../../src/http/transport.js";

const ID = "0123456789abcdef0123456789abcdef";

describe("addresses", () => {
  test.each([
    ["https://x.example/", "https://x.example"],
    ["https://x.example:8443/a//", "https://x.example:8443/a"],
    ["http://127.0.0.1:80", "http://127.0.0.1"],
    ["http://[::1]:9", "http://[::1]:9"],
    ["http://db.localhost", "http://db.localhost"],
  ])("%s", (url, expected) => {
    expect(baseUrl(url, false)).toBe(expected);
  });
  test.each([
    "http://vectors.example",
    "ftp://x",
    "x",
    "https://u:p@x",
    "https://x/?a",
    "https://x/#a",
    "http://127.0.0.1.evil.example",
  ])("%s is refused", (url) => {
    expect(() => baseUrl(url, false)).toThrow();
  });
  test("plain HTTP where it was asked for", () =>
    expect(baseUrl("http://10.0.0.1", true)).toBe("http://10.0.0.1"));
  test("a token is shown to nobody", () => {
    const token = new Token("cv1_secret");
    expect(JSON.stringify(token) + String(token)).not.toContain("secret");
    expect(() => new Token("two words")).toThrow(/1 to 512/);
  });
  test.each(["", ".", "a/b", "a..b", "-a", "a-", "x".repeat(129), "ü", 5])("no name: %s", (name) => {
    expect(() => checkName(name)).toThrow("1 to 128 characters");
  });
});

describe("frames", () => {
  const added = { id: ID, rows: 2, blobs: { rows: Uint8Array.of(1, 2, 3), sidecar: Uint8Array.of(4) } };

  test("are those of docs/http-api.md", () => {
    const change = newChange({
      add: [added],
      remove: [ID],
      deleteRows: new Map([[ID, [0, 1]]]),
      meta: Uint8Array.of(9),
      attachments: new Map([["state", Uint8Array.of(7, 7)]]),
    });
    const uploads = new Map([[placeOf(ID, "rows"), { id: "u".repeat(32), blake3: "b".repeat(64) }]]);
    const frame = encode(change, uploads);
    const view = new DataView(frame.buffer);
    expect(new TextDecoder().decode(frame.subarray(0, 8))).toBe("CVCHANGE");
    expect(view.getUint32(8, true)).toBe(1);
    const end = 16 + view.getUint32(12, true);
    expect(JSON.parse(new TextDecoder().decode(frame.subarray(16, end)))).toEqual({
      add: [
        {
          id: ID,
          rows: 2,
          blobs: [
            { name: "rows", length: 3, upload: "u".repeat(32), blake3: "b".repeat(64) },
            { name: "sidecar", length: 1 },
          ],
        },
      ],
      remove: [ID],
      delete_rows: { [ID]: [0, 1] },
      attachments: [{ name: "state", length: 2 }],
      drop_attachments: [],
      meta: { length: 1 },
    });
    expect([...frame.subarray(end)]).toEqual([4, 9, 7, 7]);
  });

  test("of a writer are read back, and nothing else is", () => {
    const frame = encode(newChange({ add: [added] }));
    expect(decodeAdded(frame)).toEqual([added]);
    for (let length = 0; length < frame.length; length++)
      expect(() => decodeAdded(frame.subarray(0, length))).toThrow("sealed batch");
    expect(() => decodeAdded(encode(newChange({ add: [added], remove: [ID] })))).toThrow("more than add");
    expect(() => decodeAdded(frame.map((byte, i) => (i === 8 ? 2 : byte)))).toThrow("format 2");
  });
});

describe("states", () => {
  const sound = {
    name: "docs",
    version: 3,
    head: "a".repeat(64),
    meta: "e30=",
    attachments: { state: 5 },
    segments: [{ id: ID, rows: 4, deleted: [1, 3], blobs: { rows: 9 } }],
  };

  test("are read, and unchanged segments are the same objects again", () => {
    const before = readState(sound, "docs", "https://x");
    const now = readState({ ...sound, version: 4 }, "docs", "https://x", before);
    expect(now.segments.get(ID)).toBe(before.segments.get(ID));
    expect(now.queryVersion).toBe(1);
  });

  test.each([
    { name: "other" },
    { version: -1 },
    { version: 2 ** 50 },
    { version: "3" },
    { head: "A".repeat(64) },
    { meta: "?" },
    { meta: 5 },
    { segments: {} },
    { segments: [null] },
    { segments: [...sound.segments, ...sound.segments] },
    { segments: [{ id: ID, rows: 4, deleted: [3, 1] }] },
    { segments: [{ id: ID, rows: 4, deleted: [4] }] },
    { segments: [{ id: "../../x", rows: 4 }] },
    { segments: [{ id: ID, rows: 4, blobs: { rows: -1 } }] },
    { attachments: [1.5] },
    { query_version: null, segments: 1 },
  ])("what makes no sense is a ServerError: %j", (wrong) => {
    expect(() => readState({ ...sound, ...wrong }, "docs", "https://x")).toThrow("does not understand");
  });

  test("a commit without a version", () =>
    expect(() => committed({ version: 1.5 }, "https://x")).toThrow("without a version"));
});

describe("differences", () => {
  const segment = (id: string, deleted: number[] = []): StoredSegment => ({
    id,
    rows: 9,
    blobs: { rows: 1 },
    deleted,
  });
  const ids = (list: readonly StoredSegment[]) => list.map(({ id }) => id).join("");
  test.each([
    ["abc", "abc", "", "", ""],
    ["abc", "abcde", "", "", "de"],
    ["abcd", "bd", "ac", "", ""],
    ["abc", "aB", "c", "b", ""],
    ["abc", "cab", "ab", "", "ab"],
    ["", "ab", "", "", "ab"],
    ["ab", "", "ab", "", ""],
    ["abcd", "aXcd", "b", "", "X"],
  ])("%s to %s", (before, now, gone, changed) => {
    const listed = (names: string) =>
      [...names].map((name) => (/[A-W]/.test(name) ? segment(name.toLowerCase(), [1]) : segment(name)));
    const found = difference(listed(before), listed(now));
    // What is said leads from the one to the other, whichever way it is put.
    const left = listed(before).filter(({ id }) => !ids(found.gone).includes(id));
    const result = [
      ...left.map((one) => found.changed.find(({ id }) => id === one.id) ?? one),
      ...found.added,
    ];
    expect(result).toEqual(listed(now));
    if (!["cab", "aXcd"].includes(now))
      expect([ids(found.gone), ids(found.changed)]).toEqual([gone, changed]);
  });
});

describe("patience", () => {
  test("Retry-After is a number or a date", () => {
    const of = (value: string) => retryAfter(new Headers(value === "" ? {} : { "retry-after": value }));
    expect(of("2")).toBe(2_000);
    expect(of("")).toBeNull();
    expect(of("soon")).toBeNull();
    expect(of("999999999999")).toBe(86_400_000);
    expect(of(new Date(Date.now() + 5_000).toUTCString())).toBeGreaterThan(3_000);
  });

  test("attempts end with their number, those of a busy server with the time", async () => {
    const few = new Attempts(10_000, 2);
    expect([await few.again(), await few.again(), await few.again()]).toEqual([true, true, false]);
    const busy = new Attempts(400, 0);
    let waited = 0;
    while (await busy.again(100)) waited++;
    expect(waited).toBeLessThan(5);
    const aborted = AbortSignal.abort(new Error("stop"));
    await expect(new Attempts(10_000, 5, aborted).again(5_000)).rejects.toThrow("stop");
  });

  const answer = (status: number, body = "", headers: object = {}) =>
    new Response(status === 204 ? null : body, { status, headers: { "ciphervec-api": "1", ...headers } });

  test("a blob goes on where the connection was lost", async () => {
    const ranges: (string | null)[] = [];
    const carrier: Fetch = async (_, { headers }) => {
      const range = new Headers(headers).get("range");
      ranges.push(range);
      const from = Number(range?.slice(6, -1) ?? 0);
      let pulls = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(stream) {
          if (pulls++ === 0) stream.enqueue(Uint8Array.of(from, from + 1));
          else if (from < 4) stream.error(new TypeError("reset"));
          else stream.close();
        },
      });
      const partial = { "content-range": `bytes ${from}-5/6`, "ciphervec-api": "1" };
      return new Response(body, { status: from > 0 ? 206 : 200, headers: partial });
    };
    const session = new Session(carrier, "https://x", null, 5_000, 6);
    expect(await session.fetch("/v1", 6, "doing", {})).toEqual(Uint8Array.of(0, 1, 2, 3, 4, 5));
    expect(ranges).toEqual([null, "bytes=2-", "bytes=4-"]);
    await expect(session.fetch("/v1", 1, "doing", {})).rejects.toThrow("longer than the 1 bytes");
  });

  test("an upload goes on where the server is, in smaller pieces where it wants them", async () => {
    const sent: string[] = [];
    let at = 0;
    let forgotten = 1;
    const carrier: Fetch = async (_, { method, headers, body }) => {
      const length = (body as Uint8Array | null)?.length ?? 0;
      if (method === "POST") {
        at = 0;
        return answer(201, JSON.stringify({ upload: "u".repeat(32) }));
      }
      sent.push(`${new Headers(headers).get("upload-offset")}+${length}`);
      if (length > 2 << 20) return answer(413, "{}");
      if (at === 2 << 20 && forgotten-- > 0) return answer(404, "{}");
      at += length;
      return answer(204, "", { "upload-offset": String(at) });
    };
    const steps: number[] = [];
    const session = new Session(carrier, "https://x", null, 5_000, 6);
    await session.upload("/u", new Uint8Array(5 << 20), "doing", {}, (offset) => steps.push(offset));
    expect(steps.at(-1)).toBe(5 << 20);
    const stuck: Fetch = async (_, { method }) =>
      method === "POST"
        ? answer(201, JSON.stringify({ upload: "u".repeat(32) }))
        : answer(204, "", { "upload-offset": "0" });
    await expect(
      new Session(stuck, "https://x", null, 5_000, 1).upload(
        "/u",
        new Uint8Array(9),
        "doing",
        {},
        () => undefined,
      ),
    ).rejects.toThrow("stays at byte 0");
  });

  describe("an answer takes no more memory than it may", () => {
    const PIECE = 64 << 10;
    /** An answer without an end, and how many bytes of it were taken. */
    const endless = (status: number, headers: object = {}) => {
      const told = { bytes: 0 };
      const body = new ReadableStream<Uint8Array>({
        pull(stream) {
          told.bytes += PIECE;
          if (told.bytes > 64 << 20)
            stream.close(); // a test that fails is to end
          else stream.enqueue(new Uint8Array(PIECE));
        },
      });
      const carrier: Fetch = async () =>
        new Response(body, { status, headers: { "ciphervec-api": "1", ...headers } });
      return { told, session: new Session(carrier, "https://x", null, 5_000, 6) };
    };
    const sink = (most: number): Sink => ({ most, restart: () => undefined, write: () => undefined });

    test.each([
      ["one that is kept", 200, { limit: 2 << 20 }, 2 << 20],
      ["one that goes to a sink", 200, { sink: sink(3 << 20) }, 3 << 20],
      [
        "an error, whatever was expected",
        400,
        { sink: sink(2 ** 40), limit: 2 ** 40, ok: [200, 400] },
        1 << 20,
      ],
    ])("%s", async (_, status, parts, most) => {
      const { told, session } = endless(status);
      await expect(session.call("POST", "/v1", "cannot", {}, parts)).rejects.toThrow(
        `longer than the ${most} bytes expected`,
      );
      expect(told.bytes).toBeLessThan(most + 4 * PIECE);
    });

    test("a blob, and what is said in its place", async () => {
      for (const [status, length, most] of [
        [200, 1 << 20, 1 << 20],
        [503, 2 ** 47, 1 << 20],
      ] as const) {
        const { told, session } = endless(status);
        await expect(session.fetch("/v1", length, "cannot", {})).rejects.toThrow(
          `longer than the ${most} bytes expected`,
        );
        expect(told.bytes).toBeLessThan(most + 4 * PIECE);
      }
    });

    test("a blob that is listed with more bytes than there is memory", async () => {
      const session = new Session(async () => answer(200, "few"), "https://x", null, 5_000, 6);
      await expect(session.fetch("/v1", 2 ** 47, "cannot", {})).rejects.toThrow("3 came");
    });

    test("nothing is asked for that is compressed, and nothing compressed is read", async () => {
      const asked: (string | undefined)[] = [];
      const bomb = gzipSync(new Uint8Array(1 << 20));
      const server = createServer((request, response) => {
        asked.push(request.headers["accept-encoding"]);
        response.writeHead(200, { "ciphervec-api": "1", "content-encoding": request.url?.slice(1) });
        response.end(bomb);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const session = new Session((to, options) => fetch(to, options), url, null, 5_000, 6);
      for (const coding of ["gzip", "GZIP", "br", "deflate, gzip"]) {
        await expect(session.call("GET", `/${coding}`, "cannot", {})).rejects.toThrow("compressed");
        await expect(session.fetch(`/${coding}`, bomb.length, "cannot", {})).rejects.toThrow("compressed");
      }
      expect((await session.call("GET", "/identity", "cannot", {})).body.length).toBe(bomb.length);
      expect(asked).toEqual(Array(9).fill("identity")); // and never a second time
      server.close();
      server.closeAllConnections();
    });
  });

  test("a wrong address is not waited for in silence, and an answer ends the warnings", async () => {
    const told: string[] = [];
    let up = 2;
    const carrier: Fetch = async () => {
      if (up-- > 0) throw new TypeError("refused");
      return answer(200, "{}");
    };
    const session = new Session(carrier, "https://x", null, 5_000, 6, (text) => told.push(text));
    await session.call("GET", "/", "cannot list", {});
    up = 1;
    await session.call("GET", "/", "cannot list", {});
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/^cannot list: https:\/\/x did not answer: .*Trying again, up to 6 times\.$/);
  });

  test("redirects are not followed, other servers are told from ours, certificates are final", async () => {
    const call = (response: Response) =>
      new Session(async () => response, "https://x", new Token("cv1_secret"), 500, 0).call(
        "GET",
        "/v1",
        "cannot",
        {},
      );
    await expect(call(answer(307, "", { location: "https://evil/\u0007" }))).rejects.toThrow("not followed");
    await expect(call(new Response("<html>"))).rejects.toThrow("does not speak version 1");
    const cause = Object.assign(new Error("self-signed"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    const carrier = vi.fn<Fetch>().mockRejectedValue(new TypeError("fetch failed", { cause }));
    await expect(
      new Session(carrier, "https://x", null, 5_000, 6).call("GET", "/", "cannot", {}),
    ).rejects.toThrow("not trusted");
    expect(carrier).toHaveBeenCalledTimes(1);
  });

  test("what a server says is shown in one line of printable characters", () => {
    const body = new TextEncoder().encode(
      JSON.stringify({ detail: "bad\n\u001b[31mred\u2028", hint: "x".repeat(5_000) }),
    );
    const { message } = errorOf(
      { status: 500, headers: new Headers(), body, failed: 0 },
      "cannot",
      "https://x",
    );
    expect(message.length).toBeLessThan(900);
    expect(message).not.toMatch(/\p{C}|\u2028/u);
    const names = [401, 403, 404, 422, 429, 500, 507].map(
      (status) => errorOf({ status, headers: new Headers(), body, failed: 0 }, "cannot", "x").name,
    );
    expect(names).toEqual([
      "AuthenticationError",
      "AuthenticationError",
      "CollectionNotFound",
      "InvalidInput",
      "ServerError",
      "ServerError",
      "StorageError",
    ]);
  });
});

describe("pins", () => {
  const pin = (lineage: string, sequence: number, left: string[] = []): Pin => ({
    origin: "o",
    lineage,
    sequence,
    name: "n",
    epoch: 0,
    left,
  });
  test("the one that has seen more counts", () => {
    expect(latest(pin("a", 3), pin("a", 5))?.sequence).toBe(5);
    expect(latest(pin("b", 1, ["a"]), pin("a", 5))?.lineage).toBe("b");
    expect(latest(pin("a", 5), pin("b", 1, ["a"]))?.lineage).toBe("b");
    expect(latest(null, pin("a", 1))?.sequence).toBe(1);
    expect(pinAfter(pin("b", 1), pin("a", 5)).left).toEqual(["a"]);
  });
});

test("a mutex lets others in while one is apart, and nobody else", async () => {
  const lock = new Mutex();
  const order: string[] = [];
  const pause = () => new Promise((resolve) => setTimeout(resolve, 5));
  await Promise.all([
    lock.run(async () => {
      order.push("a begins");
      await lock.apart(pause);
      order.push("a ends");
    }),
    lock.run(async () => {
      order.push("b begins");
      await pause();
      await pause();
      order.push("b ends");
    }),
    lock.run(() => Promise.reject(new Error("c"))).catch(() => order.push("c failed")),
  ]);
  expect(order).toEqual(["a begins", "b begins", "b ends", "c failed", "a ends"]);
});
