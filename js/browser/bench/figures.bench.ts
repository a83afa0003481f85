/**
 * Compares Chromium with the native module on the same work in the same minutes, and stores figures of both with their
 * ratios.
 */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import type { Measured } from "../page/bench-worker.ts";
import { Profile } from "../src/chromium.ts";
import { Pages } from "../src/pages.ts";
import { Evaluator, type NativeTimes, type Times } from "./native.ts";

const ROWS = Number(process.env["CIPHERVEC_BENCH_ROWS"] ?? 100_000);
const DIMENSION = 512;
const REPEATS = 9;
const COLD_STARTS = 5;
const MODES = ["sealed-index", "sealed"] as const;
const BUILT = fileURLToPath(new URL("../test-results/page", import.meta.url));
const RESULTS =
  process.env["CIPHERVEC_RESULTS"] ?? fileURLToPath(new URL("../test-results", import.meta.url));

interface Record {
  what: string;
  mode?: string;
  unit: string;
  page: number;
  native?: number;
  portable?: number;
  /** How many times as slow as the native module the page is. */
  ratio?: number;
  ratio_portable?: number;
}

it("measures", async () => {
  using evaluator = await Evaluator.begin(ROWS, DIMENSION);
  await using pages = await Pages.begin(BUILT, () => evaluator.url);
  const before = evaluator.native();
  const portable = evaluator.native("portable");
  const records: Record[] = [await ready(pages.url)];
  let version = "";
  let backend = "";
  {
    await using profile = await Profile.begin();
    version = await profile.version();
    const page = await profile.context.newPage();
    await page.goto(`${pages.url}/bench.html`);
    for (const mode of MODES) {
      const measured = await page.evaluate(([mode, repeats]) => window.measure(mode, repeats), [
        mode,
        REPEATS,
      ] as const);
      ({ backend } = measured);
      records.push(...compared(mode, measured, times(before, mode), times(portable, mode)));
    }
  }
  records.push(...sizes());
  const { cpu, cores, system } = before;
  const machine = {
    cpu,
    cores,
    system,
    native_backend: before.backend,
    wasm_backend: backend,
    browser: version,
  };
  const stored = records.map((record) => ({ ...record, rows: ROWS, dim: DIMENSION, ...machine }));
  writeFileSync(`${RESULTS}/web.json`, `${JSON.stringify(stored, null, 1)}\n`);
  writeFileSync(`${RESULTS}/web.md`, markdown(machine, records));
  process.stdout.write(`${markdown(machine, records)}\n`);
  expect(records.every(({ page }) => page > 0)).toBe(true);
});

function times(found: NativeTimes, mode: string): Times {
  return found[mode] as Times;
}

/** From the beginning of a navigation in a new profile, nothing cached, to a key in the Worker. */
async function ready(url: string): Promise<Record> {
  const found: number[] = [];
  for (let turn = 0; turn < COLD_STARTS; turn++) {
    await using profile = await Profile.begin();
    const page = await profile.context.newPage();
    await page.goto(`${url}/ready.html`);
    await page.waitForFunction(() => window.ready !== undefined);
    found.push(await page.evaluate(() => window.ready ?? Number.NaN));
  }
  return { what: "from a cold page to a key", unit: "ms", page: Math.min(...found) };
}

function compared(mode: string, page: Measured, native: Times, portable: Times): Record[] {
  const slower = (what: string, field: "ms_query" | "ms_open"): Record => ({
    what,
    mode,
    unit: "ms",
    page: page[field],
    native: native[field],
    portable: portable[field],
    ratio: page[field] / native[field],
    ratio_portable: page[field] / portable[field],
  });
  return [
    slower("make a query", "ms_query"),
    slower(`open and rank ${ROWS.toLocaleString("en")} rows`, "ms_open"),
    {
      what: "seal",
      mode,
      unit: "vectors/s",
      page: page.vectors_per_second,
      native: native.vectors_per_second,
      portable: portable.vectors_per_second,
      ratio: native.vectors_per_second / page.vectors_per_second,
      ratio_portable: portable.vectors_per_second / page.vectors_per_second,
    },
    { what: "an answer", mode, unit: "bytes", page: page.response_bytes },
  ];
}

/** What a page loads of the package, gzipped: a wasm, and the code of its Worker, whole or for searching alone. */
function sizes(): Record[] {
  const assets = `${BUILT}/assets`;
  // Of several modules a page loads one: the one that its engine takes.
  const of = (pattern: RegExp) =>
    readdirSync(assets)
      .filter((name) => pattern.test(name))
      .map((name) => gzipSync(readFileSync(`${assets}/${name}`), { level: 9 }).length)
      .reduce((largest, bytes) => Math.max(largest, bytes), 0);
  return [
    { what: "wasm, gzipped", unit: "bytes", page: of(/^ciphervec_(simd_)?bg.*\.wasm$/) },
    { what: "JavaScript of the Worker, gzipped", unit: "bytes", page: of(/^browser-.*\.js$/) },
    { what: "wasm of search, gzipped", unit: "bytes", page: of(/^ciphervec_search_(simd_)?bg.*\.wasm$/) },
    { what: "JavaScript of its Worker, gzipped", unit: "bytes", page: of(/^search-.*\.js$/) },
  ];
}

function markdown(machine: { [field: string]: string | number }, records: readonly Record[]): string {
  const short = (value: number | undefined) =>
    value === undefined ? "" : value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
  const times = (value: number | undefined) => (value === undefined ? "" : `${value.toPrecision(2)}×`);
  const rows = records.map(({ what, mode, unit, page, native, portable, ratio, ratio_portable }) =>
    [
      mode === undefined ? what : `${what}, \`${mode}\``,
      `${short(page)} ${unit}`,
      short(native),
      times(ratio),
      short(portable),
      times(ratio_portable),
    ].join(" | "),
  );
  return [
    `${machine["browser"]} (${machine["wasm_backend"]}), beside the native module (${machine["native_backend"]}), one thread each, ${machine["cpu"]}, ` +
      `${machine["cores"]} cores; ${DIMENSION} dimensions, the fastest of ${REPEATS} runs.`,
    "",
    "| | in the page | native | ratio | native, portable | ratio |",
    "|---|---:|---:|---:|---:|---:|",
    ...rows.map((row) => `| ${row} |`),
    "",
  ].join("\n");
}
