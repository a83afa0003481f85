/** A page that only searches, beside one that wrote the rows: it finds the same, and loads none of what writes. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fixture } from "../src/fixture.ts";
import { missing } from "../src/needs.ts";

const PASSPHRASE = "nine wet otters";

describe.skipIf(missing() !== undefined)("a page that only searches", () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await Fixture.begin();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  it("finds what another page sealed, over the smaller module, and asks for no other", async () => {
    const writer = await fixture.open();
    const { file, wanted } = await writer.evaluate(async (passphrase) => {
      const { client, gaussian, nearest } = window.kit;
      const rows = gaussian(3, 500, 64);
      const keys = await client.Keys.generate();
      const db = new client.Client({ url: location.origin, keys });
      const notes = await db.createCollection({ name: "notes", dimension: 64 });
      await notes.add({
        ids: Array.from({ length: 500 }, (_, i) => i),
        embeddings: Array.from({ length: 500 }, (_, i) => rows.subarray(64 * i, 64 * i + 64)),
        documents: Array.from({ length: 500 }, (_, i) => `note ${i}`),
      });
      return {
        file: [...(await keys.toFile({ passphrase }))],
        wanted: nearest(rows, gaussian(7, 1, 64), 5),
      };
    }, PASSPHRASE);

    const loaded: string[] = [];
    fixture.profile.context.on("request", (request) => loaded.push(request.url()));
    const page = await fixture.open(fixture.profile, "/searching.html");
    const found = await page.evaluate(
      async ({ file, passphrase, asked }) => {
        const { Client, Keys } = window.searching as NonNullable<typeof window.searching>;
        const keys = await Keys.fromFile(Uint8Array.from(file), { passphrase });
        const notes = await new Client({ url: location.origin, keys }).getCollection({ name: "notes" });
        const { ids, documents } = await notes.query({
          queryEmbeddings: [Float32Array.from(asked)],
          nResults: 5,
          include: ["documents"],
        });
        const one = await notes.get({ ids: [ids[0]?.[0] ?? ""], include: ["documents"], fetch: "private" });
        return { ids, documents, one: one.documents, writes: "add" in notes };
      },
      {
        file,
        passphrase: PASSPHRASE,
        asked: [...(await writer.evaluate(() => window.kit.gaussian(7, 1, 64)))],
      },
    );
    expect(found).toEqual({
      ids: [wanted],
      documents: [wanted.map((row) => `note ${row}`)],
      one: [`note ${wanted[0]}`],
      writes: false,
    });
    const modules = loaded.filter((url) => url.endsWith(".wasm"));
    expect(modules).not.toEqual([]);
    for (const url of modules) expect(url).toMatch(/\/ciphervec_search_(simd_)?bg-[^/]*\.wasm$/);
    expect(fixture.complaints).toEqual([]);
  });
});
