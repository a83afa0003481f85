/** A store over a server that loses, moves on, shortens and exchanges what it keeps; and over a storage that is full. */

import { createHash } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { newChange } from "../../src/collections/change.js";
import { Conflict, RollbackDetected, ServerError, StorageError } from "../../src/errors.js";
import { Session } from "../../src/http/session.js";
import { readState } from "../../src/http/state.js";
import { HttpStore } from "../../src/http/store.js";
import { Trust } from "../../src/http/trust.js";
import { hex, text } from "../../src/ingest/bytes.js";
import type { Native } from "../../src/native.js";
import { BlobCache } from "../../src/storage/cache.js";
import type { SealedStorage } from "../../src/storage/sealed.js";

/** Stands for BLAKE3, which is in the wasm: any hash will do. */
const blake3 = (data: Uint8Array) => new Uint8Array(createHash("sha256").update(data).digest());
const native = { blake3 } as unknown as Native;
const LARGE = 25 << 20; // beyond what goes in the frame of a commit
const id = (i: number) => i.toString(16).padStart(32, "0");

/** A storage that keeps what it is given, until it is full. */
class Kept {
  full = false;
  readonly held = new Map<string, Uint8Array>();
  async get(name: string) {
    const data = this.held.get(name);
    return data && { data };
  }
  async set(name: string, data: Uint8Array) {
    if (this.full) throw new StorageError("there is no more room");
    this.held.set(name, data);
  }
  async delete(name: string) {
    this.held.delete(name);
  }
  async list() {
    return [];
  }
  exclusive<T>(_: string, work: () => Promise<T>) {
    return work();
  }
}

/** The server's side, as far as a store asks it. */
class Server {
  version = 1;
  evaluation: Uint8Array = Uint8Array.of(1);
  blobs = new Map<string, Uint8Array>();
  /** Lengths that are listed, where they are not those there are. */
  listed = new Map<string, number>();
  uploads = new Map<string, Uint8Array>();
  commits: { content: { attachments: { name: string; blake3?: string; upload?: string }[] } }[] = [];
  before: (() => void) | null = null;
  forgetful = 0;
  several = true;
  asked: string[] = [];

  get head() {
    return hex(blake3(new TextEncoder().encode(String(this.version))));
  }

  state() {
    const segments = [...this.blobs].map(([name, data]) => ({
      id: name,
      rows: 1,
      deleted: [],
      blobs: { rows: this.listed.get(name) ?? data.length },
    }));
    const evaluation = hex(blake3(this.evaluation));
    return {
      name: "docs",
      version: this.version,
      head: this.head,
      meta: "e30=",
      attachments: {},
      segments,
      evaluation,
    };
  }

  readonly fetch = async (url: string, options: RequestInit): Promise<Response> => {
    const path = new URL(url).pathname.replace("/v1/collections/docs", "");
    const { method = "GET" } = options;
    const body = (options.body ?? new Uint8Array(0)) as Uint8Array;
    const given = new Headers(options.headers);
    this.asked.push(`${method} ${path.replace(/[0-9a-f]{32}/, "…")}`);
    const answer = (status: number, content: unknown = {}, headers: object = {}) =>
      new Response(
        status === 204 || status === 304
          ? null
          : content instanceof Uint8Array
            ? (content as Uint8Array<ArrayBuffer>)
            : JSON.stringify(content),
        { status, headers: { "ciphervec-api": "1", ...headers } },
      );
    if (path === "/uploads") {
      const name = id(this.uploads.size + 1);
      this.uploads.set(name, new Uint8Array(0));
      return answer(201, { upload: name });
    }
    if (method === "PATCH") {
      const name = path.slice(-32);
      const had = this.uploads.get(name) ?? new Uint8Array(0);
      const now = new Uint8Array(had.length + body.length);
      now.set(had);
      now.set(body, had.length);
      this.uploads.set(name, now);
      return answer(204, {}, { "upload-offset": String(now.length) });
    }
    if (path === "/commits") {
      this.before?.();
      this.before = null;
      const end = 16 + new DataView(body.buffer, body.byteOffset).getUint32(12, true);
      const content = JSON.parse(text(body.subarray(16, end)));
      if (this.forgetful > 0) {
        this.forgetful--;
        return answer(404, { type: "urn:ciphervec:not-found" });
      }
      if (given.get("if-match") !== `"${this.head}"`) return answer(412);
      this.commits.push({ content });
      this.version++;
      return answer(200, { version: this.version, head: this.head });
    }
    if (path === "/query") {
      const headers = {
        "ciphervec-version": String(this.version),
        "ciphervec-head": this.head,
        "ciphervec-evaluation": hex(blake3(this.evaluation)),
      };
      this.before?.();
      return answer(200, Uint8Array.of(5), headers);
    }
    if (path === "/blobs" && this.several) {
      const { segments } = JSON.parse(text(body)) as { segments: string[] };
      const parts = segments.flatMap((one) => {
        const data = this.blobs.get(one) ?? new Uint8Array(0);
        const length = new Uint8Array(8);
        new DataView(length.buffer).setBigUint64(0, BigInt(data.length), true);
        return [...length, ...data];
      });
      return answer(200, Uint8Array.from(parts));
    }
    const segment = /^\/segments\/([0-9a-f]{32})\/rows$/.exec(path)?.[1];
    if (segment !== undefined) {
      const data = this.blobs.get(segment);
      return data === undefined ? answer(404) : answer(200, data);
    }
    if (path === "")
      return given.get("if-none-match") === `"${this.head}"` ? answer(304) : answer(200, this.state());
    return answer(404);
  };
}

