/** What a server learns in each mode, and what it cannot. SECURITY.md has the whole. */
import type { Mode } from "../api/description";

export interface Knowledge {
  sees: string[];
  hidden: string[];
}

const ALWAYS = [
  "the collection's name, dimension, metric and mode",
  "how many rows a segment has, and when it came",
  "which rows were deleted, by their number in a segment",
  "which rows share a value of a field that is filterable, and not the value",
  "which segments a client reads for documents: rows added one by one have one each",
];

export function knowledgeOf(mode: Mode): Knowledge {
  const hidden = ["ids, metadata and documents", "scores, and which rows of a segment were hits"];
  switch (mode) {
    case "open":
      return {
        sees: [...ALWAYS, "every vector, query, id, document and score"],
        hidden: [],
      };
    case "sealed-index":
      return { sees: [...ALWAYS, "every query, in plain"], hidden: ["vectors", ...hidden] };
    case "sealed-query":
      return { sees: [...ALWAYS, "every vector, in plain"], hidden: ["queries", ...hidden] };
    case "sealed":
      return {
        sees: [...ALWAYS, "when a query comes, and how many at once"],
        hidden: ["vectors", "queries", ...hidden],
      };
  }
}
