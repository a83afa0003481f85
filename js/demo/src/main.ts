/** The demo's page: answers a person's clicks with its parts, and computes nothing itself. */

import type { Progress } from "@ciphervec/client";
import { element, make } from "./dom.ts";
import { Embedder, type ModelHead } from "./embedder.ts";
import { bytes, count, time } from "./format.ts";
import * as keptFile from "./kept.ts";
import { doing, download, linkOther, say } from "./page.ts";
import { Pipeline } from "./pipeline.ts";
import { type Hit, type Passage, Search } from "./search.ts";
import { SeenByServer } from "./seen.ts";

const passphrase = element<HTMLInputElement>("passphrase");
const question = element<HTMLInputElement>("question");
const sealButton = element<HTMLButtonElement>("seal");
const pipeline = new Pipeline();
const seen = new SeenByServer((request) => pipeline.passed(request));

let embedder: Embedder | null = null;
let passages: Passage[] = [];
let search: Search | null = null;
/** Passages that the server has under this key. */
let sealed = 0;

async function load(): Promise<void> {
  const [head, floats, texts] = await Promise.all([
    fetched("model/model.json").then((answer) => answer.json() as Promise<ModelHead>),
    fetched("model/model.bin").then((answer) => answer.arrayBuffer()),
    fetched("model/passages.json").then((answer) => answer.json() as Promise<Passage[]>),
  ]);
  embedder = new Embedder(head, floats);
  passages = texts;
  element("corpus").textContent =
    `${count(passages.length)} passages of Python ${head.python}’s documentation`;
  element("dimension").textContent = String(head.dimension);
  for (const example of head.questions) {
    const chip = make("button", "chip", example) as HTMLButtonElement;
    chip.type = "button";
    chip.disabled = true;
    chip.addEventListener("click", () => {
      question.value = example;
      void ask();
    });
    element("examples").append(chip);
  }
}

async function fetched(path: string): Promise<Response> {
  const answer = await fetch(path);
  if (!answer.ok)
    throw new Error(`${path} is not there (${answer.status}): run \`make demo-web\`, which writes it`);
  return answer;
}

/** Take up a key: its file's bytes and passphrase, or nothing for a new one. */
async function takeUp(file?: { bytes: Uint8Array; passphrase: string }): Promise<void> {
  say(
    "key",
    file === undefined ? "Making a key …" : "Opening the file: its passphrase is stretched on purpose …",
  );
  await search?.end();
  search = await Search.begin(file);
  element("key-id").textContent = search.keys.keyId;
  element("key-form").hidden = true;
  element("key-made").hidden = false;
  say("key", "");
  await look();
}

/** What the server has for this key. */
async function look(): Promise<void> {
  if (search === null) return;
  try {
    const there = await search.find();
    sealed = there ?? 0;
    sealButton.disabled = sealed >= passages.length;
    say(
      "seal",
      there === null
        ? "The server has nothing of yours."
        : `${count(there)} passages are there, sealed under your key.`,
    );
    mayAsk(there !== null && there > 0);
  } catch (error) {
    mayAsk(false);
    sealButton.disabled = true;
    const says = error instanceof Error ? error.message : String(error);
    say("seal", `The server has passages, and this key sees nothing of them: ${says}`, true);
  }
  await seen.lookAtDisk();
}

function mayAsk(allowed: boolean): void {
  question.disabled = !allowed;
  element<HTMLButtonElement>("ask").disabled = !allowed;
  for (const chip of element("examples").querySelectorAll("button")) chip.disabled = !allowed;
}

async function seal(): Promise<void> {
  if (search === null || embedder === null) return;
  const bar = element<HTMLProgressElement>("sealing");
  bar.hidden = false;
  const began = performance.now();
  await search.seal(passages, embedder, (progress) => {
    bar.value = progress.total === null ? 0 : progress.done / progress.total;
    say("seal", phrase(progress));
  });
  bar.hidden = true;
  sealed = passages.length;
  const took = performance.now() - began;
  say("seal", `${count(passages.length)} passages embedded, sealed and stored in ${time(took)}.`);
  mayAsk(true);
  await seen.lookAtDisk();
}

