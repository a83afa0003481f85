/** Photos as this page reads them: a file becomes pixels to describe and a small picture to show. And some that are drawn. */

import type { Pixels } from "./describe.ts";

const SHOWN = 160;
const QUALITY = 0.7;

/** A photo that was read. */
export interface Photo {
  /** The SHA-256 of its file, so that the same file is one row. */
  id: string;
  name: string;
  pixels: Pixels;
  /** A JPEG as a data: address, the one kind that the page's policy shows. */
  small: string;
}

/** Throws where the browser can't read the file as a picture. */
export async function read(file: Blob, name: string, side: number): Promise<Photo> {
  const bytes = await file.arrayBuffer();
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  let picture: ImageBitmap;
  try {
    picture = await createImageBitmap(file);
  } catch {
    throw new Error(`${name} is no picture that this browser reads: expected JPEG, PNG, WebP, AVIF or GIF`);
  }
  try {
    const scale = Math.min(1, SHOWN / Math.max(picture.width, picture.height));
    const [width, height] = [picture.width, picture.height].map((size) =>
      Math.max(1, Math.round(size * scale)),
    ) as [number, number];
    return {
      id: Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join(""),
      name,
      pixels: drawn(picture, side, side).getImageData(0, 0, side, side),
      small: await address(
        await drawn(picture, width, height).canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY }),
      ),
    };
  } finally {
    picture.close();
  }
}

function drawn(picture: ImageBitmap, width: number, height: number): OffscreenCanvasRenderingContext2D {
  const pen = penOf(width, height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(picture, 0, 0, width, height);
  return pen;
}

function penOf(width: number, height: number): OffscreenCanvasRenderingContext2D {
  const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  if (pen === null) throw new Error("this browser draws no pictures");
  return pen;
}

async function address(blob: Blob): Promise<string> {
  const reader = new FileReader();
  await new Promise((resolve, reject) => {
    reader.onload = resolve;
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  return String(reader.result);
}

// Drawn ones, for who has no photos at hand.

type Draw = (pen: OffscreenCanvasRenderingContext2D, random: () => number) => void;
const WIDTH = 320;
const HEIGHT = 240;

/** Scenes that can be drawn, each in as many ways as one likes. */
export const SCENES: { [name: string]: Draw } = {
  sea: (pen, random) => {
    sky(pen, "#f7b267", "#f25c54", 130);
    disc(pen, 60 + 200 * random(), 105 + 20 * random(), 22, "#ffe8c2");
    sky(pen, "#1b4965", "#0b2545", HEIGHT, 130);
    for (let i = 0; i < 30; i++)
      box(pen, WIDTH * random(), 135 + 100 * random(), 20 + 40 * random(), 2, "#5fa8d3");
  },
  forest: (pen, random) => {
    sky(pen, "#d8f3dc", "#95d5b2", HEIGHT);
    for (let i = 0; i < 26; i++) {
      const [x, height] = [WIDTH * random(), 90 + 110 * random()];
      box(pen, x - 3, HEIGHT - height, 6, height, "#5c4033");
      pen.fillStyle = random() < 0.5 ? "#1b4332" : "#2d6a4f";
      pen.beginPath();
      pen.moveTo(x - 22, HEIGHT - 20);
      pen.lineTo(x, HEIGHT - height - 20);
      pen.lineTo(x + 22, HEIGHT - 20);
      pen.fill();
    }
  },
  city: (pen, random) => {
    sky(pen, "#10002b", "#240046", HEIGHT);
    for (let x = 0; x < WIDTH; x += 36) {
      const height = 70 + 130 * random();
      box(pen, x, HEIGHT - height, 32, height, "#3c096c");
      for (let y = HEIGHT - height + 8; y < HEIGHT - 8; y += 14)
        for (let w = 5; w < 28; w += 9)
          if (random() < 0.6) box(pen, x + w, y, 5, 7, random() < 0.8 ? "#ffd166" : "#f8f9fa");
    }
  },
  meadow: (pen, random) => {
    sky(pen, "#a9def9", "#e4f3fb", 100);
    sky(pen, "#90be6d", "#43aa8b", HEIGHT, 100);
    const colours = ["#f94144", "#f9c74f", "#ffffff", "#f3722c"];
    for (let i = 0; i < 90; i++)
      disc(pen, WIDTH * random(), 110 + 130 * random(), 3 + 3 * random(), colours[i % 4] ?? "#ffffff");
  },
};

/** A scene's picture of this number, the same each time. */
export async function draw(scene: string, number: number): Promise<Blob> {
  const pen = penOf(WIDTH, HEIGHT);
  const scenes = Object.keys(SCENES);
  SCENES[scene]?.(pen, numbers(1000 * scenes.indexOf(scene) + number));
  return pen.canvas.convertToBlob({ type: "image/png" });
}

/** Numbers from 0 to 1 that look random: Lehmer's generator. */
function numbers(seed: number): () => number {
  let state = 16_807 * (seed + 1);
  return () => {
    state = (48_271 * state) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

function sky(
  pen: OffscreenCanvasRenderingContext2D,
  top: string,
  bottom: string,
  to: number,
  from = 0,
): void {
  const fade = pen.createLinearGradient(0, from, 0, to);
  fade.addColorStop(0, top);
  fade.addColorStop(1, bottom);
  pen.fillStyle = fade;
  pen.fillRect(0, from, WIDTH, to - from);
}

function box(
  pen: OffscreenCanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  colour: string,
): void {
  pen.fillStyle = colour;
  pen.fillRect(x, y, width, height);
}

function disc(
  pen: OffscreenCanvasRenderingContext2D,
  x: number,
  y: number,
  radius: number,
  colour: string,
): void {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
}
