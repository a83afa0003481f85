/** The scale of a chart, and the path of its lines. */

export interface Point {
  at: number;
  value: number | null;
}

/** A round number that is at least the largest value, so that the scale does not jump with every point. */
export function top(values: readonly (number | null)[], least: number): number {
  const most = Math.max(least, ...values.map((value) => value ?? 0));
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= most * 0.999) ?? 10;
  return step * power;
}

/** The line through the points as SVG has it, with gaps where there is no value. */
export function line(
  points: readonly Point[],
  from: number,
  to: number,
  max: number,
  width: number,
  height: number,
): string {
  let path = "";
  let pen = false;
  for (const { at, value } of points) {
    if (value === null) {
      pen = false;
      continue;
    }
    const x = (width * (at - from)) / Math.max(to - from, 1);
    const y = height - (height * Math.min(value, max)) / max;
    path += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  }
  return path;
}
