/** What people do on the console, over a real server, and what somebody on the way gets to see of it. */
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { D, endBrowser, Filled, missing, NAME, PASSPHRASE, ROWS, SECRET, Shown } from "./console.ts";

const why = missing();

afterAll(endBrowser);

describe.skipIf(why !== undefined)("the console at work", () => {
  let filled: Filled;
  beforeAll(async () => {
    filled = await Filled.begin();
  });
  afterAll(async () => {
    await filled?.[Symbol.asyncDispose]();
  });

  it("asks for a token, says what is wrong with one, and keeps it nowhere", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    const field = page.getByLabel("Token");
    for (const [token, says] of [
      ["", "Paste a token"],
      ["hunter2", "begins with cv1_"],
      ["cv1_short", "this has 5"],
      [`cv1_${"A".repeat(43)}`, "Sign in with a token that is live"],
    ] as const) {
      await field.fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").filter({ hasText: says }).waitFor();
    }
    await shown.signIn(filled.operator);
    const kept = await page.evaluate(async () => {
      const databases = await indexedDB.databases();
      return {
        local: { ...localStorage },
        session: { ...sessionStorage },
        cookie: document.cookie,
        databases,
        address: location.href,
      };
    });
    expect(kept).toEqual({
      local: {},
      session: {},
      cookie: "",
      databases: [],
      address: `${filled.server.url}/`,
    });
    expect(await page.content()).not.toContain(filled.operator.slice(4));
    await page.reload();
    await field.waitFor();
    // And it went to this server alone, in the one header.
    for (const request of shown.requests) {
      expect(new URL(request.url()).origin).toBe(filled.server.url);
      expect(request.url()).not.toContain(filled.operator.slice(4));
      expect(request.postData() ?? "").not.toContain(filled.operator.slice(4));
    }
  });

  it("shows stored bytes as they are, and the rows under them to whoever has the key", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go(`#/collections/${NAME}/sight`);
    const dump = page.getByRole("region", { name: "Stored bytes of rows" });
    await dump.waitFor();
    const headers = { authorization: `Bearer ${filled.operator}` };
    const base = `${filled.server.url}/v1/collections/${NAME}`;
    const state = (await (await fetch(base, { headers })).json()) as { segments: { id: string }[] };
    const stored = Buffer.from(
      await (await fetch(`${base}/segments/${state.segments[0]?.id}/rows`, { headers })).arrayBuffer(),
    );
    const dumped = async () =>
      ((await dump.locator(".hex-bytes").allTextContents()).join(" ").match(/[0-9a-f]{2}/g) ?? []).join("");
    expect(await dumped()).toBe(stored.subarray(0, 512).toString("hex"));
    await page.getByRole("button", { name: "Next" }).click();
    await expect.poll(dumped).toBe(stored.subarray(512, 1024).toString("hex"));

    await shown.dropKey(filled.keyFile, "wrong");
    await page
      .getByRole("alert")
      .filter({ hasText: /passphrase/ })
      .waitFor();
    await page.getByLabel("Its passphrase").fill(PASSPHRASE);
    await page.getByRole("button", { name: "Open", exact: true }).click();
    await page.getByText("passage 0", { exact: true }).waitFor();
    expect(await page.locator(".row-id").allTextContents()).toEqual(filled.ids.slice(0, 20));
    expect(await page.locator(".row-document").allTextContents()).toEqual(filled.documents.slice(0, 20));
    const first = Array.from(filled.vectors[0] ?? [], (value) => value.toFixed(3)).slice(0, 6);
    expect(await page.locator(".row-vector").first().textContent()).toContain(first.join("  "));
    // Nothing of it was on the way.
    const sent = shown.requests.map((request) => `${request.url()} ${request.postData() ?? ""}`).join("\n");
    for (const word of [PASSPHRASE, SECRET, "passage", Buffer.from(filled.keyFile).toString("latin1")]) {
      expect(sent).not.toContain(word);
    }
    // Keys that are forgotten open nothing.
    await page.getByRole("button", { name: "Forget keys" }).click();
    await page.getByText("Drop a key file here").waitFor();
    expect(await page.getByText(SECRET).count()).toBe(0);
    expect(shown.complaints).toEqual([]);
  });

  it("refuses files that are no key", async () => {
    await using shown = await Shown.begin(filled.server.url);
    await shown.signIn(filled.operator);
    await shown.go(`#/collections/${NAME}/sight`);
    await shown.dropKey(new TextEncoder().encode("no key at all"), PASSPHRASE);
    await shown.page.getByRole("alert").waitFor();
    const huge = Buffer.alloc(2 << 20);
    await shown.page
      .locator(".key-drop input[type=file]")
      .setInputFiles({ name: "huge", mimeType: "", buffer: huge });
    await shown.page.getByRole("alert").filter({ hasText: "far smaller" }).waitFor();
    expect(shown.complaints).toEqual([]);
  });

  it("finds what is closest, and shows the work for it", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go(`#/collections/${NAME}/query`);
    await shown.dropKey(filled.keyFile, PASSPHRASE);
    const question = Float32Array.from({ length: D }, (_, at) => Math.sin(at + 1));
    const numbers = page.getByLabel(`${D} numbers`);
    const search = page.getByRole("button", { name: "Search" });
    for (const [text, says] of [
      ["1 2 3", "the collection has 32 dimensions"],
      ["1, x", "which is none"],
      [Array(D).fill(0).join(","), "no direction"],
    ] as const) {
      await numbers.fill(text);
      await search.click();
      await page.getByRole("alert").filter({ hasText: says }).waitFor();
    }
    await numbers.fill(JSON.stringify(Array.from(question)));
    await search.click();
    const hits = page.getByRole("region", { name: "Hits" }).locator(".row-id");
    await expect
      .poll(() => hits.allTextContents(), { timeout: 20_000 })
      .toEqual(filled.ranked(question).slice(0, 10));
    const work = page.getByRole("region", { name: "The work" });
    expect(await work.getByRole("listitem").count()).toBe(5);
    for (const step of ["Encrypt", "Bytes up", "Score every row", "Bytes down", "Decrypt and rank"]) {
      await work.getByText(step).waitFor();
    }
    expect(await work.textContent()).toMatch(/Bytes up.*\d kB/);
    expect(await page.locator(".hits .row-document").count()).toBe(0);

    await page.getByRole("tab", { name: "More like a row" }).click();
    await page.getByLabel("Id of a row").fill("passage 42");
    await page.getByLabel(/Read documents/).check();
    await search.click();
    await expect.poll(() => hits.first().textContent(), { timeout: 20_000 }).toBe("passage 42");
    expect(await page.locator(".hits .row-document").first().textContent()).toBe(filled.documents[42]);
    await page.getByLabel("Id of a row").fill("passage 999");
    await search.click();
    await page.getByRole("alert").filter({ hasText: "no row passage 999" }).waitFor();
    expect(shown.complaints).toEqual([]);
  });

  it("asks by a text where the page was given a model", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go(`#/collections/${NAME}/query`);
    await shown.dropKey(filled.keyFile, PASSPHRASE);
    await page.getByRole("tab", { name: "A text" }).click();
    const search = page.getByRole("button", { name: "Search" });
    await search.click();
    await page.getByRole("alert").filter({ hasText: "text model" }).waitFor();
    // Two words, each of which points where a row does.
    const words = ["fox", "hound"];
    const floats = Float32Array.from([1, 1, ...(filled.vectors[11] ?? []), ...(filled.vectors[12] ?? [])]);
    const head = { format: 1, python: "3.11", dimension: D, questions: [], words };
    const model = page.getByLabel(/text model/);
    await model.setInputFiles({
      name: "model.json",
      mimeType: "application/json",
      buffer: Buffer.from("{}"),
    });
    await page.getByRole("alert").filter({ hasText: "two files" }).waitFor();
    await model.setInputFiles([
      { name: "model.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(head)) },
      { name: "model.bin", mimeType: "application/octet-stream", buffer: Buffer.from(floats.buffer) },
    ]);
    await page.getByLabel("A question").fill("Where is the hound?");
    await search.click();
    const hits = page.getByRole("region", { name: "Hits" }).locator(".row-id");
    await expect.poll(() => hits.first().textContent(), { timeout: 20_000 }).toBe("passage 12");
    const sent = shown.requests.map((request) => `${request.url()} ${request.postData() ?? ""}`).join("\n");
    expect(sent).not.toContain("hound");
    expect(shown.complaints).toEqual([]);
  });

  it("verifies, takes snapshots, brings them back, drops them and purges, each after a word", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go(`#/collections/${NAME}/upkeep`);
    const dialog = page.getByRole("dialog");
    const finish = async (says: RegExp) => {
      await dialog.getByText(says).waitFor({ timeout: 20_000 });
      await dialog.getByRole("button", { name: "Done" }).click();
      await dialog.waitFor({ state: "detached" });
    };
    await page.getByRole("button", { name: "Verify" }).click();
    await dialog.getByRole("button", { name: "Verify" }).click();
    await finish(/Sound: \d+ files/);
    await page.getByRole("button", { name: "Take one" }).click();
    await dialog.getByLabel(/Name/).fill("monday");
    await dialog.getByRole("button", { name: "Take" }).click();
    await finish(/is kept as monday/);
    await page.getByRole("rowheader", { name: "monday" }).waitFor();
    await page.getByRole("button", { name: "Copy monday to a collection" }).click();
    await dialog.getByLabel(/Into which/).fill("copy");
    await dialog.getByRole("button", { name: "Bring back" }).click();
    await finish(/the state of copy/);
    // A name that is taken is refused in words, and nothing is lost.
    await page.getByRole("button", { name: "Copy monday to a collection" }).click();
    await dialog.getByLabel(/Into which/).fill("copy");
    await dialog.getByRole("button", { name: "Bring back" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Drop monday" }).click();
    const drop = dialog.getByRole("button", { name: "Drop" });
    expect(await drop.isDisabled()).toBe(true);
    await dialog.getByRole("textbox").fill("monday");
    await drop.click();
    await finish(/It is gone/);
    await page.getByText("No snapshot yet").waitFor();
    await page.getByRole("button", { name: "Purge" }).click();
    await dialog.getByRole("textbox").fill(NAME);
    await dialog.getByRole("button", { name: "Purge" }).click();
    await finish(/It is gone/);
    await shown.go("#/");
    await page.getByRole("link", { name: "copy" }).waitFor();
    expect(shown.complaints).toEqual([]);
  });

  it("names the file that is damaged", async () => {
    const folder = join(filled.server.folder, "copy");
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) =>
      join(folder, name),
    );
    const largest =
      files
        .filter((file) => statSync(file).isFile())
        .sort((a, b) => statSync(b).size - statSync(a).size)[0] ?? "";
    const whole = readFileSync(largest);
    const damaged = Buffer.from(whole);
    damaged[damaged.length >> 1] = (damaged[damaged.length >> 1] ?? 0) ^ 1;
    writeFileSync(largest, damaged);
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go("#/collections/copy/upkeep");
    await page.getByRole("button", { name: "Verify" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Verify" }).click();
    await page.getByRole("dialog").getByText("1 fault found").waitFor();
    await page
      .getByRole("dialog")
      .getByText(largest.split("/").at(-1) ?? "", { exact: true })
      .waitFor();
    writeFileSync(largest, whole);
  });

  it("shows a narrow token what that may see, and all tokens to an operator, without secrets", async () => {
    const limits = ["--rate", "1000/m", "--queries-per-day", "70"];
    const reader = filled.server.limited("doc*", limits, "read");
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(reader.secret);
    expect(await page.getByRole("link", { name: "copy" }).count()).toBe(0);
    expect(await page.getByRole("link", { name: "Load" }).count()).toBe(0);
    await shown.go("#/load");
    await page.getByText("This token does not read the load").waitFor();
    await shown.go(`#/collections/${NAME}/upkeep`);
    await page.getByText("Upkeep is for admins").waitFor();
    await shown.go(`#/collections/${NAME}/query`);
    await page.getByText("This token may not ask here").waitFor();
    await shown.go("#/collections/copy/segments");
    await page.getByRole("alert").waitFor();
    await shown.go("#/tokens");
    await page.getByText(reader.id).waitFor();
    await page.getByText("At most 1000/m, 70 queries a day.").waitFor();
    expect(await page.getByRole("table").count()).toBe(0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await shown.signIn(filled.operator);
    await shown.go("#/tokens");
    await page.getByRole("table").getByText(reader.id).waitFor();
    const row = page.getByRole("row").filter({ hasText: reader.id });
    await row.getByText("1000/m, 70 queries a day").waitFor();
    const text = await page.content();
    const file = JSON.parse(readFileSync(join(filled.server.folder, "tokens.json"), "utf8")) as {
      tokens: { hash: string }[];
    };
    for (const secret of [
      reader.secret.slice(4),
      filled.operator.slice(4),
      ...file.tokens.map(({ hash }) => hash),
    ]) {
      expect(text).not.toContain(secret);
    }
    // One that is revoked while the page is open is told so at the next look.
    filled.server.revoke(reader.id);
    await page.getByRole("link", { name: "Collections" }).first().click();
    await page.getByRole("link", { name: "Tokens" }).click();
    await page.getByRole("row").filter({ hasText: reader.id }).getByText("revoked").waitFor();
  });

  it("draws the load as it comes", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await shown.go("#/load");
    await page.getByRole("img", { name: /^Requests\. requests: / }).waitFor();
    await expect
      .poll(() => page.locator(".chart-line").first().getAttribute("d"), { timeout: 15_000 })
      .toMatch(/M.*L/);
    await page
      .locator(".chart-now")
      .getByText(/^[\d.]+ MB/)
      .first()
      .waitFor();
    const before = shown.requests.length;
    await page.getByRole("button", { name: "Pause" }).click();
    await page.waitForTimeout(2500);
    expect(shown.requests.length).toBeLessThanOrEqual(before + 1);
    expect(shown.complaints).toEqual([]);
  });

  it("loads nothing from elsewhere and lets no script of others in", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    const outcomes = await page.evaluate(async () => {
      // What a debugger runs at once may do more than what the page runs later.
      await new Promise((resolve) => setTimeout(resolve, 0));
      const refused: string[] = [];
      document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
      await fetch("http://127.0.0.1:9/").catch(() => undefined);
      const image = new Image();
      image.src = "https://elsewhere.example/pixel";
      const inline = document.createElement("script");
      try {
        inline.textContent = "globalThis.broken = true";
        document.head.append(inline);
      } catch {
        refused.push("trusted types: script");
      }
      try {
        document.body.insertAdjacentHTML("beforeend", "<b>markup</b>");
      } catch {
        refused.push("trusted types: markup");
      }
      try {
        new Worker("https://elsewhere.example/worker.js");
      } catch {
        refused.push("worker of another origin");
      }
      try {
        new Worker("/v1/collections");
      } catch {
        refused.push("worker of an answer");
      }
      try {
        // biome-ignore lint/security/noGlobalEval: that it is refused is what is tested
        eval("globalThis.broken = true");
      } catch {
        refused.push("eval");
      }
      await new Promise((resolve) => setTimeout(resolve, 300));
      return { refused, broken: "broken" in globalThis };
    });
    expect(outcomes.broken).toBe(false);
    for (const one of [
      "connect-src",
      "img-src",
      "trusted types: markup",
      "worker of another origin",
      "worker of an answer",
      "eval",
    ]) {
      expect(outcomes.refused).toContain(one);
    }
    // What it tried was answered by nobody.
    const foreign = shown.requests.filter((request) => new URL(request.url()).origin !== filled.server.url);
    for (const request of foreign) expect(request.failure()?.errorText).toMatch(/csp|BLOCKED/i);
  });

  it("says when the server is gone, and goes on when it is back", async () => {
    await using shown = await Shown.begin(filled.server.url);
    const { page } = shown;
    await shown.signIn(filled.operator);
    await filled.server.stop();
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
    await filled.server.start();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("link", { name: NAME }).waitFor();
    expect(await page.getByRole("row").filter({ hasText: NAME }).textContent()).toContain(String(ROWS));
  });
});

describe.skipIf(why !== undefined)("a server without tokens", () => {
  it("is entered at once, and says what that means", async () => {
    const { CiphervecServer } = await import("@ciphervec/browser/src/ciphervec.ts");
    await using server = await CiphervecServer.begin();
    await using shown = await Shown.begin(server.url);
    await shown.page.getByText("No tokens are needed here").waitFor();
    await shown.page.getByText("No collection yet").waitFor();
    expect(await shown.violations()).toEqual([]);
    await shown.shot("light-without-tokens");
    expect(await shown.page.getByRole("button", { name: "Sign out" }).count()).toBe(0);
  });
});
