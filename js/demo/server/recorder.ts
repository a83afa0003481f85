/**
 * Records the page's requests on their way to `ciphervec serve`, and shows at /seen what anybody on the wire can see.
 * Holds no key.
 */

import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { Connect, Plugin } from "vite";

/** Bytes of every body that are shown. */
const SHOWN = 192;
const SAMPLE = 512;

/** Bytes of one direction: how many, the first of them, and how evenly all of them are spread. */
export interface Bytes {
  length: number;
  head: string;
  /** Shannon entropy in bits a byte; of random bytes nearly 8. */
  entropy: number;
}

/** One request as it passed by. */
export interface Seen {
  number: number;
  method: string;
  path: string;
  status: number;
  up: Bytes;
  down: Bytes;
  /** Milliseconds from the last byte up to the first one down. */
  serverMs: number;
}

/** Some of what lies on the server's disk. */
export interface Disk {
  file: string;
  length: number;
  offset: number;
  sample: string;
}

/** Counts bytes as they pass. */
class Counter {
  #length = 0;
  #head = Buffer.alloc(0);
  readonly #counts = new Float64Array(256);

  take(piece: Buffer): void {
    this.#length += piece.length;
    if (this.#head.length < SHOWN)
      this.#head = Buffer.concat([this.#head, piece.subarray(0, SHOWN - this.#head.length)]);
    for (const byte of piece) this.#counts[byte] = (this.#counts[byte] ?? 0) + 1;
  }

  get bytes(): Bytes {
    let entropy = 0;
    for (const count of this.#counts)
      if (count > 0) entropy -= (count / this.#length) * Math.log2(count / this.#length);
    return { length: this.#length, head: this.#head.toString("hex"), entropy };
  }
}

/** A plugin of Vite that proxies /v1 to `target` and tells of it; `data` is the folder of that server, if it is of this machine. */
export function recorder(target: string, data: string | undefined): Plugin {
  const passing = new Passing(target, data);
  const use = ({ middlewares }: { middlewares: Connect.Server }) => {
    middlewares.use((request, response, next) => {
      if (!passing.handle(request, response)) next();
    });
  };
  return { name: "ciphervec-recorder", configureServer: use, configurePreviewServer: use };
}

/** The proxy itself. */
class Passing {
  readonly #target: URL;
  readonly #data: string | undefined;
  readonly #watchers = new Set<ServerResponse>();
  #number = 0;

  constructor(target: string, data: string | undefined) {
    this.#target = new URL(target);
    this.#data = data;
  }

  /** Whether the request was one of these. */
  handle(incoming: IncomingMessage, response: ServerResponse): boolean {
    const path = incoming.url ?? "/";
    if (path.startsWith("/v1/")) this.#pass(incoming, response, path);
    else if (path === "/seen") this.#watch(response);
    else if (path === "/seen/disk") this.#disk(response);
    else return false;
    return true;
  }

  #pass(incoming: IncomingMessage, response: ServerResponse, path: string): void {
    const up = new Counter();
    const down = new Counter();
    // The page's own origin and host are of no meaning to the server behind; it looks at where requests are for.
    const { origin: _, ...headers } = incoming.headers;
    let sent = performance.now();
    const outgoing = request(
      {
        host: this.#target.hostname,
        port: this.#target.port,
        method: incoming.method,
        path,
        headers: { ...headers, host: this.#target.host },
      },
      (answer) => {
        const serverMs = performance.now() - sent;
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on("data", (piece: Buffer) => down.take(piece));
        answer.pipe(response);
        answer.on("end", () => {
          this.#number += 1;
          this.#tell({
            number: this.#number,
            method: incoming.method ?? "",
            path,
            status: answer.statusCode ?? 0,
            up: up.bytes,
            down: down.bytes,
            serverMs,
          });
        });
      },
    );
    outgoing.on("error", (error) => {
      if (!response.headersSent) response.writeHead(502, { "content-type": "text/plain" });
      response.end(`the server at ${this.#target.origin} does not answer: ${error.message}`);
    });
    incoming.on("data", (piece: Buffer) => up.take(piece));
    incoming.on("end", () => {
      sent = performance.now();
    });
    response.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  }

  #watch(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(":\n\n");
    this.#watchers.add(response);
    response.on("close", () => this.#watchers.delete(response));
  }

  #tell(seen: Seen): void {
    for (const watcher of this.#watchers) watcher.write(`data: ${JSON.stringify(seen)}\n\n`);
  }

  #disk(response: ServerResponse): void {
    response.setHeader("cache-control", "no-store");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(this.#data === undefined ? null : sample(this.#data)));
  }
}

/** Bytes from the middle of the largest file, where the vectors are; null in an empty folder. */
function sample(folder: string): Disk | null {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((file) => ({ file, stat: statSync(join(folder, file), { throwIfNoEntry: false }) }))
    .filter(({ stat }) => stat?.isFile() === true && stat.size > SAMPLE)
    .sort((a, b) => (b.stat?.size ?? 0) - (a.stat?.size ?? 0));
  const [largest] = files;
  if (largest === undefined || largest.stat === undefined) return null;
  const length = largest.stat.size;
  const offset = Math.floor(Math.random() * (length - SAMPLE));
  const bytes = Buffer.alloc(SAMPLE);
  const handle = openSync(join(folder, largest.file), "r");
  readSync(handle, bytes, 0, SAMPLE, offset);
  closeSync(handle);
  return { file: largest.file, length, offset, sample: bytes.toString("hex") };
}
