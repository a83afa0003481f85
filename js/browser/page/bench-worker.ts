/**
 * Times queries, decryption and sealing in a Worker, over what `ciphervec bench web` serves. It does what the native
 * half in lab/ciphervec_lab/bench/web.py does, with the same rows.
 */

import { hasSimd } from "../../client/dist/platform/simd.js";
import load, * as native from "../../client/tests/wasm/ciphervec.js";
import { gaussian } from "./kit.ts";

const SEALED = 5000;
const COUNT = 10;
const QUERIES = 20;
const EPOCH = 0;
const MASTER = Uint8Array.from({ length: 32 }, (_, i) => i);

/** Of the fastest runs. */
export interface Measured {
  backend: string;
  ms_query: number;
  ms_open: number;
  vectors_per_second: number;
  response_bytes: number;
}

interface Head {
  dimension: number;
  segments: string[];
}

async function fetched(path: string, body?: Uint8Array): Promise<Uint8Array> {
  const answer = await fetch(
    `/v1/bench/${path}`,
    body === undefined ? {} : { method: "POST", body: body as BodyInit },
  );
  if (!answer.ok) throw new Error(`${path}: status ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function measure(mode: string, repeats: number): Promise<Measured> {
  const plain = new URL("../../client/tests/wasm/ciphervec_bg.wasm", import.meta.url);
  const simd = new URL("../../client/tests/wasm/ciphervec_simd_bg.wasm", import.meta.url);
  // The client's own choice, so that what is measured is what it runs here.
  await load({ module_or_path: hasSimd() ? simd : plain });
  const head = JSON.parse(new TextDecoder().decode(await fetched(`${mode}/head.json`))) as Head;
  const keys = native.Keys.fromMaster(MASTER);
  const spec = native.IndexSpec.fromBytes(await fetched(`${mode}/spec`));
  const owner = new native.Owner(keys, spec, await fetched(`${mode}/seed`));
  const directory = new native.SegmentDirectory();
  for (const id of head.segments) {
    const sidecar = await fetched(`${mode}/${id}.sidecar`);
    const bytes = Uint8Array.from(id.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    owner.addTo(directory, bytes, sidecar, undefined, undefined, "stored");
  }
  const question = gaussian(18, 1, head.dimension);
  const vectors = gaussian(19, SEALED, head.dimension);
  const ids = Array.from({ length: SEALED }, (_, i) => i);
  const ask = () => owner.query(question, directory, EPOCH, undefined, undefined, "short");
  let answered = 0;
  // A page's clock has steps of a tenth of a millisecond.
  const ms_queries = await best(repeats, async () => () => {
    for (let i = 0; i < QUERIES; i++) ask().toBytes();
  });
  const ms_open = await best(repeats, async () => {
    const query = ask();
    const response = await fetched(mode, query.toBytes());
    answered = response.length;
    return () => owner.open(query, response, directory, COUNT, undefined);
  });
  const ms_seal = await best(5, async () => () => owner.seal(vectors, ids, SEALED).free());
  return {
    backend: native.backend(),
    ms_query: ms_queries / QUERIES,
    ms_open,
    vectors_per_second: (1000 * SEALED) / ms_seal,
    response_bytes: answered,
  };
}

/** Milliseconds of what `begin` gives, of the fastest run, as the native half counts. The first is left out. */
async function best(repeats: number, begin: () => Promise<() => unknown>): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn <= repeats; turn++) {
    const work = await begin();
    const began = performance.now();
    work();
    if (turn > 0) times.push(performance.now() - began);
  }
  return Math.min(...times);
}

self.onmessage = async ({ data: { mode, repeats } }) => {
  try {
    postMessage(await measure(mode, repeats));
  } catch (error) {
    postMessage({ error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) });
  }
};
