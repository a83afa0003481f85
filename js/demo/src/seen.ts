/** The server's half of the page: the requests that the recorder saw, and the bytes on the disk. */

import type { Disk, Seen } from "../server/recorder.ts";
import { element, make } from "./dom.ts";
import { bytes, grouped, time } from "./format.ts";

const KEPT = 40;

/** The list of requests and the bytes on the disk; `told` hears of each request as well. */
export class SeenByServer {
  readonly #list = element<HTMLOListElement>("seen");
  readonly #events = new EventSource("/seen");

  constructor(told: (seen: Seen) => void) {
    this.#list.tabIndex = 0; // it scrolls, and must by keyboard
    this.#events.onmessage = ({ data }) => {
      const seen = JSON.parse(data) as Seen;
      this.#list.prepend(row(seen));
      while (this.#list.children.length > KEPT) this.#list.lastElementChild?.remove();
      told(seen);
    };
    this.#events.onerror = () => {
      if (this.#events.readyState === EventSource.CLOSED)
        element("disk-says").textContent =
          "Nothing stands on the wire here; `make demo-web` shows what passes.";
    };
  }

  /** Look at the disk again. */
  async lookAtDisk(): Promise<void> {
    const answer = await fetch("/seen/disk");
    const disk = answer.ok ? ((await answer.json()) as Disk | null) : null;
    if (disk === null) return;
    element("disk-says").textContent =
      `${disk.file}, ${bytes(disk.length)}; from byte ${disk.offset.toLocaleString("en")}:`;
    const hex = element("disk");
    hex.textContent = grouped(disk.sample);
    hex.hidden = false;
  }
}

function row(seen: Seen): HTMLElement {
  const line = make(
    "div",
    "line",
    make("b", "", seen.method),
    ` ${seen.path} → ${seen.status}, ${time(seen.serverMs)}`,
  );
  const list = document.createElement("dl");
  for (const [name, part] of [
    ["in", seen.up],
    ["out", seen.down],
  ] as const)
    if (part.length > 0) {
      const even = part.length > 4096 ? ` · ${part.entropy.toFixed(3)} of 8 bits a byte are noise` : "";
      list.append(make("dt", "", name), make("dd", "", `${bytes(part.length)}${even}`, hex(part.head)));
    }
  return make("li", "", line, list);
}

function hex(head: string): HTMLElement {
  return make("pre", "hex", `${grouped(head)}${head === "" ? "" : " …"}`);
}
