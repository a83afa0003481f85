/** The examples of README.md, docs/browser.md and docs/private-tables.md run as they stand, against a real server. */

import { execFile } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missing, TestServer } from "../support/server.js";

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url));
// Within the package, so that it imports itself by its name.
const FOLDER = at("../../test-results/");

describe.skipIf(missing !== "")("examples", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
    await mkdir(FOLDER, { recursive: true });
  });
  afterAll(async () => {
    await server?.stop();
    await rm(FOLDER, { recursive: true, force: true });
  });

  test.each([
    ["README.md", "../../README.md"],
    ["browser.md", "../../../../docs/browser.md"],
    ["private-tables.md", "../../../../docs/private-tables.md"],
  ])("%s", async (name, path) => {
    const page = await readFile(at(path), "utf8");
    const blocks = [...page.matchAll(/^```js\n([\s\S]*?)^```$/gm)].map((found) => found[1] as string);
    expect(blocks.length).toBeGreaterThan(0);
    for (const [i, block] of blocks.entries()) {
      const file = `${FOLDER}${name}-${i}.mjs`;
      await writeFile(file, block.replaceAll("http://127.0.0.1:8707", server.url));
      const { stdout } = await promisify(execFile)(process.execPath, [file]);
      // What a comment behind a console.log says is what it prints.
      for (const [, says] of block.matchAll(/console\.log\(.*\); \/\/ (.+)$/gm)) {
        const plain = (text: string) => text.replace(/[\s'"]/g, "");
        expect(plain(stdout)).toContain(plain(says as string));
      }
    }
  });
});
