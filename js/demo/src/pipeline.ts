/** The strip that shows a question's stages, step by step. */

import type { Progress } from "@ciphervec/client";
import type { Seen } from "../server/recorder.ts";
import { element, make } from "./dom.ts";
import { bytes, time } from "./format.ts";

const QUERY = /\/query$/;

const STAGES = [
  { name: "embed", title: "Embed", where: "this page", side: "yours" },
  { name: "encrypt", title: "Encrypt", where: "this page’s Worker", side: "yours" },
  { name: "up", title: "Up", where: "the wire", side: "wire" },
  { name: "server", title: "Compare", where: "the server, on noise", side: "server" },
  { name: "down", title: "Down", where: "the wire", side: "wire" },
  { name: "open", title: "Decrypt and rank", where: "this page’s Worker", side: "yours" },
] as const;

export type Stage = (typeof STAGES)[number]["name"];

/** The strip of six stages. */
export class Pipeline {
  readonly #items = new Map<Stage, HTMLElement>();

  constructor() {
    const list = element("pipeline");
    for (const { name, title, where, side } of STAGES) {
      const item = make("li", side, make("b", "", title), make("span", "", "–"), make("small", "", where));
      this.#items.set(name, item);
      list.append(item);
    }
  }

  /** Forget the last question. */
  clear(): void {
    for (const item of this.#items.values()) {
      item.classList.remove("now");
      this.#write(item, "–");
    }
  }

  /** This is being done now, and nothing else. */
  begin(stage: Stage): void {
    for (const [name, item] of this.#items) item.classList.toggle("now", name === stage);
  }

  /** Nothing is being done. */
  rest(): void {
    for (const item of this.#items.values()) item.classList.remove("now");
  }

  /** This is done; it took, or carried, so much. */
  end(stage: Stage, value: string): void {
    const item = this.#items.get(stage);
    if (item === undefined) return;
    item.classList.remove("now");
    this.#write(item, value);
  }

  /** What the client tells of a query; the wire and the server are shown as the recorder saw them. */
  told({ phase, ms }: Progress): void {
    if (phase === "server") this.begin("server");
    if (phase !== "encrypt" && phase !== "open") return;
    if (ms === undefined) this.begin(phase);
    else this.end(phase, time(ms));
  }

  /** A request has passed on the wire; of a query it says what went up, what came down and how long the server took. */
  passed({ method, path, up, down, serverMs }: Seen): void {
    if (method !== "POST" || !QUERY.test(path)) return;
    this.end("up", bytes(up.length));
    this.end("server", time(serverMs));
    this.end("down", bytes(down.length));
  }

  #write(item: HTMLElement, value: string): void {
    const span = item.querySelector("span");
    if (span !== null) span.textContent = value;
  }
}
