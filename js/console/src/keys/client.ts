/** The key holder's half: opens key files and collections in the client's Worker. */
import { Client, type Collection, Engine, type Id, Keys, type Progress } from "@ciphervec/client";
import { Problem } from "../api/problem";
import type { Hit, KeyHolder, OpenCollection, Row, Step, UnlockOptions } from "./contract";

/** Opens a key file. Throws what the client says of a wrong file or passphrase. */
export async function unlock(
  file: Uint8Array,
  passphrase: string,
  options: UnlockOptions,
): Promise<KeyHolder> {
  // A Worker of these keys alone: ending it ends every copy of them.
  const engine = new Engine();
  try {
    const keys = await Keys.fromFile(file, { ...(passphrase !== "" && { passphrase }), engine });
    return holder(engine, keys, options);
  } catch (cause) {
    engine.stop();
    throw cause;
  }
}

/** For collections in mode open, which need no key. */
export function withoutKey(options: UnlockOptions): KeyHolder {
  return holder(new Engine(), null, options);
}

function holder(engine: Engine, keys: Keys | null, { token, remember, warn }: UnlockOptions): KeyHolder {
  const client = new Client({
    url: location.origin,
    engine,
    storage: remember ? "indexeddb" : "memory",
    onWarning: warn,
    ...(keys !== null && { keys }),
    ...(token !== null && { token }),
  });
  return {
    keyId: keys?.keyId ?? null,
    open: async (name) => {
      const collection = await client.getCollection({ name });
      await collection.refresh();
      return opened(collection);
    },
    dispose: () => {
      const wiped = keys === null ? Promise.resolve() : keys.dispose();
      wiped.catch(() => undefined).finally(() => engine.stop());
    },
  };
}

function opened(collection: Collection): OpenCollection {
  return {
    dimension: collection.dimension,
    count: () => collection.count(),
    async rows(from, count, { vectors }, signal) {
      const include = vectors
        ? (["metadatas", "documents", "embeddings"] as const)
        : (["documents"] as const);
      const got = await collection.get({ limit: count, offset: from, include, ...(signal && { signal }) });
      return got.ids.map(
        (id, at): Row => ({
          id: String(id),
          metadata: got.metadatas?.[at] ?? null,
          document: got.documents?.[at] ?? null,
          vector: got.embeddings?.[at] ?? null,
        }),
      );
    },
    async vector(id, signal) {
      for (const one of namesOf(id)) {
        // The list above was read by segments, and vectors that were not kept come by nothing else.
        const got = await collection.get({
          ids: [one],
          include: ["embeddings"],
          fetch: "segments",
          ...(signal && { signal }),
        });
        const vector = got.embeddings?.[0];
        if (vector !== undefined) return vector;
      }
      throw new Problem(
        404,
        `There is no row ${id} here.`,
        "Choose one of the list, or type the id of another.",
      );
    },
    async query(vector, count, { texts }, told, signal) {
      const result = await collection.query({
        queryEmbeddings: vector,
        nResults: count,
        include: texts ? ["scores", "metadatas", "documents"] : ["scores"],
        onProgress: steps(told),
        ...(signal && { signal }),
      });
      const hits = (result.ids[0] ?? []).map(
        (id, at): Hit => ({
          id: String(id),
          score: result.scores?.[0]?.[at] ?? 0,
          metadata: result.metadatas?.[0]?.[at] ?? null,
          document: result.documents?.[0]?.[at] ?? null,
        }),
      );
      return { hits, ownersOnly: result.ownersOnly };
    },
  };
}

/** What somebody who typed this may have meant: `7` and `"7"` are two ids. */
export function namesOf(typed: string): Id[] {
  if (!/^-?\d{1,19}$/.test(typed)) return [typed];
  const whole = Number(typed);
  return [Number.isSafeInteger(whole) ? whole : BigInt(typed), typed];
}

/** Steps as the page shows them: what the client tells of server and download counts from the same moment. */
export function steps(told: (step: Step) => void): (progress: Progress) => void {
  let server = 0;
  return ({ phase, done, ms }) => {
    switch (phase) {
      case "encrypt":
      case "upload":
      case "open":
        told({ phase, ms: ms ?? null, bytes: phase === "upload" ? done : null });
        break;
      case "server":
        server = ms ?? 0;
        told({ phase, ms: server, bytes: null });
        break;
      case "download":
        told({ phase, ms: ms === undefined ? null : Math.max(0, ms - server), bytes: done });
        break;
    }
  };
}
