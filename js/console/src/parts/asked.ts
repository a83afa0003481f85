/** A hook for what takes a while: what is known by now, and a way to ask again. */
import { type DependencyList, useCallback, useEffect, useState } from "react";
import { Problem, unreachable } from "../api/problem";

export interface Asked<T> {
  value: T | null;
  problem: Problem | null;
  /** Whether an answer is on its way, be it the first or another. */
  waiting: boolean;
  again: () => void;
}

/** Asks once, when what it depends on changes, and when told; the answer of before stays until the next is there. */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, depends: DependencyList): Asked<T> {
  const [state, setState] = useState<Omit<Asked<T>, "again">>({ value: null, problem: null, waiting: true });
  const [turn, setTurn] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the caller says what the question depends on
  useEffect(() => {
    const ending = new AbortController();
    setState((before) => ({ ...before, waiting: true }));
    ask(ending.signal).then(
      (value) => ending.signal.aborted || setState({ value, problem: null, waiting: false }),
      (cause: unknown) => {
        if (!ending.signal.aborted) setState({ value: null, problem: problemIn(cause), waiting: false });
      },
    );
    return () => ending.abort();
  }, [...depends, turn]);
  return { ...state, again: useCallback(() => setTurn((before) => before + 1), []) };
}

/** Whatever was thrown, as a problem that can be shown. */
export function problemIn(cause: unknown): Problem {
  if (cause instanceof Problem || cause instanceof DOMException || cause instanceof TypeError)
    return unreachable(cause);
  return new Problem(0, cause instanceof Error ? cause.message : String(cause));
}
