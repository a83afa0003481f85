/** Pin: one authenticated state that this user has seen of a collection: which history, and how far. Key owner's side. */

export interface Pin {
  origin: string;
  lineage: string;
  sequence: number;
  name: string;
  epoch: number;
  /** Lineages that were followed before. */
  left: string[];
}

/** A pin in the place of another. */
export function pinAfter(pin: Pin, other: Pin | null): Pin {
  if (other === null) return pin;
  if (other.lineage === pin.lineage) return { ...pin, left: other.left };
  return { ...pin, left: [...other.left, other.lineage].filter((one) => one !== pin.lineage) };
}

/** Which of two tabs has seen more. */
export function latest(mine: Pin | null, theirs: Pin | null): Pin | null {
  if (mine === null || theirs === null) return mine ?? theirs;
  if (theirs.left.includes(mine.lineage)) return theirs;
  if (mine.left.includes(theirs.lineage)) return mine;
  return theirs.sequence > mine.sequence ? theirs : mine;
}

/** Whether a value has the fields of one. */
export function isPin(value: unknown): value is Pin {
  const pin = value as Pin;
  return (
    typeof value === "object" &&
    value !== null &&
    [pin.origin, pin.lineage, pin.name].every((one) => typeof one === "string") &&
    [pin.sequence, pin.epoch].every(Number.isSafeInteger) &&
    Array.isArray(pin.left) &&
    pin.left.every((one) => typeof one === "string")
  );
}

/** Whether two say the same. */
export function samePin(a: Pin | null, b: Pin | null): boolean {
  return JSON.stringify(a && Object.entries(a).sort()) === JSON.stringify(b && Object.entries(b).sort());
}
