/** Remote store: changes of one collection enter and go to a server; its sealed blobs leave, from the cache where they are
 * there. Key owner's side, without the keys. */

import {
  type Change,
  EVALUATION,
  KEY_PAIR,
  ORIGINALS,
  ROWS,
  STATE,
  type StoredSegment,
} from "../collections/change.js";
import {
  AuthenticationError,
  CiphervecError,
  CommitUncertain,
  Conflict,
  CorruptData,
  PinMismatch,
  ServerError,
} from "../errors.js";
import { hex, random, text, unhex, utf8 } from "../ingest/bytes.js";
import type { Native } from "../native.js";
import type { BlobCache } from "../storage/cache.js";
import { blobsOf, encode, type Place, splitBlobs, type Upload } from "./frame.js";
import { errorOf, Failed, losesUploads, problemOf, type Reply, uploadsGone } from "./problem.js";
import { type Call, Changed, type Session, Unanswered } from "./session.js";
import { committed, publicParameters, readState, type State, stateAfter } from "./state.js";
import type { Sink } from "./transport.js";
import { EPOCH, KEY_ID, type Lineage, MASKS, SESSIONS, type Trust } from "./trust.js";

/** Bytes of blobs that go in the frame of a commit; the largest ones beyond that are uploaded first. */
const INLINE = 24 << 20;
/** Bytes of blobs held until they are found right; beyond that they are kept as they come. */
const WAITING = 64 << 20;
const LEAST_INLINE = 256 << 10;
/** At a commit whose uploads the server lost. */
const ATTEMPTS = 3;
const AT_ONCE = 6;
/** Bytes of a blob that comes with others in one answer, and blobs that are asked for at once. */
const SMALL = 1 << 20;
const SEVERAL = 1024;
const MAX_STATE = 64 << 20;
const OCTETS = "application/octet-stream";

/** The server has not got the evaluation keys of the query's session, or not any more. */
export class QueryKeysMissing extends CiphervecError {}

/** What a store is made of. */
export interface StoreParts {
  session: Session;
  name: string;
  trust: Trust;
  cache: BlobCache;
  native: Native;
  state: State;
  /** Opens a description with the keys that the client was given. */
  lineage: (meta: Uint8Array) => Lineage | null;
}

/** One collection on a server. Its state is that of the latest answer. */
export class HttpStore {
  readonly #session: Session;
  readonly #name: string;
  readonly #path: string;
  readonly #trust: Trust;
  readonly #cache: BlobCache;
  readonly #native: Native;
  readonly #lineage: (meta: Uint8Array) => Lineage | null;
  #state: State;
  #doubted = false;
  /** Blobs that were fetched and not found right yet. */
  readonly #fetched = new Map<string, Uint8Array>();
  #waiting = 0; // bytes of these
  /** Places of blobs from the cache that were not found right since. */
  readonly #used = new Set<string>();
  /** By the hash of what they hold, of a change that others were faster than. */
  #uploads = new Map<string, Upload>();
  /** Whether the server gives several blobs at once, as far as is known. */
  #several = true;

  private constructor({ session, name, trust, cache, native, state, lineage }: StoreParts) {
    this.#session = session;
    this.#name = name;
    this.#path = `/v1/collections/${name}`;
    this.#trust = trust;
    this.#cache = cache;
    this.#native = native;
    this.#state = state;
    this.#lineage = lineage;
  }

  /** Throws RollbackDetected or PinMismatch when the state is not what the server has shown before. */
  static async open(parts: StoreParts): Promise<HttpStore> {
    const store = new HttpStore(parts);
    await store.#check(parts.state, parts.trust.version);
    return store;
  }

  get version(): number {
    return this.#state.version;
  }

  /** The newest version of query frames that the server says it answers. */
  get queryVersion(): number {
    return this.#state.queryVersion;
  }

  /** What was seen and pinned of this collection. */
  get trust(): Trust {
    return this.#trust;
  }

  get meta(): Uint8Array {
    return this.#state.meta;
  }

