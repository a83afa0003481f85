/** The tab that queries with a vector, a stored row or a text, and shows hits and the work for them as it happens. */
import * as Tabs from "@radix-ui/react-tabs";
import { type FormEvent, useRef, useState } from "react";
import type { Description } from "../api/description";
import type { Problem } from "../api/problem";
import type { CollectionState } from "../api/types";
import { short } from "../format";
import type { Hit, OpenCollection, Step } from "../keys/contract";
import { useOpened } from "../keys/opened";
import { readModel } from "../model/model";
import { readVector } from "../model/vector";
import { problemIn, useAsked } from "../parts/asked";
import { Empty, Trouble, Waiting } from "../parts/basics";
import { KeyDrop } from "../parts/key-drop";
import { allows, usePage } from "../state";
import { Metadata } from "./sight";
import { Work } from "./work";

const WAYS = { vector: "A vector", like: "More like a row", text: "A text" } as const;
type Way = keyof typeof WAYS;
/** Rows offered as examples. */
const OFFERED = 30;

interface TabProps {
  state: CollectionState;
  description: Description | null;
}

export function QueryTab({ state, description }: TabProps) {
  const { own } = usePage();
  const opened = useOpened(state.name, state.head);
  if (state.segments.length === 0) {
    return (
      <Empty title="No row to find">
        <p>A query finds rows, and this collection has none yet.</p>
      </Empty>
    );
  }
  if (!allows(own, "query", state.name) || !allows(own, "read", state.name)) {
    return (
      <Empty title="This token may not ask here">
        <p>
          Asking takes the permission <code>query</code>, opening answers the permission <code>read</code>.
        </p>
      </Empty>
    );
  }
  if (!opened.unlocked) {
    return (
      <KeyDrop
        plain={description?.mode === "open"}
        why="Queries are encrypted in this page, and answers are opened in it. Both take the owner's key."
      />
    );
  }
  if (opened.problem !== null) return <Trouble problem={opened.problem} again={opened.again} />;
  if (opened.collection === null) return <Waiting what="Opening the collection in this page" />;
  return (
    <Ask
      collection={opened.collection}
      sees={description?.mode === "sealed-index" || description?.mode === "open"}
    />
  );
}

function Ask({ collection, sees }: { collection: OpenCollection; sees: boolean }) {
  const { model } = usePage();
  const [way, setWay] = useState<Way>("vector");
  const [pasted, setPasted] = useState("");
  const [like, setLike] = useState("");
  const [text, setText] = useState("");
  const [texts, setTexts] = useState(false);
  const [steps, setSteps] = useState<Step[]>([]);
  const [found, setFound] = useState<{ hits: Hit[]; ownersOnly: boolean } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [working, setWorking] = useState(false);
  const ending = useRef<AbortController | null>(null);

  async function vectorOf(signal: AbortSignal): Promise<Float32Array> {
    if (way === "like") {
      if (like === "") throw new Error("Choose a row, or type its id.");
      return collection.vector(like, signal);
    }
    if (way === "vector") return readVector(pasted, collection.dimension);
    if (model === null) throw new Error("Drop a text model first: it makes vectors of texts in this page.");
    if (model.dimension !== collection.dimension) {
      throw new Error(
        `The model makes ${model.dimension} dimensions, and the collection has ${collection.dimension}.`,
      );
    }
    if (text.trim() === "") throw new Error("Type a question.");
    return model.embed(text);
  }

  async function submit(event: FormEvent) {
    event.preventDefault();
    ending.current?.abort();
    const controller = new AbortController();
    ending.current = controller;
    setProblem(null);
    setFound(null);
    setSteps([]);
    setWorking(true);
    try {
      const vector = await vectorOf(controller.signal);
      const told = (step: Step) =>
        setSteps((before) => [...before.filter(({ phase }) => phase !== step.phase), step]);
      setFound(await collection.query(vector, 10, { texts }, told, controller.signal));
    } catch (cause) {
      if (!controller.signal.aborted) setProblem(problemIn(cause));
    }
    setWorking(false);
  }

  return (
    <div className="sides ask">
      <form onSubmit={(event) => void submit(event)}>
        <Tabs.Root value={way} onValueChange={(next) => setWay(next as Way)}>
          <Tabs.List className="tabs minor" aria-label="What to ask with">
            {Object.entries(WAYS).map(([key, name]) => (
              <Tabs.Trigger key={key} value={key}>
                {name}
              </Tabs.Trigger>
            ))}
          </Tabs.List>
          <Tabs.Content value="vector">
            <label className="field">
              <span>{collection.dimension} numbers</span>
              <textarea
                rows={6}
                className="mono"
                value={pasted}
                onChange={(event) => setPasted(event.target.value)}
                placeholder="[0.12, -0.03, …]"
                spellCheck={false}
              />
            </label>
          </Tabs.Content>
          <Tabs.Content value="like">
            <Like collection={collection} value={like} choose={setLike} />
          </Tabs.Content>
          <Tabs.Content value="text">
            <TextWay value={text} type={setText} />
          </Tabs.Content>
        </Tabs.Root>
        <label className="check">
          <input type="checkbox" checked={texts} onChange={(event) => setTexts(event.target.checked)} />
          <span>
            Read documents and metadata of hits too, which shows the server in which segments they are.
          </span>
        </label>
        {problem !== null && <Trouble problem={problem} />}
        <div className="dialog-buttons">
          {working && (
            <button type="button" className="button" onClick={() => ending.current?.abort()}>
              Stop
            </button>
          )}
          <button type="submit" className="button primary" disabled={working}>
            {working ? "Searching" : "Search"}
          </button>
        </div>
        <Work steps={steps} working={working} sees={sees} />
      </form>
      <section aria-label="Hits" aria-busy={working}>
        {found === null ? (
          <p className="quiet hits-none">
            {working ? "The server scores every row, and ranks none." : "Hits appear here."}
          </p>
        ) : (
          <Hits hits={found.hits} ownersOnly={found.ownersOnly} />
        )}
      </section>
    </div>
  );
}

