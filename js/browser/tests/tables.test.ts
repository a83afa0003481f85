/** A private table in a page: made there, stored on a server, and looked up in by another tab, which is told its fingerprint. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fixture } from "../src/fixture.ts";
import { missing } from "../src/needs.ts";

describe.skipIf(missing() !== undefined)("a private table in a page", () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await Fixture.begin();
  });
  afterAll(() => fixture?.[Symbol.asyncDispose]());

  it("is stored by one tab and looked up in by another, which shows the server no key", async () => {
    const publisher = await fixture.open();
    const fingerprint = await publisher.evaluate(async () => {
      const { client } = window.kit;
      const table = await client.PrivateTable.build(
        Array.from({ length: 500 }, (_, i) => [i % 2 ? i : `name ${i}`, `record ${i}`] as const),
      );
      await new client.Client({ url: location.origin }).putTable({ name: "people", table });
      return table.fingerprint;
    });
    const page = await fixture.open();
    fixture.pages.came.length = 0;
    const found = await page.evaluate(async (fingerprint) => {
      const { client, outcome } = window.kit;
      const people = await new client.Client({ url: location.origin }).getTable({
        name: "people",
        fingerprint,
      });
      const records = await people.getMany(["name 4", 499, "name 5", 4]);
      return {
        records: records.map((one) => one && new TextDecoder().decode(one)),
        has: [await people.has(1), await people.has(0)],
        refused: await outcome(() => people.getMany(["a", "b"], { bound: 1 })),
        other: await outcome(() =>
          new client.Client({ url: location.origin }).getTable({
            name: "people",
            fingerprint: "00".repeat(32),
          }),
        ),
      };
    }, fingerprint);
    expect(found.records).toEqual(["record 4", "record 499", null, null]);
    expect(found.has).toEqual([true, false]);
    expect(found.refused).toMatchObject({ name: "InvalidInput" });
    expect(found.other).toMatchObject({ name: "PinMismatch" });
    const paths = fixture.pages.came.map(({ path }) => path).filter((path) => path.startsWith("/v1/tables/"));
    expect(paths.length).toBeGreaterThan(0);
    expect(paths.some((path) => /name|499/.test(path))).toBe(false);
    expect(fixture.complaints).toEqual([]);
  });
});
