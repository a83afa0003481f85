/** The scripts of vectors/client that every client runs: the same calls, results and errors. */

import { readFileSync } from "node:fs";
import * as client from "@ciphervec/client";
import { Client, type Collection, Keys } from "@ciphervec/client";
import { beforeAll, describe, expect, test } from "vitest";
import { missing, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

interface Step {
  call: string;
  with: { [name: string]: unknown };
  gives?: unknown;
  leaves?: { [name: string]: number };
  raises?: string;
  says?: string;
}

interface Script {
  name: string;
  create: { routing?: object; multi?: object; [name: string]: unknown };
  steps: Step[];
}

const FILE = new URL("../../../../vectors/client/calls.json", import.meta.url);
const LONG = /(?<=[[:,\s])-?\d{16,}(?=[\],}\s])/g;
const { scripts } = JSON.parse(readFileSync(FILE, "utf8").replace(LONG, '{"$long":"$&"}')) as {
  scripts: Script[];
};

/** Keys that no collection here is made with, by their numbers. */
const others = new Map<number, Keys>();

/** With the numbers that JSON has none for, and those that JavaScript has as bigints. */
function read(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(read);
  if (typeof value !== "object" || value === null) return value;
  const { $float, $long, $keys } = value as { $float?: string; $long?: string; $keys?: number };
  if ($keys !== undefined) return others.get($keys);
  if ($long !== undefined) return BigInt($long);
  if ($float !== undefined)
    return { inf: Infinity, "-inf": -Infinity, nan: Number.NaN }[$float as "inf" | "-inf" | "nan"];
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, read(one)]));
}

/** With names in camel case, those of parts too. */
const named = (options: object) =>
  Object.fromEntries(
    Object.entries(options).map(([name, one]) => [
      camel(name),
      name === "include" ? (one as string[]).map(camel) : one,
    ]),
  );

const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

async function check(docs: Collection, step: Step): Promise<void> {
  const options = named(read(step.with) as object);
  const method = (docs as unknown as { [name: string]: (options: object) => Promise<unknown> })[
    camel(step.call)
  ];
  const call = (method as (options: object) => Promise<unknown>).call(docs, options);
  if (step.raises !== undefined) {
    const error = await call.then(
      () => null,
      (caught: Error) => caught,
    );
    const kinds = step.raises.split("|").map((name) => (client as { [name: string]: unknown })[name]);
    expect(
      kinds.some((kind) => typeof kind === "function" && error instanceof kind),
      `${error}`,
    ).toBe(true);
    const says = (step.says ?? "").split("|");
    expect(
      says.some((one) => error?.message.includes(one)),
      `${error}`,
    ).toBe(true);
    return;
  }
  const found = await call;
  const { rows, segments, epoch } = await docs.info();
  const deleted = segments.reduce((sum, one) => sum + one.deleted, 0);
  expect({ count: rows, segments: segments.length, deleted, epoch }).toMatchObject(step.leaves ?? {});
  if (typeof step.gives !== "object" || step.gives === null || Array.isArray(step.gives)) {
    if (step.gives !== undefined) expect(found).toEqual(read(step.gives));
    return;
  }
  for (const [part, right] of Object.entries(read(step.gives) as object)) {
    const came = (found as { [part: string]: unknown })[camel(part)];
    if (["scores", "distances", "embeddings", "multi_embeddings"].includes(part)) close(came, right);
    else expect(plain(came)).toEqual(right);
  }
}

/** Numbers, in lists of lists, to within what sealing rounds. */
function close(came: unknown, right: unknown): void {
  if (typeof right === "number") {
    expect(came).toBeCloseTo(right, 2);
    return;
  }
  (right as unknown[]).forEach((one, i) => {
    close((came as ArrayLike<unknown>)[i], one);
  });
}

/** Sparse vectors with lists in place of typed arrays. */
function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return Array.from(value as Float32Array);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null || !("indices" in value && "values" in value)) return value;
  return { indices: plain(value.indices), values: plain(value.values) };
}

describe.skipIf(missing !== "")("conformance", () => {
  let server: TestServer;
  let keys: Keys;

  withServer((started, made) => {
    [server, keys] = [started, made];
  });
  beforeAll(async () => {
    for (const number of [9, 10]) others.set(number, await Keys.generate());
  });

  test.each(scripts.map((script, i) => [script.name, script, i] as const))("%s", async (_, script, i) => {
    const opened = new Client({ url: server.url, keys, storage: "memory", onWarning: () => undefined });
    const { routing, multi } = script.create;
    const choices = {
      ...script.create,
      ...(routing && { routing: named(routing) }),
      ...(multi && { multi: named(multi) }),
    };
    const docs = await opened.createCollection({ name: `script-${i}`, ...choices } as never);
    for (const [number, step] of script.steps.entries())
      await check(docs, step).catch((error: Error) => {
        error.message = `step ${number}, ${JSON.stringify(step)}: ${error.message}`;
        throw error;
      });
  });
});
