/** Servers that lie to a browser: versions that go back, parameters that change, states that are none or of another history. */

import { createHash } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { Description } from "../../src/collections/description.js";
import { type State, States } from "../../src/collections/states.js";
import { CorruptData, PinMismatch, RollbackDetected } from "../../src/errors.js";
import type { HttpStore } from "../../src/http/store.js";
import { EPOCH, KEY_ID, type Lineage, MASKS, Trust } from "../../src/http/trust.js";
import { concat, hex, utf8 } from "../../src/ingest/bytes.js";
import type { Native, Owner } from "../../src/native.js";
import type { SealedStorage } from "../../src/storage/sealed.js";

/** Stands for the hashes, which are in the wasm: any will do that differ where their bytes do. */
const blake3 = (data: Uint8Array) => new Uint8Array(createHash("sha256").update(data).digest());
const native = {
  blake3,
  stateDigest: blake3,
  stateName: (sealed: Uint8Array) => blake3(sealed).slice(0, 16),
  stateLeaf: (facts: object) =>
    blake3(utf8(JSON.stringify(facts, (_, value) => (value instanceof Uint8Array ? hex(value) : value)))),
} as unknown as Native;

class Kept {
  readonly durable = true;
  readonly held = new Map<string, Uint8Array>();
  async get(name: string) {
    const data = this.held.get(name);
    return data && { data };
  }
  async set(name: string, data: Uint8Array) {
    this.held.set(name, data);
  }
  async delete(name: string) {
    this.held.delete(name);
  }
  exclusive<T>(_: string, work: () => Promise<T>) {
    return work();
  }
}

const [A, B, C] = ["a", "b", "c"].map((one) => one.repeat(64)) as [string, string, string];

describe("trust", () => {
  let storage: Kept;
  let warnings: string[];
  const opened = () =>
    Trust.open(storage as unknown as SealedStorage, native, "https://x", "docs", (one) => warnings.push(one));

  beforeEach(() => {
    storage = new Kept();
    warnings = [];
  });

  test("a server that goes back is found out, in a later session too", async () => {
    const first = await opened();
    await first.see(1, A, 0);
    await first.see(3, B, 1);
    for (const trust of [first, await opened()]) {
      await expect(trust.see(2, C, 3)).rejects.toBeInstanceOf(RollbackDetected);
      await expect(trust.see(3, C, 3)).rejects.toThrow("two histories");
    }
    // Answers may overtake each other.
    await first.see(2, C, 1);
    await first.see(4, C, 3);
    expect(first.version).toBe(4);
  });

  test("two tabs share what they saw", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.see(5, A, 0);
    await two.reload();
    await expect(two.see(4, B, 5)).rejects.toBeInstanceOf(RollbackDetected);
    await one.see(8, A, 5);
    await expect(two.see(8, B, 5)).rejects.toThrow("two histories");
  });

  test("parameters are pinned", async () => {
    await (await opened()).pin({ spec: "one", [KEY_ID]: "k" });
    const later = await opened();
    await expect(later.pin({ spec: "two" })).rejects.toBeInstanceOf(PinMismatch);
    await later.pin({ spec: "one", more: "x" });
    expect(later.pinned("more")).toBe("x");
  });

  const lineage: Lineage = { keyId: "k2", masks: "m", epoch: 4 };
  test.each<[string, Lineage | null]>([
    ["does not open", null],
    ["names another key", { ...lineage, keyId: "k3" }],
    ["is another collection's", { ...lineage, masks: "n" }],
    ["has an epoch that was seen", { ...lineage, epoch: 3 }],
  ])("other keys are not followed where what comes with them %s", async (_, given) => {
    const trust = await opened();
    await trust.pin({ [KEY_ID]: "k1", [MASKS]: "m", [`${EPOCH}3`]: "e" });
    await expect(trust.follow("k2", given)).rejects.toBeInstanceOf(PinMismatch);
    expect(trust.pinned(KEY_ID)).toBe("k1");
    await trust.follow("k2", lineage);
    expect([trust.pinned(KEY_ID), warnings.length]).toEqual(["k2", 1]);
    // And never back.
    await expect(trust.follow("k1", { ...lineage, keyId: "k1", epoch: 9 })).rejects.toBeInstanceOf(
      PinMismatch,
    );
  });

  test("a tab with old pins does not put them back", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.pin({ [KEY_ID]: "k1" });
    await two.reload();
    await one.repin({ [KEY_ID]: "k2" });
    await two.see(2, B, 0);
    expect([two.pinned(KEY_ID), (await opened()).pinned(KEY_ID)]).toEqual(["k2", "k2"]);
  });

  test("what is in quarantine stays there in a later session", async () => {
    await (await opened()).hold("s", "it failed");
    expect((await opened()).held).toEqual({ s: "it failed" });
    expect((await opened()).keeps("s")).toBe(true);
    const other = await opened();
    await other.unhold(["s"]);
    expect((await opened()).held).toEqual({});
  });
});

