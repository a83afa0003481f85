/** Reads what anybody may read of a collection's stored description. Needs no key. */

export type Mode = "open" | "sealed-index" | "sealed-query" | "sealed";

/** What the server knows of a collection without any key. */
export interface Description {
  mode: Mode;
  metric: string;
  dimension: number;
  precision: string;
  scheme: string;
  keyId: string | null;
  /** How often the query key was made anew. */
  epoch: number;
  /** Bytes of settings that only the owner reads: metadata fields, embedding function and the like. */
  settingsBytes: number;
}

const MODES: Mode[] = ["open", "sealed-index", "sealed-query", "sealed"];
const METRICS = ["cosine", "inner product", "squared Euclidean", "hamming"];
const PRECISIONS = ["standard", "small", "wide"];
const FRAME = 64;
/** Of the byte of the precision: an incarnation follows. */
const INCARNATION = 128;

/** The description in base64, as a collection's state has it; null where it is of a later release. */
export function readDescription(meta: string): Description | null {
  try {
    const content = JSON.parse(new TextDecoder().decode(fromBase64(meta))) as Record<string, unknown>;
    const spec = fromBase64(String(content["spec"]));
    const view = new DataView(spec.buffer, spec.byteOffset, spec.byteLength);
    const [metric, mode, precision] = [
      view.getUint8(FRAME + 4),
      view.getUint8(FRAME + 5),
      view.getUint8(FRAME + 6),
    ];
    const known = MODES[mode & 15];
    if (known === undefined) return null;
    return {
      mode: known,
      metric: METRICS[metric] ?? "another metric",
      dimension: view.getUint32(FRAME, true),
      precision: PRECISIONS[precision & ~INCARNATION] ?? "another precision",
      // The lattice scheme is still called what it was first.
      scheme:
        typeof content["scheme"] === "string" && content["scheme"] !== "sealed"
          ? content["scheme"]
          : "lattice",
      keyId: typeof content["key_id"] === "string" ? content["key_id"] : null,
      epoch: typeof content["epoch"] === "number" ? content["epoch"] : 0,
      settingsBytes: typeof content["settings"] === "string" ? fromBase64(content["settings"]).length : 0,
    };
  } catch {
    return null;
  }
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
