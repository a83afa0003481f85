/**
 * What describes a photo: pixels become a vector, in the page. A model of images goes here, as a `Describer`.
 *
 * `LOOK` is none. It describes colours and edges by place, so that photos that look alike are near one another; it knows nothing
 * of what is in them.
 */

/** Pixels in rows, four bytes each: red, green, blue, and one that is not read. */
export interface Pixels {
  width: number;
  height: number;
  data: Uint8ClampedArray;
}

/** What makes vectors of photos. Photos of one collection have one, by its name. */
export interface Describer {
  /** Letters, digits and dashes. */
  readonly name: string;
  readonly dimension: number;
  /** The side of the square that photos are scaled to. */
  readonly side: number;
  describe(pixels: Pixels): Promise<Float32Array>;
}

const SIDE = 64;
const CELLS = 4;
const DIRECTIONS = 8;
const COLOURS = 3;
const BY_COLOUR = CELLS * CELLS * COLOURS;
const BY_EDGE = CELLS * CELLS * DIRECTIONS;
/** One number more, so that a photo that is grey all over is no zero vector. */
const DIMENSION = BY_COLOUR + BY_EDGE + 1;
const CONSTANT = 0.1;

export const LOOK: Describer = {
  name: "look-1",
  dimension: DIMENSION,
  side: SIDE,
  describe: async (pixels) => look(pixels),
};

/** Means of light, red against green, and yellow against blue in 4 × 4 cells; in each, too, how strong edges of 8 directions are. */
export function look({ width, height, data }: Pixels): Float32Array {
  if (width !== SIDE || height !== SIDE || data.length !== 4 * SIDE * SIDE)
    throw new Error(
      `expected ${SIDE} × ${SIDE} pixels of 4 bytes, got ${width} × ${height} with ${data.length} bytes`,
    );
  const light = new Float32Array(SIDE * SIDE);
  const colours = new Float32Array(BY_COLOUR);
  const edges = new Float32Array(BY_EDGE);
  const cell = (x: number, y: number) =>
    CELLS * Math.floor((y * CELLS) / SIDE) + Math.floor((x * CELLS) / SIDE);
  for (let y = 0; y < SIDE; y++)
    for (let x = 0; x < SIDE; x++) {
      const at = 4 * (SIDE * y + x);
      const [red, green, blue] = [data[at] ?? 0, data[at + 1] ?? 0, data[at + 2] ?? 0];
      light[SIDE * y + x] = (red + green + blue) / 3;
      const place = COLOURS * cell(x, y);
      const parts = [(red + green + blue) / 3 - 127.5, red - green, (red + green) / 2 - blue];
      parts.forEach((part, i) => {
        colours[place + i] = (colours[place + i] ?? 0) + part;
      });
    }
  for (let y = 1; y < SIDE - 1; y++)
    for (let x = 1; x < SIDE - 1; x++) {
      const at = SIDE * y + x;
      const right = (light[at + 1] ?? 0) - (light[at - 1] ?? 0);
      const down = (light[at + SIDE] ?? 0) - (light[at - SIDE] ?? 0);
      // A direction and its opposite are one: which side is the lighter one says little.
      const turn = (Math.atan2(down, right) + Math.PI) / Math.PI;
      const place = DIRECTIONS * cell(x, y) + (Math.floor(turn * DIRECTIONS) % DIRECTIONS);
      edges[place] = (edges[place] ?? 0) + Math.hypot(right, down);
    }
  const whole = new Float32Array(DIMENSION);
  whole.set(unit(colours), 0);
  whole.set(unit(edges), BY_COLOUR);
  whole[DIMENSION - 1] = CONSTANT;
  return unit(whole);
}

/** At unit length; zeros stay. */
function unit(values: Float32Array): Float32Array {
  const length = Math.hypot(...values);
  return length === 0 ? values : values.map((value) => value / length);
}
