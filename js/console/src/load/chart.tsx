/** A small line chart of one or two series, with a sentence that says the same. */
import { line, type Point, top } from "./shape";

export interface Series {
  name: string;
  points: readonly Point[];
}

interface ChartProps {
  title: string;
  /** The first is drawn in colour, the second, if any, thin beside it. */
  series: Series[];
  show: (value: number) => string;
  /** The least upper end of the scale. */
  least: number;
  /** Milliseconds that the picture is wide. */
  span: number;
  /** A level that is drawn as a line, such as a budget. */
  limit?: { name: string; value: number } | undefined;
  /** What it says where nothing came yet. */
  nothing: string;
}

const WIDTH = 320;
const HEIGHT = 84;

export function Chart({ title, series, show, least, span, limit, nothing }: ChartProps) {
  const to = Math.max(0, ...series.flatMap(({ points }) => points.map(({ at }) => at)));
  const from = to - span;
  const values = series.flatMap(({ points }) => points.map(({ value }) => value));
  const max = top([...values, limit?.value ?? 0], least);
  const last = series.map(({ name, points }) => ({ name, value: latest(points) }));
  const says = last
    .map(({ name, value }) => `${name}: ${value === null ? "nothing" : show(value)}`)
    .join(", ");
  const empty = values.every((value) => value === null);
  const level = limit === undefined ? null : HEIGHT - (HEIGHT * limit.value) / max;
  return (
    <figure className="chart">
      <figcaption>
        <span className="chart-title">{title}</span>
        <span className="chart-now">
          {last.map(({ name, value }, number) => (
            <span key={name} className={number === 0 ? "first" : "second"}>
              {value === null ? "–" : show(value)}
              {series.length > 1 && <small> {name}</small>}
            </span>
          ))}
        </span>
      </figcaption>
      <div className="chart-frame">
        <span className="chart-axis" aria-hidden="true">
          <span>{empty ? "" : show(max)}</span>
          <span>{empty ? "" : show(max / 2)}</span>
          <span>{empty ? "" : "0"}</span>
        </span>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}. ${says}.`}
        >
          <line className="chart-rule" x1="0" y1={HEIGHT - 0.5} x2={WIDTH} y2={HEIGHT - 0.5} />
          <line className="chart-rule" x1="0" y1={HEIGHT / 2} x2={WIDTH} y2={HEIGHT / 2} />
          <line className="chart-rule" x1="0" y1="0.5" x2={WIDTH} y2="0.5" />
          {level !== null && <line className="chart-limit" x1="0" y1={level} x2={WIDTH} y2={level} />}
          {series.map(({ name, points }, number) => {
            const path = line(points, from, to, max, WIDTH, HEIGHT);
            return <path key={name} className={number === 0 ? "chart-line" : "chart-line thin"} d={path} />;
          })}
        </svg>
      </div>
      <p className="chart-foot">
        {empty ? (
          nothing
        ) : (
          <>
            <span>{Math.round(span / 60_000)} min ago</span>
            {limit !== undefined && <span>dashed: {limit.name}</span>}
            <span>now</span>
          </>
        )}
      </p>
    </figure>
  );
}

function latest(points: readonly Point[]): number | null {
  return points.at(-1)?.value ?? null;
}
