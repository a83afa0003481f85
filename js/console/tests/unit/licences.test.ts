/** Licences: which package a module is of, and that nothing with another licence gets in. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { licenceOf, packageOf } from "../../build/licences.ts";

it("knows the packages of modules", () => {
  expect(packageOf("/a/node_modules/react/cjs/react.js")).toBe("/a/node_modules/react");
  expect(packageOf("/a/node_modules/@radix-ui/react-tabs/dist/index.mjs")).toBe(
    "/a/node_modules/@radix-ui/react-tabs",
  );
  expect(packageOf("/a/node_modules/b/node_modules/c/x.js")).toBe("/a/node_modules/b/node_modules/c");
  expect(packageOf("/a/js/console/src/main.tsx")).toBeNull();
});

it("has their texts, and refuses what is not permissive", () => {
  const react = licenceOf(fileURLToPath(new URL("../../../node_modules/react", import.meta.url)));
  expect(react).toMatch(/^react \d+\.\d+\.\d+, MIT\n\nMIT License/);
  const folder = mkdtempSync(join(tmpdir(), "licences-"));
  for (const license of ["GPL-3.0-only", undefined, "SEE LICENSE IN x"]) {
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "x", version: "1", license }));
    expect(() => licenceOf(folder)).toThrow(/expected one of MIT/);
  }
  rmSync(folder, { recursive: true });
});
