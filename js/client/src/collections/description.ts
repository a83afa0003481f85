/**
 * Description: what a collection is enters; the description that lies beside its segments leaves, and back. Key owner's side.
 *
 * In clear: the index spec, the scheme, the key id, the epoch. Sealed: the names of the filterable fields, and the seed of the public
 * masks once the keys have changed. While they are changing, each key in a form that the other opens.
 */

import {
  CorruptData,
  fromNative,
  guarded,
  InvalidInput,
  PinMismatch,
  UnsupportedVersion,
  WrongKey,
} from "../errors.js";
import { checkName } from "../http/database.js";
import { countOfThings, MAX_DIMENSION, METRICS } from "../ingest/arrays.js";
import { fromBase64, random, text, toBase64, unhex, utf8 } from "../ingest/bytes.js";
import { parse } from "../ingest/json.js";
import type { IndexSpec, Keys, Native, Network, Owner } from "../native.js";
import type { Metric, Mode, Precision } from "../types.js";

/** Format 6 is written where a center was given, 5 where rows are clustered, 4 where the owner authenticates states. */
const FORMAT = 6;
const MODES: readonly Mode[] = ["sealed", "sealed-query", "sealed-index", "open"];
const PRECISIONS: readonly Precision[] = ["standard", "small", "wide"];
// The settings are sealed as the only record of a segment that never exists.
const SETTINGS_PLACE = new Uint8Array(16);
const SETTINGS_ID = "ciphervec collection settings";
const LATTICE = "lattice";
/** What descriptions call that scheme. */
const STORED_LATTICE = "sealed";
const DEFAULT_NETWORK = { megabits: 1000, latency_ms: 0.5 };
/** The key of mode `open`, which hides nothing. */
const PUBLIC = new Uint8Array(32);

/** What a caller chooses. */
export interface Choices {
  name: string;
  dimension: number;
  metric?: Metric | undefined;
  mode?: Mode | undefined;
  precision?: Precision | undefined;
  filterable?: readonly string[] | undefined;
  originals?: boolean | undefined;
}

/** A change of keys that has begun and not ended: the public name of those before, each key sealed under the other. */
interface Rotation {
  previousId: string;
  previous: Uint8Array;
  following: Uint8Array | null;
}

/** What of the settings this package does not write itself, as it stands there. */
type Kept = { [field: string]: unknown };

/** A collection's fixed choices, and the epoch of its query key. */
export interface Description {
  spec: IndexSpec;
  keyId: string;
  filterable: readonly string[];
  epoch: number;
  maskSeed: Uint8Array | null;
  rotation: Rotation | null;
  /** Whether the owner authenticates every state. */
  authenticated: boolean;
  /** Whether vectors are kept as they were put in. */
  originals: boolean;
  network: Network;
  /** Segments from before the latest filterable field, whose tags say nothing of it. */
  untagged: ReadonlySet<string>;
  /** Whether queries ask about clusters. */
  routed: boolean;
  /** What rows of metric `l2` are sealed around, where that was given. */
  center: Float32Array | null;
}

/** The keys that a collection of this mode is sealed under. Throws InvalidInput when there are none. */
export function keysFor(native: Native, keys: Keys | null, mode: string): Keys {
  if (mode === "open") return native.Keys.fromMaster(PUBLIC);
  if (keys === null)
    throw new InvalidInput(
      `mode "${mode}" needs keys. Make them with Keys.generate(), keep them with keys.toFile({passphrase}), and pass them to ` +
        "the Client.",
    );
  return keys;
}

/** Check what a new collection was given. Throws InvalidInput. */
export function newDescription(native: Native, keys: Keys | null, choices: Choices): Description {
  const name = checkName(choices.name);
  const { metric = "cosine", mode = "sealed", precision = "standard" } = choices;
  oneOf("metric", metric, Object.keys(METRICS));
  oneOf("mode", mode, MODES);
  oneOf("precision", precision, PRECISIONS);
  const dimension = countOfThings(choices.dimension, "dimension");
  if (dimension > MAX_DIMENSION)
    throw new InvalidInput(
      `dimension must be 1 to ${MAX_DIMENSION}, got ${dimension}. Reduce it first, e.g. by PCA.`,
    );
  const filterable = fieldNames(choices.filterable ?? []);
  // One of the same name, dropped before or made elsewhere, has nothing in common with it.
  const spec = guarded(
    () => new native.IndexSpec(name, dimension, metric, mode, precision, LATTICE, undefined, random(16)),
  );
  return {
    spec,
    keyId: keysFor(native, keys, mode).keyId,
    filterable,
    epoch: 0,
    maskSeed: null,
    rotation: null,
    authenticated: mode !== "open",
    // What is unsealed under hamming is what was put in.
    originals: (choices.originals ?? true) && !METRICS[metric].bits,
    network: networkOf(DEFAULT_NETWORK),
    untagged: new Set(),
    routed: false,
    center: null,
  };
}

