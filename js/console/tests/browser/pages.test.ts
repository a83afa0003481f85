/** Every page of the console as people see it: what is on it, that axe finds nothing, and that it fits narrow screens. */
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { endBrowser, Filled, missing, NAME, PASSPHRASE, Shown } from "./console.ts";

const why = missing();
if (why !== undefined) process.stderr.write(`skipped: ${why}\n`);

const PAGES = [
  { name: "collections", hash: "#/", shows: NAME },
  { name: "segments", hash: `#/collections/${NAME}/segments`, shows: "Attachments" },
  { name: "sight", hash: `#/collections/${NAME}/sight`, shows: "What anybody reads in its header" },
  { name: "query", hash: `#/collections/${NAME}/query`, shows: "Queries are encrypted in this page" },
  { name: "upkeep", hash: `#/collections/${NAME}/upkeep`, shows: "No snapshot yet" },
  { name: "empty", hash: "#/collections/empty/segments", shows: "No row yet" },
  { name: "tokens", hash: "#/tokens", shows: "Yours" },
  { name: "new", hash: "#/new", shows: "Command line" },
  { name: "playground", hash: "#/playground", shows: "The answer will stand here" },
  { name: "load", hash: "#/load", shows: "Queries waiting" },
  { name: "missing", hash: "#/nowhere", shows: "This address names no page" },
];
const LOOKS = [
  { look: "light", colorScheme: "light", viewport: { width: 1200, height: 800 } },
  { look: "dark", colorScheme: "dark", viewport: { width: 1200, height: 800 } },
  { look: "narrow", colorScheme: "light", viewport: { width: 320, height: 700 } },
  { look: "phone", colorScheme: "dark", viewport: { width: 390, height: 844 } },
] as const;

/** Waits until `part` has the keyboard. */
function focused(part: Locator): Promise<void> {
  return expect
    .poll(() => part.evaluate((element) => element === document.activeElement), { timeout: 30_000 })
    .toBe(true);
}

afterAll(endBrowser);

