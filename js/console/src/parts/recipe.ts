/** The lines that an owner of keys, or an operator, runs elsewhere: the console has no keys. */

export const METRICS = ["cosine", "ip", "l2", "hamming"] as const;
export const MODES = ["sealed", "sealed-query", "sealed-index", "open"] as const;

export interface CollectionChoices {
  url: string;
  name: string;
  dimension: string;
  metric: (typeof METRICS)[number];
  mode: (typeof MODES)[number];
  filterable: string;
  /** Whether the server asks for a token. */
  token: boolean;
}

/** What is wrong with choices of a collection; empty where nothing is. */
export function collectionFault({ name, dimension }: CollectionChoices): string {
  if (!/^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9_])?$/.test(name) || name.includes("..")) {
    return "A name has 1 to 128 letters, digits, dots, dashes and underscores, and neither begins nor ends with a dot or dash.";
  }
  const count = Number(dimension);
  if (!/^\d+$/.test(dimension) || count < 1 || count > 16_384) {
    return "The dimension is how many numbers a vector has, 1 to 16,384.";
  }
  return "";
}

export function fieldsOf(filterable: string): string[] {
  return filterable.split(/[\s,]+/).filter((field) => field !== "");
}

export function commandLines(given: CollectionChoices): string {
  const open = given.mode === "open";
  const words = ["ciphervec", "create", given.url, given.name, "--dim", given.dimension];
  if (given.metric !== "cosine") words.push("--metric", given.metric);
  if (given.mode !== "sealed") words.push("--mode", given.mode);
  for (const field of fieldsOf(given.filterable)) words.push("--filterable", field);
  if (!open) words.push("--keys", "my.key");
  if (given.token) words.push("--token-file", "admin.token");
  const create = words.map(shell).join(" ");
  return open ? create : `ciphervec keygen my.key   # once; keep a copy\n${create}`;
}

export function pythonLines(given: CollectionChoices): string {
  const open = given.mode === "open";
  const client = [JSON.stringify(given.url)];
  if (given.token) client.push('token="cv1_…"');
  if (!open) client.push("keys=keys");
  const fields = fieldsOf(given.filterable);
  const create = [JSON.stringify(given.name), given.dimension];
  if (given.metric !== "cosine") create.push(`metric="${given.metric}"`);
  if (given.mode !== "sealed") create.push(`mode="${given.mode}"`);
  if (fields.length > 0)
    create.push(`filterable=[${fields.map((field) => JSON.stringify(field)).join(", ")}]`);
  return [
    "import ciphervec",
    "",
    ...(open ? [] : ['keys = ciphervec.Keys.load("my.key", passphrase="…")']),
    `client = ciphervec.HttpClient(${client.join(", ")})`,
    `collection = client.create_collection(${create.join(", ")})`,
  ].join("\n");
}

export function scriptLines(given: CollectionChoices): string {
  const open = given.mode === "open";
  const fields = fieldsOf(given.filterable);
  const client = [`url: ${JSON.stringify(given.url)}`];
  if (given.token) client.push('token: "cv1_…"');
  if (!open) client.push("keys");
  const create = [`name: ${JSON.stringify(given.name)}`, `dimension: ${given.dimension}`];
  if (given.metric !== "cosine") create.push(`metric: "${given.metric}"`);
  if (given.mode !== "sealed") create.push(`mode: "${given.mode}"`);
  if (fields.length > 0)
    create.push(`filterable: [${fields.map((field) => JSON.stringify(field)).join(", ")}]`);
  return [
    `import { Client${open ? "" : ", Keys"} } from "@ciphervec/client";`,
    "",
    ...(open ? [] : ['const keys = await Keys.fromFile(bytes, { passphrase: "…" });']),
    `const client = new Client({ ${client.join(", ")} });`,
    `const collection = await client.createCollection({ ${create.join(", ")} });`,
  ].join("\n");
}

export interface TokenChoices {
  name: string;
  collection: string;
  verbs: readonly string[];
  expires: string;
}

/** The operator's command, on the server's machine. */
export function tokenLine({ name, collection, verbs, expires }: TokenChoices): string {
  const words = ["ciphervec", "token", "create", "--data", "db", "--collection", collection];
  for (const verb of verbs) words.push("--permission", verb);
  words.push("--expires", expires);
  if (name !== "") words.push("--name", name);
  return words.map(shell).join(" ");
}

/** A word as a shell takes it whole. */
export function shell(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
