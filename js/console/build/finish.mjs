/**
 * Last step of the build: copies dist/, with brotli beside each file, into the folder that the server's binary is made
 * from. Fails where the page's JavaScript is larger than it may be.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const HERE = dirname(fileURLToPath(import.meta.url));
const DIST = join(HERE, "..", "dist");
const TARGET = join(HERE, "..", "..", "..", "crates", "server", "console");
/** Bytes of JavaScript, gzipped, beside wasm. */
const LIMIT = 250_000;

function files(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? files(path) : [path];
  });
}

let script = 0;
const lines = [];
for (const path of files(DIST)) {
  const bytes = readFileSync(path);
  const packed = gzipSync(bytes, { level: 9 }).length;
  if (extname(path) === ".js") script += packed;
  lines.push(
    `${relative(DIST, path).padEnd(44)}${bytes.length.toString().padStart(9)}  gzip ${packed.toString().padStart(8)}`,
  );
}
process.stdout.write(`${lines.join("\n")}\nJavaScript, gzipped: ${script} of ${LIMIT} bytes\n`);
if (script > LIMIT) {
  process.stderr.write(
    "the console's JavaScript is larger than it may be; see what came in with: npx vite-bundle-visualizer\n",
  );
  process.exit(1);
}

// All but the file by which git knows the folder.
if (existsSync(TARGET)) {
  for (const name of readdirSync(TARGET))
    if (name !== ".gitignore") rmSync(join(TARGET, name), { recursive: true });
}
mkdirSync(TARGET, { recursive: true });
cpSync(DIST, TARGET, { recursive: true });
for (const path of files(TARGET).filter((path) => !path.endsWith(".gitignore"))) {
  const bytes = readFileSync(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
  const packed = brotliCompressSync(bytes, { params });
  if (packed.length < bytes.length) writeFileSync(`${path}.br`, packed);
}
