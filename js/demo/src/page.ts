/** What both pages do with a click: its button is off meanwhile, and an error is said where the person looks. */

import { element } from "./dom.ts";

/** Write a line under a part of the page, `key` or another that has an element `…-says`. */
export function say(where: string, text: string, bad = false): void {
  const says = element(`${where}-says`);
  says.textContent = text;
  says.classList.toggle("bad", bad);
}

/** Run what a click began. */
export async function doing(
  where: string,
  button: HTMLButtonElement,
  work: () => Promise<void>,
): Promise<void> {
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    say(where, error instanceof Error ? error.message : String(error), true);
  } finally {
    button.disabled = false;
  }
}

/** The other page's link, of the same server. */
export function linkOther(): void {
  element<HTMLAnchorElement>("other").search = location.search;
}

export function download(file: Uint8Array<ArrayBuffer>, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([file]));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
