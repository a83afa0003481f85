/**
 * Serves static files and forwards to a server, under one origin. It can cut, flip, delay or truncate the server's
 * answers. For tests and benches.
 */

import { createReadStream, existsSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";

const TYPES: { [ending: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** What docs/browser.md asks of a page that holds keys. */
export const POLICY =
  "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'; " +
  "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A request as it passes; the body of its answer may be changed, or the answer cut off. */
export interface Passing {
  method: string;
  path: string;
  status: number;
  /** How many requests to this path came before. */
  turn: number;
}

/** Gives the bytes to pass on: the same, others, fewer; null hangs up without an answer. */
export type Tamper = (body: Buffer, passing: Passing) => Buffer | null;

/** A request that came, with its length. */
export interface Came {
  method: string;
  path: string;
  bytes: number;
}

/** Static files and a proxy under one origin. */
export class Pages implements AsyncDisposable {
  readonly #folder: string;
  readonly #target: () => string;
  readonly #policy: string;
  readonly #server: Server;
  readonly #turns = new Map<string, number>();
  /** What changes answers, if anything does. */
  tamper: Tamper | null = null;
  /** Is asked before a request goes on; false hangs up. */
  admit: ((method: string, path: string) => boolean | Promise<boolean>) | null = null;
  readonly came: Came[] = [];

  private constructor(folder: string, target: () => string, policy: string) {
    this.#folder = folder;
    this.#target = target;
    this.#policy = policy;
    this.#server = createServer((incoming, response) => void this.#handle(incoming, response));
  }

  static async begin(folder: string, target: () => string, policy = POLICY): Promise<Pages> {
    const pages = new Pages(folder, target, policy);
    await new Promise<void>((resolve) => pages.#server.listen(0, "127.0.0.1", resolve));
    return pages;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? "/";
    if (!path.startsWith("/v1")) return this.#file(path, response);
    if (this.admit !== null && !(await this.admit(incoming.method ?? "", path))) {
      response.destroy();
      return;
    }
    this.#pass(incoming, response, path);
  }

  #file(path: string, response: ServerResponse): void {
    const name = normalize(decodeURIComponent(path.replace(/[?#].*/, "")));
    const file = join(this.#folder, name.endsWith("/") ? `${name}index.html` : name);
    if (name.startsWith("..") || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, {
      "content-type": TYPES[extname(file)] ?? "application/octet-stream",
      "content-security-policy": this.#policy,
      "x-content-type-options": "nosniff",
      "cache-control": "no-store",
    });
    createReadStream(file).pipe(response);
  }

  #pass(incoming: IncomingMessage, response: ServerResponse, path: string): void {
    const target = new URL(this.#target());
    const { origin: _, ...headers } = incoming.headers;
    const came: Came = { method: incoming.method ?? "", path, bytes: 0 };
    this.came.push(came);
    const turn = this.#turns.get(path) ?? 0;
    this.#turns.set(path, turn + 1);
    const outgoing = request(
      {
        host: target.hostname,
        port: target.port,
        method: incoming.method,
        path,
        headers: { ...headers, host: target.host },
      },
      (answer) => {
        const status = answer.statusCode ?? 502;
        const { tamper } = this;
        if (tamper === null) {
          response.writeHead(status, answer.headers);
          answer.pipe(response);
          return;
        }
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => pieces.push(piece));
        answer.on("end", () => {
          const body = tamper(Buffer.concat(pieces), { method: came.method, path, status, turn });
          if (body === null) {
            response.destroy();
            return;
          }
          const { "content-length": __, "transfer-encoding": ___, ...rest } = answer.headers;
          const none = status === 204 || came.method === "HEAD";
          response.writeHead(status, none ? rest : { ...rest, "content-length": body.length });
          response.end(none ? undefined : body);
        });
      },
    );
    // A server that is gone looks to the page as if its connection was refused.
    outgoing.on("error", () => response.destroy());
    incoming.on("data", (piece: Buffer) => {
      came.bytes += piece.length;
    });
    response.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
