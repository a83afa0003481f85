/** A real server with rows in it, and pages of the console in Chromium, which end with the test. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Profile, program } from "@ciphervec/browser/src/chromium.ts";
import { CiphervecServer, command } from "@ciphervec/browser/src/ciphervec.ts";
import { Client, Keys } from "@ciphervec/client";
import axe from "axe-core";
import type { Page, Request } from "playwright-core";

const DIST = fileURLToPath(new URL("../../dist", import.meta.url));
const SHOTS = fileURLToPath(new URL("../../test-results", import.meta.url));
const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
};

/** Why these tests cannot run here; undefined where they can. */
export function missing(): string | undefined {
  if (program() === undefined) return "no Chromium; on Debian: apt-get install chromium";
  if (command() === undefined) return "no .venv with the package: make test";
  if (!existsSync(join(DIST, "index.html"))) return "the console is not built: npm run build";
  return undefined;
}

export const ROWS = 300;
export const D = 32;
export const PASSPHRASE = "correct horse battery";
export const NAME = "docstrings";
/** What stands in every document, and must never be seen on the way. */
export const SECRET = "the quick brown fox";

/** Numbers that are the same every time. */
export function vectorsOf(rows: number, seed: number): Float32Array[] {
  let state = BigInt(seed) * 0x9e3779b97f4a7c15n;
  const next = () => {
    state = BigInt.asUintN(64, state * 6364136223846793005n + 1442695040888963407n);
    return Number(state >> 40n) / 2 ** 23 - 1;
  };
  return Array.from({ length: rows }, () => Float32Array.from({ length: D }, next));
}

/** A server with a collection, its owner's key file, and what is in it. */
export class Filled implements AsyncDisposable {
  readonly server: CiphervecServer;
  readonly operator: string;
  readonly keyFile: Uint8Array;
  readonly vectors: Float32Array[];
  readonly ids: string[];
  readonly documents: string[];

  private constructor(server: CiphervecServer, operator: string, keyFile: Uint8Array) {
    this.server = server;
    this.operator = operator;
    this.keyFile = keyFile;
    this.vectors = vectorsOf(ROWS, 7);
    this.ids = this.vectors.map((_, row) => `passage ${row}`);
    this.documents = this.vectors.map((_, row) => `${SECRET}, in its ${row}th telling`);
  }

  static async begin(...options: string[]): Promise<Filled> {
    const server = await CiphervecServer.begin(...options);
    const operator = server.token("*", "admin").secret;
    await server.stop();
    await server.start(); // with the token file that is there now
    const keys = await Keys.generate();
    const filled = new Filled(server, operator, await keys.toFile({ passphrase: PASSPHRASE }));
    const client = new Client({ url: server.url, token: operator, keys });
    const collection = await client.createCollection({ name: NAME, dimension: D });
    const { ids, vectors, documents } = filled;
    const metadatas = ids.map((_, row) => ({ chapter: row % 7 }));
    await collection.add({
      ids: ids.slice(0, 200),
      embeddings: vectors.slice(0, 200),
      documents: documents.slice(0, 200),
      metadatas: metadatas.slice(0, 200),
    });
    await collection.add({
      ids: ids.slice(200),
      embeddings: vectors.slice(200),
      documents: documents.slice(200),
      metadatas: metadatas.slice(200),
    });
    await client.createCollection({ name: "empty", dimension: 8 });
    await client.close();
    await keys.dispose();
    return filled;
  }

