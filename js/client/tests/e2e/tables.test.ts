/** Private tables: the scripts of vectors/client that every client runs, and what only JavaScript can get wrong. */

import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as client from "@ciphervec/client";
import { Client, Keys, PrivateTable, type TableKey } from "@ciphervec/client";
import { blake3 } from "@noble/hashes/blake3.js";
import { describe, expect, test } from "vitest";
import { concat } from "../../src/ingest/bytes.js";
import type { TestProxy } from "../support/proxy.js";
import { missing, python, type TestServer } from "../support/server.js";
import { withLiar, withServer } from "../support/setup.js";

type GivenKey = string | { $bytes: string } | { $integer: string };
interface Lookup {
  keys: GivenKey[];
  bound?: number;
  gives?: (string | null)[];
  raises?: string;
  says?: string;
}
interface Script {
  name: string;
  build: { seed?: string; record_bytes?: number; sealed?: boolean; records: [GivenKey, string][] };
  is?: { records: number; record_bytes: number; sealed: boolean };
  raises?: string;
  says?: string;
  steps?: Lookup[];
}

const FILE = new URL("../../../../vectors/client/tables.json", import.meta.url);
const { tables } = JSON.parse(readFileSync(FILE, "utf8")) as { tables: Script[] };

const bytes = (digits: string) => new Uint8Array(Buffer.from(digits, "hex"));
const digits = (found: Uint8Array | null) => found && Buffer.from(found).toString("hex");
const utf8 = (text: string) => new TextEncoder().encode(text);

function keyOf(key: GivenKey): TableKey {
  if (typeof key === "string") return key;
  if ("$bytes" in key) return bytes(key.$bytes);
  const integer = BigInt(key.$integer);
  return BigInt(Number(integer)) === integer && Number.isSafeInteger(Number(integer))
    ? Number(integer)
    : integer;
}

async function refused(work: Promise<unknown>, { raises, says }: { raises?: string; says?: string }) {
  const error = await work.then(
    () => null,
    (caught: Error) => caught,
  );
  const kinds = (raises ?? "").split("|").map((name) => (client as { [name: string]: unknown })[name]);
  expect(
    kinds.some((kind) => typeof kind === "function" && error instanceof kind),
    `${error}`,
  ).toBe(true);
  expect(
    (says ?? "").split("|").some((one) => error?.message.includes(one)),
    `${error}`,
  ).toBe(true);
}

