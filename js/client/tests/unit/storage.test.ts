/** Where a client keeps what it remembers: IndexedDB, folders. */

import "fake-indexeddb/auto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FolderStorage } from "../../src/storage/folder.js";
import { IndexedDbStorage } from "../../src/storage/indexeddb.js";
import { MemoryStorage, type Storage } from "../../src/storage/storage.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ciphervec-storage-"));
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

test("a full disk is named, with what to do", async () => {
  vi.spyOn(IDBObjectStore.prototype, "put").mockImplementation(() => {
    throw new DOMException("no more", "QuotaExceededError");
  });
  await expect(new IndexedDbStorage("full").set("trust/aa", Uint8Array.of(1))).rejects.toThrow(
    /no more room[\s\S]*navigator\.storage\.persist/,
  );
  vi.restoreAllMocks();
});
