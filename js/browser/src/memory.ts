/** Searches the memory of a browser's processes for bytes, as an attacker on this machine would. */

import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";

const CHUNK = 16 << 20;

/** Processes of the browser that runs on this folder: the first one and all that it began. */
export function processes(folder: string): number[] {
  const parents = new Map<number, number>();
  let first: number | undefined;
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const command = readFileSync(`/proc/${entry}/cmdline`, "utf8");
      const status = readFileSync(`/proc/${entry}/status`, "utf8");
      parents.set(Number(entry), Number(/^PPid:\s*(\d+)/m.exec(status)?.[1] ?? 0));
      if (command.includes(`--user-data-dir=${folder}`) && !command.includes("--type="))
        first ??= Number(entry);
    } catch {
      // It ended meanwhile.
    }
  }
  if (first === undefined) throw new Error(`no process runs on ${folder}`);
  const found = [first];
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child);
  return found;
}

/** How often the bytes lie in what these processes may read and write. Throws EACCES where the system forbids to look. */
export function occurrences(pids: readonly number[], bytes: Buffer): number {
  return pids.reduce((sum, pid) => sum + occurrencesIn(pid, bytes), 0);
}

function occurrencesIn(pid: number, bytes: Buffer): number {
  let found = 0;
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const buffer = Buffer.alloc(CHUNK + bytes.length);
  for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
    if (match === null) continue;
    const [start, end] = [Number.parseInt(match[1] ?? "", 16), Number.parseInt(match[2] ?? "", 16)];
    for (let at = start; at < end; at += CHUNK) {
      const length = Math.min(CHUNK + bytes.length - 1, end - at);
      let had = 0;
      try {
        had = readSync(memory, buffer, 0, length, at);
      } catch {
        continue; // pages of a device, which cannot be read so
      }
      const piece = buffer.subarray(0, had);
      for (let i = piece.indexOf(bytes); i >= 0; i = piece.indexOf(bytes, i + 1)) found += 1;
    }
  }
  closeSync(memory);
  return found;
}
