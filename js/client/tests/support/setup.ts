/** What the tests of a file share, for as long as they run. */

import { Keys } from "@ciphervec/client";
import { afterAll, beforeAll } from "vitest";
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
