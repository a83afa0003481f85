/** A collection opened under the page's keys, if it has some. */

import type { Problem } from "../api/problem";
import { useAsked } from "../parts/asked";
import { usePage } from "../state";
import type { OpenCollection } from "./contract";

export interface Opened {
  /** Whether the page has keys. */
  unlocked: boolean;
  collection: OpenCollection | null;
  problem: Problem | null;
  again: () => void;
}

/** Opens it anew when its state is another. */
export function useOpened(name: string, head: string): Opened {
  const { holder } = usePage();
  const asked = useAsked(async () => (holder === null ? null : holder.open(name)), [holder, name, head]);
  return { unlocked: holder !== null, collection: asked.value, problem: asked.problem, again: asked.again };
}
