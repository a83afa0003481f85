/** Options that a method doesn't know are refused by name before anything is asked; results of the owner's own are not written as JSON. */

import { describe, expect, test } from "vitest";
import { Client } from "../../src/client.js";
import { Collection } from "../../src/collection.js";
import { Engine } from "../../src/engine.js";
import { InvalidInput } from "../../src/errors.js";
import { isOwn } from "../../src/ingest/bytes.js";
import { Identity, Keys } from "../../src/keys.js";
import { known } from "../../src/known.js";
import { LookupClient, TextClient } from "../../src/lookup.js";
import type { QueryResult } from "../../src/types.js";
import { buffersOf } from "../../src/worker/messages.js";
import { Writer } from "../../src/writer.js";

const asked: unknown[][] = [];
const answers: { [method: string]: unknown } = {};
const engine = {
  call: async (...call: unknown[]) => {
    asked.push(call);
    return answers[call[1] as string];
  },
} as unknown as Engine;
const docs = new Collection(engine, { handle: 1, facts: {} as never });
const v = [1, 0, 0];

type Loose = (options: never) => unknown;
const slips: [string, Loose, object, string][] = [
  ["query filter", docs.query.bind(docs), { queryEmbeddings: v, filter: { t: 1 } }, 'no option "filter"'],
  ["query wher", docs.query.bind(docs), { queryEmbeddings: v, wher: { t: 1 } }, 'did you mean "where"'],
  ["query nResult", docs.query.bind(docs), { queryEmbeddings: v, nResult: 1 }, 'did you mean "nResults"'],
  ["query n_results", docs.query.bind(docs), { queryEmbeddings: v, n_results: 1 }, 'did you mean "nResults"'],
  ["query noise", docs.query.bind(docs), { queryEmbeddings: v, noise: 1 }, 'no option "noise"'],
  ["get", docs.get.bind(docs), { wher: { t: 1 } }, 'did you mean "where"'],
  ["get id", docs.get.bind(docs), { id: "a" }, 'did you mean "ids"'],
  ["delete", docs.delete.bind(docs), { ids: ["a"], wher: {} }, 'did you mean "where"'],
  ["add", docs.add.bind(docs), { embeddings: v, metadata: [{}] }, 'did you mean "metadatas"'],
  ["upsert", docs.upsert.bind(docs), { embeddings: v, document: ["a"] }, 'did you mean "documents"'],
  ["update", docs.update.bind(docs), { ids: ["a"], remove: ["b"] }, 'no option "remove"'],
  ["peek", ((o: never) => docs.peek(1, o)) as Loose, { limit: 1 }, "peek has no option"],
  ["count", docs.count.bind(docs) as Loose, { where: {} }, "count has no option"],
  ["has", ((o: never) => docs.has([1], o)) as Loose, { id: 1 }, "has has no option"],
  ["refresh", docs.refresh.bind(docs) as Loose, { now: 1 }, "refresh has no option"],
  ["info", docs.info.bind(docs) as Loose, { full: 1 }, "info has no option"],
  ["writerCard", ((o: never) => docs.writerCard("w", o)) as Loose, { name: 1 }, "writerCard has no option"],
  ["verify", docs.verify.bind(docs) as Loose, { deep: 1 }, "verify has no option"],
  ["purge", docs.purge.bind(docs) as Loose, { all: 1 }, "purge has no option"],
  ["optimize", docs.optimize.bind(docs) as Loose, { resea: true }, 'did you mean "reseal"'],
  ["adopt", docs.adopt.bind(docs) as Loose, { take_over: true }, 'did you mean "takeOver"'],
  ["discard", docs.discard.bind(docs) as Loose, { segment: ["a"] }, 'did you mean "segments"'],
  ["rotateKeys", docs.rotateKeys.bind(docs) as Loose, { key: 1 }, 'did you mean "keys"'],
  ["rotateQueryKey", docs.rotateQueryKey.bind(docs) as Loose, { epoch: 1 }, "rotateQueryKey has no option"],
  ["add onzero", docs.add.bind(docs), { embeddings: v, onzero: "skip" }, 'did you mean "onZero"'],
  ["not an object", docs.query.bind(docs), [v] as never, "takes an object of options"],
  ["Keys.generate", Keys.generate.bind(Keys) as Loose, { passphrase: "a" }, "Keys.generate has no option"],
  [
    "Keys.fromFile",
    ((o: never) => Keys.fromFile(new Uint8Array(1), o)) as Loose,
    { pass: "a" },
    'no option "pass"',
  ],
  ["Keys.fromPhrase", ((o: never) => Keys.fromPhrase("", o)) as Loose, { key: "a" }, 'no option "key"'],
  [
    "Keys.openShared",
    ((o: never) => Keys.openShared(new Uint8Array(1), {} as Identity, o)) as Loose,
    { id: 1 },
    'no option "id"',
  ],
  ["Identity.generate", ((o: never) => Identity.generate("n", o)) as Loose, { n: 1 }, 'no option "n"'],
  [
    "Identity.fromFile",
    ((o: never) => Identity.fromFile(new Uint8Array(1), o)) as Loose,
    { n: 1 },
    'no option "n"',
  ],
  [
    "Writer.open",
    ((o: never) => Writer.open(new Uint8Array(1), o)) as Loose,
    { fingerprnt: "" },
    'did you mean "fingerprint"',
  ],
  [
    "LookupClient",
    ((o: never) => LookupClient.generate(new Uint8Array(1), o)) as Loose,
    { n: 1 },
    'no option "n"',
  ],
  [
    "TextClient",
    ((o: never) => TextClient.fromFile(new Uint8Array(1), new Uint8Array(1), o)) as Loose,
    { n: 1 },
    'no option "n"',
  ],
  ["Engine", async (o: never) => new Engine(o), { workers: 1 }, 'did you mean "worker"'],
  [
    "Client",
    async (o: never) => new Client(o),
    { url: "http://localhost", tokn: "a" },
    'did you mean "token"',
  ],
];

