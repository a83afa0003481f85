/**
 * Writes the licences of a bundle's packages beside it, with a link in the page. Fails on a package whose licence is
 * not one of those that this project takes in.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const PERMISSIVE = ["MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD"];

/** The folder of the package that a module is of; null for this project's own. */
export function packageOf(module: string): string | null {
  const found = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(module.replaceAll("\\", "/"));
  return found?.[1] ?? null;
}

/** Name, version, licence and its text. */
export function licenceOf(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<
    string,
    string
  >;
  if (license === undefined || !PERMISSIVE.includes(license)) {
    throw new Error(
      `${name} is under ${license ?? "no licence that it names"}; expected one of ${PERMISSIVE.join(", ")}`,
    );
  }
  const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
  const text = file === undefined ? "" : readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version}, ${license}\n\n${text}\n`;
}

/** Writes `assets/licences-<hash>.txt` and names it in the page. */
export function licences(): Plugin {
  const folders = new Set<string>();
  return {
    name: "licences",
    apply: "build",
    // After what makes the page.
    enforce: "post",
    generateBundle(_, bundle) {
      for (const part of Object.values(bundle)) {
        if (part.type !== "chunk") continue;
        for (const module of Object.keys(part.modules)) {
          const folder = packageOf(module);
          if (folder !== null && existsSync(join(folder, "package.json"))) folders.add(folder);
        }
      }
      const text = [...folders]
        .sort()
        .map(licenceOf)
        .join(`\n${"-".repeat(72)}\n\n`);
      const fileName = `assets/licences-${createHash("sha256").update(text).digest("hex").slice(0, 8)}.txt`;
      this.emitFile({ type: "asset", fileName, source: text });
      for (const part of Object.values(bundle)) {
        if (part.type !== "asset" || part.fileName !== "index.html") continue;
        part.source = String(part.source).replace(
          "</head>",
          `  <link rel="license" href="/${fileName}" />\n  </head>`,
        );
      }
    },
  };
}
