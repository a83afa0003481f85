/** The playground: sends a request of /openapi.json and shows the server's answer. */
import { type FormEvent, useMemo, useState } from "react";
import { changes, type Operation, operationsOf, requestOf } from "../api/openapi";
import type { Problem } from "../api/problem";
import type { Answer } from "../api/server";
import { bytes, duration } from "../format";
import { problemIn, useAsked } from "../parts/asked";
import { Command, Title, Trouble, Waiting } from "../parts/basics";
import { Field } from "../parts/fields";
import { shell } from "../parts/recipe";
import { usePage } from "../state";

export function PlaygroundPage() {
  const { server, own } = usePage();
  const asked = useAsked(async (signal) => operationsOf(await server.document(signal)), [server]);
  const [chosen, choose] = useState("about");
  const operations = asked.value ?? [];
  const operation = operations.find(({ id }) => id === chosen) ?? operations[0];
  const groups = useMemo(() => [...new Set(operations.map(({ group }) => group))], [operations]);
  return (
    <>
      <Title
        note={`Requests to this server${own.required ? ", with your token" : ""}. Nothing is sent before you press Send.`}
      >
        Playground
      </Title>
      {asked.problem !== null && <Trouble problem={asked.problem} again={asked.again} />}
      {asked.value === null && asked.waiting && <Waiting what="Reading what the server can do" />}
      {operation !== undefined && (
        <>
          <label className="field">
            <span>Request</span>
            <select value={operation.id} onChange={(event) => choose(event.target.value)}>
              {groups.map((group) => (
                <optgroup key={group} label={group}>
                  {operations
                    .filter((one) => one.group === group)
                    .map(({ id, method, path }) => (
                      <option key={id} value={id}>
                        {method} {path}
                      </option>
                    ))}
                </optgroup>
              ))}
            </select>
          </label>
          <Try key={operation.id} operation={operation} />
        </>
      )}
    </>
  );
}

function Try({ operation }: { operation: Operation }) {
  const { server, own } = usePage();
  const [values, setValues] = useState<Record<string, string>>({});
  const [body, setBody] = useState(operation.body === "json" ? "{}" : "");
  const [file, setFile] = useState<File | null>(null);
  const [sure, setSure] = useState(!changes(operation));
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [waiting, setWaiting] = useState(false);
  const request = requestOf(operation, values);
  const fault = operation.body === "json" ? jsonFault(body) : "";

  const send = async (event: FormEvent) => {
    event.preventDefault();
    if (request === null) return;
    setWaiting(true);
    setProblem(null);
    try {
      const content = operation.body === "json" ? body : operation.body === "bytes" ? file : null;
      setAnswer(await server.send(operation.method, request.target, request.headers, content));
    } catch (cause) {
      setAnswer(null);
      setProblem(problemIn(cause));
    }
    setWaiting(false);
  };

  return (
    <div className="sides">
      <form onSubmit={(event) => void send(event)} aria-label="Parts of the request">
        <p>{operation.summary}</p>
        {operation.parameters.map(({ name, required, place }) => (
          <Field
            key={name}
            name={`${name}${place === "header" ? ", a header" : ""}${required ? "" : ", optional"}`}
            value={values[name] ?? ""}
            set={(value) => setValues((before) => ({ ...before, [name]: value }))}
          />
        ))}
        {operation.body === "json" && (
          <label className="field">
            <span>Body, JSON</span>
            <textarea
              rows={5}
              className="mono"
              value={body}
              onChange={(event) => setBody(event.target.value)}
              spellCheck={false}
            />
          </label>
        )}
        {operation.body === "bytes" && (
          <label className="field">
            <span>Body, a file of bytes</span>
            <input type="file" onChange={(event) => setFile(event.target.files?.[0] ?? null)} />
          </label>
        )}
        {fault !== "" && (
          <p className="wrong" role="status">
            {fault}
          </p>
        )}
        {changes(operation) && (
          <label className="check">
            <input type="checkbox" checked={sure} onChange={(event) => setSure(event.target.checked)} />
            <span>This changes what the server holds. Do it.</span>
          </label>
        )}
        <button
          type="submit"
          className="button primary"
          disabled={request === null || fault !== "" || !sure || waiting}
        >
          Send
        </button>
        {request !== null && (
          <details>
            <summary>The same by curl</summary>
            <Command copy>
              {curl(location.origin + request.target, operation, request.headers, body, own.required)}
            </Command>
          </details>
        )}
      </form>
      <section className="side answer" aria-label="Answer" aria-live="polite">
        {waiting && <Waiting what="Waiting for the answer" />}
        {problem !== null && <Trouble problem={problem} />}
        {answer !== null && !waiting && <Said answer={answer} />}
        {answer === null && problem === null && !waiting && (
          <p className="quiet">The answer will stand here.</p>
        )}
      </section>
    </div>
  );
}

function Said({ answer }: { answer: Answer }) {
  const { status, reason, seconds, headers, content } = answer;
  return (
    <>
      <p className={status < 400 ? "good-news" : "wrong"}>
        <strong>
          {status} {reason}
        </strong>{" "}
        <span className="quiet">
          {duration(seconds)}, {bytes(content.length)}
        </span>
      </p>
      <Command>{readable(content, headers)}</Command>
      <details open>
        <summary>Headers</summary>
        <dl className="pairs">
          {headers.map(([name, value]) => (
            <div key={name} className="pair">
              <dt>{name}</dt>
              <dd className="breaks">{value}</dd>
            </div>
          ))}
        </dl>
      </details>
    </>
  );
}

const MOST = 200_000;

/** JSON laid out, other text as it is, bytes as their beginning in hex. */
function readable(content: Uint8Array, headers: readonly [string, string][]): string {
  if (content.length === 0) return "(no body)";
  const type = headers.find(([name]) => name === "content-type")?.[1] ?? "";
  if (/json|text/.test(type)) {
    const text = new TextDecoder().decode(content.subarray(0, MOST));
    const whole = content.length <= MOST;
    try {
      return whole && !type.includes("ndjson") ? JSON.stringify(JSON.parse(text), null, 2) : text;
    } catch {
      return whole ? text : `${text}\n…`;
    }
  }
  const start = [...content.subarray(0, 256)].map((byte) => byte.toString(16).padStart(2, "0"));
  const lines = Array.from({ length: Math.ceil(start.length / 16) }, (_, row) =>
    start.slice(16 * row, 16 * row + 16).join(" "),
  );
  return content.length > 256 ? [...lines, "…"].join("\n") : lines.join("\n");
}

function jsonFault(body: string): string {
  try {
    JSON.parse(body);
    return "";
  } catch (cause) {
    return `The body is no JSON: ${cause instanceof Error ? cause.message : String(cause)}`;
  }
}

function curl(
  url: string,
  operation: Operation,
  headers: Record<string, string>,
  body: string,
  token: boolean,
): string {
  const words = ["curl", "-X", operation.method, shell(url)];
  // Of the token the name of a variable alone: what is on a screen is soon in a picture.
  if (token) words.push("-H", '"Authorization: Bearer $CIPHERVEC_TOKEN"');
  for (const [name, value] of Object.entries(headers)) words.push("-H", shell(`${name}: ${value}`));
  if (operation.body === "json") words.push("-H", "'content-type: application/json'", "-d", shell(body));
  if (operation.body === "bytes") words.push("--data-binary", "@file");
  return words.join(" ");
}
