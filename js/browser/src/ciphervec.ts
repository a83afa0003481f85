/** Runs `ciphervec serve` on a folder: starts, stops and kills it, and starts it again. For tests and benches. */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const PATIENCE_MS = 20_000;

/** The program, of CIPHERVEC_VENV or .venv; undefined where there is none. */
export function command(): string | undefined {
  const folder = process.env["CIPHERVEC_VENV"] ?? join(ROOT, ".venv", "bin");
  const found = join(folder, "ciphervec");
  return existsSync(found) ? found : undefined;
}

/** The same. Throws where there is none. */
export function needed(): string {
  const found = command();
  if (found === undefined) throw new Error("no ciphervec in .venv; `make wheel` installs it");
  return found;
}

/** Run the program; what it printed. */
export function run(words: string[], environment: { [name: string]: string } = {}): string {
  return execFileSync(needed(), words, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...environment },
  });
}

/** A server of collections in a folder of its own. */
export class CiphervecServer implements AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  readonly #options: string[];
  #process: ChildProcess | null = null;

  private constructor(folder: string, port: number, options: string[]) {
    this.folder = folder;
    this.port = port;
    this.#options = options;
  }

  static async begin(...options: string[]): Promise<CiphervecServer> {
    const folder = mkdtempSync(join(tmpdir(), "ciphervec-server-"));
    const server = new CiphervecServer(folder, await freePort(), options);
    await server.start();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Start it, on the port that it had before. */
  async start(): Promise<void> {
    const words = ["serve", "--data", this.folder, "--listen", `127.0.0.1:${this.port}`, ...this.#options];
    const started = spawn(needed(), words, { stdio: ["ignore", "ignore", "pipe"] });
    this.#process = started;
    let said = "";
    started.stderr?.on("data", (piece: Buffer) => {
      said = (said + piece.toString()).slice(-4000);
    });
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      if (started.exitCode !== null)
        throw new Error(`\`ciphervec serve\` ended with ${started.exitCode}:\n${said}`);
      const answer = await fetch(`${this.url}/healthz`).catch(() => null);
      if (answer?.ok) return;
      if (Date.now() > end)
        throw new Error(`\`ciphervec serve\` did not answer in ${PATIENCE_MS} ms:\n${said}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** End it as an operator does, or as a failing machine does. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const running = this.#process;
    this.#process = null;
    if (running === null || running.exitCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill(signal);
    await ended;
  }

  /** Make a token for collections of these names; what clients show. */
  token(collection: string, ...verbs: string[]): { secret: string; id: string } {
    return this.limited(collection, [], ...verbs);
  }

  /** The same with options of `ciphervec token create` that limit it. */
  limited(collection: string, limits: string[], ...verbs: string[]): { secret: string; id: string } {
    const name = randomUUID();
    const verbOptions = verbs.flatMap((verb) => ["--permission", verb]);
    const scope = ["--collection", collection, ...verbOptions, ...limits];
    const made = ["token", "create", "--data", this.folder, "--name", name, "--expires", "1h", ...scope];
    const secret = run(made).trim();
    const listed = JSON.parse(run(["token", "list", "--data", this.folder, "--json"])) as {
      id: string;
      name: string;
    }[];
    const found = listed.find((one) => one.name === name);
    if (found === undefined) throw new Error("`ciphervec token list` does not show the token that was made");
    return { secret, id: found.id };
  }

  revoke(id: string): void {
    run(["token", "revoke", "--data", this.folder, id]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
