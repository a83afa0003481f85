/** Small parts that every page is made of: what to say where there is nothing, where something failed, and facts. */
import { type ReactNode, useState } from "react";
import type { Problem } from "../api/problem";

export function Trouble({ problem, again }: { problem: Problem; again?: (() => void) | undefined }) {
  return (
    <div className="trouble" role="alert">
      <p className="trouble-says">{problem.message}</p>
      {problem.hint !== undefined && <p>{problem.hint}</p>}
      {problem.request !== undefined && problem.status >= 500 && (
        <p className="quiet">
          The server's log has it under <code>{problem.request}</code>.
        </p>
      )}
      {again !== undefined && (
        <button type="button" className="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return (
    <p className="waiting" role="status">
      <span className="pulse" aria-hidden="true" />
      {what}
    </p>
  );
}

/** Lines as they are typed; with `copy` also a button that takes them. */
export function Command({ children, copy = false }: { children: string; copy?: boolean }) {
  const [copied, setCopied] = useState(false);
  const lines = (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <pre className="command" tabIndex={0}>
      <code>{children}</code>
    </pre>
  );
  // Pages that came without TLS from another machine have no clipboard.
  if (!copy || navigator.clipboard === undefined) return lines;
  const take = () => void navigator.clipboard.writeText(children).then(() => setCopied(true));
  return (
    <div className="copied">
      {lines}
      <button type="button" className="button small" onClick={take}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

/** Numbers with their names, the number first. */
export function Facts({ facts }: { facts: { name: string; value: ReactNode; note?: string | undefined }[] }) {
  return (
    <dl className="facts">
      {facts.map(({ name, value, note }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {value}
            {note !== undefined && <span className="fact-note">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Title of a page, which is told to screen readers when the page changes. */
export function Title({
  children,
  note,
  actions,
}: {
  children: ReactNode;
  note?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <header className="title">
      <div>
        <h1 tabIndex={-1} id="title">
          {children}
        </h1>
        {note !== undefined && <p className="quiet">{note}</p>}
      </div>
      {actions !== undefined && <div className="actions">{actions}</div>}
    </header>
  );
}

/** A table that scrolls by itself where it is wider than the screen; or `stacks` its cells there, each by its label. */
export function Table(props: { label: string; stacks?: boolean; children: ReactNode }) {
  const { label, stacks = false, children } = props;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className={stacks ? "table stacks" : "table"} aria-label={label} tabIndex={0}>
      <table>{children}</table>
    </section>
  );
}
