/**
 * Reads the header and arrays of an .npz file as `numpy.savez` writes it, and checks them. Needs no key.
 *
 * Only what the Python package writes is read: stored members, little-endian, C order, sizes that fit the bytes that are there.
 */

import { CorruptData, UnsupportedVersion } from "../errors.js";
import { text } from "../ingest/bytes.js";

const HEADER = "header.json";
const NUMPY = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0];
const DESCRIPTION =
  /^\{'descr': '([^']{3})', 'fortran_order': False, 'shape': \(((?:\d{1,12}, ?)*(?:\d{1,12},?)?)\), \} *\n$/;
const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;

/** An array of a learned table. */
export interface Stored {
  shape: number[];
  values: Uint8Array | Uint16Array | Float32Array;
}

/** The header and exactly the arrays of `names`. Throws CorruptData, or UnsupportedVersion for a newer file. */
export function unpack(
  data: Uint8Array,
  kind: string,
  version: number,
  names: readonly string[],
): { header: { [field: string]: unknown }; arrays: { [name: string]: Stored } } {
  let members: Map<string, Uint8Array>;
  let header: { [field: string]: unknown };
  try {
    members = membersOf(data);
    header = JSON.parse(text(members.get(HEADER) ?? new Uint8Array(0))) as { [field: string]: unknown };
    if (typeof header !== "object" || header === null || header["kind"] !== kind)
      throw new Error("its header says something else");
  } catch (error) {
    throw new CorruptData(`this is not a ${kind} file, or a damaged one: ${(error as Error).message}.`);
  }
  members.delete(HEADER);
  const found = header["version"];
  if (typeof found === "number" && found > version)
    throw new UnsupportedVersion(
      `${kind} format ${found}; this ciphervec reads up to ${version}. Upgrade ciphervec.`,
    );
  if (found !== version)
    throw new CorruptData(
      `a ${kind} file has a version from 1 to ${version}, this one has ${String(found)}.`,
    );
  if (
    [...members.keys()].sort().join() !==
    names
      .map((name) => `${name}.npy`)
      .sort()
      .join()
  )
    throw new CorruptData(
      `a ${kind} file holds ${names.join(", ")}; this one holds ${[...members.keys()].join(", ")}.`,
    );
  const arrays = names.map((name) => [
    name,
    arrayOf(members.get(`${name}.npy`) as Uint8Array, `${name} of this ${kind} file`),
  ]);
  return { header, arrays: Object.fromEntries(arrays) };
}

/** Every member's bytes, none compressed, none twice, by the directory at the end of the file. */
function membersOf(data: Uint8Array): Map<string, Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const end = data.length - 22;
  if (end < 0 || view.getUint32(end, true) !== END)
    throw new Error("it does not end as a zip file without a comment does");
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const members = new Map<string, Uint8Array>();
  let total = 0;
  for (let i = 0; i < count; i++) {
    if (view.getUint32(at, true) !== ENTRY) throw new Error("its directory is damaged");
    const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)];
    const [sum, packed, size] = [
      view.getUint32(at + 16, true),
      view.getUint32(at + 20, true),
      view.getUint32(at + 24, true),
    ];
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true)) as [
      number,
      number,
      number,
    ];
    const name = text(data.subarray(at + 46, at + 46 + nameLength));
    const local = view.getUint32(at + 42, true);
    if (method !== 0 || (flags & 1) !== 0 || packed !== size)
      throw new Error("members of such a file are stored as they are");
    if (view.getUint32(local, true) !== LOCAL) throw new Error("a member is not where the directory says");
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    total += size;
    if (start + size > data.length || total > data.length)
      throw new Error("a member is longer than the file");
    const content = data.subarray(start, start + size);
    if (crc32(content) !== sum) throw new Error(`the check sum of ${name} differs`);
    if (members.has(name)) throw new Error("a member's name occurs twice");
    members.set(name, content);
    at += 46 + nameLength + extra + comment;
  }
  return members;
}

function arrayOf(member: Uint8Array, what: string): Stored {
  const view = new DataView(member.buffer, member.byteOffset, member.length);
  const length = member.length < 10 ? 0 : view.getUint16(8, true);
  const described = DESCRIPTION.exec(String.fromCharCode(...member.subarray(10, 10 + length)));
  const width = { "|u1": 1, "<u2": 2, "<f4": 4 }[described?.[1] ?? ""];
  if (!NUMPY.every((byte, i) => member[i] === byte) || described === null || width === undefined)
    throw new CorruptData(`${what} is not an array of uint8, uint16 or float32 as NumPy writes it.`);
  const shape = (described[2] as string).split(/[, ]+/).filter(Boolean).map(Number);
  const body = member.slice(10 + length);
  const expected = shape.reduce((product, axis) => product * axis, width);
  if (shape.length > 4 || body.length !== expected)
    throw new CorruptData(
      `${what} has shape (${shape.join(", ")}), which takes ${expected} bytes; ${body.length} are there.`,
    );
  const numbers = new DataView(body.buffer);
  if (width === 1) return { shape, values: body };
  const count = body.length / width;
  if (width === 2)
    return { shape, values: Uint16Array.from({ length: count }, (_, i) => numbers.getUint16(2 * i, true)) };
  return { shape, values: Float32Array.from({ length: count }, (_, i) => numbers.getFloat32(4 * i, true)) };
}

function crc32(data: Uint8Array): number {
  let crc = ~0;
  for (const byte of data) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (0xedb88320 & -(crc & 1));
  }
  return ~crc >>> 0;
}
