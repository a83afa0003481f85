/** What the tests of a file share, for as long as they run. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Keys } from "@ciphervec/client";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { TestProxy } from "./proxy.js";
import { TestServer } from "./server.js";

/** Hands over a server and an owner's keys before the first test, and ends both after the last. */
export function withServer(take: (server: TestServer, keys: Keys) => void): void {
  let server: TestServer | undefined;
  let keys: Keys | undefined;
  beforeAll(async () => {
    server = await TestServer.start();
    keys = await Keys.generate();
    take(server, keys);
  });
  afterAll(async () => {
    await keys?.dispose();
    await server?.stop();
  });
}

/** Hands each test a name for its collection, a proxy before the server of `withServer`, and a folder of its own. */
export function withLiar(
  url: () => string,
  word: string,
  take: (name: string, proxy: TestProxy, folder: string) => void,
): void {
  let turn = 0;
  let proxy: TestProxy | undefined;
  let folder = "";
  beforeEach(async () => {
    proxy = await TestProxy.before(url());
    folder = await mkdtemp(join(tmpdir(), "ciphervec-liar-"));
    take(`${word}-${++turn}`, proxy, folder);
  });
  afterEach(async () => {
    proxy?.close();
    await rm(folder, { recursive: true, force: true });
  });
}
