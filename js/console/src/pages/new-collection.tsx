/** The page of a new collection: it writes the lines that make one, for whoever has the keys; it makes none itself. */
import * as Tabs from "@radix-ui/react-tabs";
import { useState } from "react";
import { Command, Title } from "../parts/basics";
import { Choice, Field } from "../parts/fields";
import {
  type CollectionChoices,
  collectionFault,
  commandLines,
  METRICS,
  MODES,
  pythonLines,
  scriptLines,
} from "../parts/recipe";
import { linkTo } from "../router";
import { allows, usePage } from "../state";

const WHAT: Record<(typeof MODES)[number], string> = {
  sealed:
    "Vectors and queries are encrypted. The server sees sizes, times, and equality in fields that you filter by.",
  "sealed-query": "Queries are encrypted, the vectors are not: for a public corpus.",
  "sealed-index":
    "Vectors are encrypted, queries are not. Never for biometrics: there a query is the template.",
  open: "Nothing is encrypted: a baseline.",
};

export function NewCollectionPage() {
  const { own } = usePage();
  const [given, set] = useState<CollectionChoices>({
    url: location.origin,
    name: "faces",
    dimension: "512",
    metric: "cosine",
    mode: "sealed",
    filterable: "",
    token: own.required,
  });
  const change = (part: Partial<CollectionChoices>) => set((before) => ({ ...before, ...part }));
  const fault = collectionFault(given);
  return (
    <>
      <p className="crumbs">
        <a href={linkTo({ page: "collections" })}>Collections</a>
      </p>
      <Title note="The server has no keys, so that whoever has them makes it. This page writes the lines.">
        New collection
      </Title>
      <div className="sides">
        <form onSubmit={(event) => event.preventDefault()}>
          <Field
            name="Name"
            value={given.name}
            set={(name) => change({ name })}
            wrong={fault.startsWith("A name")}
          />
          <Field
            name="Dimension"
            value={given.dimension}
            set={(dimension) => change({ dimension })}
            wrong={fault.startsWith("The dimension")}
            numeric
          />
          <Choice name="Mode" value={given.mode} options={MODES} set={(mode) => change({ mode })} />
          <p className="quiet">{WHAT[given.mode]}</p>
          <Choice name="Metric" value={given.metric} options={METRICS} set={(metric) => change({ metric })} />
          <Field
            name="Fields that the server may compare, for filters"
            value={given.filterable}
            set={(filterable) => change({ filterable })}
          />
        </form>
        <section className="side" aria-label="Lines to run">
          {fault === "" ? (
            <Tabs.Root defaultValue="shell">
              <Tabs.List className="tabs minor" aria-label="Language">
                <Tabs.Trigger value="shell">Command line</Tabs.Trigger>
                <Tabs.Trigger value="python">Python</Tabs.Trigger>
                <Tabs.Trigger value="script">JavaScript</Tabs.Trigger>
              </Tabs.List>
              <Tabs.Content value="shell">
                <Command copy>{commandLines(given)}</Command>
              </Tabs.Content>
              <Tabs.Content value="python">
                <Command copy>{pythonLines(given)}</Command>
              </Tabs.Content>
              <Tabs.Content value="script">
                <Command copy>{scriptLines(given)}</Command>
              </Tabs.Content>
            </Tabs.Root>
          ) : (
            <p className="wrong" role="status">
              {fault}
            </p>
          )}
          {own.required && (
            <p className="quiet">
              It takes a token with the permission <code>admin</code> on this name;{" "}
              {allows(own, "admin", given.name) ? "yours is one." : "yours is none."}{" "}
              <a href={linkTo({ page: "tokens" })}>Tokens</a>
            </p>
          )}
        </section>
      </div>
    </>
  );
}
