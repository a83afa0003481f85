/** The steps of a query as bars: how long each took, and who did it. */
import { bytes, duration } from "../format";
import { PHASES, type Phase, type Step } from "../keys/contract";

const SAYS: Record<Phase, { name: string; where: string }> = {
  encrypt: { name: "Encrypt", where: "in this page" },
  upload: { name: "Bytes up", where: "on the way" },
  server: { name: "Score every row", where: "at the server" },
  download: { name: "Bytes down", where: "on the way" },
  open: { name: "Decrypt and rank", where: "in this page" },
};

interface WorkProps {
  steps: readonly Step[];
  working: boolean;
  /** Whether the mode shows queries to the server. */
  sees: boolean;
}

export function Work({ steps, working, sees }: WorkProps) {
  if (steps.length === 0 && !working) return null;
  const total = Math.max(1, ...steps.map(({ ms }) => ms ?? 0));
  const sum = steps.reduce((all, { ms }) => all + (ms ?? 0), 0);
  const reached = Math.max(-1, ...steps.map(({ phase }) => PHASES.indexOf(phase)));
  return (
    <section className="work" aria-label="The work">
      <ol>
        {PHASES.map((phase, place) => {
          const step = steps.find((one) => one.phase === phase);
          const now = working && place === reached;
          const { name, where } = SAYS[phase];
          return (
            <li key={phase} className={step === undefined ? "later" : now ? "now" : "over"}>
              <span className="work-name">
                {phase === "encrypt" && sees ? "Prepare" : name} <small>{where}</small>
              </span>
              <span className="work-bar" aria-hidden="true">
                <span style={{ width: `${(100 * (step?.ms ?? 0)) / total}%` }} />
              </span>
              <span className="work-took">
                {step?.bytes != null && <span>{bytes(step.bytes)}</span>}
                {step?.ms != null && <span>{duration(step.ms / 1000)}</span>}
              </span>
            </li>
          );
        })}
      </ol>
      {!working && sum > 0 && (
        <p className="quiet">
          {duration(sum / 1000)} in all{sees ? "; this mode shows the query itself to the server" : ""}.
        </p>
      )}
    </section>
  );
}