function phrase({ phase, done, total }: Progress): string {
  if (phase === "upload") return `${bytes(done)}${total === null ? "" : ` of ${bytes(total)}`} went up …`;
  return phase === "seal" ? `${count(done)} of ${count(total ?? 0)} are sealed …` : `${phase} …`;
}

async function ask(): Promise<void> {
  const text = question.value.trim();
  if (search === null || embedder === null || text === "") return;
  pipeline.clear();
  const hits = element("hits");
  try {
    pipeline.begin("embed");
    const began = performance.now();
    const [vector, words] = [embedder.embed([text]), embedder.weigh(text).map(({ word }) => word)];
    pipeline.end("embed", time(performance.now() - began));
    const found = await search.ask(vector, (progress) => pipeline.told(progress));
    pipeline.rest();
    showAsked(text, words);
    hits.replaceChildren(...found.map(item));
  } catch (error) {
    pipeline.clear();
    hits.replaceChildren(make("li", "empty", error instanceof Error ? error.message : String(error)));
  }
}

function showAsked(text: string, words: string[]): void {
  const asked = element("asked");
  const marks = words.flatMap((word) => [make("mark", "", word), " "]);
  asked.replaceChildren(
    `“${text}” was embedded by `,
    ...(marks.length > 0 ? marks : ["none of its words, which are all unknown"]),
  );
  asked.hidden = false;
}

function item({ name, text, score }: Hit): HTMLElement {
  const line = make("div", "name", make("span", "", name), make("span", "score", score.toFixed(3)));
  return make("li", "", line, make("p", "", text));
}

/** The key's file under the passphrase in the form. */
async function file(): Promise<Uint8Array<ArrayBuffer>> {
  if (search === null) throw new Error("make a key first");
  say("key", "Writing the file: its passphrase is stretched on purpose …");
  const written = await search.keys.toFile({ passphrase: passphrase.value });
  return new Uint8Array(written);
}

function wire(): void {
  const makeButton = element<HTMLButtonElement>("make");
  element("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void doing("key", makeButton, () => takeUp());
  });
  const chosen = element<HTMLInputElement>("key-file");
  chosen.addEventListener("change", () => {
    const [one] = chosen.files ?? [];
    if (one === undefined) return;
    void doing("key", makeButton, async () => {
      const bytes = new Uint8Array(await one.arrayBuffer());
      chosen.value = "";
      await takeUp({ bytes, passphrase: passphrase.value });
    });
  });
  const reopen = element<HTMLButtonElement>("reopen");
  reopen.hidden = keptFile.read() === null;
  reopen.addEventListener("click", () =>
    doing("key", reopen, async () => {
      const bytes = keptFile.read();
      if (bytes !== null) await takeUp({ bytes, passphrase: passphrase.value });
    }),
  );
  const save = element<HTMLButtonElement>("save");
  save.addEventListener("click", () =>
    doing("key", save, async () => {
      download(await file(), "ciphervec-demo.key");
      say("key", "Saved, encrypted under your passphrase.");
    }),
  );
  const keep = element<HTMLButtonElement>("keep");
  keep.addEventListener("click", () =>
    doing("key", keep, async () => {
      keptFile.write(await file());
      reopen.hidden = false;
      say("key", "Kept in this browser, encrypted under your passphrase: load the page again and open it.");
    }),
  );
  element("forget").addEventListener("click", async () => {
    await search?.end();
    search = null;
    element("key-form").hidden = false;
    element("key-made").hidden = true;
    sealButton.disabled = true;
    mayAsk(false);
    element("hits").replaceChildren(make("li", "empty", "Ask, and the passages that answer best come here."));
    element("asked").hidden = true;
    pipeline.clear();
    say("key", "The key was wiped from memory.");
    say("seal", "");
  });
  sealButton.addEventListener("click", async () => {
    await doing("seal", sealButton, seal);
    sealButton.disabled = sealed >= passages.length;
  });
  element("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void ask();
  });
}

wire();
linkOther();
load().catch((error: unknown) => say("key", error instanceof Error ? error.message : String(error), true));
