/** A proxy before a server that does what a test says: cuts, delays, alters. */

import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Exchange {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Uint8Array;
}

export interface Answered {
  status: number;
  headers: { [name: string]: string };
  body: Uint8Array;
  /** Whether the connection breaks off after it, and more was announced. */
  broken?: boolean;
}

/** What becomes of an answer: it is given, perhaps altered, or the connection is cut. */
export type Fate = (exchange: Exchange, answer: () => Promise<Answered>) => Promise<Answered | "cut">;

export class TestProxy {
  readonly seen: Exchange[] = [];
  fate: Fate = (_, answer) => answer();
  readonly #server: Server;
  readonly #target: string;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer(async (request, response) => {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const exchange: Exchange = {
        method: request.method ?? "GET",
        path: request.url ?? "/",
        headers: request.headers,
        body: new Uint8Array(Buffer.concat(pieces)),
      };
      this.seen.push(exchange);
      const answer = async (): Promise<Answered> => {
        const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
        const got = await fetch(this.#target + exchange.path, {
          method: exchange.method,
          headers: headers as { [name: string]: string },
          body: ["GET", "HEAD"].includes(exchange.method) ? null : exchange.body.slice(),
        });
        return {
          status: got.status,
          headers: Object.fromEntries(got.headers),
          body: new Uint8Array(await got.arrayBuffer()),
        };
      };
      const fate = await this.fate(exchange, answer).catch(() => "cut" as const);
      if (fate === "cut") {
        request.socket.destroy();
        return;
      }
      const { "transfer-encoding": _, "content-length": __, ...headers } = fate.headers;
      const length = fate.body.length + (fate.broken ? 1 : 0);
      response.writeHead(fate.status, {
        ...headers,
        ...(fate.status !== 204 && fate.status !== 304 && { "content-length": length }),
      });
      if (fate.broken) response.write(fate.body, () => request.socket.destroySoon());
      else response.end(fate.body);
    });
  }

  static async before(target: string): Promise<TestProxy> {
    const proxy = new TestProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
