/** Show: `ciphervec serve` on CIPHERVEC_DATA and the built page in front of it, until the person ends them. On their machine. */

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { preview } from "vite";

const { CIPHERVEC_PROGRAM: program = "ciphervec", CIPHERVEC_DATA: data } = process.env;
if (data === undefined)
  throw new Error("CIPHERVEC_DATA must name the folder of the sealed rows; `make demo-web` does");

const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const found = probe.address().port;
    probe.close(() => resolve(found));
  });
});
process.env.CIPHERVEC_URL = `http://127.0.0.1:${port}`;
const server = spawn(program, ["serve", "--data", data, "--listen", `127.0.0.1:${port}`], {
  stdio: "inherit",
});

const root = fileURLToPath(new URL("..", import.meta.url));
const page = await preview({ root, configFile: `${root}/vite.config.ts` });
process.stdout.write(
  `\nThe page: ${page.resolvedUrls?.local[0]}\nSealed rows: ${data}\nAnother browser profile has another key. Ctrl-C ends both.\n`,
);
const end = async () => {
  await page.close();
  server.kill("SIGTERM");
};
server.on("exit", async (code) => {
  process.exitCode = code ?? 1;
  await page.close();
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, end);
