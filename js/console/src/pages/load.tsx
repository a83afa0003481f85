/** The page of the server's load: charts of the last minutes, from metrics read every other second. */
import { useEffect, useRef, useState } from "react";
import type { Problem } from "../api/problem";
import { bytes, digits, duration, number } from "../format";
import { Chart } from "../load/chart";
import { History, type Moment } from "../load/history";
import { problemIn } from "../parts/asked";
import { Empty, Facts, Table, Title, Trouble, Waiting } from "../parts/basics";
import { usePage } from "../state";

const PAUSE = 2000;
const SPAN = 180_000;

export function LoadPage() {
  const { server, own } = usePage();
  const [moments, setMoments] = useState<readonly Moment[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [running, setRunning] = useState(true);
  const history = useRef(new History(SPAN / PAUSE + 1));

  useEffect(() => {
    if (!running || !own.metrics) return;
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        // What nobody looks at is not asked for.
        if (!document.hidden)
          setMoments(history.current.add(await server.metrics(ending.signal), Date.now()));
        setProblem(null);
      } catch (cause) {
        if (ending.signal.aborted) return;
        setProblem(problemIn(cause));
      }
      timer = setTimeout(() => void read(), PAUSE);
    };
    void read();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [running, own.metrics, server]);

  if (!own.metrics) {
    return (
      <>
        <Title>Load</Title>
        <Empty title="This token does not read the load">
          <p>
            It takes the permission <code>metrics</code>, or <code>admin</code> on <code>*</code>.
          </p>
        </Empty>
      </>
    );
  }
  const now = moments.at(-1);
  return (
    <>
      <Title
        note="The last three minutes, read every two seconds"
        actions={
          <button
            type="button"
            className="button"
            aria-pressed={!running}
            onClick={() => setRunning(!running)}
          >
            {running ? "Pause" : "Go on"}
          </button>
        }
      >
        Load
      </Title>
      {problem !== null && <Trouble problem={problem} />}
      {now === undefined && problem === null && <Waiting what="Reading the metrics" />}
      {now !== undefined && <Pictures moments={moments} now={now} />}
    </>
  );
}

function Pictures({ moments, now }: { moments: readonly Moment[]; now: Moment }) {
  const points = (pick: (moment: Moment) => number | null) =>
    moments.map((moment) => ({ at: moment.at, value: pick(moment) }));
  const aSecond = (value: number) => `${digits(value)}/s`;
  const traffic = (value: number) => `${bytes(value)}/s`;
  const budget =
    now.budget === null ? undefined : { name: `the budget of ${bytes(now.budget)}`, value: now.budget };
  const refused = moments.reduce((sum, one) => sum + one.refused, 0);
  return (
    <>
      <Facts
        facts={[
          { name: "Queries waiting", value: number(now.waiting ?? 0) },
          { name: "Requests in flight", value: number(now.inFlight ?? 0) },
          { name: "Connections", value: number(now.connections ?? 0) },
          { name: "Turned away", value: number(refused), note: "in this time" },
        ]}
      />
      <div className="charts">
        <Chart
          title="Queries"
          series={[{ name: "queries", points: points((one) => one.queries) }]}
          show={aSecond}
          least={1}
          span={SPAN}
          nothing="It begins with the second reading."
        />
        <Chart
          title="Time of a query"
          series={[
            { name: "p95", points: points((one) => one.scanSlow) },
            { name: "median", points: points((one) => one.scanMiddle) },
          ]}
          show={duration}
          least={0.01}
          span={SPAN}
          nothing="No query was answered in this time."
        />
        <Chart
          title="Memory"
          series={[
            { name: "process", points: points((one) => one.process) },
            { name: "segments", points: points((one) => one.resident) },
          ]}
          show={bytes}
          least={1e8}
          span={SPAN}
          limit={budget !== undefined && (now.process ?? 0) > budget.value / 20 ? budget : undefined}
          nothing="The system does not say what the process takes."
        />
        <Chart
          title="Requests"
          series={[{ name: "requests", points: points((one) => one.requests) }]}
          show={aSecond}
          least={1}
          span={SPAN}
          nothing="It begins with the second reading."
        />
        <Chart
          title="Waiting before a query"
          series={[{ name: "p95", points: points((one) => one.queueSlow) }]}
          show={duration}
          least={0.01}
          span={SPAN}
          nothing="No query was answered in this time."
        />
        <Chart
          title="Traffic"
          series={[
            { name: "out", points: points((one) => one.sent) },
            { name: "in", points: points((one) => one.received) },
          ]}
          show={traffic}
          least={1000}
          span={SPAN}
          nothing="It begins with the second reading."
        />
      </div>
      <details className="numbers">
        <summary>The last readings as numbers</summary>
        <Table label="The last readings">
          <thead>
            <tr>
              <th scope="col">At</th>
              <th scope="col" className="right">
                Queries
              </th>
              <th scope="col" className="right">
                Median
              </th>
              <th scope="col" className="right">
                p95
              </th>
              <th scope="col" className="right">
                Process
              </th>
            </tr>
          </thead>
          <tbody>
            {moments.slice(-10).map((one) => (
              <tr key={one.at}>
                <th scope="row">{new Date(one.at).toLocaleTimeString("en-GB")}</th>
                <td className="right">{one.queries === null ? "–" : aSecond(one.queries)}</td>
                <td className="right">{one.scanMiddle === null ? "–" : duration(one.scanMiddle)}</td>
                <td className="right">{one.scanSlow === null ? "–" : duration(one.scanSlow)}</td>
                <td className="right">{one.process === null ? "–" : bytes(one.process)}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      </details>
    </>
  );
}
