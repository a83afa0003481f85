/** Pages of other sites in a real browser: one that the server lists asks and reads, one that it does not gets nothing. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Profile } from "@ciphervec/browser/src/chromium.ts";
import { CiphervecServer } from "@ciphervec/browser/src/ciphervec.ts";
import { describe, expect, it } from "vitest";
import { missing } from "./console.ts";

/** An empty page on a port of its own, which is another origin. */
async function site(): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<!doctype html><title>a site</title>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

describe.skipIf(missing() !== undefined)("pages of other sites", () => {
  it("are answered where they are listed, and nowhere else", async () => {
    await using listed = await site();
    await using other = await site();
    await using server = await CiphervecServer.begin("--allow-origin", listed.url);
    const { secret } = server.token("*", "admin");
    await server.stop();
    await server.start();
    await using profile = await Profile.begin();
    const ask = async (from: string, token: string | null) => {
      const page = await profile.context.newPage();
      await page.goto(from);
      const outcome = await page.evaluate(
        async ({ url, token }) => {
          const headers: Record<string, string> = { "ciphervec-api": "1", "idempotency-key": "a" };
          if (token !== null) headers["authorization"] = `Bearer ${token}`;
          const read = async (method: string, path: string, body: string | null) => {
            try {
              const answer = await fetch(`${url}${path}`, { method, headers, body });
              return {
                status: answer.status,
                request: answer.headers.get("x-request-id") !== null,
                text: await answer.text(),
              };
            } catch (error) {
              return { status: 0, request: false, text: String(error) };
            }
          };
          return {
            list: await read("GET", "/v1/collections", null),
            put: await read("PUT", "/v1/collections/mine", "no frame"),
            remove: await read("DELETE", "/v1/collections/nothing", null),
          };
        },
        { url: server.url, token },
      );
      await page.close();
      return outcome;
    };
    const good = await ask(listed.url, secret);
    expect(good.list).toMatchObject({ status: 200, request: true });
    expect(JSON.parse(good.list.text)).toEqual({ collections: [] });
    // What the server says of a bad request is read, too.
    expect(good.put).toMatchObject({ status: 400, request: true });
    expect(good.remove.status).toBe(404);
    expect((await ask(listed.url, null)).list.status).toBe(401);
    const bad = await ask(other.url, secret);
    for (const { status, text } of Object.values(bad))
      expect([status, text]).toEqual([0, "TypeError: Failed to fetch"]);
  });
});
