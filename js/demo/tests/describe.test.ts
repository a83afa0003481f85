/** The descriptions of photos, on pixels whose means and edges are known. */

import { describe, expect, it } from "vitest";
import { LOOK, look, type Pixels } from "../src/photos/describe.ts";

const SIDE = LOOK.side;
const CELL = SIDE / 4;
/** Where the numbers of edges begin. */
const EDGES = 48;

function pixels(colour: (x: number, y: number) => [number, number, number]): Pixels {
  const data = new Uint8ClampedArray(4 * SIDE * SIDE);
  for (let y = 0; y < SIDE; y++)
    for (let x = 0; x < SIDE; x++) data.set([...colour(x, y), 255], 4 * (SIDE * y + x));
  return { width: SIDE, height: SIDE, data };
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);

describe("the description of a photo", () => {
  it("is a vector of unit length, also of one that is the same all over", () => {
    for (const grey of [0, 127, 255]) {
      const vector = look(pixels(() => [grey, grey, grey]));
      expect(vector.length).toBe(LOOK.dimension);
      expect(dot(vector, vector)).toBeCloseTo(1, 5);
    }
  });

  it("has the means of each cell's colours", () => {
    // One cell is red, the others are black: light −127.5 but 85 − 127.5, red against green 255, yellow against blue 127.5.
    const vector = look(pixels((x, y) => (x >= CELL && x < 2 * CELL && y < CELL ? [255, 0, 0] : [0, 0, 0])));
    const [light, opponent, yellow] = [vector[3] ?? 0, vector[4] ?? 0, vector[5] ?? 0];
    expect(light / opponent).toBeCloseTo(-42.5 / 255, 4);
    expect(yellow / opponent).toBeCloseTo(0.5, 4);
    expect((vector[0] ?? 0) / light).toBeCloseTo(3, 4);
    expect(vector[1]).toBe(0);
  });

  it("has edges where they are, and by their direction", () => {
    const upright = look(pixels((x) => (x < SIDE / 2 ? [0, 0, 0] : [200, 200, 200])));
    const edges = upright.slice(EDGES, -1);
    const strong = [...edges.keys()].filter((i) => (edges[i] ?? 0) > 0);
    // The two columns beside the middle: cells 1 and 2 of each row, all in one direction.
    expect(strong).toEqual([0, 1, 2, 3].flatMap((row) => [8 * (4 * row + 1), 8 * (4 * row + 2)]));
    const level = look(pixels((_, y) => (y < SIDE / 2 ? [0, 0, 0] : [200, 200, 200]))).slice(EDGES, -1);
    expect(dot(edges, level)).toBe(0);
  });

  it("is nearer for what looks alike", () => {
    const sun = (cx: number, shade: number) =>
      look(pixels((x, y) => (Math.hypot(x - cx, y - 20) < 8 ? [255, 230, 120] : [shade, 90, 160])));
    const stripes = look(pixels((x) => (x % 8 < 4 ? [20, 120, 30] : [10, 40, 10])));
    expect(dot(sun(30, 60), sun(33, 66))).toBeGreaterThan(0.9);
    expect(dot(sun(30, 60), stripes)).toBeLessThan(0.5);
  });

  it("refuses pixels of another size", () => {
    expect(() => look({ width: 2, height: 2, data: new Uint8ClampedArray(16) })).toThrow(
      /expected 64 × 64 pixels of 4 bytes, got 2 × 2 with 16 bytes/,
    );
  });
});
