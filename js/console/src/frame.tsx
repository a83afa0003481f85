/** The bar around every page: links, who is signed in, and the theme. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useAsked } from "./parts/asked";
import { linkTo, useRoute } from "./router";
import { type Theme, usePage } from "./state";

export function Frame({ children }: { children: ReactNode }) {
  const { own, signOut, holder, setHolder, warnings } = usePage();
  const route = useRoute();
  const first = useRef(true);
  const name =
    route.page === "collection" ? route.name : route.page === "new" ? "new collection" : route.page;

  // A new page is told to who cannot see it change; a tab of the same page is none.
  useEffect(() => {
    document.title = `${name === "missing" ? "not found" : name} · ciphervec`;
    if (first.current) first.current = false;
    else toContent();
  }, [name]);

  const links = [
    {
      to: linkTo({ page: "collections" }),
      name: "Collections",
      here: route.page.startsWith("collection") || route.page === "new",
      shown: true,
    },
    { to: linkTo({ page: "load" }), name: "Load", here: route.page === "load", shown: own.metrics },
    { to: linkTo({ page: "tokens" }), name: "Tokens", here: route.page === "tokens", shown: true },
    {
      to: linkTo({ page: "playground" }),
      name: "Playground",
      here: route.page === "playground",
      shown: true,
    },
  ];
  return (
    <>
      <button type="button" className="skip" onClick={toContent}>
        To the content
      </button>
      <header className="top">
        <a className="brand" href={linkTo({ page: "collections" })}>
          <Mark />
          ciphervec
        </a>
        <nav aria-label="Pages">
          {links
            .filter(({ shown }) => shown)
            .map(({ to, name, here }) => (
              <a key={name} href={to} aria-current={here ? "page" : undefined}>
                {name}
              </a>
            ))}
        </nav>
        <div className="top-end">
          {holder !== null && (
            <button type="button" className="button small" onClick={() => setHolder(null)}>
              {holder.keyId === null ? "Close" : "Forget keys"}
            </button>
          )}
          <ThemeChoice />
          {own.required && (
            <button type="button" className="button small" onClick={signOut}>
              Sign out
            </button>
          )}
        </div>
      </header>
      <main>
        {warnings.map((warning) => (
          <p key={warning} className="notice" role="status">
            {warning}
          </p>
        ))}
        {children}
      </main>
      <Foot />
    </>
  );
}

function toContent() {
  document.getElementById("title")?.focus();
}

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>("system");
  useEffect(() => {
    const root = document.documentElement;
    if (theme === "system") delete root.dataset["theme"];
    else root.dataset["theme"] = theme;
  }, [theme]);
  return (
    <label className="theme">
      <span className="hidden">Colours</span>
      <select value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
        <option value="system">System</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Foot() {
  const { server } = usePage();
  const about = useAsked((signal) => server.about(signal), [server]);
  const licences = document.querySelector<HTMLLinkElement>("link[rel=license]")?.href;
  return (
    <footer className="foot">
      {about.value !== null && <span>ciphervec {about.value.server}</span>}
      <a href="/openapi.json">HTTP interface</a>
      {licences !== undefined && <a href={licences}>Licences</a>}
    </footer>
  );
}

export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <g fill="none" stroke="currentColor" strokeWidth="2.8" strokeLinecap="round">
        <path d="M23 9a10 10 0 1 0 0 14" />
        <path d="M16 16h11" />
      </g>
      <circle cx="16" cy="16" r="2.8" fill="currentColor" />
    </svg>
  );
}
