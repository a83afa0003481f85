/** What a client remembers: IndexedDB, folders, and their encryption. */

import "fake-indexeddb/auto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { StorageError } from "../../src/errors.js";
import { Trust } from "../../src/http/trust.js";
import { utf8 } from "../../src/ingest/bytes.js";
import type { Keys, Native } from "../../src/native.js";
import { native as load } from "../../src/platform/node-engine.js";
import { BlobCache } from "../../src/storage/cache.js";
import { FolderStorage } from "../../src/storage/folder.js";
import { IndexedDbStorage } from "../../src/storage/indexeddb.js";
import { SealedStorage } from "../../src/storage/sealed.js";
import { MemoryStorage, type Storage } from "../../src/storage/storage.js";

let folder: string;
let native: Native;
let keys: Keys;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ciphervec-storage-"));
  native = await load();
  keys = native.Keys.generate();
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const KINDS: [string, () => Storage][] = [
  ["memory", () => new MemoryStorage()],
  ["IndexedDB", () => new IndexedDbStorage(`test-${Math.random()}`)],
  ["a folder", () => new FolderStorage(join(folder, String(Math.random())))],
];

describe.each(KINDS)("%s", (_, make) => {
  test("gives back what was put there, and lists it, the longest unused first", async () => {
    const storage = make();
    expect(await storage.get("blobs/aa")).toBeUndefined();
    vi.useFakeTimers({ toFake: ["Date"], now: 1_000_000 });
    for (const [i, name] of ["blobs/aa", "blobs/bb", "trust/cc", "blobs/dd"].entries()) {
      await storage.set(name, new Uint8Array(i + 1).fill(i));
      vi.advanceTimersByTime(5_000);
    }
    vi.useRealTimers();
    await new Promise((resolve) => setTimeout(resolve, 30)); // what a folder's times tell apart
    expect(await storage.get("blobs/aa")).toEqual(Uint8Array.of(0));
    expect((await storage.list("blobs/")).map(({ name }) => name).at(-1)).toBe("blobs/aa");
    expect((await storage.list("blobs/")).map(({ bytes }) => bytes).sort()).toEqual([1, 2, 4]);
    await storage.set("blobs/aa", Uint8Array.of(9, 9));
    expect(await storage.get("blobs/aa")).toEqual(Uint8Array.of(9, 9));
    await storage.delete("blobs/aa");
    await storage.delete("blobs/aa");
    expect(await storage.get("blobs/aa")).toBeUndefined();
    storage.close?.();
  });

  test("runs what must not overlap one after the other", async () => {
    const storage = make();
    const exclusive = storage.exclusive?.bind(storage) ?? null;
    if (exclusive === null) return;
    let inside = 0;
    const work = async () => {
      expect(++inside).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 5));
      inside--;
    };
    await Promise.all(Array.from({ length: 5 }, () => exclusive("trust/aa", work)));
    await expect(exclusive("trust/aa", () => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
    await exclusive("trust/aa", work);
  });
});

describe("sealed", () => {
  test("what lies below is encrypted, bound to its name, and under one's own keys", async () => {
    const below = new MemoryStorage();
    const storage = new SealedStorage(below, native, keys);
    const secret = utf8("nobody reads that");
    await storage.set("trust/aa", secret);
    const stored = (await below.get("trust/aa")) as Uint8Array;
    expect(Buffer.from(stored).includes("nobody")).toBe(false);
    expect(await storage.get("trust/aa")).toEqual({ data: secret });
    await below.set("trust/bb", stored);
    await expect(storage.get("trust/bb")).rejects.toMatchObject({ name: "CorruptData" });
    for (let at = 0; at < stored.length; at++) {
      await below.set(
        "trust/aa",
        stored.map((byte, i) => (i === at ? byte ^ 1 : byte)),
      );
      const found = await storage.get("trust/aa").catch((error: Error) => error);
      // The id of the keys is in clear: another one there is told as such.
      if (found instanceof Error) expect(found.name).toMatch(/CorruptData|UnsupportedVersion/);
      else expect(found).toHaveProperty("keyId");
    }
    await below.set("trust/aa", stored);
    const others = new SealedStorage(below, native, native.Keys.generate());
    expect(await others.get("trust/aa")).toEqual({ keyId: keys.keyId });
  });

  test("a cache stays within its room, and a full disk costs the saving alone", async () => {
    const below = new MemoryStorage();
    const cache = new BlobCache(new SealedStorage(below, native, keys), native, 20_000);
    for (let i = 0; i < 40; i++) await cache.put(`blob ${i}`, new Uint8Array(1_000).fill(i));
    const held = (await below.list("blobs/")).reduce((sum, { bytes }) => sum + bytes, 0);
    expect(held).toBeLessThan(22_000);
    expect(await cache.get("blob 0")).toBeNull();
    expect(await cache.get("blob 39")).toEqual(new Uint8Array(1_000).fill(39));
    await cache.put("too long", new Uint8Array(5_000));
    expect(await cache.get("too long")).toBeNull();
    const full = new IndexedDbStorage("full");
    vi.spyOn(IDBObjectStore.prototype, "put").mockImplementation(() => {
      throw new DOMException("no more", "QuotaExceededError");
    });
    const bounded = new BlobCache(new SealedStorage(full, native, keys), native, 20_000);
    await bounded.put("x", Uint8Array.of(1));
    await expect(full.set("trust/aa", Uint8Array.of(1))).rejects.toThrow(
      /no more room[\s\S]*navigator\.storage\.persist/,
    );
    vi.restoreAllMocks();
    expect(await bounded.get("x")).toBeNull();
  });
});

