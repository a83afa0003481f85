/** The page of photos over a server: a person adds pictures and looks for others; the server's files hold nothing of them. */

import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Profile } from "../src/chromium.ts";
import { CiphervecServer } from "../src/ciphervec.ts";
import { DemoPage } from "../src/demo-page.ts";
import { missing } from "../src/needs.ts";

const PICTURES = fileURLToPath(new URL("../test-results/", import.meta.url));
const PASSPHRASE = "nine wet otters";
/** One pixel, which is a picture. */
const DOT = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64",
);

describe.skipIf(missing() !== undefined)("the page of photos", () => {
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
    await opened.goto(new URL("photos.html", demo.url).href);
    return opened;
  }

  async function names(of: Page): Promise<string[]> {
    return of.locator("#hits .name span:first-child").allTextContents();
  }

  async function barriers(): Promise<string[]> {
    await page.evaluate(axe.source);
    return page.evaluate(async () => {
      const { violations } = await (window as unknown as { axe: typeof axe }).axe.run();
      return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 120)}`));
    });
  }

  it("finds the pictures that look like another of the same scene", async () => {
    await page.fill("#passphrase", PASSPHRASE);
    await page.click("#make");
    await page.locator("#drawn:enabled").waitFor();
    await page.click("#drawn");
    await page.locator("#seal-says", { hasText: "12 photos described" }).waitFor({ timeout: 50_000 });
    for (const scene of ["sea", "forest", "city", "meadow"]) {
      await page.getByRole("button", { name: `another ${scene}` }).click();
      await page.locator("#hits .name", { hasText: scene }).first().waitFor();
      await page.waitForFunction((wanted) => {
        const first = document.querySelector("#hits .name span");
        return first?.textContent?.startsWith(wanted) && document.querySelector("#pipeline .now") === null;
      }, scene);
      const found = await names(page);
      expect(found.slice(0, 3).sort()).toEqual([1, 2, 3].map((n) => `${scene} ${n}`));
    }
    const shown = await page
      .locator("#hits img")
      .evaluateAll((images) => images.map((one) => (one as HTMLImageElement).naturalWidth));
    expect(shown.every((width) => width === 160)).toBe(true);
    await page.screenshot({ path: `${PICTURES}photos-light.png`, fullPage: true });
    expect(await barriers()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.screenshot({ path: `${PICTURES}photos-narrow.png`, fullPage: true });
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  it("takes files, has each once, and refuses what is no picture", async () => {
    const file = join(tmpdir(), `ciphervec-dot-${process.pid}.png`);
    writeFileSync(file, DOT);
    for (let i = 0; i < 2; i++) {
      await page.setInputFiles("#chosen", [file, file]);
      await page.locator("#seal-says", { hasText: "2 photos described" }).waitFor();
      await page.setInputFiles("#chosen", {
        name: "a.txt",
        mimeType: "text/plain",
        buffer: Buffer.from("no"),
      });
      await page
        .locator("#seal-says.bad", { hasText: "a.txt is no picture that this browser reads" })
        .waitFor();
    }
    await page.setInputFiles("#asked-file", file);
    await page.locator("#hits .name", { hasText: "ciphervec-dot" }).first().waitFor();
    const found = await names(page);
    expect(found.filter((name) => name.startsWith("ciphervec-dot"))).toHaveLength(1);
    expect(found[0]).toMatch(/^ciphervec-dot/);
    rmSync(file);
  });

  it("leaves nothing of names or pictures in the server's files", () => {
    const stored = readdirSync(server.folder, { recursive: true, encoding: "utf8" })
      .map((name) => join(server.folder, name))
      .filter((path) => statSync(path).isFile())
      .map((path) => readFileSync(path));
    expect(stored.length).toBeGreaterThan(0);
    for (const trace of ["data:image", "ciphervec-dot", "meadow", "JFIF"])
      expect(stored.some((bytes) => bytes.includes(trace))).toBe(false);
  });

  it("gives another key nothing, and complains of nothing", async () => {
    await using stranger = await Profile.begin();
    const other = await open(stranger);
    await other.fill("#passphrase", "seven loud geese");
    await other.click("#make");
    await other.locator("#seal-says.bad", { hasText: "sees nothing of them" }).waitFor();
    expect(await other.locator("#drawn").isDisabled()).toBe(true);
    expect(complaints).toEqual([]);
  });
});
