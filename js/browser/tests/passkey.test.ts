/** Key files that a passkey opens, with Chromium's virtual authenticators: who opens them, and what everybody else reads. */

import type { CDPSession, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fixture } from "../src/fixture.ts";
import { missing } from "../src/needs.ts";

type Kept = {
  keys: import("@ciphervec/client").Keys;
  passkey: import("@ciphervec/client").Passkey;
  file: Uint8Array;
};

describe.skipIf(missing() !== undefined)("a key file that a passkey opens", () => {
  let fixture: Fixture;
  let page: Page;
  let session: CDPSession;
  let authenticator: string;

  /** Plugs an authenticator in. */
  async function plug(hasPrf: boolean): Promise<string> {
    const options = {
      protocol: "ctap2",
      ctap2Version: "ctap2_1",
      transport: "internal",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
      hasPrf,
    } as const;
    return (await session.send("WebAuthn.addVirtualAuthenticator", { options })).authenticatorId;
  }
  const unplug = (authenticatorId: string) =>
    session.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });

  beforeAll(async () => {
    fixture = await Fixture.begin();
    page = await fixture.open();
    // A passkey is of a domain, which an address is not.
    await page.goto(fixture.pages.url.replace("127.0.0.1", "localhost"));
    await page.waitForFunction(() => window.kit !== undefined);
    session = await fixture.profile.context.newCDPSession(page);
    await session.send("WebAuthn.enable");
    authenticator = await plug(true);
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  it("comes back with the passkey, as often as it is opened, and says whose it is", async () => {
    const told = await page.evaluate(async () => {
      const { Keys, Passkey } = window.kit.client;
      const [keys, passkey] = [await Keys.generate(), await Passkey.create({ name: "Ada" })];
      const [file, again] = [await keys.toFile({ passkey }), await keys.toFile({ passkey })];
      Object.assign(window.kit.kept, { keys, passkey, file });
      const opened = [await Keys.fromFile(file, { keyId: keys.keyId }), await Keys.fromFile(again)];
      return {
        rp: passkey.rp,
        same: await Promise.all(opened.map((one) => one.same(keys))),
        fresh: file.join() !== again.join(),
        inClear: new TextDecoder("latin1").decode(file).includes("passkey:localhost/"),
      };
    });
    expect(told).toEqual({ rp: "localhost", same: [true, true], fresh: true, inClear: true });
  });

  it("does not open once a byte of it is another, or for other keys than expected", async () => {
    const outcomes = await page.evaluate(async () => {
      const { client, kept, outcome } = window.kit;
      const { file } = kept as unknown as Kept;
      const found: unknown[] = [];
      // Of the salt, of the sealed file key, of the sealed master.
      for (const from of [180, 90, 40]) {
        const bad = new Uint8Array(file);
        bad[bad.length - from] = (bad[bad.length - from] ?? 0) ^ 1;
        found.push(await outcome(() => client.Keys.fromFile(bad)));
      }
      found.push(await outcome(() => client.Keys.fromFile(file, { keyId: "00".repeat(8) })));
      return found.map((one) => (one as { name: string }).name);
    });
    expect(outcomes).toEqual(["CorruptData", "CorruptData", "CorruptData", "WrongKey"]);
  });

  it("is asked for on pages of its domain alone", async () => {
    const file = await page.evaluate(() => [...(window.kit.kept as unknown as Kept).file]);
    const elsewhere = await fixture.open();
    const told = await elsewhere.evaluate(
      (file) => window.kit.outcome(() => window.kit.client.Keys.fromFile(Uint8Array.from(file))),
      file,
    );
    expect(told).toMatchObject({
      name: "InvalidInput",
      message: expect.stringContaining("may not use passkeys"),
    });
    await elsewhere.close();
  });

  it("does not open without the authenticator, nor with another", async () => {
    const open = () =>
      page.evaluate(() => {
        const { client, kept, outcome } = window.kit;
        return outcome(() => client.Keys.fromFile((kept as unknown as Kept).file));
      });
    await unplug(authenticator);
    authenticator = await plug(true);
    expect(await open()).toMatchObject({
      name: "CiphervecError",
      message: expect.stringContaining("was not used"),
    });
  });

  it("is not written by authenticators that give no secrets", async () => {
    await unplug(authenticator);
    authenticator = await plug(false);
    const told = await page.evaluate(() =>
      window.kit.outcome(() => window.kit.client.Passkey.create({ name: "Ada" })),
    );
    expect(told).toMatchObject({ name: "InvalidInput", message: expect.stringContaining("PRF") });
  });
});