describe.skipIf(missing !== "")("private tables", () => {
  let server: TestServer;
  let keys: Keys;
  let proxy: TestProxy;
  let folder: string;
  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  withLiar(
    () => server.url,
    "table",
    (_, before, own) => {
      [proxy, folder] = [before, own];
    },
  );
  const opened = (more: object = {}) =>
    new Client({ url: server.url, keys, storage: "memory", onWarning: () => undefined, ...more });

  test.each(tables.map((script) => [script.name, script] as const))("%s", async (_, script) => {
    const { seed, sealed, record_bytes, records } = script.build;
    const pairs = records.map(([key, record]) => [keyOf(key), bytes(record)] as const);
    const making = PrivateTable.build(pairs, {
      ...(seed !== undefined && { seed: bytes(seed) }),
      ...(sealed && { keys }),
      ...(record_bytes !== undefined && { recordBytes: record_bytes }),
    });
    if (script.raises !== undefined) return refused(making, script);
    const table = await making;
    const { records: count, recordBytes, sealed: is } = table.info();
    expect({ records: count, record_bytes: recordBytes, sealed: is }).toEqual(script.is);
    const store = opened();
    await store.putTable({ name: "script", table });
    const remote = await store.getTable({ name: "script", fingerprint: table.fingerprint });
    for (const step of script.steps ?? []) {
      const asked = step.keys.map(keyOf);
      const looked = remote.getMany(asked, step.bound === undefined ? {} : { bound: step.bound });
      if (step.raises !== undefined) {
        await refused(looked, step);
        continue;
      }
      expect((await looked).map(digits)).toEqual(step.gives);
      const here = await Promise.all(asked.map((key) => table.get(key, sealed ? { keys } : {})));
      expect(here.map(digits)).toEqual(step.gives);
    }
    await store.deleteTable({ name: "script" });
    await refused(remote.get("a"), { raises: "TableNotFound", says: "putTable" });
    await table.dispose();
    await refused(table.verify(), { raises: "CiphervecError", says: "disposed" });
  });

  test("a table of this client is Python's, and one of Python's is this client's", async () => {
    const table = await PrivateTable.build({ alice: "first", bob: utf8("second") });
    await writeFile(join(folder, "ours.table"), await table.toBytes());
    const there = await python<{ found: string; fingerprint: string; theirs: string }>(
      { folder },
      `
from ciphervec import PrivateTable
ours = PrivateTable.load(f"{given['folder']}/ours.table")
ours.verify()
theirs = PrivateTable.build({2**100: b"large", b"\\x00": b"bytes"}, path=f"{given['folder']}/theirs.table")
result = {"found": ours.client().get("bob").decode(), "fingerprint": ours.fingerprint, "theirs": theirs.fingerprint}
`,
    );
    expect([there.found, there.fingerprint]).toEqual(["second", table.fingerprint]);
    const theirs = await PrivateTable.load(await readFile(join(folder, "theirs.table")));
    expect([theirs.fingerprint, theirs.size]).toEqual([there.theirs, 2]);
    await theirs.verify();
    expect(digits(await theirs.get(2n ** 100n))).toBe(digits(utf8("large")));
    expect(digits(await theirs.get(Uint8Array.of(0)))).toBe(digits(utf8("bytes")));
    const damaged = await theirs.toBytes();
    damaged[damaged.length - 7000] = (damaged.at(-7000) as number) ^ 1;
    const loaded = await PrivateTable.load(damaged);
    await refused(loaded.verify(), { raises: "CorruptData", says: "bucket" });
    for (const file of [new Uint8Array(0), damaged.subarray(0, -1), new Uint8Array(9000)])
      await refused(PrivateTable.load(file), { raises: "CorruptData", says: "" });
  });

  test("names are held to the publisher's fingerprint, or to the table that was seen first", async () => {
    const [first, second] = [
      await PrivateTable.build(new Map([["a", "1"]])),
      await PrivateTable.build(new Map([["a", "2"]])),
    ];
    const store = opened();
    const row = await store.putTable({ name: "held", table: await first.toBytes() });
    expect(row).toMatchObject({ name: "held", records: 1, recordBytes: 1, sealed: false });
    expect(await store.listTables()).toEqual([row]);
    const remote = await store.getTable({ name: "held" });
    expect([remote.name, remote.fingerprint, await remote.has("a"), await remote.has("b")]).toEqual([
      "held",
      first.fingerprint,
      true,
      false,
    ]);
    await store.putTable({ name: "held", table: second });
    await refused(remote.get("a"), { raises: "Conflict", says: "replaced" });
    await refused(store.getTable({ name: "held" }), { raises: "PinMismatch", says: "seen before" });
    await refused(store.getTable({ name: "held", fingerprint: first.fingerprint }), {
      raises: "PinMismatch",
      says: "publisher",
    });
    for (const fingerprint of ["", "00", "zz".repeat(32)])
      await refused(store.getTable({ name: "held", fingerprint }), {
        raises: "InvalidInput",
        says: "64 hexadecimal digits",
      });
    const again = await store.getTable({ name: "held", fingerprint: ` ${second.fingerprint.toUpperCase()}` });
    expect(digits(await again.get("a"))).toBe("32");
    await store.deleteTable({ name: "held" });
    await refused(store.deleteTable({ name: "held" }), { raises: "TableNotFound", says: "no such table" });
    await store.close();
    await refused(again.get("a"), { raises: "CiphervecError", says: "closed" });
  });

  test("a sealed table opens under its owner's keys alone", async () => {
    const [table, others] = [await PrivateTable.build({ a: "mine" }, { keys }), await Keys.generate()];
    await opened().putTable({ name: "sealed", table });
    for (const client of [opened({ keys: others }), new Client({ url: server.url, storage: "memory" })])
      await refused(client.getTable({ name: "sealed" }), { raises: "InvalidInput|CorruptData", says: "" });
    for (const options of [{}, { keys: others }])
      await refused(table.get("a", options), { raises: "CorruptData", says: "" });
    await opened().deleteTable({ name: "sealed" });
    await others.dispose();
  });

  test("what is no key, record or choice is refused", async () => {
    const build = (records: unknown, options: object = {}) => PrivateTable.build(records as never, options);
    for (const [records, says] of [
      [[["a", 3]], "record 0 must be a Uint8Array or text"],
      [["ab"], "pair of key and record"],
      [[["a"]], "pair of key and record"],
      [[[1.5, ""]], "1.5 is no integer"],
      [[[2 ** 53, ""]], "give a bigint"],
      [[[true, ""]], "a key is"],
      [[[null, ""]], "a key is"],
      [[["\ud800", ""]], "Unicode"],
      [[["a", "\ud800"]], "Unicode"],
      ["text", "records are a Map"],
    ] as const)
      await refused(build(records), { raises: "InvalidInput", says });
    await refused(build([["a", new Uint8Array(65_536)]]), { raises: "InvalidInput", says: "65535" });
    await refused(build([], { room: 3 }), { raises: "InvalidInput", says: "recordBytes" });
    await refused(build([], { keys, seed: new Uint8Array(32) }), { raises: "InvalidInput", says: "sealed" });
    const store = opened();
    await store.putTable({ name: "few", table: await build([["a", ""]]) });
    const remote = await store.getTable({ name: "few" });
    for (const keys of ["abc", utf8("abc"), 3])
      await refused(remote.getMany(keys as never), { raises: "InvalidInput", says: "list of keys" });
    await refused(remote.getMany(["a"], { bound: 1.5 }), { raises: "InvalidInput", says: "bound" });
    await refused(store.putTable({ name: "few", table: new Uint8Array(100) }), {
      raises: "InvalidInput",
      says: "",
    });
    await store.deleteTable({ name: "few" });
  });

  test("the server sees the same of any lookup of a class, and a wrong answer ends them", async () => {
    const records = Array.from({ length: 40 }, (_, i) => [i, new Uint8Array(3000).fill(i)] as const);
    const table = await PrivateTable.build(records);
    const storage = { folder };
    await opened().putTable({ name: "people", table });
    const through = opened({ url: proxy.url, storage });
    const remote = await through.getTable({ name: "people", fingerprint: table.fingerprint });
    await remote.get(7); // which brings the keys
    const seen: string[][] = [];
    let lie = false;
    proxy.fate = async ({ method, path, body, headers }, answer) => {
      const names = Object.keys(headers).sort().join();
      seen.at(-1)?.push(`${method} ${path} ${body.length} ${names}`);
      const answered = await answer();
      if (lie) {
        const frame = answered.body;
        frame[frame.length - 1] = (frame.at(-1) as number) ^ 0x80;
        // The checksum is of header and payload: nothing but the records is wrong.
        frame.set(blake3(concat([frame.subarray(0, 32), frame.subarray(64)])), 32);
      }
      return answered;
    };
    const views = async (lookups: [TableKey[], object][]) => {
      seen.length = 0;
      for (const [asked, options] of lookups) {
        seen.push([]);
        await remote.getMany(asked, options);
      }
      return new Set(seen.map((view) => view.join("\n")));
    };
    const ones = await views([
      [[7], {}],
      [["none"], {}],
      [[], {}],
      [[39], { bound: 1 }],
    ]);
    expect(ones.size).toBe(1);
    expect([...ones][0]?.split("\n").length).toBe(1);
    const tens: TableKey[] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
    expect(
      (
        await views([
          [[7, 7], {}],
          [tens, {}],
          [[], { bound: 10 }],
          [["no", 1], { bound: 9 }],
        ])
      ).size,
    ).toBe(1);
    lie = true;
    const before = seen.flat().length;
    await refused(remote.get(7), { raises: "TamperedAnswer", says: "resume()" });
    lie = false;
    expect(await remote.info()).toMatchObject({ failures: 1, ended: true });
    // Of every client of this storage, until lookups are resumed; nothing is sent meanwhile.
    const other = await opened({ url: proxy.url, storage }).getTable({ name: "people" });
    const sent = seen.flat().length;
    for (const one of [other, remote])
      await refused(one.get(8), { raises: "TamperedAnswer", says: "resume()" });
    expect([before + 2, seen.flat().length]).toEqual([sent, sent]); // the lookup and the description
    await remote.resume();
    expect(digits(await other.get(8))).toBe(digits(new Uint8Array(3000).fill(8)));
    expect(await remote.info()).toMatchObject({ failures: 1, ended: false });
    await opened().deleteTable({ name: "people" });
  });
});
