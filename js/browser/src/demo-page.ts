/** Serves the built demo page as `make demo-web` does. */

import { preview } from "vite";
import { DEMO } from "./needs.ts";

export class DemoPage implements AsyncDisposable {
  readonly url: string;
  readonly #end: () => Promise<void>;

  private constructor(url: string, end: () => Promise<void>) {
    this.url = url;
    this.#end = end;
  }

  static async begin(server: { url: string; folder: string }): Promise<DemoPage> {
    process.env["CIPHERVEC_URL"] = server.url;
    process.env["CIPHERVEC_DATA"] = server.folder;
    const shown = await preview({
      root: DEMO,
      configFile: `${DEMO}/vite.config.ts`,
      preview: { port: 0, strictPort: false },
      logLevel: "error",
    });
    const [url] = shown.resolvedUrls?.local ?? [];
    if (url === undefined) throw new Error("vite preview has no address");
    return new DemoPage(url, () => shown.close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
  }
}