describe.skipIf(why !== undefined)("the pages", () => {
  let filled: Filled;
  beforeAll(async () => {
    filled = await Filled.begin();
  });
  afterAll(async () => {
    await filled?.[Symbol.asyncDispose]();
  });

  for (const { look, colorScheme, viewport } of LOOKS) {
    it(`${look}: all are readable for everyone, and stay within the screen`, async () => {
      await using shown = await Shown.begin(filled.server.url, { colorScheme, viewport });
      const { page } = shown;
      await page.getByLabel("Token").waitFor();
      await shown.shot(`${look}-sign-in`);
      expect(await shown.violations()).toEqual([]);
      await shown.signIn(filled.operator);
      const check = async (name: string) => {
        await shown.shot(`${look}-${name}`);
        expect(await shown.violations(), name).toEqual([]);
        const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
        expect(inner, `${name} is wider than the screen`).toBeLessThanOrEqual(outer ?? 0);
      };
      for (const { name, hash, shows } of PAGES) {
        await shown.go(hash);
        await page.getByText(shows).first().waitFor();
        await check(name);
      }
      await shown.go(`#/collections/${NAME}/sight`);
      await shown.dropKey(filled.keyFile, PASSPHRASE);
      await page.getByText("passage 0", { exact: true }).waitFor();
      await check("opened");
      await shown.go(`#/collections/${NAME}/query`);
      await page.getByLabel("32 numbers").fill(Array.from(filled.vectors[3] ?? []).join(" "));
      await page.getByRole("button", { name: "Search" }).click();
      await page.getByText("passage 3", { exact: true }).waitFor();
      await check("hits");
      await shown.go(`#/collections/${NAME}/upkeep`);
      await page.getByRole("button", { name: "Purge" }).click();
      await page.getByRole("dialog").waitFor();
      await check("dialog");
      expect(shown.complaints).toEqual([]);
    });
  }

  it("sends requests of the interface with the token, and shows refusals as they are", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go("#/playground");
    const answer = page.getByRole("region", { name: "Answer" });
    const send = page.getByRole("button", { name: "Send" });
    const request = page.getByRole("combobox", { name: /^Request/ });
    await send.click();
    await answer.getByText(/^200/).waitFor();
    expect(await answer.innerText()).toContain('"api": 1');
    await request.selectOption("GET /v1/collections/{name}");
    expect(await send.isDisabled(), "a name is needed").toBe(true);
    await page.getByLabel("name", { exact: true }).fill("nobody's");
    await send.click();
    await answer.getByText(/^404/).waitFor();
    expect(await answer.innerText()).toContain("x-request-id");
    await page.getByLabel("name", { exact: true }).fill(NAME);
    await send.click();
    await answer.getByText(/^200/).waitFor();
    await shown.shot("playground-answer");
    // What changes something is asked about first, and reaches the server.
    await request.selectOption("PUT /v1/collections/{name}/snapshots/{snapshot}");
    await page.getByLabel("name", { exact: true }).fill("empty"); // other tests look for one without a snapshot
    await page.getByLabel("snapshot", { exact: true }).fill("by-hand");
    expect(await send.isDisabled()).toBe(true);
    await page.getByLabel("This changes what the server holds. Do it.").check();
    await send.click();
    await answer.getByText(/^2\d\d/).waitFor();
    await page.getByText("The same by curl").click();
    expect(await page.getByText("curl -X PUT").innerText()).toContain("$CIPHERVEC_TOKEN");
    expect(await page.content()).not.toContain(filled.operator);
    expect(shown.complaints).toEqual([]);
  });

  it("writes lines that make a collection, and the operator's that makes a token", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await page.getByRole("link", { name: "New collection" }).click();
    await page.getByLabel("Name", { exact: true }).fill("door 3");
    await page.getByText("A name has 1 to 128 letters").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("doors");
    await page.getByLabel("Mode").selectOption("sealed-index");
    await page
      .getByText(`ciphervec create ${filled.server.url} doors --dim 512 --mode sealed-index`)
      .waitFor();
    await page.getByText("yours is one").waitFor();
    await page.getByRole("tab", { name: "Python" }).click();
    await page.getByText('client.create_collection("doors", 512, mode="sealed-index")').waitFor();
    await shown.go("#/tokens");
    await page.getByLabel("On the collection").fill("doors-*");
    await page.getByText("--collection 'doors-*' --permission owner --expires 30d --name laptop").waitFor();
  });

  it("can be used by keyboard alone", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await page.getByLabel("Token").focus();
    await page.keyboard.type(filled.operator);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Collections", level: 1 }).waitFor();
    await page.getByRole("link", { name: NAME }).focus();
    await page.keyboard.press("Enter");
    const heading = page.getByRole("heading", { name: NAME, level: 1 });
    await heading.waitFor();
    // The new page's title is where the keyboard goes on, and what is read out.
    await focused(heading);
    await page.getByRole("tab", { name: "Segments" }).focus();
    // The list of tabs moves the focus a turn after the key: Enter at once would still be the old tab's.
    await page.keyboard.press("End");
    await focused(page.getByRole("tab", { name: "Upkeep" }));
    await page.keyboard.press("Enter");
    await page.getByText("No snapshot yet").waitFor();
    const purge = page.getByRole("button", { name: "Purge" });
    await purge.focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    // Focus stays within, and nothing happens without the typed name.
    for (let turn = 0; turn < 6; turn += 1) await page.keyboard.press("Tab");
    expect(
      await page.evaluate(
        () => document.activeElement?.closest("dialog") !== null || document.activeElement === document.body,
      ),
    ).toBe(true);
    expect(await dialog.getByRole("button", { name: "Purge" }).isDisabled()).toBe(true);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await focused(purge);
  });

  it("follows the colours that somebody chooses, and forgets them with the tab", async () => {
    await using shown = await Shown.begin(filled.server.url, { colorScheme: "light" });
    const { page } = shown;
    await shown.signIn(filled.operator);
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await ground();
    await page.getByLabel("Colours").selectOption("dark");
    await expect.poll(ground).not.toBe(light);
    await page.reload();
    await page.getByLabel("Token").waitFor();
    expect(await ground()).toBe(light);
  });
});
