/**
 * Query keys: how many queries are about to be asked enters; the epoch of the key that they may be asked under leaves, with them
 * counted. Key owner's side.
 *
 * A server that answers wrongly and watches what becomes of the answer learns of the query key. So a key serves few queries, and a
 * client takes the next one by itself: a *session*, an epoch drawn at random from the upper half of all epochs, whose evaluation keys
 * it hands to the server with no more than the permission to query. Counts are kept in memory: a page that is loaded again begins
 * another session.
 */

import { Conflict, ServerError } from "../errors.js";
import type { Call } from "../http/session.js";
import { QueryKeysMissing } from "../http/store.js";
import type { Sink } from "../http/transport.js";
import { random } from "../ingest/bytes.js";
import type { Owner } from "../native.js";
import type { Segments } from "./segments.js";

/** Queries that one key serves; each row of a batch is one. */
export const QUERIES_PER_KEY = 1024;

/** The first epoch that is a session. */
const SESSIONS = 2 ** 31;
const SENDS = 4; // servers behind one address may each have to be given the keys

/** The keys that one client asks the queries of one collection under. */
export class QueryKeys {
  #keyId = "";
  #epoch: number | null = null;
  #used = 0;
  /** Whether the server takes no sessions: queries are asked under the collection's own epoch. */
  refused = false;
  /** Queries asked so. */
  askedOutside = 0;

  /** The session of the latest query; null before the first. */
  get epoch(): number | null {
    return this.#epoch;
  }

  /** How many queries of it are counted. */
  get used(): number {
    return this.#used;
  }

  /** The session under which so many queries may be asked now, and whether it was drawn just now. They are counted. */
  take(keyId: string, queries: number): { epoch: number; fresh: boolean } {
    const fresh = this.#epoch === null || this.#keyId !== keyId || this.#used + queries > QUERIES_PER_KEY;
    if (fresh) {
      const drawn = random(4);
      this.#epoch = SESSIONS + (new DataView(drawn.buffer, drawn.byteOffset).getUint32(0) % SESSIONS);
      this.#keyId = keyId;
      this.#used = 0;
    }
    this.#used += queries;
    return { epoch: this.#epoch as number, fresh };
  }

  /** Count queries that are about to be sent once more. Throws Conflict where their session is over or has not as many left. */
  again(epoch: number, queries: number): void {
    if (epoch < SESSIONS) return;
    if (this.#epoch !== epoch || this.#used + queries > QUERIES_PER_KEY)
      throw new Conflict("the query key has served as many queries as it may. Ask again.");
    this.#used += queries;
  }

  /** Let the next query begin a session. */
  end(): void {
    this.#epoch = null;
    this.#used = 0;
  }
}

/** The epoch to make so many queries under: counted, and the server has its evaluation keys as far as is known. */
export async function queryEpoch(segments: Segments, queries: number, call: Call): Promise<number> {
  const { owner, description, queryKeys: keys } = segments;
  const { mode } = description.spec;
  if (mode !== "sealed" && mode !== "sealed-query") return description.epoch;
  if (keys.refused) {
    askedOutside(segments, queries);
    return description.epoch;
  }
  const { epoch, fresh } = keys.take(owner.keyId, queries);
  if (!fresh) return epoch;
  const evaluation = evaluationOf(owner, epoch);
  const held = await segments.lock.apart(() => handOver(segments, evaluation, call));
  segments.call = call; // others were let in meanwhile
  await segments.settle(call);
  if (!held) {
    keys.end();
    keys.refused = true;
    const { warn } = segments;
    warn(
      `the server of "${description.spec.collection}" takes no query keys of its clients: it is of a release before 0.2. Queries ` +
        "are asked under the collection's own query key, which changes with the Python client's rotate_query_key() " +
        "alone. SECURITY.md says what a server that lies learns of a key; upgrade the server, or rotate it every " +
        `${QUERIES_PER_KEY} queries.`,
    );
  }
  // They may have changed the keys.
  return held && segments.owner === owner ? epoch : queryEpoch(segments, queries, call);
}

/** Have the server answer a message of so many queries made under this epoch; the commit that the answer was computed on. */
export async function answered(
  segments: Segments,
  query: Uint8Array,
  epoch: number,
  queries: number,
  call: Call,
  sink: Sink,
): Promise<number> {
  const { owner, queryKeys: keys, lock } = segments;
  const again = () => keys.again(epoch, queries);
  for (let sends = 0; sends < SENDS; sends++) {
    try {
      return await lock.apart(() => segments.evaluate(query, call, sink, again));
    } catch (error) {
      if (!(error instanceof QueryKeysMissing)) throw error;
      again();
      // Others may have let go of the owner meanwhile, who makes these keys.
      if (segments.owner !== owner) throw new Conflict("the keys have changed. Ask again.");
      const evaluation = evaluationOf(owner, epoch);
      await lock.apart(() => handOver(segments, evaluation, call));
    }
  }
  throw new ServerError(
    `the server of "${segments.description.spec.collection}" says that it lacks evaluation keys that it was given ${SENDS} times. Ask ` +
      "its operator: its memory may be too small for them, or several servers answer under one address.",
  );
}

function evaluationOf(owner: Owner, epoch: number): Uint8Array {
  const keys = owner.evaluation(epoch);
  try {
    return keys.toBytes();
  } finally {
    keys.free();
  }
}

/** Give the server the evaluation keys of a session; whether it knows sessions. */
async function handOver(segments: Segments, evaluation: Uint8Array, call: Call): Promise<boolean> {
  try {
    return await segments.store.hold(evaluation, call);
  } catch (error) {
    segments.queryKeys.end(); // it has others of that number, say, or the owner's keys have changed
    throw error;
  }
}

/** Count queries under the collection's own epoch, which only a change of it ends, and say so. */
function askedOutside(segments: Segments, queries: number): void {
  const { queryKeys: keys, description, warn } = segments;
  const before = keys.askedOutside;
  keys.askedOutside += queries;
  const over = Math.floor(before / QUERIES_PER_KEY) !== Math.floor(keys.askedOutside / QUERIES_PER_KEY);
  if (over)
    warn(
      `${keys.askedOutside} queries of this client were asked under one query key of "${description.spec.collection}". Begin another ` +
        "with the Python client's rotate_query_key().",
    );
}
