/** The demo page in two browser profiles over one server: a person makes a key, seals, asks; another sees nothing of it. */

import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Profile } from "../src/chromium.ts";
import { CiphervecServer } from "../src/ciphervec.ts";
import { DemoPage } from "../src/demo-page.ts";
import { DEMO, missing } from "../src/needs.ts";
import { Pages, POLICY } from "../src/pages.ts";

const PASSPHRASE = "nine wet otters";
const QUESTION = "Which function copies a whole directory tree?";
const PICTURES = fileURLToPath(new URL("../test-results/", import.meta.url));

describe.skipIf(missing() !== undefined)("the demo page", () => {
  let server: CiphervecServer;
  let demo: DemoPage;
  let person: Profile;
  let page: Page;
  const complaints: string[] = [];

  beforeAll(async () => {
    mkdirSync(PICTURES, { recursive: true });
    server = await CiphervecServer.begin();
    demo = await DemoPage.begin(server);
    person = await Profile.begin({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
    page = await open(person);
  });
  afterAll(async () => {
    await person?.[Symbol.asyncDispose]();
    await demo?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function open(profile: Profile): Promise<Page> {
    const opened = await profile.context.newPage();
    opened.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text());
    });
    opened.on("pageerror", (error) => complaints.push(String(error)));
    await opened.goto(demo.url);
    await opened.locator("#examples button").first().waitFor();
    return opened;
  }

  /** What axe finds on the page as it is: nothing, if people with screen readers can use it. */
  async function barriers(on: Page): Promise<string[]> {
    // The page's policy lets no script of a test in; the debugger's world is not bound by it.
    await on.evaluate(axe.source);
    return on.evaluate(async () => {
      const { violations } = await (window as unknown as { axe: typeof axe }).axe.run();
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`));
    });
  }

  async function picture(of: Page, name: string): Promise<void> {
    await of.screenshot({ path: `${PICTURES}${name}.png`, fullPage: true });
  }

  it("makes a key, seals every passage and finds the one that is asked for", async () => {
    await page.fill("#passphrase", PASSPHRASE);
    await page.click("#make");
    await page.locator("#seal:enabled").waitFor();
    await page.click("#seal");
    await page.locator("#seal-says", { hasText: "embedded, sealed and stored" }).waitFor({ timeout: 50_000 });
    await page.getByRole("button", { name: QUESTION }).click();
    const first = page.locator("#hits .name").first();
    await first.waitFor();
    expect(await first.textContent()).toMatch(/copytree/);
    await page.locator("#pipeline li.server span", { hasText: "ms" }).waitFor();
    const values = await page.locator("#pipeline li span").allTextContents();
    expect(values.every((value) => /^\d/.test(value))).toBe(true);
    await picture(page, "demo-light");
    expect(await barriers(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, "demo-dark");
    expect(await barriers(page)).toEqual([]);
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.locator("#pipeline").scrollIntoViewIfNeeded();
    await page.screenshot({ path: `${PICTURES}demo-narrow.png` });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it("shows what went by on the wire, in which no word of it can be read", async () => {
    const seen = await page.locator("#seen").textContent();
    expect(seen).toMatch(/POST \/v1\/collections\/stdlib\/query/);
    expect(seen).not.toMatch(/copytree|directory/i);
    const disk = (await page.locator("#disk").textContent()) ?? "";
    expect(disk.replace(/\s/g, "")).toMatch(/^[0-9a-f]{1024}$/);
  });

  it("opens the kept key file after a reload, and not with another passphrase", async () => {
    await page.click("#keep");
    await page.locator("#key-says", { hasText: "Kept in this browser" }).waitFor({ timeout: 30_000 });
    await page.reload();
    await page.fill("#passphrase", "nine dry otters");
    await page.click("#reopen");
    await page.locator("#key-says.bad", { hasText: /passphrase/i }).waitFor({ timeout: 30_000 });
    await page.fill("#passphrase", PASSPHRASE);
    await page.click("#reopen");
    await page
      .locator("#seal-says", { hasText: "are there, sealed under your key" })
      .waitFor({ timeout: 30_000 });
    await page.fill("#question", "shuffle a list into random order");
    await page.click("#ask");
    await page.locator("#hits .name", { hasText: "shuffle" }).first().waitFor();
  });

  it("gives another profile, with another key, nothing", async () => {
    await using stranger = await Profile.begin({ viewport: { width: 1280, height: 900 } });
    const other = await open(stranger);
    await other.fill("#passphrase", "seven loud geese");
    await other.click("#make");
    await other.locator("#seal-says.bad", { hasText: "sees nothing of them" }).waitFor();
    expect(await other.locator("#ask").isDisabled()).toBe(true);
    await picture(other, "demo-stranger");
  });

  it("asks the server that its address names, from a folder of another site", async () => {
    const policy = POLICY.replace("connect-src 'self'", "connect-src 'self' http://127.0.0.1:*");
    await using site = await Pages.begin(DEMO, () => site.url, policy);
    await using other = await CiphervecServer.begin("--allow-origin", site.url);
    await using visitor = await Profile.begin();
    const opened = await visitor.context.newPage();
    await opened.goto(`${site.url}/dist/?server=${other.url}`);
    await opened.fill("#passphrase", PASSPHRASE);
    await opened.click("#make");
    await opened.locator("#seal-says", { hasText: "The server has nothing of yours" }).waitFor();
    await opened.locator("#disk-says", { hasText: "make demo-web" }).waitFor();
    expect(site.came).toEqual([]); // nothing went to the site itself
  });

  it("wipes the key when asked, and complains of nothing", async () => {
    await page.click("#forget");
    await page.locator("#key-form").waitFor();
    expect(await page.locator("#ask").isDisabled()).toBe(true);
    expect(complaints).toEqual([]);
  });
});
