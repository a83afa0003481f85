/** The page of one collection: its state, and a tab for segments, sight, query or upkeep. */
import * as Tabs from "@radix-ui/react-tabs";
import { readDescription } from "../api/description";
import { bytes, counted } from "../format";
import { useAsked } from "../parts/asked";
import { Title, Trouble, Waiting } from "../parts/basics";
import { linkTo, TABS, type Tab } from "../router";
import { usePage } from "../state";
import { QueryTab } from "./query";
import { SegmentsTab } from "./segments";
import { SightTab } from "./sight";
import { UpkeepTab } from "./upkeep";

const NAMES: Record<Tab, string> = {
  segments: "Segments",
  sight: "What the server sees",
  query: "Query",
  upkeep: "Upkeep",
};

export function CollectionPage({ name, tab }: { name: string; tab: Tab }) {
  const { server } = usePage();
  const asked = useAsked((signal) => server.collection(name, signal), [server, name]);
  const state = asked.value;
  const description = state === null ? null : readDescription(state.meta);
  return (
    <>
      <p className="crumbs">
        <a href={linkTo({ page: "collections" })}>Collections</a>
      </p>
      <Title
        note={
          state === null
            ? undefined
            : [
                description === null
                  ? "of a later release"
                  : `${description.mode}, ${description.dimension}-d ${description.metric}`,
                counted(state.statistics.rows - state.statistics.deleted, "row"),
                bytes(state.statistics.bytes),
                `version ${state.version}`,
              ].join(" · ")
        }
        actions={
          <button type="button" className="button" onClick={asked.again} disabled={asked.waiting}>
            Refresh
          </button>
        }
      >
        {name}
      </Title>
      {asked.problem !== null && <Trouble problem={asked.problem} again={asked.again} />}
      {state === null && asked.waiting && <Waiting what="Reading its state" />}
      {state !== null && (
        <Tabs.Root
          value={tab}
          onValueChange={(next) => {
            location.hash = linkTo({ page: "collection", name, tab: next as Tab });
          }}
          activationMode="manual"
        >
          <Tabs.List className="tabs" aria-label={`Parts of ${name}`}>
            {TABS.map((one) => (
              <Tabs.Trigger key={one} value={one}>
                {NAMES[one]}
              </Tabs.Trigger>
            ))}
          </Tabs.List>
          <Tabs.Content value="segments">
            <SegmentsTab state={state} description={description} />
          </Tabs.Content>
          <Tabs.Content value="sight">
            <SightTab state={state} description={description} />
          </Tabs.Content>
          <Tabs.Content value="query">
            <QueryTab state={state} description={description} />
          </Tabs.Content>
          <Tabs.Content value="upkeep">
            <UpkeepTab state={state} changed={asked.again} />
          </Tabs.Content>
        </Tabs.Root>
      )}
    </>
  );
}
