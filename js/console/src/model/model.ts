/** Reads a text model from files, and makes vectors of texts in this page. A model is data, never code. */
import { Embedder, type ModelHead } from "../../../demo/src/embedder";

/** What makes vectors of texts. */
export interface TextModel {
  readonly name: string;
  readonly dimension: number;
  /** The vector of a text, of length one. */
  embed(text: string): Float32Array;
}

const MADE_BY = "One is made by: ciphervec demo --export-web FOLDER.";

/** Reads a model from its two files, `model.json` and `model.bin`. Throws an Error that says what was expected. */
export async function readModel(files: readonly File[]): Promise<TextModel> {
  const head = files.find(({ name }) => name.endsWith(".json"));
  const floats = files.find(({ name }) => name.endsWith(".bin"));
  if (head === undefined || floats === undefined) {
    throw new Error(`A text model is two files, model.json and model.bin: choose both at once. ${MADE_BY}`);
  }
  let content: Partial<ModelHead> | null;
  try {
    content = JSON.parse(await head.text()) as Partial<ModelHead> | null;
  } catch {
    throw new Error(`${head.name} is no JSON. ${MADE_BY}`);
  }
  const { words, dimension, python } = content ?? {};
  if (!Array.isArray(words) || typeof dimension !== "number" || typeof content?.format !== "number") {
    throw new Error(`${head.name} is no head of a text model. ${MADE_BY}`);
  }
  const embedder = new Embedder(content as ModelHead, await floats.arrayBuffer());
  return {
    name: `TF-IDF of Python ${String(python)}'s docstrings`,
    dimension: embedder.dimension,
    embed: (text) => embedder.embed([text]),
  };
}
