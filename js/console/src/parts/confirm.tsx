/** A dialog that asks before it acts, and shows how far the action has come. */
import * as Progress from "@radix-ui/react-progress";
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Problem } from "../api/problem";
import { bytes } from "../format";
import { problemIn } from "./asked";
import { Trouble } from "./basics";

export interface Doing {
  /** Bytes done and to do; null where nobody knows. */
  progress: (done: number, total: number) => void;
  signal: AbortSignal;
}

interface ConfirmProps {
  title: string;
  /** What happens, before it does. */
  children: ReactNode;
  /** What the button says. */
  verb: string;
  /** To be typed where what is done cannot be undone. */
  typed?: string;
  /** Does it, and says what came of it. */
  act: (doing: Doing) => Promise<ReactNode>;
  close: () => void;
}

type Stage = "asking" | "working" | "done";

export function Confirm({ title, children, verb, typed, act, close }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const ending = useRef<AbortController | null>(null);
  const [stage, setStage] = useState<Stage>("asking");
  const [word, setWord] = useState("");
  const [progress, setProgress] = useState<{ done: number; total: number } | null>(null);
  const [outcome, setOutcome] = useState<ReactNode>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const heading = useId();

  useEffect(() => {
    dialog.current?.showModal();
    return () => ending.current?.abort();
  }, []);

  async function start() {
    const controller = new AbortController();
    ending.current = controller;
    setStage("working");
    setProblem(null);
    try {
      const told = (done: number, total: number) => setProgress({ done, total });
      setOutcome(await act({ progress: told, signal: controller.signal }));
      setStage("done");
    } catch (cause) {
      if (controller.signal.aborted) return;
      setProblem(problemIn(cause));
      setStage("asking");
    }
  }

  const ready = typed === undefined || word === typed;
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby={heading} onClose={close}>
      <h2 id={heading}>{title}</h2>
      {stage === "asking" && (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (ready) void start();
          }}
        >
          {children}
          {typed !== undefined && (
            <label className="field">
              <span>
                Type <code>{typed}</code> to go on
              </span>
              <input
                value={word}
                onChange={(event) => setWord(event.target.value)}
                autoComplete="off"
                spellCheck={false}
              />
            </label>
          )}
          {problem !== null && <Trouble problem={problem} />}
          <div className="dialog-buttons">
            <button type="button" className="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button type="submit" className="button primary" disabled={!ready}>
              {verb}
            </button>
          </div>
        </form>
      )}
      {stage === "working" && (
        <>
          <Bar progress={progress} label={title} />
          <div className="dialog-buttons">
            <button type="button" className="button" onClick={() => dialog.current?.close()}>
              Stop watching
            </button>
          </div>
        </>
      )}
      {stage === "done" && (
        <>
          <div role="status">{outcome}</div>
          <div className="dialog-buttons">
            <button type="button" className="button primary" onClick={() => dialog.current?.close()}>
              Done
            </button>
          </div>
        </>
      )}
    </dialog>
  );
}

function Bar({ progress, label }: { progress: { done: number; total: number } | null; label: string }) {
  const share =
    progress === null || progress.total === 0 ? null : Math.min(1, progress.done / progress.total);
  const percent = share === null ? null : Math.round(share * 100);
  return (
    <>
      <Progress.Root className="bar" value={percent} max={100} aria-label={label}>
        <Progress.Indicator
          className={share === null ? "bar-fill unknown" : "bar-fill"}
          style={{ width: `${percent ?? 100}%` }}
        />
      </Progress.Root>
      <p className="quiet">
        {progress === null
          ? "The server works on it."
          : `${bytes(progress.done)} of ${bytes(progress.total)}, ${percent} %`}
      </p>
    </>
  );
}