/** JSON for the store, of a collection that is being made. */
export function describe(description: Description, owner: Owner): Uint8Array {
  const kept: Kept = { filterable: description.filterable };
  if (description.authenticated) kept["authenticated"] = true;
  if (description.originals) kept["originals"] = true;
  const settings = owner.sealRecords(SETTINGS_PLACE, [SETTINGS_ID], [utf8(JSON.stringify(kept))]);
  const content = {
    format: 4,
    spec: toBase64(description.spec.toBytes()),
    scheme: description.spec.storedScheme,
    key_id: description.keyId,
    epoch: description.epoch,
    settings: toBase64(settings.toBytes()),
  };
  settings.free();
  return utf8(JSON.stringify(content));
}

/**
 * The owner of a collection so described. `keys` may be the ones before a rotation that is under way, where both work. Throws WrongKey,
 * CorruptData.
 */
export function ownerOf(native: Native, keys: Keys | null, description: Description): Owner {
  const { spec, rotation, maskSeed, keyId } = description;
  const given = keysFor(native, keys, spec.mode);
  if (rotation === null) {
    checkKey(given.keyId, keyId, spec.collection);
    return new native.Owner(given, spec, maskSeed ?? undefined);
  }
  const changing =
    given.keyId === rotation.previousId && rotation.following !== null
      ? new native.Owner(given, spec).openKeys(rotation.following)
      : given;
  checkKey(changing.keyId, keyId, spec.collection, rotation);
  const opener = new native.Owner(changing, spec);
  const previous = opener.openKeys(rotation.previous);
  opener.free();
  return native.Owner.withPrevious(changing, spec, maskSeed ?? undefined, previous);
}

/** Throw PinMismatch for the description of a collection in mode `open`, which anybody could have written. */
export function refuseOpen(native: Native, data: Uint8Array, name: string): void {
  let mode = "";
  try {
    const content = JSON.parse(text(data)) as { [field: string]: unknown };
    ({ mode } = native.IndexSpec.fromBytes(fromBase64(content["spec"])));
  } catch {
    return; // told when it is read
  }
  if (mode === "open")
    throw new PinMismatch(
      `the collection "${name}" shows mode "open": nothing in it is sealed, and whoever keeps it can put such a one under any name. Keys ` +
        "were given, so it was to be sealed. If it is meant to be open, pass allowOpen: true, or open it without keys.",
    );
}

/**
 * Read a description, checking the key before anything is opened. Throws WrongKey, CorruptData, UnsupportedVersion, or InvalidInput when
 * a sealed collection gets no keys.
 */
export function readDescription(
  native: Native,
  keys: Keys | null,
  data: Uint8Array,
  name: string,
): Description {
  let content: { [field: string]: unknown };
  let described: Description;
  let settings: Uint8Array;
  try {
    content = JSON.parse(text(data)) as { [field: string]: unknown };
    const { format, key_id: keyId, epoch, scheme } = content;
    if (typeof format === "number" && format > FORMAT)
      throw new UnsupportedVersion(
        `collection "${name}" has format ${format}; this ciphervec reads up to ${FORMAT}. Upgrade ciphervec.`,
      );
    const spec = native.IndexSpec.fromBytes(fromBase64(content["spec"]));
    const stored = format === 1 ? STORED_LATTICE : scheme;
    if (
      ![1, 2, 3, 4, 5, 6].includes(Number(format)) ||
      stored !== spec.storedScheme ||
      !Number.isSafeInteger(epoch)
    )
      throw new TypeError(`format ${String(format)}, scheme ${String(stored)}, epoch ${String(epoch)}`);
    settings = fromBase64(content["settings"]);
    described = {
      spec,
      keyId: String(keyId),
      filterable: [],
      epoch: Number(epoch),
      maskSeed: null,
      rotation: rotationOf(content["rotation"]),
      authenticated: false,
      originals: false,
      network: networkOf(DEFAULT_NETWORK),
      untagged: new Set(),
      routed: false,
      center: null,
    };
  } catch (error) {
    throw corruptMeta(name, fromNative(error));
  }
  const { spec } = described;
  if (spec.collection !== name)
    throw new CorruptData(
      `what is shown as "${name}" is the collection "${spec.collection}"; its name is part of what its keys are bound to.`,
    );
  const opener = ownerOf(native, keys, described);
  const nothing = new native.SegmentDirectory();
  try {
    const batch = guarded(() => native.RecordBatch.fromBytes(settings));
    if (batch.length !== 1) throw corruptMeta(name, `${batch.length} settings`);
    const kept = parse(
      text(guarded(() => opener.openRecord(SETTINGS_PLACE, batch, 0, SETTINGS_ID, nothing))),
    ) as Kept;
    batch.free();
    const seed = kept["mask_seed"];
    return {
      ...described,
      filterable: fieldNames(kept["filterable"]),
      maskSeed: typeof seed === "string" ? unhex(seed) : null,
      // An incarnation is part of what the settings are sealed to: the format, in clear, is not.
      authenticated:
        spec.mode !== "open" && (spec.incarnation !== undefined || kept["authenticated"] === true),
      originals: kept["originals"] === true,
      network: networkOf((kept["network"] ?? DEFAULT_NETWORK) as typeof DEFAULT_NETWORK),
      untagged: new Set((kept["untagged"] ?? []) as string[]),
      routed: kept["routing"] !== undefined && kept["routing"] !== null,
      center: kept["center"] === undefined ? null : centerFrom(fromBase64(kept["center"])),
    };
  } finally {
    nothing.free();
    opener.free();
  }
}

