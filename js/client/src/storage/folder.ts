/** Storage in files of a folder, for Node. */

import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, unlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "../http/transport.js";
import { refused, type Storage } from "./storage.js";

const STALE = 10_000; // milliseconds after which a lock is of a process that died
const STEP = 20;

/** A file for each name, by the name's parts; written whole or not at all. */
export class FolderStorage implements Storage {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  get(name: string): Promise<Uint8Array | undefined> {
    return this.#run(async () => {
      const path = this.#file(name);
      const data = await absent(readFile(path));
      if (data === undefined) return undefined;
      const now = new Date();
      await utimes(path, now, now).catch(() => undefined);
      return new Uint8Array(data);
    });
  }

  set(name: string, data: Uint8Array): Promise<void> {
    return this.#run(async () => {
      const path = this.#file(name);
      const draft = `${path}.${randomBytes(6).toString("hex")}.draft`;
      await mkdir(join(path, ".."), { recursive: true, mode: 0o700 });
      try {
        const file = await open(draft, "wx", 0o600);
        try {
          await file.writeFile(data);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(draft, path);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    });
  }

  delete(name: string): Promise<void> {
    return this.#run(() => rm(this.#file(name), { force: true }));
  }

  list(prefix: string): Promise<{ name: string; bytes: number }[]> {
    return this.#run(async () => {
      const folder = prefix.slice(0, prefix.indexOf("/") + 1);
      const names = (await absent(readdir(join(this.#path, folder)))) ?? [];
      const found: { name: string; bytes: number; used: number }[] = [];
      for (const one of names) {
        const status = await absent(stat(join(this.#path, folder, one)));
        const name = folder + one;
        if (status?.isFile() && name.startsWith(prefix) && !/\.(?:draft|lock)$/.test(name))
          found.push({ name, bytes: status.size, used: status.mtimeMs });
      }
      return found.sort((a, b) => a.used - b.used).map(({ name, bytes }) => ({ name, bytes }));
    });
  }

  async exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    const lock = `${this.#file(name)}.lock`;
    await this.#run(async () => {
      await mkdir(join(lock, ".."), { recursive: true, mode: 0o700 });
      for (;;) {
        try {
          await (await open(lock, "wx", 0o600)).close();
          return;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
          const held = await absent(stat(lock));
          if (held !== undefined && Date.now() - held.mtimeMs > STALE) await absent(unlink(lock));
          else await sleep(STEP * Math.random());
        }
      }
    });
    try {
      return await work();
    } finally {
      await rm(lock, { force: true });
    }
  }

  /** Names are those of this package: a word, a slash, hexadecimal digits. Any other is hashed. */
  #file(name: string): string {
    const plain = /^[a-z]+\/[0-9a-f]{1,64}$/.test(name);
    return join(this.#path, plain ? name : `other/${createHash("sha256").update(name).digest("hex")}`);
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw refused(this.#path, error);
    }
  }
}

/** Undefined where there is no such file. */
async function absent<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
