/** The page that asks for a token, which stays in the memory of this page alone. */
import { type FormEvent, useRef, useState } from "react";
import type { Problem } from "../api/problem";
import { Mark } from "../frame";
import { Command, Trouble } from "../parts/basics";

interface SignInProps {
  /** Why the last token was refused. */
  problem: Problem | null;
  enter: (token: string) => Promise<void>;
}

export function SignIn({ problem, enter }: SignInProps) {
  const [waiting, setWaiting] = useState(false);
  const [says, setSays] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);

  async function submit(event: FormEvent) {
    event.preventDefault();
    const token = field.current?.value.trim() ?? "";
    const wrong = complaint(token);
    setSays(wrong);
    if (wrong !== null) {
      field.current?.focus();
      return;
    }
    setWaiting(true);
    await enter(token);
    setWaiting(false);
    if (field.current !== null) field.current.value = "";
  }

  return (
    <main className="alone">
      <div className="sign-in">
        <h1 className="brand large">
          <Mark />
          ciphervec
        </h1>
        <p className="lead">This server asks for a token.</p>
        <form onSubmit={(event) => void submit(event)} noValidate>
          <label className="field">
            <span>Token</span>
            <input
              ref={field}
              type="password"
              name="token"
              autoComplete="off"
              spellCheck={false}
              placeholder="cv1_…"
              aria-invalid={says !== null}
              aria-describedby={says === null ? "kept" : "wrong kept"}
              required
            />
          </label>
          {says !== null && (
            <p id="wrong" className="wrong" role="alert">
              {says}
            </p>
          )}
          {problem !== null && says === null && <Trouble problem={problem} />}
          <button type="submit" className="button primary wide" disabled={waiting}>
            {waiting ? "Signing in" : "Sign in"}
          </button>
          <p id="kept" className="quiet">
            It stays in the memory of this tab, and is gone when you close or reload it.
          </p>
        </form>
        <details>
          <summary>I have no token</summary>
          <p>Whoever runs the server makes one, where its data lies:</p>
          <Command>
            {"ciphervec token create --data db --collection '*' --permission admin --expires 1d"}
          </Command>
          <p className="quiet">
            The page shows what the token may see: <code>read</code> for stored bytes, <code>query</code> to
            ask, <code>metrics</code> for load, <code>admin</code> for upkeep.
          </p>
        </details>
      </div>
    </main>
  );
}

/** What is wrong with a token as it was typed; null where nothing is. */
export function complaint(token: string): string | null {
  if (token === "") return "Paste a token: it begins with cv1_.";
  if (/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return null; // of an identity provider
  if (!token.startsWith("cv1_"))
    return "A token begins with cv1_, or has two dots where an identity provider signed it.";
  if (!/^cv1_[A-Za-z0-9_-]{43}$/.test(token)) {
    return `A token is cv1_ and 43 characters; this has ${Math.max(0, token.length - 4)}. Paste all of it.`;
  }
  return null;
}
