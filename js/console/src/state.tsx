/** State of the page: who is signed in, whose keys are open, how it looks. In memory only: a closed tab forgets it. */
import { createContext, type ReactNode, use, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Server } from "./api/server";
import type { Grant, OwnToken } from "./api/types";
import type { KeyHolder } from "./keys/contract";
import type { TextModel } from "./model/model";

export type Theme = "system" | "light" | "dark";

interface PageState {
  server: Server;
  own: OwnToken;
  signOut: () => void;
  holder: KeyHolder | null;
  setHolder: (holder: KeyHolder | null) => void;
  model: TextModel | null;
  setModel: (model: TextModel | null) => void;
  /** What does not stop anything and should be known. */
  warnings: readonly string[];
  warn: (message: string) => void;
}

const Context = createContext<PageState | null>(null);

export function usePage(): PageState {
  const state = use(Context);
  if (state === null) throw new Error("usePage outside of SignedIn");
  return state;
}

/** What is below knows the server and who asks; keys that were opened are wiped when it goes. */
export function SignedIn(props: { server: Server; own: OwnToken; signOut: () => void; children: ReactNode }) {
  const { server, own, signOut, children } = props;
  const [holder, keep] = useState<KeyHolder | null>(null);
  const [model, setModel] = useState<TextModel | null>(null);
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const warn = useCallback(
    (message: string) =>
      setWarnings((before) => (before.includes(message) ? before : [...before, message].slice(-5))),
    [],
  );
  const held = useRef<KeyHolder | null>(null);
  const setHolder = useCallback((next: KeyHolder | null) => {
    if (held.current !== next) held.current?.dispose();
    held.current = next;
    setWarnings([]);
    keep(next);
  }, []);
  useEffect(() => {
    const wipe = () => held.current?.dispose();
    addEventListener("pagehide", wipe);
    return () => {
      removeEventListener("pagehide", wipe);
      wipe();
    };
  }, []);
  const state = useMemo(
    () => ({ server, own, signOut, holder, setHolder, model, setModel, warnings, warn }),
    [server, own, signOut, holder, setHolder, model, warnings, warn],
  );
  return <Context value={state}>{children}</Context>;
}

/** Whether whoever asks has a permission on a collection; without tokens everyone has. */
export function allows(own: OwnToken, permission: string, collection: string): boolean {
  if (!own.required) return true;
  const grants: Grant[] = [...(own.token === undefined ? [] : [own.token]), ...(own.identity?.grants ?? [])];
  return grants.some(({ verbs, collections }) => {
    const has = verbs.some((verb) => verb === permission || verb === "admin");
    return (
      has &&
      collections.some((pattern) =>
        pattern.endsWith("*") ? collection.startsWith(pattern.slice(0, -1)) : collection === pattern,
      )
    );
  });
}
