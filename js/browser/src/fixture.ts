/** A server, the test page in front of it on one origin, and a browser's profile, for one file of tests. */

import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { Profile } from "./chromium.ts";
import { CiphervecServer } from "./ciphervec.ts";
import { Pages } from "./pages.ts";

const BUILT = fileURLToPath(new URL("../test-results/page", import.meta.url));

export class Fixture implements AsyncDisposable {
  readonly server: CiphervecServer;
  readonly pages: Pages;
  readonly profile: Profile;
  /** Errors that a page threw and nobody caught, or that it was refused under its policy. */
  readonly complaints: string[] = [];

  private constructor(server: CiphervecServer, pages: Pages, profile: Profile) {
    this.server = server;
    this.pages = pages;
    this.profile = profile;
  }

  static async begin(...options: string[]): Promise<Fixture> {
    const server = await CiphervecServer.begin(...options);
    const pages = await Pages.begin(BUILT, () => server.url);
    return new Fixture(server, pages, await Profile.begin());
  }

  /** Another tab, with the package loaded, whole or for searching alone. */
  async open(profile = this.profile, path = "/"): Promise<Page> {
    const page = await profile.context.newPage();
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      if (/Content Security Policy/.test(message.text())) this.complaints.push(message.text());
    });
    await page.goto(this.pages.url + path);
    await page.waitForFunction(() => (window.kit ?? window.searching) !== undefined);
    return page;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.profile[Symbol.asyncDispose]();
    await this.pages[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}
