/** Runs `ciphervec bench web`, which answers a page's queries and measures native times on each back-end. */

import { spawn } from "node:child_process";
import { needed, run } from "../src/ciphervec.ts";

/** What either half measures of a mode. */
export interface Times {
  ms_query: number;
  ms_open: number;
  vectors_per_second: number;
  response_bytes: number;
}

export interface NativeTimes {
  backend: string;
  cpu: string;
  cores: number;
  system: string;
  [mode: string]: Times | string | number;
}

/** Answers to a page's queries, until it is disposed of. */
export class Evaluator implements Disposable {
  readonly url: string;
  readonly #end: () => void;

  private constructor(url: string, end: () => void) {
    this.url = url;
    this.#end = end;
  }

  static async begin(rows: number, dimension: number): Promise<Evaluator> {
    const words = ["bench", "web", "--rows", String(rows), "--dim", String(dimension)];
    const serving = spawn(needed(), words, { stdio: ["pipe", "pipe", "inherit"] });
    const url = await new Promise<string>((resolve, reject) => {
      let said = "";
      serving.stdout.on("data", (piece: Buffer) => {
        said += piece.toString();
        const found = /"url":\s*"([^"]+)"/.exec(said);
        if (found?.[1] !== undefined) resolve(found[1]);
      });
      serving.on("exit", (code) => reject(new Error(`\`ciphervec bench web\` ended with ${code}`)));
    });
    return new Evaluator(url, () => serving.stdin.end());
  }

  /** The native module over the same rows, on the back-end of that name or the best one. */
  native(backend?: string): NativeTimes {
    const environment = backend === undefined ? {} : { CIPHERVEC_BACKEND: backend };
    return JSON.parse(run(["bench", "web", "--measure", this.url], environment)) as NativeTimes;
  }

  [Symbol.dispose](): void {
    this.#end();
  }
}
