/** Bytes: headers of frames that the project keeps in vectors/, entropy, hex rows, descriptions. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readDescription } from "../../src/api/description.ts";
import { entropy, expectedEntropy } from "../../src/api/entropy.ts";
import { hex, readFrame } from "../../src/api/frame.ts";
import { pieces } from "../../src/parts/hex-dump.tsx";

const VECTORS = new URL("../../../../vectors/v1/", import.meta.url);

describe("frames", () => {
  it("are read as the vectors have them", () => {
    const names = readdirSync(VECTORS, { recursive: true, encoding: "utf8" }).filter((name) =>
      /segment|spec/.test(name),
    );
    let segments = 0;
    for (const name of names) {
      let bytes: Uint8Array;
      try {
        bytes = readFileSync(new URL(name, VECTORS));
      } catch {
        continue; // a folder
      }
      const fields = readFrame(bytes);
      if (fields.length === 0) continue;
      const value = (field: string) => fields.find((one) => one.name === field)?.value;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      expect(value("magic")).toBe("CVEC");
      expect(Number(value("length")?.replaceAll(",", ""))).toBe(bytes.length - 64);
      if (value("kind") === "segment") {
        segments += 1;
        expect(Number(value("rows")?.replaceAll(",", ""))).toBe(view.getUint32(88, true));
      }
      for (const [at, field] of fields.entries()) expect(field.from).toBe(fields[at - 1]?.to ?? 0);
    }
    expect(segments).toBeGreaterThan(0);
  });

  it("are not seen where there are none", () => {
    expect(readFrame(new Uint8Array(200))).toEqual([]);
    expect(readFrame(new TextEncoder().encode("CVEC"))).toEqual([]);
  });

  it("have their fields marked in hex, cut where rows and fields end", () => {
    const bytes = Uint8Array.from({ length: 16 }, (_, at) => at);
    const fields = [
      { name: "a", value: "1", from: 18, to: 20 },
      { name: "b", value: "2", from: 30, to: 40 },
    ];
    expect(pieces(bytes, 16, fields)).toEqual([
      { at: 16, text: "00 01 ", field: null },
      { at: 18, text: "02 03 ", field: "a: 1" },
      { at: 20, text: "04 05 06 07 08 09 0a 0b 0c 0d ", field: null },
      { at: 30, text: "0e 0f ", field: "b: 2" },
    ]);
    expect(hex(Uint8Array.of(0, 255, 16))).toBe("00ff10");
  });
});

describe("entropy", () => {
  it("is that of Shannon", () => {
    expect(entropy(new Uint8Array(100))).toBe(0);
    expect(entropy(Uint8Array.from({ length: 256 }, (_, at) => at))).toBe(8);
    expect(entropy(Uint8Array.of(1, 2, 1, 2))).toBe(1);
    expect(entropy(new Uint8Array(0))).toBe(0);
  });

  it("of random bytes is what is expected of as many", () => {
    const bytes = crypto.getRandomValues(new Uint8Array(4096));
    expect(Math.abs(entropy(bytes) - expectedEntropy(bytes.length))).toBeLessThan(0.02);
  });
});

describe("descriptions", () => {
  const described = (payload: number[], more: object = {}) => {
    const spec = Buffer.from([...new Array(64).fill(0), ...payload]).toString("base64");
    return Buffer.from(
      JSON.stringify({ spec, scheme: "sealed", key_id: "ab", epoch: 2, settings: "AAAA", ...more }),
    ).toString("base64");
  };

  it("say what anybody may know", () => {
    expect(readDescription(described([0, 2, 0, 0, 2, 3, 129]))).toEqual({
      mode: "sealed",
      metric: "squared Euclidean",
      dimension: 512,
      precision: "small",
      scheme: "lattice",
      keyId: "ab",
      epoch: 2,
      settingsBytes: 3,
    });
    expect(readDescription(described([8, 0, 0, 0, 0, 97, 0], { scheme: "elgamal" }))).toMatchObject({
      mode: "sealed-index",
      scheme: "elgamal",
    });
  });

  it("of later releases, or damaged ones, are none", () => {
    expect(readDescription(described([8, 0, 0, 0, 0, 9, 0]))).toBeNull();
    expect(readDescription(described([8]))).toBeNull();
    expect(readDescription("no base64 !")).toBeNull();
    expect(readDescription(btoa("[]"))).toBeNull();
  });
});
