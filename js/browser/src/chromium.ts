/** The system's Chromium, and profiles in folders of their own that end with a test. For tests and benches. */

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, type BrowserContextOptions, chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
// No sandbox: containers and root have none. The rest keeps the browser from speaking to anyone but the page under test.
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The browser's program: CIPHERVEC_CHROMIUM, or where distributions put it; undefined where there is none. */
export function program(): string | undefined {
  const named = process.env["CIPHERVEC_CHROMIUM"];
  return [...(named === undefined ? [] : [named]), ...PLACES].find((place) => existsSync(place));
}

/** A browser with a new profile; whatever is made for a test ends with it. */
export class Profile implements AsyncDisposable {
  readonly context: BrowserContext;
  /** Where the profile lies. */
  readonly folder: string;

  private constructor(context: BrowserContext, folder: string) {
    this.context = context;
    this.folder = folder;
  }

  static async begin(options: BrowserContextOptions & { flags?: string[] } = {}): Promise<Profile> {
    const executablePath = program();
    if (executablePath === undefined)
      throw new Error(`no Chromium: expected ${PLACES.join(" or ")}; on Debian: apt-get install chromium`);
    const { flags = [], ...context } = options;
    const folder = await mkdtemp(join(tmpdir(), "ciphervec-profile-"));
    const launched = await chromium.launchPersistentContext(folder, {
      executablePath,
      headless: true,
      chromiumSandbox: false,
      args: [...FLAGS, ...flags],
      acceptDownloads: true,
      ...context,
    });
    return new Profile(launched, folder);
  }

  /** The browser's name and version. */
  async version(): Promise<string> {
    const page = await this.context.newPage();
    const session = await this.context.newCDPSession(page);
    const { product } = await session.send("Browser.getVersion");
    await page.close();
    return product.replace("HeadlessChrome/", "Chromium ").replace("Chrome/", "Chromium ");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.context.close().catch(() => undefined);
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
