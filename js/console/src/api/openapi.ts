/** The operations of the server's own OpenAPI document, and the requests that they take. */

export interface Parameter {
  name: string;
  place: "path" | "query" | "header";
  required: boolean;
}

export interface Operation {
  id: string;
  method: string;
  path: string;
  summary: string;
  group: string;
  parameters: Parameter[];
  /** What the body is, where it takes one. */
  body: "json" | "bytes" | null;
}

interface Said {
  summary?: string;
  operationId?: string;
  tags?: string[];
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: { content?: Record<string, unknown> };
}

const METHODS = ["get", "head", "post", "put", "patch", "delete"];
const PLACES = ["path", "query", "header"];

/** The operations of a document, as it lists them; empty for what is none. */
export function operationsOf(document: unknown): Operation[] {
  const paths = (document as { paths?: Record<string, Record<string, Said>> } | null)?.paths;
  return Object.entries(paths ?? {}).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, said]) => ({
        id: said.operationId ?? `${method} ${path}`,
        method: method.toUpperCase(),
        path,
        summary: said.summary ?? "",
        group: said.tags?.[0] ?? "others",
        parameters: (said.parameters ?? [])
          .filter((one) => PLACES.includes(one.in))
          .map((one) => ({
            name: one.name,
            place: one.in as Parameter["place"],
            required: one.required === true,
          })),
        body: bodyOf(said.requestBody?.content),
      })),
  );
}

function bodyOf(content: Record<string, unknown> | undefined): Operation["body"] {
  if (content === undefined) return null;
  return Object.keys(content).some((type) => type.includes("json")) ? "json" : "bytes";
}

/** Whether a request may change something. */
export function changes({ method, id }: Operation): boolean {
  return !["GET", "HEAD"].includes(method) && !["verify", "blobs", "query"].includes(id);
}

/** Where a request goes and with which headers; null while something that it needs is not given. */
export function requestOf(
  operation: Operation,
  values: Readonly<Record<string, string>>,
): { target: string; headers: Record<string, string> } | null {
  const headers: Record<string, string> = {};
  const asked = new URLSearchParams();
  let target = operation.path;
  for (const { name, place, required } of operation.parameters) {
    const value = values[name] ?? "";
    if (value === "") {
      if (required) return null;
      continue;
    }
    if (place === "path") target = target.replace(`{${name}}`, encodeURIComponent(value));
    else if (place === "query") asked.append(name, value);
    else headers[name.toLowerCase()] = value;
  }
  const query = asked.toString();
  return { target: query === "" ? target : `${target}?${query}`, headers };
}
