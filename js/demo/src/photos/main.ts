/** The page of photos: a person's clicks become calls of the album, and hits are shown. It computes nothing itself. */

import type { Progress } from "@ciphervec/client";
import type { KeyFile } from "../connect.ts";
import { element, make } from "../dom.ts";
import { count, time } from "../format.ts";
import { doing, download, linkOther, say } from "../page.ts";
import { Pipeline } from "../pipeline.ts";
import { SeenByServer } from "../seen.ts";
import { Album, type Hit } from "./album.ts";
import { LOOK } from "./describe.ts";
import { draw, type Photo, read, SCENES } from "./pictures.ts";

/** Another model of images goes here. */
const DESCRIBER = LOOK;
const DRAWN = 3;

const passphrase = element<HTMLInputElement>("passphrase");
const makeButton = element<HTMLButtonElement>("make");
const saveButton = element<HTMLButtonElement>("save");
const drawnButton = element<HTMLButtonElement>("drawn");
const chosen = element<HTMLInputElement>("chosen");
const asked = element<HTMLInputElement>("asked-file");
const pipeline = new Pipeline();
const seen = new SeenByServer((request) => pipeline.passed(request));
let album: Album | null = null;

async function takeUp(file?: KeyFile): Promise<void> {
  say(
    "key",
    file === undefined ? "Making a key …" : "Opening the file: its passphrase is stretched on purpose …",
  );
  await album?.end();
  album = await Album.begin(DESCRIBER, file);
  say("key", `Key ${album.keys.keyId} is in this page’s Worker, and nowhere else.`);
  saveButton.disabled = false;
  await look();
}

/** What the server has for this key. */
async function look(): Promise<void> {
  let there = 0;
  try {
    there = (await album?.count()) ?? 0;
    say(
      "seal",
      there === 0
        ? "The server has no photo of yours."
        : `${count(there)} photos are there, sealed under your key.`,
    );
    mayAdd(true);
  } catch (error) {
    say(
      "seal",
      `The server has photos, and this key sees nothing of them: ${error instanceof Error ? error.message : error}`,
      true,
    );
    mayAdd(false);
  }
  mayAsk(there > 0);
  await seen.lookAtDisk();
}

function mayAdd(allowed: boolean): void {
  drawnButton.disabled = !allowed;
  chosen.disabled = !allowed;
}

function mayAsk(allowed: boolean): void {
  asked.disabled = !allowed;
  for (const chip of element("examples").querySelectorAll("button")) chip.disabled = !allowed;
}

async function add(photos: Promise<Photo>[]): Promise<void> {
  if (album === null) return;
  say("seal", "Describing them in this page …");
  const began = performance.now();
  const ready = await Promise.all(photos);
  await album.add(ready, ({ phase }: Progress) => say("seal", `${phase} …`));
  await look();
  say(
    "seal",
    `${count(ready.length)} photos described, sealed and stored in ${time(performance.now() - began)}.`,
  );
}

async function ask(photo: Promise<Photo>): Promise<void> {
  if (album === null) return;
  pipeline.clear();
  const hits = element("hits");
  try {
    pipeline.begin("embed");
    const began = performance.now();
    const ready = await photo;
    pipeline.end("embed", time(performance.now() - began));
    element("asked").replaceChildren(picture(ready.small), ` ${ready.name}`);
    element("asked").hidden = false;
    const found = await album.like(ready, (progress) => pipeline.told(progress));
    pipeline.rest();
    hits.replaceChildren(...found.map(item));
  } catch (error) {
    pipeline.clear();
    hits.replaceChildren(make("li", "empty", error instanceof Error ? error.message : String(error)));
  }
}

/** A picture, of a data: address only: a row that somebody else wrote makes the page load nothing. */
function picture(small: string): HTMLImageElement {
  const image = document.createElement("img");
  if (small.startsWith("data:image/jpeg;base64,")) image.src = small;
  image.alt = ""; // its name stands beside it
  return image;
}

function item({ name, small, score }: Hit): HTMLElement {
  return make(
    "li",
    "",
    picture(small),
    make("div", "name", make("span", "", name), make("span", "score", score.toFixed(3))),
  );
}

function wire(): void {
  element("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void doing("key", makeButton, () => takeUp());
  });
  const keyFile = element<HTMLInputElement>("key-file");
  keyFile.addEventListener("change", () => {
    const [one] = keyFile.files ?? [];
    if (one === undefined) return;
    void doing("key", makeButton, async () => {
      const read = new Uint8Array(await one.arrayBuffer());
      keyFile.value = "";
      await takeUp({ bytes: read, passphrase: passphrase.value });
    });
  });
  saveButton.addEventListener("click", () =>
    doing("key", saveButton, async () => {
      if (album === null) return;
      say("key", "Writing the file: its passphrase is stretched on purpose …");
      download(
        new Uint8Array(await album.keys.toFile({ passphrase: passphrase.value })),
        "ciphervec-photos.key",
      );
      say("key", "Saved, encrypted under your passphrase.");
    }),
  );
  drawnButton.addEventListener("click", () =>
    doing("seal", drawnButton, () =>
      add(
        Object.keys(SCENES).flatMap((scene) =>
          Array.from({ length: DRAWN }, async (_, i) =>
            read(await draw(scene, i), `${scene} ${i + 1}`, DESCRIBER.side),
          ),
        ),
      ),
    ),
  );
  chosen.addEventListener("change", () =>
    doing("seal", drawnButton, async () => {
      const files = [...(chosen.files ?? [])];
      chosen.value = "";
      await add(files.map((file) => read(file, file.name, DESCRIBER.side)));
    }),
  );
  asked.addEventListener("change", () => {
    const [one] = asked.files ?? [];
    if (one !== undefined) void ask(read(one, one.name, DESCRIBER.side));
    asked.value = "";
  });
  for (const scene of Object.keys(SCENES)) {
    const chip = make("button", "chip", `another ${scene}`) as HTMLButtonElement;
    chip.type = "button";
    chip.disabled = true;
    chip.addEventListener("click", () => {
      void ask(draw(scene, 100).then((blob) => read(blob, `another ${scene}`, DESCRIBER.side)));
    });
    element("examples").append(chip);
  }
}

wire();
linkOther();