describe("unknown options", () => {
  test.each(slips)("%s", async (_, method, options, says) => {
    asked.length = 0;
    const call = Promise.resolve().then(() => method(options as never));
    await expect(call).rejects.toThrow(says);
    await expect(call).rejects.toBeInstanceOf(InvalidInput);
    expect(asked).toEqual([]);
  });

  test("those of a client's methods", async () => {
    const client = new Client({ url: "http://localhost", engine });
    answers.openClient = { handle: 1 };
    for (const [method, options] of [
      [client.createCollection, { name: "a", dimension: 3, mertic: "l2" }],
      [client.createCollection, { name: "a", dim: 3 }],
      [client.getOrCreateCollection, { name: "a", dimension: 3, modes: "open" }],
      [client.getCollection, { name: "a", mode: "open" }],
      [client.listCollections, { name: "a" }],
      [client.deleteCollection, { name: "a", missingOk: true }],
    ] as [Loose, object][])
      await expect(method.call(client, options as never)).rejects.toThrow(/has no option "/);
  });

  test("known ones pass", async () => {
    answers.count = 3;
    await expect(docs.count({ onProgress: () => undefined })).resolves.toBe(3);
    expect(known({ a: 1 }, { a: true, b: true }, "x")).toEqual({ a: 1 });
  });
});

test("what is nested too deep is refused before it crosses to the Worker, depth and limit said", async () => {
  const deep = (levels: number): object => {
    let value: object = { a: 1 };
    for (let i = 1; i < levels; i++) value = i % 2 ? { $and: [value] } : { $not: value };
    return value;
  };
  const nested = (levels: number): object => (levels === 1 ? { a: 1 } : { a: nested(levels - 1) });
  asked.length = 0;
  const loop: { a?: object } = {};
  loop.a = loop;
  for (const where of [deep(500), nested(101), loop, nested(9000)])
    for (const call of [
      docs.get({ where: where as never }),
      docs.query({ queryEmbeddings: v, whereDocument: where as never }),
      docs.add({ embeddings: v, metadatas: [where as never] }),
      docs.update({ ids: [1], metadatas: where as never }),
    ])
      await expect(call).rejects.toThrow(/nested [0-9]+( or more)? deep; the limit is 100/);
  expect(asked).toEqual([]);
  answers.get = { ownersOnly: false };
  await docs.get({ where: nested(100) as never });
  expect(asked.length).toBe(1);
});

test("results of the key owner's own are no JSON until that is asked for", async () => {
  const own = (): QueryResult => ({
    ids: [["a"]],
    distances: [[0.5]],
    scores: [[0.5]],
    checked: true,
    metadatas: null,
    documents: null,
    embeddings: [[new Float32Array(2)]],
    include: ["scores", "distances"],
    ownersOnly: true,
    flooding: null,
  });
  answers.query = own();
  const found = await docs.query({ queryEmbeddings: v });
  for (const part of [found, { ...found }, [found], found.scores, found.scores?.[0], found.embeddings])
    expect(() => JSON.stringify(part)).toThrow('audience: "owner"');
  expect(found).toEqual(own());
  expect(structuredClone({ ...found })).toEqual(own());
  expect(JSON.stringify([found.ids, found.scores?.[0]?.[0]])).toBe('[[["a"]],0.5]');
  answers.query = own();
  const named = await docs.query({ queryEmbeddings: v, audience: "owner" });
  expect(JSON.parse(JSON.stringify(named)).scores).toEqual([[0.5]]);
  answers.query = { ...own(), ownersOnly: false };
  expect(JSON.stringify(await docs.query({ queryEmbeddings: v }))).toContain("0.5");
});

test("no buffer of the caller's is taken away", async () => {
  asked.length = 0;
  const ids = Int32Array.of(1, 2);
  const rows = Float32Array.of(1, 2, 3, 4);
  answers.add = [];
  await docs.add({ ids: ids as never, embeddings: rows, metadatas: [{ a: ids as never }, null] });
  const taken = buffersOf(asked[0]?.[2]).filter(isOwn);
  expect(taken.length).toBe(1);
  expect(taken).not.toContain(ids.buffer);
  expect(taken).not.toContain(rows.buffer);
});