function Hits({ hits, ownersOnly }: { hits: Hit[]; ownersOnly: boolean }) {
  if (hits.length === 0) return <p className="quiet">No row was found.</p>;
  return (
    <>
      <p className="hidden" role="status">
        {hits.length} hits
      </p>
      <ol className="hits">
        {hits.map((hit) => (
          <li key={hit.id}>
            <span className="score">{hit.score.toFixed(4)}</span>
            <div>
              <p className="row-id">{hit.id}</p>
              {hit.document !== null && <p className="row-document">{short(hit.document, 240)}</p>}
              {hit.metadata !== null && Object.keys(hit.metadata).length > 0 && (
                <Metadata metadata={hit.metadata} />
              )}
            </div>
          </li>
        ))}
      </ol>
      {ownersOnly && (
        <p className="quiet">
          These scores carry noise of the encryption, and are the key owner's own: do not pass them on.
        </p>
      )}
    </>
  );
}

function Like({
  collection,
  value,
  choose,
}: {
  collection: OpenCollection;
  value: string;
  choose: (id: string) => void;
}) {
  const rows = useAsked((signal) => collection.rows(0, OFFERED, { vectors: false }, signal), [collection]);
  return (
    <>
      <label className="field">
        <span>Id of a row</span>
        <input
          value={value}
          onChange={(event) => choose(event.target.value)}
          list="ids"
          autoComplete="off"
          spellCheck={false}
        />
      </label>
      <datalist id="ids">
        {(rows.value ?? []).map(({ id, document }) => (
          <option key={id} value={id}>
            {document === null ? id : short(document, 60)}
          </option>
        ))}
      </datalist>
      {rows.problem !== null && <Trouble problem={rows.problem} again={rows.again} />}
      <p className="quiet">Its vector is read from the server, opened here, and encrypted anew as a query.</p>
    </>
  );
}

function TextWay({ value, type }: { value: string; type: (text: string) => void }) {
  const { model, setModel } = usePage();
  const [says, setSays] = useState<string | null>(null);
  async function take(files: FileList | null) {
    if (files === null || files.length === 0) return;
    try {
      setModel(await readModel([...files]));
      setSays(null);
    } catch (cause) {
      setSays(problemIn(cause).message);
    }
  }
  return (
    <>
      {model !== null && (
        <label className="field">
          <span>A question</span>
          <input value={value} onChange={(event) => type(event.target.value)} autoComplete="off" />
        </label>
      )}
      <label className="file">
        <input type="file" multiple accept=".json,.bin" onChange={(event) => void take(event.target.files)} />
        <span>
          {model === null
            ? "Choose the two files of a text model"
            : `${model.name}, ${model.dimension} dimensions. Choose another`}
        </span>
      </label>
      {says !== null && (
        <p className="wrong" role="alert">
          {says}
        </p>
      )}
      <p className="quiet">
        A model makes vectors of texts in this page: <code>ciphervec demo --export-web</code> writes that of
        the demo. It is data and no code; the server sees neither it nor the text.
      </p>
    </>
  );
}
