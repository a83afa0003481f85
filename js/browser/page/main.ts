/** Page of the browser tests: the package as a page's own code has it, and what makes vectors there. */

import * as client from "@ciphervec/client";
import { gaussian, nearest } from "./kit.ts";

/** What a rejected call says: the name of its class, and its words. */
export async function outcome<T>(
  work: () => Promise<T>,
): Promise<{ value: T } | { name: string; message: string }> {
  try {
    return { value: await work() };
  } catch (error) {
    const { name, message } = error as Error;
    return { name, message };
  }
}

export interface Kit {
  client: typeof client;
  gaussian: typeof gaussian;
  nearest: typeof nearest;
  outcome: typeof outcome;
  /** What a test keeps from one step to the next. */
  kept: Record<string, unknown>;
}

declare global {
  interface Window {
    kit: Kit;
  }
}

window.kit = { client, gaussian, nearest, outcome, kept: {} };
