/** Small parts that every page is made of: what to say where there is nothing, where something failed, and facts. */
import type { ReactNode } from "react";
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

/** A command to copy. */
export function Command({ children }: { children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <pre className="command" tabIndex={0}>
      <code>{children}</code>
    </pre>
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

/** A table that scrolls by itself where it is wider than the screen. */
export function Table({ label, children }: { label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="table" aria-label={label} tabIndex={0}>
      <table>{children}</table>
    </section>
  );
}
