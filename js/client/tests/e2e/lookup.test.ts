/** Private lookup and text classification: a client here, the tables in Python, bytes between. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LookupClient, PADDING, TextClient } from "@ciphervec/client/lookup";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missing, python } from "../support/server.js";

const MODEL = fileURLToPath(new URL("../../../../vectors/v1/learned/classifier.npz", import.meta.url));

describe.skipIf(missing !== "")("lookup beside Python", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "ciphervec-lookup-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const inPython = <T>(given: object, code: string) => python<T>({ folder, ...given }, code);
  const file = (name: string) => join(folder, name);

  test.each([
    ["histogram", "mean"],
    ["ive_digits", "none"],
  ])("%s, pooling %s", async (strategy, pooling) => {
    await inPython(
      { strategy, pooling },
      `
from pathlib import Path
import ciphervec.lookup as lookup
tables = np.arange(2 * 6 * 3).reshape(2, 6, 3) / 8 - 2
server = lookup.setup(tables, given["strategy"], pooling=given["pooling"], limit=8)
Path(given["folder"], "description").write_bytes(server.description())
Path(given["folder"], "tables").write_bytes(server.to_bytes())
result = None
`,
    );
    const client = await LookupClient.generate(await readFile(file("description")));
    expect(client.facts).toMatchObject({ strategy, pooling, tables: 2, rows: 6, columns: 3 });
    const documents =
      pooling === "mean"
        ? [
            [
              [0, 1],
              [5, 2],
              [PADDING, PADDING],
            ],
            [[3, 3]],
          ]
        : [
            [
              [0, 1],
              [5, 2],
              [3, 3],
            ],
          ];
    await writeFile(file("query"), await client.query(documents));
    await writeFile(file("keys"), (await client.keys()) ?? new Uint8Array(0));
    await writeFile(file("kept.key"), await client.toFile({ passphrase: "kept over there" }));
    const there = await inPython<{ key: string; answer: number[] }>(
      {},
      `
from pathlib import Path
import ciphervec.lookup as lookup
read = lambda name: Path(given["folder"], name).read_bytes()
server = lookup.Server.from_bytes(read("tables"))
if read("keys"):
    server.register(read("keys"))
answer = server.embed(read("query"))
kept = lookup.Client.load(f"{given['folder']}/kept.key", passphrase="kept over there")
result = {"key": kept.key_id, "answer": list(answer)}
`,
    );
    expect(there.key).toBe(client.keyId);
    const row = (table: number, index: number) => [0, 1, 2].map((i) => ((table * 6 + index) * 3 + i) / 8 - 2);
    const sum = (...rows: number[][]) =>
      [0, 1, 2].map((i) => rows.reduce((all, one) => all + (one[i] as number), 0));
    const of = ([a, b]: number[]) => sum(row(0, a as number), row(1, b as number));
    const tokens = [of([0, 1]), of([5, 2]), of([3, 3])] as [number[], number[], number[]];
    const expected =
      pooling === "mean" ? [sum(tokens[0], tokens[1]).map((one) => one / 2), tokens[2]] : tokens;
    const again = await LookupClient.fromFile(await readFile(file("kept.key")), {
      passphrase: "kept over there",
    });
    for (const one of [client, again]) {
      const rows = await one.decode(Uint8Array.from(there.answer));
      expect(rows.length).toBe(expected.length);
      rows.forEach((found, i) => {
        found.forEach((value, j) => {
          expect(Math.abs(value - (expected[i]?.[j] as number))).toBeLessThanOrEqual(client.facts.errorBound);
        });
      });
    }
    await expect(client.query([[[0, 6]]])).rejects.toMatchObject({ name: "InvalidInput" });
    await expect(client.query([[[0]]])).rejects.toThrow("each of 2 tables");
    const damaged = Uint8Array.from(there.answer, (byte, i) => (i === 70 ? byte ^ 1 : byte));
    await expect(client.decode(damaged)).rejects.toMatchObject({ name: "CorruptData" });
    await rm(file("kept.key"));
    await client.dispose();
    await expect(client.keys()).rejects.toThrow("disposed");
  });

  test("texts are read as Python reads them, and classified without being shown", async () => {
    const texts = [
      "A good day &amp; a bad night: it's GOOD!",
      "",
      "&lt;b&gt;Bad&lt;/b&gt; bad&nbsp;bad &#103;ood &#x62;ad; &ampgood &notit; &fjlig;ord &Idot; 123 ÜNÏ\u212Aelvin na\u0301ive &#1;x a&#1;b &bogus; &#xD800;z",
      `${"good ".repeat(5_000)}bad`,
    ];
    const made = await inPython<{
      reader: number[];
      description: number[];
      codes: number[][];
      tokens: string[][];
      offsets: number[];
    }>(
      { texts, model: MODEL },
      `
from pathlib import Path
import ciphervec.text as text
from ciphervec.text.tokenize import tokenize
model = text.Classifier.load(given["model"])
server = model.server_half()
Path(given["folder"], "half").write_bytes(server.to_bytes())
reader = model.reader()
codes, documents = reader.codes(given["texts"])
result = {"reader": list(reader.to_bytes()), "description": list(server.description()), "codes": codes.tolist(), "offsets": documents.offsets.tolist(),
          "tokens": [tokenize(one, 2) for one in given["texts"]]}
`,
    );
    const client = await TextClient.generate(Uint8Array.from(made.reader), Uint8Array.from(made.description));
    const { query, truncated } = await client.encrypt(texts);
    expect(truncated.at(-1)).toBe(true);
    await writeFile(file("texts"), query);
    const answered = await inPython<{ answer: number[]; labels: unknown[]; margins: number[] }>(
      { texts, model: MODEL },
      `
from pathlib import Path
import ciphervec.text as text
server = text.Server.from_bytes(Path(given["folder"], "half").read_bytes())
model = text.Classifier.load(given["model"])
result = {"answer": list(server.classify(Path(given["folder"], "texts").read_bytes())), "labels": list(model.predict(given["texts"])) if hasattr(model, "predict") else None}
`,
    );
    const { labels, margins } = await client.decode(Uint8Array.from(answered.answer));
    expect(labels.length).toBe(texts.length);
    expect(margins.length).toBe(texts.length);
    if (answered.labels !== null) expect(labels).toEqual(answered.labels);
    // The tokens themselves, with pairs.
    const { TextReader, tokensOf } = await import("../../src/text/reader.js");
    expect(texts.map((one) => tokensOf(one, 2))).toEqual(made.tokens);
    const reader = new TextReader(Uint8Array.from(made.reader));
    const { indices, offsets } = reader.codes(texts);
    expect([...offsets]).toEqual(made.offsets);
    expect([...indices]).toEqual(made.codes.flat());
    const bytes = Uint8Array.from(made.reader);
    for (let at = 0; at < bytes.length; at += 3)
      try {
        new TextReader(bytes.map((byte, i) => (i === at ? byte ^ 8 : byte)));
      } catch (error) {
        expect(["CorruptData", "UnsupportedVersion"]).toContain((error as Error).name);
      }
  });
});