  /** Ids by cosine to a vector, the closest first, over what was put in. */
  ranked(vector: Float32Array): string[] {
    const cosine = (row: Float32Array) => {
      const dot = row.reduce((sum, value, at) => sum + value * (vector[at] ?? 0), 0);
      return dot / Math.hypot(...row);
    };
    const scores = this.vectors.map(cosine);
    return this.ids
      .map((id, row) => ({ id, score: scores[row] ?? 0 }))
      .sort((a, b) => b.score - a.score)
      .map(({ id }) => id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

interface Look {
  viewport?: { width: number; height: number };
  colorScheme?: "light" | "dark";
}

const WIDE = { width: 1200, height: 800 };
/** One browser for all tests of a file: to start one takes longer than most tests. */
let profile: Promise<Profile> | null = null;

/** Ends the browser, if one was begun. */
export async function endBrowser(): Promise<void> {
  const begun = await profile;
  profile = null;
  await begun?.[Symbol.asyncDispose]();
}

/** A page of the console, with all that it asked for and all that its policy refused. */
export class Shown implements AsyncDisposable {
  readonly page: Page;
  readonly requests: Request[] = [];
  /** Errors and warnings of the page, but for answers that say no. */
  readonly complaints: string[] = [];

  private constructor(page: Page) {
    this.page = page;
  }

  static async begin(url: string, { viewport = WIDE, colorScheme = "light" }: Look = {}): Promise<Shown> {
    profile ??= Profile.begin();
    const { context } = await profile;
    const page = await context.newPage();
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme });
    const shown = new Shown(page);
    page.on("request", (request) => shown.requests.push(request));
    page.on("pageerror", (error) => shown.complaints.push(String(error)));
    page.on("console", (message) => {
      if (
        ["error", "warning"].includes(message.type()) &&
        !/status of (4|5)\d\d|ERR_CONNECTION/.test(message.text())
      ) {
        shown.complaints.push(message.text());
      }
    });
    await shown.#serveBuilt(url);
    await page.goto(url);
    return shown;
  }

  /** Where the server's binary was made with another build, or none: its own headers, and the files of this tree's. */
  async #serveBuilt(url: string): Promise<void> {
    const answer = await fetch(url);
    const headers = Object.fromEntries(answer.headers);
    if (headers["content-security-policy"] === undefined) {
      throw new Error("the server has no console: it is an older one");
    }
    if ((await answer.text()) === readFileSync(join(DIST, "index.html"), "utf8")) return;
    await this.page.route(
      (asked) => asked.origin === url && (asked.pathname === "/" || asked.pathname.startsWith("/assets/")),
      async (route) => {
        const { pathname } = new URL(route.request().url());
        const file = join(DIST, pathname === "/" ? "index.html" : pathname);
        const type = TYPES[extname(file)];
        if (type === undefined || !existsSync(file)) return route.fulfill({ status: 404 });
        return route.fulfill({ headers: { ...headers, "content-type": type }, body: readFileSync(file) });
      },
    );
  }

  async signIn(token: string): Promise<void> {
    await this.page.getByLabel("Token").fill(token);
    await this.page.getByRole("button", { name: "Sign in" }).click();
    await this.page.getByRole("heading", { name: "Collections", level: 1 }).waitFor();
  }

  async go(hash: string): Promise<void> {
    await this.page.evaluate((to) => {
      location.hash = to;
    }, hash);
  }

  async dropKey(file: Uint8Array, passphrase: string): Promise<void> {
    const field = this.page.getByLabel(/Drop a key file/);
    await field.setInputFiles({
      name: "my.key",
      mimeType: "application/octet-stream",
      buffer: Buffer.from(file),
    });
    await this.page.getByLabel("Its passphrase").fill(passphrase);
    await this.page.getByRole("button", { name: "Open", exact: true }).click();
  }

  /** What axe finds wrong, in words. */
  async violations(): Promise<string[]> {
    // Through the debugger, which no policy of the page's is asked about.
    await this.page.evaluate(axe.source);
    const found = await this.page.evaluate(async () => {
      const { axe } = globalThis as unknown as {
        axe: {
          run: () => Promise<{
            violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
          }>;
        };
      };
      return (await axe.run()).violations;
    });
    return found.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html}\n${failureSummary}`),
    );
  }

  /** A picture for people to look at. */
  async shot(name: string): Promise<void> {
    mkdirSync(SHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.close();
  }
}
