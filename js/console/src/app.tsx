/** The application: shows the page that the address names, or asks for a token. */
import { useCallback, useEffect, useState } from "react";
import type { Problem } from "./api/problem";
import { Server } from "./api/server";
import type { OwnToken } from "./api/types";
import { Frame } from "./frame";
import { CollectionPage } from "./pages/collection";
import { CollectionsPage } from "./pages/collections";
import { LoadPage } from "./pages/load";
import { NewCollectionPage } from "./pages/new-collection";
import { PlaygroundPage } from "./pages/playground";
import { SignIn } from "./pages/sign-in";
import { TokensPage } from "./pages/tokens";
import { problemIn } from "./parts/asked";
import { Empty, Title, Trouble, Waiting } from "./parts/basics";
import { linkTo, useRoute } from "./router";
import { SignedIn } from "./state";

type Entry =
  | { stage: "asking" }
  | { stage: "out"; problem: Problem | null }
  | { stage: "lost"; problem: Problem }
  | { stage: "in"; server: Server; own: OwnToken };

export function App() {
  const [entry, setEntry] = useState<Entry>({ stage: "asking" });

  /** With a token, or without one where the server may need none. */
  const enter = useCallback(async (token: string | null) => {
    const server = new Server(token);
    try {
      setEntry({ stage: "in", server, own: await server.own() });
    } catch (cause) {
      const problem = problemIn(cause);
      if (problem.status === 401) setEntry({ stage: "out", problem: token === null ? null : problem });
      else if (token === null) setEntry({ stage: "lost", problem });
      else setEntry({ stage: "out", problem });
    }
  }, []);

  useEffect(() => {
    void enter(null);
  }, [enter]);

  const signOut = useCallback(() => {
    // Who comes next begins at the beginning.
    location.hash = linkTo({ page: "collections" });
    setEntry({ stage: "out", problem: null });
  }, []);
  switch (entry.stage) {
    case "asking":
      return (
        <main className="alone">
          <Waiting what="Asking the server" />
        </main>
      );
    case "lost":
      return (
        <main className="alone">
          <h1>ciphervec</h1>
          <Trouble problem={entry.problem} again={() => void enter(null)} />
        </main>
      );
    case "out":
      return <SignIn problem={entry.problem} enter={enter} />;
    case "in":
      return (
        <SignedIn server={entry.server} own={entry.own} signOut={signOut}>
          <Frame>
            <Page />
          </Frame>
        </SignedIn>
      );
  }
}

function Page() {
  const route = useRoute();
  switch (route.page) {
    case "collections":
      return <CollectionsPage />;
    case "collection":
      return <CollectionPage key={route.name} name={route.name} tab={route.tab} />;
    case "new":
      return <NewCollectionPage />;
    case "playground":
      return <PlaygroundPage />;
    case "tokens":
      return <TokensPage />;
    case "load":
      return <LoadPage />;
    case "missing":
      return (
        <>
          <Title>Nothing is here</Title>
          <Empty title="This address names no page">
            <p>
              Go to the <a href={linkTo({ page: "collections" })}>collections</a>.
            </p>
          </Empty>
        </>
      );
  }
}