describe("a store", () => {
  let server: Server;
  let storage: Kept;
  let warnings: string[];
  let store: HttpStore;

  const opened = async () => {
    const session = new Session(server.fetch, "https://x", null, 5_000, 1);
    const sealed = storage as unknown as SealedStorage;
    const trust = await Trust.open(sealed, native, "https://x", "docs", (one) => warnings.push(one));
    const state = readState(JSON.parse(JSON.stringify(server.state())), "docs", "https://x");
    const cache = new BlobCache(sealed, native, 0);
    return HttpStore.open({ session, name: "docs", trust, cache, native, state, lineage: () => null });
  };
  const attached = (fill: number) =>
    newChange({ attachments: new Map([["state", new Uint8Array(LARGE).fill(fill)]]) });

  beforeEach(async () => {
    server = new Server();
    storage = new Kept();
    warnings = [];
    for (let i = 1; i <= 5; i++) server.blobs.set(id(i), new Uint8Array(10 + i).fill(i));
    store = await opened();
  });

  test("sends a commit again with the attachments that it has by then", async () => {
    server.before = () => server.version++;
    await expect(store.commit(attached(1), {})).rejects.toBeInstanceOf(Conflict);
    await store.refresh({});
    const change = attached(2);
    await store.commit(change, {});
    const [entry] = server.commits[0]?.content.attachments ?? [];
    const sent = server.uploads.get(entry?.upload ?? "");
    expect(entry?.blake3).toBe(hex(blake3(change.attachments.get("state") as Uint8Array)));
    expect(sent?.[0]).toBe(2);
  });

  test("does not upload again what is the same", async () => {
    server.before = () => server.version++;
    await expect(store.commit(attached(1), {})).rejects.toBeInstanceOf(Conflict);
    await store.refresh({});
    await store.commit(attached(1), {});
    expect(server.uploads.size).toBe(1);
  });

  test("uploads anew what the server lost, and says so where it loses it each time", async () => {
    server.forgetful = 2;
    await store.commit(attached(1), {});
    expect([server.uploads.size, server.commits.length]).toEqual([3, 1]);
    server.forgetful = 9;
    const lost = store.commit(attached(1), {});
    await expect(lost).rejects.toThrow("loses uploads");
    await expect(lost).rejects.toBeInstanceOf(ServerError);
  });

  test("is asked again where a blob has become shorter", async () => {
    server.blobs.set(id(3), new Uint8Array(4));
    server.version++;
    await expect(store.read(id(3), "rows", {})).rejects.toBeInstanceOf(Conflict);
    await store.refresh({});
    expect(await store.read(id(3), "rows", {})).toHaveLength(4);
    server.listed.set(id(3), 9);
    store.doubt();
    await store.refresh({});
    await expect(store.read(id(3), "rows", {})).rejects.toThrow("9 bytes expected");
  });

  test.each([true, false])("fetches several blobs at once where the server can: %s", async (several) => {
    server.several = several;
    server.asked = [];
    const ids = [1, 2, 3, 4, 5].map(id);
    await store.prefetch(ids, "rows", {});
    for (const [i, one] of ids.entries()) expect(await store.read(one, "rows", {})).toHaveLength(11 + i);
    expect(server.asked.filter((one) => one === "POST /blobs")).toHaveLength(1);
    expect(server.asked.filter((one) => one.startsWith("GET"))).toHaveLength(several ? 0 : 5);
  });

  test("refuses an answer by other evaluation keys, or asks again where they change", async () => {
    const owners = blake3(server.evaluation);
    const check = (digest: Uint8Array) => {
      if (hex(digest) !== hex(owners)) throw new RollbackDetected("other evaluation keys");
    };
    const sink = { most: 1 << 20, restart: () => undefined, write: () => undefined };
    const ask = () => store.evaluate(Uint8Array.of(1), {}, check, sink);
    expect(await ask()).toBe(server.version);
    server.evaluation = Uint8Array.of(2);
    await expect(ask()).rejects.toBeInstanceOf(RollbackDetected);
    server.before = () => server.version++; // others commit while it is asked
    await expect(ask()).rejects.toBeInstanceOf(Conflict);
    server.before = null;
    await store.refresh({});
    expect(hex(store.evaluation as Uint8Array)).toBe(hex(blake3(server.evaluation)));
  });

  test("commits nothing where what is seen can't be written down", async () => {
    storage.full = true;
    await expect(store.commit(attached(1), {})).rejects.toBeInstanceOf(StorageError);
    expect([server.commits.length, store.version]).toEqual([0, 1]);
  });

  test("takes a commit in that could not be written down afterwards, and warns", async () => {
    server.before = () => {
      storage.full = true;
    };
    await store.commit(newChange({ meta: Uint8Array.of(123, 125) }), {});
    expect([server.commits.length, store.version, warnings.length]).toEqual([1, 2, 1]);
    expect(warnings[0]).toContain("could not be written down");
    storage.full = false;
    await store.commit(newChange({ meta: Uint8Array.of(123, 125) }), {});
    const [[, written]] = [...storage.held] as [[string, Uint8Array]];
    expect([JSON.parse(text(written)).version, warnings.length]).toEqual([3, 1]);
  });
});
