/**
 * A server that flips, cuts, lengthens and withholds what it answers, one answer at a time: the page gets the right rows or an error.
 * One that makes checksums anew is in the tests of formats; what it may do is in SECURITY.md.
 */

import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fixture } from "../src/fixture.ts";
import { missing } from "../src/needs.ts";
import type { Passing } from "../src/pages.ts";

/** What may be thrown: errors of the package. A TypeError or a trap of the wasm is a bug. */
const KNOWN =
  /^(CorruptData|TamperedAnswer|Quarantined|MismatchedAnswer|UnsupportedVersion|ServerError|WrongKey|RollbackDetected|PinMismatch|CollectionNotFound|InvalidInput|StorageError|Conflict|AuthenticationError)$/;

const PLACES = [0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 1];
const CHANGES: { name: string; change: (body: Buffer) => Buffer | null }[] = [
  ...PLACES.map((place) => ({ name: `a bit at ${place}`, change: (body: Buffer) => flipped(body, place) })),
  { name: "half of it", change: (body) => body.subarray(0, body.length >> 1) },
  { name: "all but a byte", change: (body) => body.subarray(0, -1) },
  { name: "a byte more", change: (body) => Buffer.concat([body, Buffer.of(0)]) },
  { name: "twice", change: (body) => Buffer.concat([body, body]) },
  { name: "nothing", change: () => Buffer.alloc(0) },
  { name: "no answer", change: () => null },
  { name: "zeros", change: (body) => Buffer.alloc(body.length) },
];

function flipped(body: Buffer, place: number): Buffer {
  const copy = Buffer.from(body);
  const at = Math.min(Math.floor(place * body.length), body.length - 1);
  if (at >= 0) copy[at] = (copy[at] ?? 0) ^ 4;
  return copy;
}

/** Of which kind a request is: its path without names. */
function kindOf({ method, path }: { method: string; path: string }): string {
  return `${method} ${path.replace(/[0-9a-f]{32,}/g, "…").replace(/\?.*/, "")}`;
}

describe.skipIf(missing() !== undefined)("a hostile server", () => {
  let fixture: Fixture;
  let page: Page;

  beforeAll(async () => {
    fixture = await Fixture.begin();
    page = await fixture.open();
    await page.evaluate(async () => {
      const { client, gaussian, kept } = window.kit;
      const keys = await client.Keys.generate();
      for (const mode of ["sealed", "sealed-index"] as const) {
        const db = new client.Client({ url: location.origin, keys, storage: "memory" });
        const rows = await db.createCollection({ name: mode, dimension: 32, mode });
        const vectors = Array.from({ length: 300 }, (_, i) => gaussian(i + 1, 1, 32));
        await rows.add({
          ids: vectors.map((_, i) => i),
          embeddings: vectors,
          documents: vectors.map((_, i) => `document ${i}`),
        });
      }
      Object.assign(kept, { keys });
    });
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  /** Open a collection as one that remembers nothing, and ask. */
  function asked(mode: string): Promise<{ value: unknown } | { name: string; message: string }> {
    return page.evaluate(async (mode) => {
      const { client, gaussian, kept, outcome } = window.kit;
      const keys = kept["keys"] as import("@ciphervec/client").Keys;
      const silent = { retries: 0, timeout: 5000, onWarning: () => undefined };
      const db = new client.Client({ url: location.origin, keys, storage: "memory", ...silent });
      const answer = await outcome(async () => {
        const rows = await db.getCollection({ name: mode });
        // What an earlier turn's check found is in the owner's state.
        for (const segment of Object.keys((await rows.info()).quarantine)) await rows.release(segment);
        const found = await rows.query({
          queryEmbeddings: gaussian(17, 1, 32),
          nResults: 3,
          include: ["documents"],
        });
        return [found.ids, found.documents];
      });
      await db.close();
      return answer;
    }, mode);
  }

  for (const mode of ["sealed", "sealed-index"])
    it(`never gets a wrong answer past the client, ${mode}`, async () => {
      fixture.pages.came.length = 0;
      const wanted = await asked(mode);
      expect(wanted).toHaveProperty("value");
      const kinds = [...new Set(fixture.pages.came.map(kindOf))];
      expect(kinds.length).toBeGreaterThanOrEqual(3);
      const wrong: string[] = [];
      let refused = 0;
      for (const kind of kinds)
        for (const { name, change } of CHANGES) {
          fixture.pages.tamper = (body: Buffer, passing: Passing) =>
            kindOf(passing) === kind ? change(body) : body;
          const got = await asked(mode);
          if ("name" in got) refused += 1;
          const fine = "name" in got ? KNOWN.test(got.name) : JSON.stringify(got) === JSON.stringify(wanted);
          if (!fine) wrong.push(`${kind}, ${name}: ${JSON.stringify(got).slice(0, 200)}`);
        }
      fixture.pages.tamper = null;
      expect(wrong).toEqual([]);
      // Some bits mean nothing, as those of a time in JSON; most changes must have been found out.
      expect(refused).toBeGreaterThan(0.6 * kinds.length * CHANGES.length);
      expect(await asked(mode)).toEqual(wanted);
      expect(fixture.complaints).toEqual([]);
    });
});

describe.skipIf(missing() !== undefined)("a token", () => {
  it("that is revoked ends what the page may do, and leaves what was committed", async () => {
    await using fixture = await Fixture.begin();
    const { secret, id } = fixture.server.token("notes", "owner", "admin");
    // The server was begun without tokens, and looks for them when it starts.
    await fixture.server.stop();
    await fixture.server.start();
    const page = await fixture.open();
    const begun = await page.evaluate(async (token) => {
      const { client, gaussian, kept, outcome } = window.kit;
      const keys = await client.Keys.generate();
      const nobody = new client.Client({ url: location.origin, keys, storage: "memory" });
      const db = new client.Client({ url: location.origin, keys, token });
      const rows = await db.createCollection({ name: "notes", dimension: 16 });
      await rows.add({ ids: ["kept"], embeddings: gaussian(1, 1, 16) });
      Object.assign(kept, { keys, rows });
      return [
        await outcome(async () => void (await nobody.getCollection({ name: "notes" }))),
        await outcome(async () => void (await db.createCollection({ name: "others", dimension: 16 }))),
      ];
    }, secret);
    expect(begun.map((one) => "name" in one && one.name)).toEqual([
      "AuthenticationError",
      "CollectionNotFound",
    ]);
    fixture.server.revoke(id);
    const ended = await page.evaluate(async () => {
      const { gaussian, kept, outcome } = window.kit;
      const rows = kept["rows"] as import("@ciphervec/client").Collection;
      return [
        await outcome(() => rows.add({ ids: ["late"], embeddings: gaussian(2, 1, 16) })),
        await outcome(() => rows.query({ queryEmbeddings: gaussian(1, 1, 16) })),
      ];
    });
    expect(ended.map((one) => "name" in one && one.name)).toEqual([
      "AuthenticationError",
      "AuthenticationError",
    ]);
    const again = fixture.server.token("notes", "owner", "admin");
    const left = await page.evaluate(async (token) => {
      const { client, kept } = window.kit;
      const keys = kept["keys"] as import("@ciphervec/client").Keys;
      const rows = await new client.Client({ url: location.origin, keys, token }).getCollection({
        name: "notes",
      });
      return (await rows.get()).ids;
    }, again.secret);
    expect(left).toEqual(["kept"]);
  });
});
