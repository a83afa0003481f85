/** Reads a pasted vector of a given dimension, or says what is wrong with it. */

/** Throws an Error with the next step. */
export function readVector(text: string, dimension: number): Float32Array {
  const inner = text
    .trim()
    .replace(/^(?:np\.)?(?:array)?\(?\[+/, "")
    .replace(/\]+(?:,\s*dtype=[\w.]+)?\)?$/, "");
  const words = inner.split(/[\s,;]+/).filter((word) => word !== "");
  if (words.length === 0) throw new Error(`Paste ${dimension} numbers, with commas or spaces between them.`);
  const values = words.map(Number);
  const wrong = values.findIndex((value) => !Number.isFinite(value));
  if (wrong >= 0) throw new Error(`Number ${wrong + 1} is ${JSON.stringify(words[wrong])}, which is none.`);
  if (values.length !== dimension) {
    throw new Error(`These are ${values.length} numbers; the collection has ${dimension} dimensions.`);
  }
  const vector = Float32Array.from(values);
  if (vector.every((value) => value === 0))
    throw new Error("All numbers are zero: such a vector has no direction.");
  return vector;
}
