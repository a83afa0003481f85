/** Addresses, and single attempts at requests. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { baseUrl, Token } from "../../src/http/address.js";
import { type Answer, type Fetch, type Request, send } from "../../src/http/transport.js";

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
    expect(() => new Token("two words")).toThrow(/1 to 16,384/);
  });
});

const get = (url: string): Request => ({ method: "GET", url, headers: [["Ciphervec-Api", "1"]], body: null });

async function whole(answer: Answer): Promise<number> {
  let length = 0;
  for (let piece = await answer.read(); piece !== undefined; piece = await answer.read())
    length += piece.length;
  return length;
}

describe("an attempt", () => {
  test("asks for nothing compressed, and reads nothing compressed", async () => {
    const asked: (string | undefined)[] = [];
    const bomb = gzipSync(new Uint8Array(1 << 20));
    const server = createServer((request, response) => {
      asked.push(request.headers["accept-encoding"]);
      response.writeHead(200, { "content-encoding": request.url?.slice(1) });
      response.end(bomb);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const carrier: Fetch = (to, options) => fetch(to, options);
    for (const coding of ["gzip", "GZIP", "br", "deflate,%20gzip"])
      await expect(send(carrier, get(`${url}/${coding}`), 5_000, undefined)).rejects.toMatchObject({
        name: "Lost",
        final: true,
        message: expect.stringContaining("compressed"),
      });
    expect(await whole(await send(carrier, get(`${url}/identity`), 5_000, undefined))).toBe(bomb.length);
    expect(asked).toEqual(Array(5).fill("identity"));
    server.close();
    server.closeAllConnections();
  });

  test("follows no redirect, sends no cookie and no referrer", async () => {
    const carrier = vi.fn<Fetch>().mockResolvedValue(new Response("", { status: 307 }));
    expect((await send(carrier, get("https://x"), 500, undefined)).status).toBe(307);
    expect(carrier.mock.calls[0]?.[1]).toMatchObject({
      redirect: "manual",
      credentials: "omit",
      cache: "no-store",
      referrerPolicy: "no-referrer",
    });
  });

  test("tells a certificate from a server that is away, and both from one that answered", async () => {
    const failing = (code: string) =>
      vi
        .fn<Fetch>()
        .mockRejectedValue(
          new TypeError("fetch failed", { cause: Object.assign(new Error("why"), { code }) }),
        );
    const lost = (code: string) => send(failing(code), get("https://x"), 500, undefined);
    await expect(lost("DEPTH_ZERO_SELF_SIGNED_CERT")).rejects.toMatchObject({ final: true, sent: false });
    await expect(lost("ECONNREFUSED")).rejects.toMatchObject({ final: false, sent: false });
    await expect(lost("ECONNRESET")).rejects.toMatchObject({ final: false, sent: true });
    const broken = new ReadableStream<Uint8Array>({
      pull: (stream) => stream.error(new TypeError("terminated")),
    });
    const answer = await send(async () => new Response(broken), get("https://x"), 500, undefined);
    await expect(answer.read()).rejects.toMatchObject({ name: "Lost", final: false, sent: true });
  });

  test("ends with its time, and with the signal's reason", async () => {
    const never: Fetch = (_, { signal }) =>
      new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    await expect(send(never, get("https://x"), 20, undefined)).rejects.toThrow("no answer in time");
    const ending = new AbortController();
    const sent = send(never, get("https://x"), 5_000, ending.signal);
    ending.abort(new Error("enough"));
    await expect(sent).rejects.toThrow("enough");
  });
});
