/** Bytes in rows of sixteen, with the fields that are known among them. */
import { memo } from "react";
import { type Field, hex } from "../api/frame";

const WIDTH = 16;

interface HexDumpProps {
  bytes: Uint8Array;
  /** Where the first byte lies in the whole. */
  from: number;
  /** Fields that anybody reads, by their places in the whole. */
  fields: readonly Field[];
  label: string;
}

export const HexDump = memo(function HexDump({ bytes, from, fields, label }: HexDumpProps) {
  const rows = Array.from({ length: Math.ceil(bytes.length / WIDTH) }, (_, row) => row * WIDTH);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="hex" aria-label={label} tabIndex={0}>
      {rows.map((start) => {
        const part = bytes.subarray(start, start + WIDTH);
        return (
          <div key={start} className="hex-row">
            <span className="hex-place">{(from + start).toString(16).padStart(6, "0")}</span>
            <span className="hex-bytes">
              {pieces(part, from + start, fields).map(({ at, text, field }) => (
                <span key={at} className={field === null ? undefined : "readable"} title={field ?? undefined}>
                  {text}
                </span>
              ))}
            </span>
            <span className="hex-text" aria-hidden="true">
              {Array.from(part, (byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join(
                "",
              )}
            </span>
          </div>
        );
      })}
    </section>
  );
});

/** Runs of bytes of one row that belong to the same field, or to none. */
export function pieces(bytes: Uint8Array, from: number, fields: readonly Field[]) {
  const found: { at: number; text: string; field: string | null }[] = [];
  let at = 0;
  while (at < bytes.length) {
    const place = from + at;
    const field = fields.find((one) => one.from <= place && place < one.to);
    const next = fields.map((one) => one.from).filter((start) => start > place);
    const end = Math.min(bytes.length, (field?.to ?? Math.min(...next, Number.POSITIVE_INFINITY)) - from);
    const text = (hex(bytes.subarray(at, end)).match(/../g) ?? []).join(" ");
    found.push({
      at: place,
      text: `${text} `,
      field: field === undefined ? null : `${field.name}: ${field.value}`,
    });
    at = end;
  }
  return found;
}