/** Throws InvalidInput unless what is there was chosen so. */
export function checkChoices(there: Description, choices: Choices): void {
  const { spec } = there;
  const { metric = "cosine", mode = "sealed", precision = "standard" } = choices;
  const pairs: [string, unknown, unknown][] = [
    ["dimension", choices.dimension, spec.dimension],
    ["metric", metric, spec.metric],
    ["mode", mode, spec.mode],
    ["precision", precision, spec.precision],
    ["scheme", LATTICE, spec.scheme],
    ["filterable", JSON.stringify(choices.filterable ?? []), JSON.stringify(there.filterable)],
    ["originals", choices.originals ?? there.originals, there.originals],
  ];
  for (const [what, asked, found] of pairs)
    if (asked !== found)
      throw new InvalidInput(
        `collection "${spec.collection}" is there with ${what} ${String(found)}, not ${String(asked)}. Open it with ` +
          "getCollection, or choose another name.",
      );
}

/** Whether two descriptions are read alike. */
export function readsAlike(a: Description, b: Description): boolean {
  const of = ({ keyId, rotation, filterable, untagged }: Description) =>
    JSON.stringify([keyId, rotation && [...rotation.previous], filterable, [...untagged]]);
  return of(a) === of(b);
}

/** Whether indexes of this description have a key pair each. */
export const hasKeyPair = (spec: IndexSpec): boolean => spec.scheme !== LATTICE;

function fieldNames(given: unknown): string[] {
  if (!Array.isArray(given))
    throw new InvalidInput(`filterable must be a list of field names, got ${typeof given}.`);
  for (const one of given)
    if (typeof one !== "string" || one === "" || one.startsWith("$"))
      throw new InvalidInput(
        `filterable holds ${String(one)}; field names are texts that are not empty, without leading "$".`,
      );
  if (new Set(given).size !== given.length)
    throw new InvalidInput(`filterable names a field twice: ${given.join(", ")}.`);
  return [...given];
}

function oneOf(what: string, value: string, known: readonly string[]): void {
  if (!known.includes(value))
    throw new InvalidInput(`${what} must be one of ${known.join(", ")}; got ${String(value)}.`);
}

function networkOf({ megabits, latency_ms }: typeof DEFAULT_NETWORK): Network {
  return { bytesPerSecond: megabits * 125e3, roundTrip: latency_ms / 1e3 };
}

function centerFrom(bytes: Uint8Array): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

function rotationOf(content: unknown): Rotation | null {
  if (content === undefined || content === null) return null;
  const { previous_id, previous, following } = content as { [field: string]: unknown };
  return {
    previousId: String(previous_id),
    previous: fromBase64(previous),
    following: following === null ? null : fromBase64(following),
  };
}

function checkKey(given: string, expected: string, name: string, rotation: Rotation | null = null): void {
  if (rotation !== null && given === rotation.previousId)
    throw new WrongKey(
      `"${name}" is being given new keys: from ${given} to ${expected}, and ${given} alone opens only what has not been sealed ` +
        "again. Use the key file of the new keys, which open both.",
    );
  if (given !== expected)
    throw new WrongKey(
      `"${name}" is sealed under key ${expected}, but the key given is ${given}. Load the key file it was made with.`,
    );
}

function corruptMeta(name: string, reason: unknown): unknown {
  if (reason instanceof UnsupportedVersion || reason instanceof WrongKey) return reason;
  const says = reason instanceof Error ? reason.message : String(reason);
  return new CorruptData(
    `the description of collection "${name}" is damaged: ${says}. Restore it from a copy.`,
  );
}
