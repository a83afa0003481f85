/** A key that was in a page, and what is left of it in the browser's memory once it was disposed of. */

import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Profile } from "../src/chromium.ts";
import { Fixture } from "../src/fixture.ts";
import { occurrences, processes } from "../src/memory.ts";
import { missing } from "../src/needs.ts";

const PASSPHRASE = "nine wet otters";
/** Of a key file in clear: the key lies behind a magic, a version, how it is protected, and a label. */
const MASTER = [32, 64] as const;

describe.skipIf(missing() !== undefined)("a key in a page", () => {
  let fixture: Fixture;
  let master: Buffer;
  let file: number[];

  beforeAll(async () => {
    fixture = await Fixture.begin();
    // The key is made in another profile, so that the one that is looked into never saw it but in the encrypted file.
    await using elsewhere = await Profile.begin();
    const page = await fixture.open(elsewhere);
    const files = await page.evaluate(async (passphrase) => {
      const keys = await window.kit.client.Keys.generate();
      return [[...(await keys.toFile({ allowPlaintext: true }))], [...(await keys.toFile({ passphrase }))]];
    }, PASSPHRASE);
    master = Buffer.from(files[0]?.slice(...MASTER) ?? []);
    file = files[1] ?? [];
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  const held = () => occurrences(processes(fixture.profile.folder), master);

  it("is in the Worker's memory while it is used, and nowhere after dispose()", async () => {
    expect(master.length).toBe(32);
    const page = await fixture.open();
    expect(held()).toBe(0);
    await use(page, file);
    expect(held()).toBeGreaterThan(0);
    await page.evaluate(async () => {
      const { keys, db } = window.kit.kept as {
        keys: import("@ciphervec/client").Keys;
        db: import("@ciphervec/client").Client;
      };
      await db.close();
      await keys.dispose();
    });
    expect(held()).toBe(0);
    const after = await page.evaluate(() =>
      window.kit.outcome(() =>
        (window.kit.kept["keys"] as import("@ciphervec/client").Keys).recoveryPhrase(),
      ),
    );
    expect(after).toHaveProperty("name");
    await page.close();
  });

  it("is never on the page's own heap", async () => {
    const page = await fixture.open();
    await use(page, file);
    const session = await fixture.profile.context.newCDPSession(page);
    const snapshot = await heap(session);
    expect(snapshot).toContain("kit"); // it is that page's heap
    for (const text of [master.toString("hex"), master.toString("base64"), [...master].join(",")])
      expect(snapshot).not.toContain(text);
    expect(await copiesInArrays(session, master)).toBe(0);
    await page.close();
  });
});

/** Open the key file, make a collection under it, ask. */
async function use(page: Page, file: number[]): Promise<void> {
  await page.evaluate(
    async ([file, passphrase]) => {
      const { client, gaussian, kept } = window.kit;
      const keys = await client.Keys.fromFile(Uint8Array.from(file), { passphrase });
      const db = new client.Client({ url: location.origin, keys });
      const rows = await db.getOrCreateCollection({ name: "few", dimension: 16 });
      await rows.upsert({ ids: ["a", "b"], embeddings: [gaussian(1, 1, 16), gaussian(2, 1, 16)] });
      await rows.query({ queryEmbeddings: gaussian(1, 1, 16) });
      Object.assign(kept, { keys, db, rows });
    },
    [file, PASSPHRASE] as const,
  );
}

/** The snapshot of a page's heap, as text. */
async function heap(session: CDPSession): Promise<string> {
  const pieces: string[] = [];
  session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => pieces.push(chunk));
  await session.send("HeapProfiler.enable");
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  return pieces.join("");
}

/** How many buffers of a page hold the bytes: a snapshot names buffers and leaves out what is in them. */
async function copiesInArrays(session: CDPSession, bytes: Buffer): Promise<number> {
  const { result } = await session.send("Runtime.evaluate", { expression: "ArrayBuffer.prototype" });
  const { objects } = await session.send("Runtime.queryObjects", {
    prototypeObjectId: result.objectId ?? "",
  });
  const { result: count } = await session.send("Runtime.callFunctionOn", {
    objectId: objects.objectId ?? "",
    returnByValue: true,
    arguments: [{ value: [...bytes] }],
    functionDeclaration: `function (bytes) {
      const holds = (buffer) => {
        const all = new Uint8Array(buffer);
        for (let i = all.indexOf(bytes[0]); i >= 0; i = all.indexOf(bytes[0], i + 1))
          if (bytes.every((byte, j) => all[i + j] === byte)) return true;
        return false;
      };
      return this.filter((buffer) => !buffer.detached && holds(buffer)).length;
    }`,
  });
  return Number(count.value);
}