  /** The committed segments, oldest first. */
  segments(): StoredSegment[] {
    return [...this.#state.segments.values()];
  }

  /** Move on to the latest commit of whoever else writes; whether there was a new one. */
  async refresh(call: Call): Promise<boolean> {
    await this.#trust.reload();
    const since = this.#trust.version;
    const state = await this.#newer(call);
    if (state === null) return false;
    await this.#check(state, since);
    const moved = this.#doubted || state.version !== this.#state.version;
    this.#state = state;
    this.#doubted = false;
    return moved;
  }

  /** What is shown was found to be wrong: the next `refresh` reads it again, whatever it is called. */
  doubt(): void {
    this.#doubted = true;
  }

  /** Make a change durable, all or nothing. Throws Conflict when others were first, CommitUncertain when the answer got lost. */
  async commit(change: Change, call: Call): Promise<void> {
    const doing = `cannot commit to "${this.#name}"`;
    await this.#trust.prepare();
    const since = this.#trust.version;
    let reply = await this.#send(change, INLINE, doing, call);
    if (reply.status === 413) reply = await this.#send(change, LEAST_INLINE, doing, call);
    if (reply.status === 412)
      throw new Conflict(
        `${doing}: others commit to it faster than this client. Try again when there are fewer.`,
      );
    this.#uploads.clear();
    if (reply.status !== 200) throw errorOf(reply, doing, this.#session.url);
    const { version, head } = committed(this.#session.json(reply, doing), this.#session.url);
    if (version !== this.#state.version + 1)
      throw new CommitUncertain(
        `${doing}: ${this.#session.url} made version ${version} of a change to version ${this.#state.version}. Look at what ` +
          "is there, and ask its operator.",
      );
    const blake3 = (data: Uint8Array) => this.#native.blake3(data);
    this.#state = stateAfter(this.#state, change, version, head, blake3);
    await this.#trust.afterwards(`the change to "${this.#name}"`, async () => {
      await this.#trust.see(version, head, since, change.attachments.has(STATE));
      await this.#repin(change);
    });
    for (const added of change.add)
      for (const [name, blob] of Object.entries(added.blobs))
        if (name !== ROWS && name !== ORIGINALS) await this.#cache.put(this.#address(added.id, name), blob);
  }

  /** One blob. Throws CorruptData, Conflict when it is gone meanwhile. */
  async read(segment: string, blob: string, call: Call): Promise<Uint8Array> {
    const length = this.#state.segments.get(segment)?.blobs[blob];
    const address = this.#address(segment, blob);
    const place = `${segment}/${blob}`;
    const held = this.#fetched.get(place) ?? (await this.#cache.get(address));
    if (held !== null && (length === undefined || held.length === length)) {
      if (!this.#fetched.has(place)) this.#used.add(place);
      return held;
    }
    const doing = `cannot read ${blob} of "${this.#name}"`;
    if (length === undefined)
      throw new AuthenticationError(
        `${doing}: ${this.#session.url} shows no stored blob to this token, which has not the verb read. Ask its operator for one ` +
          "with it: ciphervec token create --verb owner, or --verb query --verb read.",
      );
    const data = await this.#fetch(`${this.#path}/segments/${segment}/${blob}`, length, doing, call);
    if (data === null)
      throw new CorruptData(
        `${doing}: ${this.#session.url} lists segment ${segment} but has no ${blob} of it. Ask its operator to verify the ` +
          "collection, and use a token with the verb read.",
      );
    await this.#await(segment, blob, data);
    return data;
  }

  /** Hold what was fetched until it is found right; beyond some bytes it is kept as it comes. */
  async #await(segment: string, blob: string, data: Uint8Array): Promise<void> {
    const place = `${segment}/${blob}`;
    if (this.#waiting + data.length > WAITING) {
      this.#used.add(place); // where it is wrong it is dropped, as others are
      await this.#cache.put(this.#address(segment, blob), data);
    } else {
      this.#forget(place);
      this.#fetched.set(place, data);
      this.#waiting += data.length;
    }
  }

  /** Blobs that were read and wait to be found right. */
  unkept(): { segment: string; blob: string }[] {
    return [...this.#fetched.keys(), ...this.#used].map((place) => {
      const [segment = "", blob = ""] = place.split("/");
      return { segment, blob };
    });
  }

  /** A blob was found to be the owner's or a writer's: from now on it may be kept. */
  async keep(segment: string, blob: string): Promise<void> {
    const place = `${segment}/${blob}`;
    this.#used.delete(place);
    const data = this.#fetched.get(place);
    if (data === undefined) return;
    this.#forget(place);
    await this.#cache.put(this.#address(segment, blob), data);
  }

  /** Blobs read, these or all, may be wrong: none is kept. Whether reading them again may give others. */
  async drop(segment?: string, blob?: string): Promise<boolean> {
    const dropped = this.unkept().filter(
      (one) => (segment ?? one.segment) === one.segment && (blob ?? one.blob) === one.blob,
    );
    if (segment !== undefined) {
      // Found right before, in part: records are sealed one by one.
      const listed = Object.keys(this.#state.segments.get(segment)?.blobs ?? {});
      for (const name of blob === undefined ? listed : [blob])
        if ((await this.#cache.get(this.#address(segment, name))) !== null)
          dropped.push({ segment, blob: name });
    }
    for (const one of dropped) {
      this.#forget(`${one.segment}/${one.blob}`);
      this.#used.delete(`${one.segment}/${one.blob}`);
      await this.#cache.drop(this.#address(one.segment, one.blob));
    }
    return dropped.length > 0;
  }

  #forget(place: string): void {
    this.#waiting -= this.#fetched.get(place)?.length ?? 0;
    this.#fetched.delete(place);
  }

  /** The same blob of several segments is read next: a chance to have them fetched at once. */
  async prefetch(segments: readonly string[], blob: string, call: Call): Promise<void> {
    const missing: string[] = [];
    const lacks = async (one: string) =>
      !this.#fetched.has(`${one}/${blob}`) && (await this.#cache.get(this.#address(one, blob))) === null;
    for (const one of segments) if (await lacks(one)) missing.push(one);
    const length = (one: string) => this.#state.segments.get(one)?.blobs[blob] ?? Infinity;
    const small = missing.filter((one) => length(one) <= SMALL);
    if (small.length > 1 && this.#several) await this.#fetchSeveral(small, blob, call);
    const left: string[] = [];
    for (const one of missing) if (await lacks(one)) left.push(one);
    const fetcher = async () => {
      for (let next = left.shift(); next !== undefined; next = left.shift())
        await this.read(next, blob, call);
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, left.length) }, fetcher));
  }

  /** Fetch small blobs in few requests. What the server does not give as it is listed is left to `read`. */
  async #fetchSeveral(segments: readonly string[], blob: string, call: Call): Promise<void> {
    const doing = `cannot read ${blob} of "${this.#name}"`;
    for (let left = segments; left.length > 0; ) {
      const asked = left.slice(0, SEVERAL);
      const lengths = asked.map((one) => this.#state.segments.get(one)?.blobs[blob] ?? 0);
      const reply = await this.#session.call("POST", `${this.#path}/blobs`, doing, call, {
        body: utf8(JSON.stringify({ blob, segments: asked })),
        headers: { "Content-Type": "application/json" },
        ok: [200, 404, 405],
        limit: lengths.reduce((sum, one) => sum + one + 8, 0),
      });
      if (reply.status !== 200) {
        this.#several = false; // an older server
        return;
      }
      const found = splitBlobs(reply.body);
      if (found.length === 0 || found.length > asked.length)
        throw new ServerError(`${doing}: ${this.#session.url} answered with other blobs. Open it again.`);
      for (const [i, data] of found.entries()) {
        if (data === null || data.length !== lengths[i]) continue;
        await this.#await(asked[i] as string, blob, data);
      }
      left = left.slice(found.length);
    }
  }

  /** Whether the server has an attachment of this name. */
  hasAttachment(name: string): boolean {
    return this.#state.attachments.has(name);
  }

  /** A blob that belongs to the whole collection. */
  async attachment(name: string, call: Call): Promise<Uint8Array> {
    const doing = `cannot read ${name} of "${this.#name}"`;
    const length = this.#state.attachments.get(name);
    if (length === undefined)
      throw new CorruptData(
        `${doing}: ${this.#session.url} has none. Use a token with the verb read, or ask its operator.`,
      );
    const path = `${this.#path}/attachments/${name}`;
    let data: Uint8Array | null;
    if (name === STATE) {
      // It changes with every commit, and so may be a newer one than was listed.
      const reply = await this.#session.call("GET", path, doing, call, { ok: [200, 404], limit: MAX_STATE });
      data = reply.status === 200 ? reply.body : null;
      if (data === null) await this.#refuseIfMoved(doing, call);
    } else data = await this.#fetch(path, length, doing, call);
    if (data === null)
      throw new CorruptData(
        `${doing}: ${this.#session.url} lists it but does not give it. Ask its operator.`,
      );
    return data;
  }

  /** BLAKE3 of the evaluation keys that the server says it answers with; null where it says nothing of them. */
  get evaluation(): Uint8Array | null {
    return this.#state.evaluation;
  }

  /**
   * Have one message of queries answered into `sink`; the commit that the answer was computed on. `again` is called before it is sent
   * another time. `check` is called with the BLAKE3 of the collection's evaluation keys, and throws RollbackDetected for others than the
   * owner's. Throws Conflict when the server has moved on to a state that this query does not suit, QueryKeysMissing.
   */
  async evaluate(
    query: Uint8Array,
    call: Call,
    check: (digest: Uint8Array) => void,
    sink: Sink,
    again?: () => void,
  ): Promise<number> {
    const doing = `cannot query "${this.#name}"`;
    const since = this.#trust.version;
    const reply = await this.#session.call("POST", `${this.#path}/query`, doing, call, {
      body: query,
      headers: { "Content-Type": OCTETS },
      ok: [200, 400, 409, 422],
      sink,
      ...(again && { again }),
    });
    if (reply.status === 409 && isProblem(reply, "query-keys-missing"))
      throw new QueryKeysMissing(`${doing}: ${this.#session.url} lacks the evaluation keys of its session`);
    if (reply.status !== 200) {
      // Perhaps it does not suit the latest state: a new epoch of the query key, or larger segments.
      if ((await this.#newer(call)) !== null)
        throw new Conflict(`${doing}: it changes faster than a query takes. Ask again.`);
      throw errorOf(reply, doing, this.#session.url);
    }
    const { version, head } = committed(versionOf(reply.headers), this.#session.url);
    await this.#trust.see(version, head, since);
    const says = reply.headers.get("ciphervec-evaluation");
    if (says !== null)
      try {
        check(/^[0-9a-f]{64}$/.test(says) ? unhex(says) : new Uint8Array(0));
      } catch (error) {
        // They may be right in the state that the answer, or the server by now, is about.
        if (version === this.#state.version && (await this.#newer(call)) === null) throw error;
        throw new Conflict(`${doing}: its keys change while it is asked. Ask again.`);
      }
    return version;
  }

  /** Answer queries of the session that these evaluation keys are of; false where the server knows no sessions. Throws Conflict when it
   * has moved on to other keys of the owner's, PinMismatch when it has known sessions before. */
  async hold(evaluation: Uint8Array, call: Call): Promise<boolean> {
    const doing = `cannot bring a query key for "${this.#name}"`;
    const reply = await this.#session.call("PUT", `${this.#path}/query-keys`, doing, call, {
      body: evaluation,
      headers: { "Content-Type": OCTETS },
      ok: [204, 400, 404, 405, 409, 422],
    });
    if (reply.status === 204) {
      await this.#trust.pin({ [SESSIONS]: "taken" });
      return true;
    }
    if (reply.status !== 404 && reply.status !== 405) {
      if (isProblem(reply, "exists") || (await this.#newer(call)) !== null)
        throw new Conflict(`${doing}: it changes faster than a query takes. Ask again.`);
      throw errorOf(reply, doing, this.#session.url);
    }
    if (this.#trust.pinned(SESSIONS) !== undefined)
      throw new PinMismatch(
        `${doing}: ${this.#session.url} took query keys before and refuses them now, which would keep this client under one query key ` +
          "for good. Ask its operator. If an older release answers there on purpose, call " +
          `client.forget(${JSON.stringify(this.#name)}).`,
      );
    return false;
  }

  /** Have the server read and check every stored block; the token needs the verb admin. Throws CorruptData. */
  async verify(call: Call): Promise<{ files: number; bytes: number; strays: number }> {
    const doing = `cannot verify "${this.#name}"`;
    const reply = await this.#session.call("POST", `${this.#path}/verify`, doing, call);
    const { problems, files, bytes, strays } = this.#session.json(reply, doing);
    if (!Array.isArray(problems) || ![files, bytes, strays].every(Number.isSafeInteger))
      throw new ServerError(
        `${doing}: ${this.#session.url} reports in an unknown way. Check the versions on both sides.`,
      );
    const faults = problems.map(({ file, offset }) => `${file}, byte ${offset}: damaged on the server`);
    if (faults.length > 0) throw new CorruptData(faults.slice(0, 20).join("\n"));
    return { files: Number(files), bytes: Number(bytes), strays: Number(strays) };
  }

  /** Have the server delete what only earlier states refer to; the token needs the verb admin. */
  async purge(call: Call): Promise<void> {
    await this.#session.call("POST", `${this.#path}/purge`, `cannot purge "${this.#name}"`, call, {
      ok: [204],
    });
  }

  /** Pin the hash of this epoch's evaluation keys, and of the sealed key pair, after `check` on the keys when first seen. */
  async pinEvaluation(epoch: number, check: (data: Uint8Array) => void, call: Call): Promise<void> {
    const pin = `${EPOCH}${epoch}`;
    if (!this.hasAttachment(EVALUATION) || this.#trust.pinned(pin) !== undefined) return;
    const data = await this.attachment(EVALUATION, call);
    check(data);
    const pins: { [name: string]: string } = { [pin]: hex(this.#native.blake3(data)) };
    if (this.hasAttachment(KEY_PAIR))
      pins["key pair"] = hex(this.#native.blake3(await this.attachment(KEY_PAIR, call)));
    await this.#trust.pin(pins);
  }

  /** Pin the seed of the public masks, by which a collection is known again under other keys. Throws PinMismatch. */
  async pinMasks(seed: Uint8Array): Promise<void> {
    await this.#trust.pin({ [MASKS]: hex(this.#native.blake3(seed)) });
  }

  /** A blob; null where the server has none and had none. Throws Conflict where it is gone, or has become shorter, because the
   * collection has moved on: a server takes deleted rows out by itself. */
  async #fetch(path: string, length: number, doing: string, call: Call): Promise<Uint8Array | null> {
    try {
      const data = await this.#session.fetch(path, length, doing, call);
      if (data === null) await this.#refuseIfMoved(doing, call);
      return data;
    } catch (error) {
      if (error instanceof Changed) await this.#refuseIfMoved(doing, call);
      throw error;
    }
  }

  async #refuseIfMoved(doing: string, call: Call): Promise<void> {
    if ((await this.#newer(call)) !== null)
      throw new Conflict(`${doing}: it changes faster than it can be read. Try again.`);
  }

  /** The owner has changed the keys from here. */
  async #repin(change: Change): Promise<void> {
    const values = change.meta === null ? {} : publicParameters(change.meta);
    const pair = change.attachments.get(KEY_PAIR);
    const evaluation = change.attachments.get(EVALUATION);
    if (pair !== undefined && evaluation !== undefined) {
      const { epoch } = JSON.parse(text(change.meta ?? this.meta)) as { epoch: number };
      values["key pair"] = hex(this.#native.blake3(pair));
      values[`${EPOCH}${epoch}`] = hex(this.#native.blake3(evaluation));
    }
    const news = Object.entries(values).some(
      ([name, value]) => (this.#trust.pinned(name) ?? value) !== value,
    );
    if (news) await this.#trust.repin(values);
  }

  async #send(change: Change, inline: number, doing: string, call: Call): Promise<Reply> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const uploads = await this.#upload(change, inline, doing, call);
      const reply = await this.#post(change, uploads, doing, call);
      if (uploads.size === 0 || !uploadsGone(reply)) return reply;
      this.#uploads.clear();
    }
    throw losesUploads(doing, this.#session.url);
  }

  async #post(
    change: Change,
    uploads: ReadonlyMap<Place, Upload>,
    doing: string,
    call: Call,
  ): Promise<Reply> {
    const body = encode(change, uploads);
    call.progress?.({ phase: "upload", done: 0, total: body.length });
    try {
      const reply = await this.#session.call("POST", `${this.#path}/commits`, doing, call, {
        body,
        headers: {
          "Content-Type": OCTETS,
          "If-Match": `"${this.#state.head}"`,
          // A retry of these bytes is known by this key, and answered as the first attempt was.
          "Idempotency-Key": hex(random(16)),
        },
        ok: [200, 400, 404, 409, 412, 413, 422],
      });
      call.progress?.({ phase: "upload", done: body.length, total: body.length });
      return reply;
    } catch (error) {
      if (!(error instanceof Failed || (error instanceof Unanswered && error.sent))) throw error;
      throw new CommitUncertain(
        `${error.message} The change may have been committed, all of it, or not: look for its ids, or upsert.`,
      );
    }
  }

  /**
   * Upload the largest blobs until what is left fits into a frame; where they are. An upload of an earlier attempt serves again where it
   * holds the same bytes. Its place tells nothing: the attachments of the next attempt are other ones under the same names.
   */
  async #upload(
    change: Change,
    inline: number,
    doing: string,
    call: Call,
  ): Promise<ReadonlyMap<Place, Upload>> {
    const parts = blobsOf(change);
    const held = new Map<Place, Upload>();
    if (this.#uploads.size > 0)
      for (const [place, data] of parts) {
        const known = this.#uploads.get(hex(this.#native.blake3(data)));
        if (known !== undefined) held.set(place, known);
      }
    this.#uploads = new Map([...held.values()].map((one) => [one.blake3, one]));
    const total = parts.reduce((sum, [, data]) => sum + data.length, 0);
    let left = parts.reduce((sum, [place, data]) => sum + (held.has(place) ? 0 : data.length), 0);
    let sent = total - left;
    for (const [place, data] of parts.sort((a, b) => b[1].length - a[1].length)) {
      if (left <= inline || data.length === 0) break;
      if (held.has(place)) continue;
      const before = sent;
      const id = await this.#session.upload(`${this.#path}/uploads`, data, doing, call, (offset) =>
        call.progress?.({ phase: "upload", done: before + offset, total }),
      );
      const upload = { id, blake3: hex(this.#native.blake3(data)) };
      held.set(place, upload);
      this.#uploads.set(upload.blake3, upload);
      left -= data.length;
      sent += data.length;
    }
    return held;
  }

  /** The server's state, or null when it is the one known here. */
  async #newer(call: Call): Promise<State | null> {
    const doing = `cannot read "${this.#name}"`;
    const headers: { [name: string]: string } = this.#doubted
      ? {}
      : { "If-None-Match": `"${this.#state.head}"` };
    const reply = await this.#session.call("GET", this.#path, doing, call, { headers, ok: [200, 304] });
    if (reply.status === 304) return null;
    return readState(this.#session.json(reply, doing), this.#name, this.#session.url, this.#state);
  }

  async #check(state: State, since: number): Promise<void> {
    await this.#trust.see(state.version, state.head, since);
    const { [KEY_ID]: shown, ...values } = publicParameters(state.meta);
    await this.#trust.pin(values);
    if (shown === undefined) return;
    if ((this.#trust.pinned(KEY_ID) ?? shown) !== shown)
      await this.#trust.follow(shown, this.#lineage(state.meta));
    await this.#trust.pin({ [KEY_ID]: shown });
  }

  #address(segment: string, blob: string): string {
    return `${this.#session.url}\n${this.#name}\n${segment}\n${blob}`;
  }
}

function isProblem(reply: Reply, kind: string): boolean {
  return problemOf(reply)["type"] === `urn:ciphervec:${kind}`;
}

/** What the headers of an answer say of the state that it was computed on. */
export function versionOf(headers: Headers): { version: unknown; head: unknown } {
  const says = headers.get("ciphervec-version") ?? "";
  return { version: /^\d{1,15}$/.test(says) ? Number(says) : -1, head: headers.get("ciphervec-head") };
}
