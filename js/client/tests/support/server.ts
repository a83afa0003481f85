/** A real `ciphervec serve`, and the Python package beside it, for tests; both from the repository's .venv. */

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const BIN =
  process.env["CIPHERVEC_VENV"] ?? join(ROOT, ".venv", process.platform === "win32" ? "Scripts" : "bin");
export const SERVE = join(BIN, "ciphervec");
const PYTHON = join(BIN, "python");

/** Why there is no server to test against, or "". Those who set CIPHERVEC_TESTS=all want no test left out. */
export const missing = (() => {
  if (existsSync(SERVE)) return "";
  const why = `no ${SERVE}; \`make wheel\` installs one`;
  if (process.env["CIPHERVEC_TESTS"] === "all") throw new Error(why);
  process.stderr.write(`left out: tests against a server, ${why}\n`);
  return why;
})();

/** The Rust client's turn in a collection; tests of it are left out where `cargo test` did not build it. */
export const TURNS = join(
  process.env["CARGO_TARGET_DIR"] ?? join(ROOT, "target"),
  "debug",
  "examples",
  "turns",
);

/** A server in a child process, on a port of its own. */
export class TestServer {
  readonly folder: string;
  url = "";
  log = "";
  #process: ChildProcess | null = null;
  readonly #options: string[];

  private constructor(folder: string, options: string[]) {
    this.folder = folder;
    this.#options = options;
  }

  static async start(...options: string[]): Promise<TestServer> {
    const server = new TestServer(await mkdtemp(join(tmpdir(), "ciphervec-js-")), options);
    await server.up();
    return server;
  }

  /** Listen, again after `down` on the same port. */
  async up(): Promise<void> {
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const started = spawn(SERVE, [
      "serve",
      "--data",
      join(this.folder, "db"),
      "--listen",
      listen,
      ...this.#options,
    ]);
    this.#process = started;
    this.url = await new Promise<string>((resolve, reject) => {
      const read = (piece: Buffer) => {
        this.log += piece.toString();
        const found = /listening on (http:\/\/[0-9.:]+)/.exec(this.log.slice(before));
        if (found?.[1] !== undefined) resolve(found[1]);
      };
      const before = this.log.length;
      started.stderr.on("data", read);
      started.stdout.on("data", read);
      started.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${this.log}`)));
    });
  }

  async down(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const ended = new Promise((resolve) => this.#process?.on("exit", resolve));
    this.#process?.kill(signal);
    await ended;
  }

  async stop(): Promise<void> {
    await this.down("SIGTERM");
    await rm(this.folder, { recursive: true, force: true });
  }
}

const PRELUDE = `
import json, sys, warnings
import numpy as np
import ciphervec
from ciphervec.http import *
warnings.simplefilter("ignore")
given = json.load(open(sys.argv[1]))
def numbers(seed, rows, dimension):
    return np.random.default_rng(seed).standard_normal((rows, dimension)).astype(np.float32)
def client(keys, **more):
    return ciphervec.HttpClient(given["url"], keys=keys, state=None, **more)
`;

/** Run Python with the package: what `result` is at its end, by way of JSON. `given` is a dict there. */
export async function python<T>(given: { [name: string]: unknown }, code: string): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "ciphervec-py-"));
  try {
    await writeFile(join(folder, "given.json"), JSON.stringify(given));
    const program = `${PRELUDE}\n${code}\nprint(json.dumps(result))`;
    const { stdout } = await promisify(execFile)(PYTHON, ["-c", program, join(folder, "given.json")], {
      maxBuffer: 1 << 28,
      env: { ...process.env, CIPHERVEC_STATE: folder },
    });
    return JSON.parse(stdout) as T;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Vectors that look random and are the same each time. */
export function vectors(seed: number, rows: number, dimension: number): Float32Array[] {
  let state = seed * 2_654_435_761 + 1;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
  const normal = () => Math.sqrt(-2 * Math.log(next() + 1e-12)) * Math.cos(2 * Math.PI * next());
  return Array.from({ length: rows }, () => Float32Array.from({ length: dimension }, normal));
}

/** The ids of the closest rows by cosine, computed in the clear. */
export function closest(rows: readonly Float32Array[], query: Float32Array, count: number): number[] {
  const dot = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
  const score = rows.map((row) => dot(row, query) / Math.sqrt(dot(row, row) * dot(query, query)));
  return score
    .map((_, i) => i)
    .sort((a, b) => (score[b] as number) - (score[a] as number))
    .slice(0, count);
}