describe("states", () => {
  const id = (i: number) => i.toString(16).padStart(32, "0");
  const meta = utf8("{}");
  let segments: { id: string; rows: number; deleted: number[]; blobs: { [name: string]: number } }[];
  let blobs: Map<string, Uint8Array>;
  let shown: State;
  let states: States;
  let pin: unknown = null;
  let warnings: string[];
  const description = {
    authenticated: true,
    epoch: 0,
    keyId: "k",
    spec: { mode: "sealed", incarnation: new Uint8Array(16) },
  } as unknown as Description;
  // A sealed state is its JSON here: whether it is authentic is the wasm's to say.
  const sealed = () =>
    utf8(JSON.stringify([Number(shown.sequence), hex(shown.segmentsDigest), hex(shown.lineage)]));
  const owner = {
    openState: () => shown,
    evaluation: () => ({ toBytes: () => Uint8Array.of(1), free: () => undefined }),
    holdEvaluation: () => undefined,
  } as unknown as Owner;
  const store = () =>
    ({
      meta,
      segments: () => segments,
      read: async (segment: string, blob: string) => blobs.get(`${segment}/${blob}`),
      hasAttachment: () => true,
      attachment: async (name: string) => (name === "state" ? sealed() : Uint8Array.of(2)),
      trust: {
        get state() {
          return pin;
        },
        seeState: async (now: unknown) => {
          pin = now;
        },
      },
    }) as unknown as HttpStore;
  const anew = () => new States(store(), "docs", native, (one) => warnings.push(one));
  const leaf = (i: number) =>
    native.stateLeaf({
      segmentId: Uint8Array.from(Buffer.from(segments[i]?.id as string, "hex")),
      rows: segments[i]?.rows as number,
      deleted: Uint32Array.from(segments[i]?.deleted ?? []),
      blobs: ["sidecar"],
      digests: { sidecar: blake3(blobs.get(`${segments[i]?.id}/sidecar`) as Uint8Array) },
    } as Parameters<Native["stateLeaf"]>[0]);
  const authenticate = (more: Partial<State> = {}) => {
    shown = {
      key: "k",
      origin: new Uint8Array(16),
      lineage: new Uint8Array(16),
      begun: 0n,
      sequence: 1n,
      epoch: 0,
      segments: segments.length,
      segmentsDigest: blake3(concat(segments.map((_, i) => leaf(i)))),
      description: blake3(meta),
      evaluation: blake3(Uint8Array.of(1)),
      keyPair: new Uint8Array(32),
      ancestors: [],
      aside: [],
      routing: new Uint8Array(32),
      consumed: new Uint8Array(32),
      quarantine: [],
      ...more,
    } as unknown as State;
  };
  const look = async (of = states) => of.check(await of.shown(owner, description, {}), {});

  beforeEach(() => {
    segments = [1, 2].map((i) => ({ id: id(i), rows: 4, deleted: [], blobs: { sidecar: 3 } }));
    blobs = new Map(segments.map((one, i) => [`${one.id}/sidecar`, Uint8Array.of(i, i, i)]));
    pin = null;
    warnings = [];
    authenticate();
    states = anew();
  });

  test("an honest store is believed, and what follows from what was seen", async () => {
    await look();
    const before = native.stateName(sealed());
    authenticate({ sequence: 2n, ancestors: [before] });
    await look();
    await look(anew());
  });

  test.each<[string, () => void]>([
    ["reordered", () => segments.reverse()],
    ["left out", () => segments.pop()],
    ["with other rows deleted", () => Object.assign(segments[0] as object, { deleted: [1] })],
    ["with other ids", () => blobs.set(`${id(1)}/sidecar`, Uint8Array.of(9, 9, 9))],
  ])("segments %s are refused", async (_, change) => {
    change();
    await expect(look()).rejects.toBeInstanceOf(RollbackDetected);
  });

  test("what is read again in doubt is compared anew", async () => {
    await look();
    blobs.set(`${id(1)}/sidecar`, Uint8Array.of(9, 9, 9));
    const other = blobs.get(`${id(1)}/sidecar`) as Uint8Array;
    expect(() => states.note(id(1), "sidecar", other)).toThrow(CorruptData);
    states.doubt();
    states.note(id(1), "sidecar", other);
    await expect(look()).rejects.toBeInstanceOf(RollbackDetected);
  });

  test("another description, or none that is authenticated, is refused", async () => {
    await look();
    const before = { ...description, authenticated: false } as Description;
    await expect(states.shown(owner, before, {})).rejects.toBeInstanceOf(RollbackDetected);
    await expect(anew().shown(owner, before, {})).rejects.toBeInstanceOf(RollbackDetected);
    authenticate({ description: new Uint8Array(32) });
    await expect(look(anew())).rejects.toBeInstanceOf(RollbackDetected);
  });

  test.each<[string, Partial<State>]>([
    ["under the key before a rotation", { key: "before" }],
    ["of another collection of the name", { origin: new Uint8Array(16).fill(1) }],
    ["of another epoch", { epoch: 1 }],
  ])("a state %s is refused, whoever made it", async (_, other) => {
    authenticate(other);
    await expect(look(anew())).rejects.toBeInstanceOf(RollbackDetected);
  });

  test("another list of consumed segments, and other evaluation keys, are refused", async () => {
    authenticate({ consumed: new Uint8Array(32).fill(1) });
    await expect(look()).rejects.toBeInstanceOf(RollbackDetected);
    authenticate();
    await look();
    expect(() => states.checkEvaluation(new Uint8Array(32))).toThrow(RollbackDetected);
    expect(() => states.checkAttachment("evaluation", Uint8Array.of(2))).toThrow(RollbackDetected);
    states.checkEvaluation(blake3(Uint8Array.of(1)));
  });

  test("a state that does not descend from what was seen is refused", async () => {
    authenticate({ sequence: 5n });
    await look();
    authenticate({ sequence: 4n });
    await expect(look(anew())).rejects.toThrow("state 4");
    authenticate({ sequence: 6n, ancestors: [new Uint8Array(16).fill(7)] });
    await expect(look(anew())).rejects.toThrow("another history");
    authenticate({
      sequence: 6n,
      lineage: new Uint8Array(16).fill(1),
      ancestors: [new Uint8Array(16).fill(7)],
    });
    await expect(look(anew())).rejects.toThrow("accepted a restore");
    const many = Array.from({ length: 256 }, (_, i) => new Uint8Array(16).fill(i));
    authenticate({ sequence: 900n, lineage: new Uint8Array(16).fill(1), ancestors: many });
    await expect(look(anew())).rejects.toThrow("accepted a restore");
    authenticate({ sequence: 900n, ancestors: many });
    await look(anew());
    expect(warnings).toHaveLength(1);
  });
});
