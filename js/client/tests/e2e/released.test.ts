/** What release 0.1 wrote, served by the present server, is opened here: descriptions of format 1, no states, no originals, a writer's segment. */

import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, Keys } from "@ciphervec/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missing, TestServer } from "../support/server.js";

const FOLDER = fileURLToPath(new URL("../../../../vectors/v1/collections-0.1/", import.meta.url));

describe.skipIf(missing !== "")("release 0.1", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
    await server.down();
    await cp(join(FOLDER, "db"), join(server.folder, "db"), { recursive: true });
    await server.up();
  });
  afterAll(() => server?.stop());

  test("collections are opened, and their rows found", async () => {
    const keys = await Keys.fromFile(await readFile(join(FOLDER, "plain.key")));
    const told: string[] = [];
    const client = new Client({ url: server.url, keys, onWarning: (message) => told.push(message) });
    const rows = await client.listCollections();
    expect(rows.map(({ name }) => name)).toEqual(["faces", "twice"]);
    const file = await readFile(join(FOLDER, "rows.npy"));
    const start = 10 + file.readUInt16LE(8);
    for (const { name } of rows) {
      const docs = await client.getCollection({ name });
      const { ids, embeddings } = await docs.get({ include: ["embeddings"] });
      expect(ids.length).toBe(await docs.count());
      expect(ids.length).toBeGreaterThan(0);
      const info = await docs.info();
      expect(info.authenticated).toBe(false);
      // A row is the closest to itself, and what is unsealed is near one of those that were put in.
      const query = embeddings?.[0] as Float32Array;
      const found = await docs.query({ queryEmbeddings: query, nResults: 1 });
      expect(found.ids[0]).toEqual([ids[0]]);
      const numbers = new Float32Array(
        file.buffer.slice(file.byteOffset + start, file.byteOffset + file.length),
      );
      const all = Array.from({ length: numbers.length / docs.dimension }, (_, i) =>
        numbers.subarray(i * docs.dimension, (i + 1) * docs.dimension),
      );
      const cosine = (a: Float32Array, b: Float32Array) => {
        const dot = (x: Float32Array, y: Float32Array) =>
          x.reduce((sum, value, i) => sum + value * (y[i] as number), 0);
        return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
      };
      for (const vector of embeddings ?? [])
        expect(Math.max(...all.map((one) => cosine(one, vector)))).toBeGreaterThan(0.999);
    }
    await keys.dispose();
  });
});
