/** A person's days with the client in one profile: a key, ten thousand rows, reloads, restarts, cut networks, what goes wrong. */

import { deepStrictEqual } from "node:assert";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Profile } from "../src/chromium.ts";
import { Fixture } from "../src/fixture.ts";
import { missing } from "../src/needs.ts";

const PASSPHRASE = "nine wet otters";

describe.skipIf(missing() !== undefined)("a person's collection", () => {
  let fixture: Fixture;
  let page: Page;
  let ranking: number[][];

  beforeAll(async () => {
    fixture = await Fixture.begin();
    page = await fixture.open();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  /** Open the key file that the page kept, and ask the three questions again. */
  async function reopened(): Promise<unknown> {
    return page.evaluate(async (passphrase) => {
      const { client, gaussian, kept } = window.kit;
      const file = Uint8Array.from(JSON.parse(localStorage.getItem("file") ?? "[]"));
      const keys = await client.Keys.fromFile(file, { passphrase });
      const db = new client.Client({ url: location.origin, keys, retries: 2 });
      const rows = await db.getCollection({ name: "photos" });
      Object.assign(kept, { keys, db, rows });
      const asked = gaussian(7, 3, 256);
      return (
        await rows.query({ queryEmbeddings: [0, 1, 2].map((i) => asked.subarray(256 * i, 256 * i + 256)) })
      ).ids;
    }, PASSPHRASE);
  }

  it("ranks ten thousand sealed rows as their plaintext does", async () => {
    const found = await page.evaluate(async () => {
      const { client, gaussian, nearest, kept } = window.kit;
      const rows = gaussian(3, 10_000, 256);
      const asked = gaussian(7, 3, 256);
      const keys = await client.Keys.generate();
      const db = new client.Client({ url: location.origin, keys });
      const photos = await db.createCollection({ name: "photos", dimension: 256, originals: false });
      const phases = new Set<string>();
      await photos.add({
        ids: Array.from({ length: 10_000 }, (_, i) => i),
        embeddings: Array.from({ length: 10_000 }, (_, i) => rows.subarray(256 * i, 256 * i + 256)),
        onProgress: ({ phase }) => phases.add(phase),
      });
      Object.assign(kept, { keys, db, photos });
      const queries = [0, 1, 2].map((i) => asked.subarray(256 * i, 256 * i + 256));
      const { ids } = await photos.query({ queryEmbeddings: queries });
      return {
        ids,
        wanted: queries.map((query) => nearest(rows, query, 10)),
        phases: [...phases],
        count: await photos.count(),
        isolated: crossOriginIsolated,
        shared: typeof SharedArrayBuffer,
      };
    });
    // No two of these ranks are nearer than 4·10⁻⁴, some twenty times the noise of a score.
    deepStrictEqual(found.ids, found.wanted);
    expect(found.count).toBe(10_000);
    expect(found.phases).toEqual(expect.arrayContaining(["seal", "upload"]));
    // The page is not isolated, so it has no SharedArrayBuffer, and did all of this without.
    expect([found.isolated, found.shared]).toEqual([false, "undefined"]);
    ranking = found.wanted;
  });

  it("keeps nothing in IndexedDB that can be read", async () => {
    const stored = await page.evaluate(async () => {
      await (window.kit.kept["photos"] as { upsert(rows: object): Promise<unknown> }).upsert({
        ids: ["a telling name"],
        embeddings: new Float32Array(256).fill(1),
        documents: ["a telling document"],
      });
      const databases = await indexedDB.databases();
      const parts: number[][] = [];
      for (const { name } of databases) {
        const database = await new Promise<IDBDatabase>((resolve, reject) => {
          const request = indexedDB.open(name ?? "");
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
        for (const store of database.objectStoreNames) {
          const all = database.transaction(store).objectStore(store).getAll();
          await new Promise((resolve) => {
            all.onsuccess = resolve;
          });
          for (const value of all.result as unknown[])
            if (value instanceof Uint8Array) parts.push([...value.slice(0, 2e6)]);
        }
        database.close();
      }
      return parts;
    });
    expect(stored.length).toBeGreaterThan(0);
    for (const part of stored) expect(Buffer.from(part).includes("telling")).toBe(false);
    await page.evaluate(() =>
      (window.kit.kept["photos"] as { delete(which: object): Promise<number> }).delete({
        ids: "a telling name",
      }),
    );
  });

  it("opens again after a reload, from the key file and what IndexedDB holds", async () => {
    await page.evaluate(async (passphrase) => {
      const keys = window.kit.kept["keys"] as import("@ciphervec/client").Keys;
      localStorage.setItem("file", JSON.stringify([...(await keys.toFile({ passphrase }))]));
    }, PASSPHRASE);
    await page.reload();
    await page.waitForFunction(() => window.kit !== undefined);
    fixture.pages.came.length = 0;
    deepStrictEqual(await reopened(), ranking);
    // The sidecar was in IndexedDB: only the state and the question went over the wire.
    const bodies = fixture.pages.came.filter(({ path }) => /\/(blobs|segments)\//.test(path));
    expect(bodies).toEqual([]);
  });

  it("is refused another passphrase, and a file of another version", async () => {
    const said = await page.evaluate(async (passphrase) => {
      const { client, outcome } = window.kit;
      const file = Uint8Array.from(JSON.parse(localStorage.getItem("file") ?? "[]"));
      const newer = file.slice();
      newer[8] = 0x7f; // after the magic, CVKEYFIL
      return [
        await outcome(() => client.Keys.fromFile(file, { passphrase: "nine dry otters" })),
        await outcome(() => client.Keys.fromFile(newer, { passphrase })),
        await outcome(() => client.Keys.fromFile(file.subarray(0, 40), { passphrase })),
      ];
    }, PASSPHRASE);
    expect(said.map((one) => "name" in one && one.name)).toEqual([
      "WrongKey",
      "UnsupportedVersion",
      "CorruptData",
    ]);
  });

  it("goes on after the server was restarted", async () => {
    await fixture.server.stop("SIGKILL");
    await fixture.server.start();
    const ids = await page.evaluate(async () => {
      const { gaussian, kept } = window.kit;
      const rows = kept["rows"] as import("@ciphervec/client").Collection;
      return (await rows.query({ queryEmbeddings: gaussian(7, 1, 256) })).ids;
    });
    deepStrictEqual(ids, [ranking[0]]);
  });

  it("says that it is offline, and goes on when it is back", async () => {
    const ask = () =>
      page.evaluate(async () => {
        const { gaussian, kept, outcome } = window.kit;
        const rows = kept["rows"] as import("@ciphervec/client").Collection;
        return outcome(async () => (await rows.query({ queryEmbeddings: gaussian(7, 1, 256) })).ids);
      });
    await fixture.profile.context.setOffline(true);
    fixture.pages.admit = () => false; // a Worker's requests too
    expect(await ask()).toMatchObject({
      name: "ServerError",
      message: expect.stringMatching(/did not answer/),
    });
    await fixture.profile.context.setOffline(false);
    fixture.pages.admit = null;
    deepStrictEqual(await ask(), { value: [ranking[0]] });
  });

  it("leaves nothing half when its tab is closed in the middle of an upload", async () => {
    const tab = await fixture.open();
    let pieces = 0;
    const reached = new Promise<void>((resolve) => {
      fixture.pages.admit = (method) => {
        if (method !== "PATCH") return true;
        pieces += 1;
        if (pieces === 2) resolve();
        return pieces < 2 || new Promise<boolean>(() => undefined);
      };
    });
    void tab
      .evaluate(async (passphrase) => {
        const { client, gaussian } = window.kit;
        const file = Uint8Array.from(JSON.parse(localStorage.getItem("file") ?? "[]"));
        const keys = await client.Keys.fromFile(file, { passphrase });
        const rows = await new client.Client({ url: location.origin, keys }).getCollection({
          name: "photos",
        });
        const many = gaussian(11, 20_000, 256);
        await rows.add({
          ids: Array.from({ length: 20_000 }, (_, i) => 50_000 + i),
          embeddings: Array.from({ length: 20_000 }, (_, i) => many.subarray(256 * i, 256 * i + 256)),
        });
      }, PASSPHRASE)
      .catch(() => undefined);
    await reached;
    await tab.close();
    fixture.pages.admit = null;
    const left = await page.evaluate(async () => {
      const { gaussian, kept } = window.kit;
      const rows = kept["rows"] as import("@ciphervec/client").Collection;
      await rows.refresh();
      return [await rows.count(), (await rows.query({ queryEmbeddings: gaussian(7, 1, 256) })).ids];
    });
    deepStrictEqual(left, [10_000, [ranking[0]]]);
  });

  it("says that the Worker was killed, and works with another", async () => {
    const waiting = page.evaluate(() =>
      window.kit.outcome(() => (window.kit.kept["rows"] as import("@ciphervec/client").Collection).count()),
    );
    await waiting;
    const [worker] = page.workers();
    await worker?.evaluate(() => self.close()).catch(() => undefined);
    const lost = await page.evaluate(async () => {
      const { kept, outcome } = window.kit;
      const rows = kept["rows"] as import("@ciphervec/client").Collection;
      return outcome(() => rows.count());
    });
    expect(lost).toMatchObject({ name: "WorkerLost" });
    deepStrictEqual(await reopened(), ranking);
  });

  it("names a full storage, and says what to do", async () => {
    // A profile of its own: what a browser believes to be left for an origin, it keeps for some seconds.
    await using profile = await Profile.begin();
    const tab = await fixture.open(profile);
    const session = await profile.context.newCDPSession(tab);
    await session.send("Storage.overrideQuotaForOrigin", { origin: fixture.pages.url, quotaSize: 1 });
    const said = await tab.evaluate(async () => {
      const { client, outcome } = window.kit;
      const keys = await client.Keys.generate();
      const full = new client.Client({ url: location.origin, keys });
      const memory = new client.Client({ url: location.origin, keys, storage: "memory" });
      return [
        await outcome(async () => void (await full.createCollection({ name: "full", dimension: 8 }))),
        await outcome(async () => (await memory.createCollection({ name: "memory", dimension: 8 })).count()),
      ];
    });
    expect(said[0]).toMatchObject({
      name: "StorageError",
      message: expect.stringMatching(/no more room.*memory/s),
    });
    expect(said[1]).toEqual({ value: 0 });
  });

  it("ran under the policy of docs/browser.md without a complaint", () => {
    expect(fixture.complaints).toEqual([]);
  });
});
