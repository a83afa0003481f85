/** The page of tokens: the scope of one's own and, for operators, those of all. It never shows a token. */
import { useState } from "react";
import type { Grant, Limits, TokenState } from "../api/types";
import { limits as limited, moment } from "../format";
import { useAsked } from "../parts/asked";
import { Command, Empty, Table, Title, Trouble, Waiting } from "../parts/basics";
import { Choice, Field } from "../parts/fields";
import { tokenLine } from "../parts/recipe";
import { usePage } from "../state";

const VERBS: Record<string, string> = {
  read: "reads descriptions and stored bytes",
  query: "asks questions",
  append: "adds segments that writers sealed",
  write: "adds, changes and deletes rows",
  run: "runs programs",
  keep: "keeps keys and inputs of programs",
  admin: "creates, drops, purges, verifies, snapshots, and all other permissions",
  metrics: "reads the load",
};

export function TokensPage() {
  const { server, own } = usePage();
  const asked = useAsked(
    (signal) => (own.operator ? server.tokens(signal) : Promise.resolve([])),
    [server, own],
  );
  const live = (asked.value ?? []).filter((token) => token.state === "live").length;
  const note =
    own.operator && asked.value !== null && own.required
      ? `${live} live of ${asked.value.length}`
      : undefined;
  return (
    <>
      <Title note={note}>Tokens</Title>
      {!own.required && (
        <Empty title="No tokens are needed here">
          <p>
            The server listens on this machine only, and answers every program on it. With the first token it
            asks everyone for one:
          </p>
          <Command>
            {
              "ciphervec token create --data db --collection '*' --permission admin --expires 90d --name operator"
            }
          </Command>
        </Empty>
      )}
      {own.token !== undefined && (
        <Yours
          name={own.token.name === "" ? "A token without a name" : own.token.name}
          id={own.token.id}
          grants={[own.token]}
          limits={own.token.limits}
          expires={own.token.expires}
        />
      )}
      {own.identity !== undefined && (
        <Yours
          name={`${own.identity.subject}, of ${own.identity.issuer}`}
          id={own.identity.id}
          grants={own.identity.grants}
          limits={own.identity.limits}
          expires={own.identity.expires}
        />
      )}
      {own.required && !own.operator && (
        <p className="quiet">
          All tokens are shown to a token with <code>admin</code> on <code>*</code>.
        </p>
      )}
      {asked.problem !== null && <Trouble problem={asked.problem} again={asked.again} />}
      {own.operator && own.required && (
        <>
          {asked.value === null && asked.waiting && <Waiting what="Reading the list" />}
          {asked.value !== null && <All tokens={asked.value} mine={own.token?.id} />}
          <p className="quiet">
            The server keeps hashes, so that no token can be shown again. They are made and revoked where its
            data lies; it sees the change with the next request.
          </p>
          <NewToken />
          <p className="quiet">To revoke one, by the id of the list:</p>
          <Command>{"ciphervec token revoke --data db ID"}</Command>
        </>
      )}
    </>
  );
}

interface Own {
  name: string;
  id: string;
  grants: Grant[];
  limits: Limits | undefined;
  expires: string | undefined;
}

function Yours({ name, id, grants, limits, expires }: Own) {
  return (
    <section className="panel" aria-labelledby="own">
      <h2 id="own">Yours</h2>
      <p className="token-name">
        {name} <code>{id}</code>
      </p>
      {grants.length === 0 && <p>The server's file of issuers grants it nothing.</p>}
      {grants.map((grant) => (
        <div key={[...grant.collections, ...grant.verbs].join(" ")}>
          <ul className="plain">
            {grant.verbs.map((verb) => (
              <li key={verb}>
                <code className="tag">{verb}</code> {VERBS[verb] ?? ""}
              </li>
            ))}
          </ul>
          <p>
            On <Names names={grant.collections} />
          </p>
        </div>
      ))}
      <p className="quiet">
        {limited(limits).length === 0
          ? "It has the server's limits alone."
          : `At most ${limited(limits).join(", ")}.`}
      </p>
      <p className="quiet">{expires === undefined ? "It does not end." : `It ends ${moment(expires)}.`}</p>
    </section>
  );
}

const KINDS = {
  "an owner's client, day to day": ["owner"],
  "an owner's client that creates collections and changes keys": ["owner", "admin"],
  "a reader: asks and reads": ["read", "query"],
  "a device that only adds": ["append"],
  "metrics alone": ["metrics"],
} as const;
type Kind = keyof typeof KINDS;

/** The command that makes a token, which an operator runs on the server's machine. */
function NewToken() {
  const [name, setName] = useState("laptop");
  const [collection, setCollection] = useState("faces");
  const [kind, setKind] = useState<Kind>("an owner's client, day to day");
  const [expires, setExpires] = useState("30d");
  const fault =
    collection === ""
      ? "Name a collection, a prefix such as faces-*, or * for all."
      : /^(?:[1-9]\d*[smhdw]|never)$/.test(expires)
        ? ""
        : "It ends after a time such as 12h or 30d, or never.";
  return (
    <section className="panel" aria-labelledby="new-token">
      <h2 id="new-token">New token</h2>
      <div className="choices">
        <Field name="For whom" value={name} set={setName} />
        <Field name="On the collection" value={collection} set={setCollection} wrong={collection === ""} />
        <Field name="Ends after" value={expires} set={setExpires} wrong={fault.startsWith("It ends")} />
      </div>
      <Choice name="What it is for" value={kind} options={Object.keys(KINDS) as Kind[]} set={setKind} />
      {fault === "" ? (
        <Command copy>{tokenLine({ name, collection, verbs: KINDS[kind], expires })}</Command>
      ) : (
        <p className="wrong" role="status">
          {fault}
        </p>
      )}
    </section>
  );
}

function All({ tokens, mine }: { tokens: TokenState[]; mine: string | undefined }) {
  return (
    <Table label="All tokens" stacks>
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">May</th>
          <th scope="col">On</th>
          <th scope="col">At most</th>
          <th scope="col">Until</th>
          <th scope="col">State</th>
        </tr>
      </thead>
      <tbody>
        {tokens.map((token) => (
          <tr key={token.id} className={token.state === "live" ? undefined : "past"}>
            <th scope="row">
              {token.name === "" ? "–" : token.name}
              {token.id === mine && <span className="tag">yours</span>}
              <br />
              <code className="quiet">{token.id}</code>
            </th>
            <td data-label="May">
              {token.verbs.map((verb) => (
                <code key={verb} className="tag">
                  {verb}
                </code>
              ))}
            </td>
            <td data-label="On">
              <Names names={token.collections} />
            </td>
            <td data-label="At most">{limited(token.limits).join(", ") || "–"}</td>
            <td data-label="Until">{token.expires === undefined ? "no end" : moment(token.expires)}</td>
            <td data-label="State">
              <span className={`state ${token.state === "live" ? "good" : "off"}`}>{token.state}</span>
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

function Names({ names }: { names: string[] }) {
  return names.map((name) => (
    <code key={name} className="tag">
      {name === "*" ? "* (all)" : name}
    </code>
  ));
}
