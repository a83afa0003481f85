/** A client's own log in Node: what it has and has not, and that `ciphervec audit verify` holds it to its chain and signatures. */

import { execFile } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, InvalidInput, type Keys, StorageError } from "@ciphervec/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { missing, python, SERVE, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

describe.skipIf(missing !== "")("a client's own log", () => {
  let server: TestServer;
  let keys: Keys;
  let folder = "";
  let log = "";
  let auditKey = "";
  let turn = 0;
  const warnings: string[] = [];

  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "ciphervec-log-"));
    [log, auditKey] = [join(folder, "own.log"), join(folder, "own.key")];
    await promisify(execFile)(SERVE, ["audit", "key", auditKey]);
    warnings.length = 0;
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const client = (options: object = {}) =>
    new Client({
      url: server.url,
      keys,
      storage: "memory",
      auditLog: log,
      auditKey,
      onWarning: (says) => warnings.push(says),
      ...options,
    });
  const lines = () =>
    readFileSync(log, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { [name: string]: unknown });
  const verify = () =>
    promisify(execFile)(SERVE, ["audit", "verify", log, "--key", `${auditKey}.pub`]).then(
      ({ stdout }) => stdout,
      (error: { stdout: string; stderr: string }) => `refused: ${error.stdout}${error.stderr}`,
    );
  /** A collection with a row, and a query of it. */
  const work = async (opened: Client) => {
    const docs = await opened.createCollection({
      name: `logged-${++turn}`,
      dimension: 2,
      mode: "sealed-index",
    });
    await docs.add({ ids: ["planted-id"], embeddings: [[1, 0]], documents: ["planted text"] });
    await docs.query({
      queryEmbeddings: [
        [1, 0],
        [0, 1],
      ],
      nResults: 1,
    });
    await expect(docs.add({ ids: ["planted-id"], embeddings: [[1, 0]] })).rejects.toThrow("planted-id");
    return docs;
  };

  test("it has what was done and no content, and holds over two clients", async () => {
    const first = client();
    await work(first);
    await first.close();
    const done = lines().filter((line) => line["action"] !== undefined);
    const named = (action: string) => done.filter((line) => line["action"] === action);
    expect(named("add").map((line) => [line["outcome"], line["count"]])).toEqual([
      ["done", 1],
      ["failed", 0],
    ]);
    expect(named("query").map((line) => [line["outcome"], line["count"]])).toEqual([["done", 2]]);
    expect(done.every((line) => line["collection"] === `logged-${turn}`)).toBe(true);
    const [added] = named("add");
    expect(added?.["sent"]).toBeGreaterThan(100);
    expect(Math.abs((added?.["time"] as number) - Date.now() / 1e3)).toBeLessThan(600);
    expect(readFileSync(log, "utf8")).not.toContain("planted");
    expect(statSync(log).mode & 0o777).toBe(0o600);

    const second = client({ auditKey: new Uint8Array(readFileSync(auditKey)) });
    await work(second);
    await second.close();
    expect(warnings).toEqual([]);
    expect(lines().some((line) => line["event"] === "continued" && line["unsigned"] === 0)).toBe(true);
    expect(await verify()).not.toContain("refused");
    // Python goes on with it, and Node after Python.
    await python(
      { url: server.url, log, auditKey },
      `
with ciphervec.HttpClient(given["url"], keys=ciphervec.Keys.generate(), state=None, audit_log=given["log"], audit_key=given["auditKey"]) as own:
    own.create_collection("from-python", 2).add(["a"], [[1.0, 0.0]])
result = None
`,
    );
    const third = client();
    await work(third);
    await third.close();
    expect(await verify()).not.toContain("refused");
    expect(lines().filter((line) => line["event"] === "continued")).toHaveLength(3);

    const text = readFileSync(log, "utf8");
    writeFileSync(log, text.replace('"outcome":"failed"', '"outcome":"done"'));
    expect(await verify()).toContain("refused");
    const changed = await client()
      .listCollections()
      .then(
        () => null,
        (error: Error) => error,
      );
    expect(changed).toBeInstanceOf(StorageError);
    expect(changed?.message).toContain("was changed");
    expect(readFileSync(log, "utf8").length).toBe(text.length - 2);
  });

  test("a torn line goes, another's line is a warning, and one client has one file", async () => {
    const first = client();
    await work(first);
    await expect(client().listCollections()).rejects.toThrow("another client writes to it");
    const whole = readFileSync(log);
    appendFileSync(log, '{"event":"planted"}\n');
    const length = statSync(log).size;
    await first.listCollections();
    await work(first);
    expect(warnings.some((says) => says.includes("another process writes to it"))).toBe(true);
    expect(statSync(log).size).toBe(length);
    await first.close().catch(() => undefined);
    writeFileSync(log, Buffer.concat([whole, Buffer.from('{"time":1.5,"act')]));
    const second = client();
    await work(second);
    await second.close();
    expect(await verify()).not.toContain("refused");
    // What was lost is not signed for: the log says that it was gone on with.
    expect(lines().filter((line) => line["event"] === "continued")).toHaveLength(1);
  });

  test("what is no log is left as it is, and options that mean nothing are refused", async () => {
    for (const content of ["notes\n", "notes without an end", '{"a":1}\n']) {
      writeFileSync(log, content);
      await expect(client().listCollections()).rejects.toThrow(/no line of a chained log|no audit log/);
      expect(readFileSync(log, "utf8")).toBe(content);
    }
    await expect(client({ auditLog: join(folder, "no", "log") }).listCollections()).rejects.toBeInstanceOf(
      StorageError,
    );
    await expect(client({ auditKey: new Uint8Array(31) }).listCollections()).rejects.toThrow("31 bytes");
    await expect(client({ auditKey: join(folder, "none") }).listCollections()).rejects.toBeInstanceOf(
      StorageError,
    );
    expect(() => client({ auditLog: undefined })).toThrow(InvalidInput);
    expect(() => client({ auditLog: 7 })).toThrow("the path of a file");
    expect(existsSync(join(folder, "no"))).toBe(false);
  });
});