describe("trust", () => {
  const head = (digit: string) => digit.repeat(64);
  const open = (below: Storage, own = keys) =>
    Trust.open(new SealedStorage(below, native, own), native, "https://x", "docs", (message) =>
      expect.unreachable(message),
    );

  test("a lower version, another head, other pins are refused, by a later one as well", async () => {
    const below = new IndexedDbStorage("trust");
    const trust = await open(below);
    await trust.see(3, head("a"), 0);
    await trust.pin({ spec: "s", "key id": "k", masks: "m", "evaluation keys of epoch 0": "e" });
    for (const one of [trust, await open(below)]) {
      expect(one.version).toBe(3);
      await expect(one.see(2, head("b"), 3)).rejects.toMatchObject({ name: "RollbackDetected" });
      await expect(one.see(3, head("b"), 3)).rejects.toThrow("two histories");
      await expect(one.pin({ spec: "other" })).rejects.toMatchObject({ name: "PinMismatch" });
    }
    await trust.see(2, head("c"), 2); // an answer that was asked for before the latest came
    await expect(open(below, native.Keys.generate())).rejects.toMatchObject({ name: "PinMismatch" });
  });

  test("a tab that has seen less takes in what another has", async () => {
    const below = new IndexedDbStorage("tabs");
    const [one, two] = [await open(below), await open(below)];
    await one.see(5, head("a"), 0);
    await two.see(2, head("b"), 0);
    expect([one.version, two.version]).toEqual([5, 5]);
    await two.see(7, head("c"), 5);
    await one.reload();
    expect(one.version).toBe(7);
  });

  test("what is in quarantine is there in a later session and in every tab, until it is released", async () => {
    const below = new IndexedDbStorage("held");
    const [one, two] = [await open(below), await open(below)];
    await one.hold("aa", "it failed");
    await two.hold("bb", "so did this");
    await one.reload();
    expect(one.held).toEqual({ aa: "it failed", bb: "so did this" });
    expect((await open(below)).held).toEqual(one.held);
    await two.unhold(["aa", "cc"]);
    await one.see(3, head("a"), 0); // who still had it does not put it back
    for (const trust of [one, two, await open(below)]) expect(trust.held).toEqual({ bb: "so did this" });
    expect([one.durable, (await open(new MemoryStorage())).durable]).toEqual([true, false]);
    await one.start();
    expect((await open(below)).held).toEqual({});
  });

  test("what is in quarantine stays there where it can't be written down, and comes with what can", async () => {
    const below = new IndexedDbStorage("unwritten");
    const [one, two] = [await open(below), await open(below)];
    await one.hold("aa", "it failed");
    const { set } = below;
    below.set = () => Promise.reject(new StorageError("there is no more room"));
    await expect(one.hold("bb", "so did this")).rejects.toMatchObject({ name: "StorageError" });
    await one.reload();
    expect(one.held).toEqual({ aa: "it failed", bb: "so did this" });
    expect([one.keeps("aa"), one.keeps("bb"), one.keeps("cc")]).toEqual([true, false, false]);
    await one.unhold(["bb"]); // the owner's state has it: no reason to write
    expect(one.held).toEqual({ aa: "it failed" });
    await expect(one.hold("bb", "again")).rejects.toMatchObject({ name: "StorageError" });
    below.set = async (name, data) => {
      one.hold("cc", "meanwhile").catch(() => undefined);
      below.set = set;
      await set.call(below, name, data);
    };
    await one.see(1, head("a"), 0);
    expect(one.held).toEqual({ aa: "it failed", bb: "again", cc: "meanwhile" });
    await one.see(2, head("b"), 1);
    await two.reload();
    expect(two.held).toEqual(one.held);
    const fleeting = await open(new MemoryStorage());
    await fleeting.hold("aa", "it failed");
    expect([fleeting.held, fleeting.keeps("aa")]).toEqual([{ aa: "it failed" }, false]);
  });

  test("keys are followed where the sealed settings hand the masks on, and never back", async () => {
    const told: string[] = [];
    const storage = new SealedStorage(new MemoryStorage(), native, keys);
    const trust = await Trust.open(storage, native, "https://x", "docs", (message) => told.push(message));
    await trust.pin({ "key id": "old", masks: "m", "evaluation keys of epoch 2": "e" });
    const lineage = { keyId: "new", masks: "m", epoch: 3 };
    for (const bad of [
      null,
      { ...lineage, masks: "x" },
      { ...lineage, epoch: 2 },
      { ...lineage, keyId: "other" },
    ])
      await expect(trust.follow("new", bad)).rejects.toMatchObject({ name: "PinMismatch" });
    await trust.follow("new", lineage);
    expect(told.length).toBe(1);
    await expect(trust.follow("old", { keyId: "old", masks: "m", epoch: 9 })).rejects.toMatchObject({
      name: "PinMismatch",
    });
  });
});
