/** Reads the page from what stands behind # in the address. The server never gets to see it. */
import { useSyncExternalStore } from "react";

export const TABS = ["segments", "sight", "query", "upkeep"] as const;
const SINGLE = ["new", "tokens", "load", "playground"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { page: "collections" }
  | { page: "collection"; name: string; tab: Tab }
  | { page: "new" }
  | { page: "tokens" }
  | { page: "load" }
  | { page: "playground" }
  | { page: "missing" };

export function readRoute(hash: string): Route {
  const parts = hash.replace(/^#?\/?/, "").split("/");
  const [page = "", name, tab = "segments"] = parts;
  if (page === "") return { page: "collections" };
  const single = SINGLE.find((one) => one === page);
  if (single !== undefined) return parts.length === 1 ? { page: single } : { page: "missing" };
  const known = TABS.find((one) => one === tab);
  if (page !== "collections" || !name || known === undefined || parts.length > 3) return { page: "missing" };
  try {
    return { page: "collection", name: decodeURIComponent(name), tab: known };
  } catch {
    return { page: "missing" };
  }
}

export function linkTo(route: Exclude<Route, { page: "missing" }>): string {
  if (route.page === "collections") return "#/";
  if (route.page === "collection") return `#/collections/${encodeURIComponent(route.name)}/${route.tab}`;
  return `#/${route.page}`;
}

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}

export function useRoute(): Route {
  return readRoute(useSyncExternalStore(subscribe, () => location.hash));
}
