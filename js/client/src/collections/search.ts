/** Search: queries and a filter enter; hits leave, after a message to the server and its answer. Key owner's side. */

import { Conflict } from "../errors.js";
import type { Call } from "../http/session.js";
import { committed } from "../http/state.js";
import { versionOf } from "../http/store.js";
import type { Sink } from "../http/transport.js";
import { METRICS, type Rows, sliceRows } from "../ingest/arrays.js";
import { concat, hex, unhex } from "../ingest/bytes.js";
import type { AnswerFormat, AnswerOpener, Answers, Filter, Found, SealedQuery } from "../native.js";
import type { Id, Metric } from "../types.js";
import { idsAround } from "./centers.js";
import { allPass, matching, tagged } from "./filtering.js";
import { answered, QUERIES_PER_KEY, queryEpoch } from "./query-keys.js";
import { checking } from "./reading.js";
import type { Segments } from "./segments.js";

/** Queries sent in one message; a longer batch takes several. */
const QUERY_ROWS = Math.min(1024, QUERIES_PER_KEY);
/** Bytes of an answer that are held as a whole; a longer one is opened as it comes. */
const WHOLE = 4 << 20;
/** The most bytes of an answer that is held as a whole, and of one that is opened as it comes. */
const MAX_WHOLE = 2 ** 30;
const MAX_ANSWER = 2 ** 40;
const LEAST_WORD = 3; // bytes of an answer, a row, nearly

/** The hits of one query, the closest first. */
export interface Matches {
  ids: Id[];
  distances: number[];
  scores: number[];
  /** Whether ids, order and scores depend on rows and query alone. */
  exact: boolean;
  /** Whether every block of rows that this rests on was checked. */
  checked: boolean;
}

/** What is asked. */
export interface Question {
  rows: Rows;
  count: number | null;
  within: number | null;
  where: Filter | null;
  among: readonly Id[] | null;
  /** Ask about the others where segments failed a check before. */
  skipQuarantined: boolean;
}

/** What one message asks, and what its answer is opened under. */
interface Message extends Question {
  /** That a row must have to be in the answer. */
  tags: Uint8Array[];
  /** Null for all rows. */
  allow: Id[] | null;
  /** What was in quarantine when the search began. While it goes on others may find another segment out, which would be passed over with nobody
   * told. */
  held: ReadonlySet<string>;
  /** That of the segments that it is about. */
  center: Float32Array;
}

/** One `Matches` per query row. */
export async function search(segments: Segments, question: Question, call: Call): Promise<Matches[]> {
  const { rows, where, among } = question;
  if (rows.count === 0) return [];
  if (where !== null || among !== null || segments.directory.length === 0) await segments.refresh(call);
  await segments.refuseHeld(question.skipQuarantined);
  const held = segments.quarantined();
  const { payloads } = segments;
  const authenticated = segments.state !== null;
  // A server's tags that no owner authenticates are not used: what followed would depend on the hits.
  const believed = authenticated || segments.description.spec.mode === "open";
  // What the server can't test by tags is tested here first, on metadata opened here: also of segments that have no tags under the present
  // key, because a writer sealed them, who can't make any, or the keys are changing.
  const usable =
    where === null || (believed && segments.readEntries().every((segment) => payloads.hasTags(segment)));
  const centers = segments.directory.centres();
  const allByTags = centers.length < 2 && among === null && (where === null || (where.complete && usable));
  let allow: Id[] | null = null;
  if (!allByTags && where !== null) allow = await matching(segments, where, believed);
  if (among !== null) {
    const passing = allow === null ? null : new Set(allow);
    allow = [...new Set(among)].filter((id) => segments.directory.has(id) && (passing?.has(id) ?? true));
  }
  if (segments.directory.length === 0 || allow?.length === 0)
    return Array.from({ length: rows.count }, () => ({
      ids: [],
      distances: [],
      scores: [],
      exact: true,
      checked: true,
    }));
  const askAll = async (
    tags: Uint8Array[],
    allow: Id[] | null,
    center = centers[0] ?? new Float32Array(0),
  ) => {
    const found: Matches[] = [];
    for (let start = 0; start < rows.count; start += QUERY_ROWS) {
      const part = sliceRows(rows, start, Math.min(start + QUERY_ROWS, rows.count));
      found.push(...(await ask(segments, { ...question, rows: part, tags, allow, held, center }, call)));
    }
    return found;
  };
  if (centers.length > 1) {
    // Of each center's rows its own query: rows that came before there was one, or by a writer with a card of another time.
    const parts: Matches[][] = [];
    for (const center of centers) {
      const names = idsAround(segments, center, allow);
      if (names.length > 0) parts.push(await askAll([], names, center));
    }
    return Array.from({ length: rows.count }, (_, i) =>
      nearestOf(
        parts.flatMap((part) => part[i] ?? []),
        question.count,
      ),
    );
  }
  const found = await askAll(where === null || !usable ? [] : payloads.wanted(where), allow);
  if (where !== null && allow === null && !authenticated) {
    const names = [...new Set(found.flatMap(({ ids }) => ids))];
    // In mode `open` tags are the server's; where they are not those of these rows, nothing of them counts.
    if (!(await allPass(segments, where, names))) return askAll([], await matching(segments, where, false));
  }
  return found;
}

/** The nearest of several answers to one question, about different rows. */
function nearestOf(parts: readonly Matches[], count: number | null): Matches {
  const hits = parts
    .flatMap(({ ids, distances, scores }) =>
      ids.map((id, i) => ({ id, distance: distances[i] as number, score: scores[i] as number })),
    )
    .sort((a, b) => a.distance - b.distance) // stable
    .slice(0, count ?? undefined);
  return {
    ids: hits.map(({ id }) => id),
    distances: hits.map(({ distance }) => distance),
    scores: hits.map(({ score }) => score),
    exact: parts.every(({ exact }) => exact),
    checked: parts.every(({ checked }) => checked),
  };
}

/** One message to the server and back. Throws Conflict when the collection has changed too much meanwhile. */
async function ask(segments: Segments, message: Message, call: Call): Promise<Matches[]> {
  const { rows, count, within, tags, allow } = message;
  const { metric } = segments.description.spec;
  const began = performance.now();
  const format: AnswerFormat =
    segments.store.queryVersion < segments.native.queryVersion() ? "first" : "short";
  const epoch = await queryEpoch(segments, rows.count, call);
  const { owner, directory } = segments;
  const query = owner.query(rows.data, directory, epoch, tags, undefined, format, message.center);
  const bytes = query.toBytes();
  call.progress?.({
    phase: "encrypt",
    done: bytes.length,
    total: bytes.length,
    ms: performance.now() - began,
  });
  const threshold = within === null ? undefined : METRICS[metric as Metric].similar ? 1 - within : within;
  const most = count ?? (threshold === undefined ? Math.max(1, directory.length) : undefined);
  try {
    const large = directory.length * rows.count * LEAST_WORD > WHOLE;
    const ends = { most, threshold, allow: allow ?? undefined };
    const asked = { query, bytes, epoch, message };
    const answers = large
      ? await streamed(segments, asked, ends, call)
      : await whole(segments, asked, ends, call);
    const disqualified = answers.disqualified.map(hex);
    if (disqualified.length > 0)
      await segments.hold(disqualified, "a writer's segment failed its check", call);
    for (const id of disqualified)
      segments.warn(
        `segment ${id} of writer "${segments.directory.origin(unhex(id))?.writer}" failed its check and was passed over: its rows were not ` +
          "sealed as they should be, or the answer about them was changed.",
      );
    return answers.answers.map((found) => ranked(metric as Metric, found, answers));
  } finally {
    query.free();
  }
}

/** A message as it is sent. */
interface Asked {
  query: SealedQuery;
  bytes: Uint8Array;
  epoch: number;
  message: Message;
}

interface Ends {
  most: number | undefined;
  threshold: number | undefined;
  allow: Id[] | undefined;
}

/** To be called right before an answer is opened: which rows its filter chooses is the owner's word, and nothing is passed over that nobody
 * was told of. Throws Quarantined. */
async function beforeOpening(segments: Segments, { query, message }: Asked): Promise<void> {
  if (message.tags.length > 0 && segments.state !== null) {
    const { segmentIds, masks } = await tagged(segments, message.tags);
    query.expectMatching(segmentIds, masks);
  }
  await segments.refuseHeld(message.skipQuarantined, message.held);
}

/** Ask about every segment, and open the answer once it is there. */
async function whole(segments: Segments, asked: Asked, ends: Ends, call: Call): Promise<Answers> {
  const { query, bytes, epoch } = asked;
  const known = segments.attached();
  const { losses } = segments;
  const timer = timed(call, bytes.length);
  const pieces: Uint8Array[] = [];
  const sink: Sink = {
    most: MAX_WHOLE,
    restart: (_, length) => {
      pieces.length = 0;
      timer.begin(length);
    },
    write: (piece) => {
      pieces.push(piece);
      timer.came(piece.length);
    },
  };
  const version = await meanwhile(segments, query, answered(segments, bytes, epoch, query.rows, call, sink));
  segments.call = call; // others were let in meanwhile
  await segments.settle(call);
  if (version > segments.store.version) await segments.refresh(call);
  let newer: Uint8Array[] = [];
  if (version !== segments.store.version) {
    // Segments that came after the answer can't be in it. Rows that left may have come back in one of those: then the answer is neither
    // the old state's nor the new one's.
    if (segments.losses !== losses) throw tooFast(segments);
    newer = [...segments.attached()].filter((id) => !known.has(id)).map(unhex);
  }
  await beforeOpening(segments, asked);
  const began = performance.now();
  const data = concat(pieces);
  const { owner, directory } = segments;
  const answers = await checking(
    segments,
    () => owner.open(query, data, directory, ends.most, ends.threshold, ends.allow, newer),
    call,
  );
  call.progress?.({ phase: "open", done: data.length, total: data.length, ms: performance.now() - began });
  return answers;
}

/** As `whole`, for an answer that is opened as it comes. It has to be one of the state that it was asked about: Conflict says that others were
 * faster. */
async function streamed(segments: Segments, asked: Asked, ends: Ends, call: Call): Promise<Answers> {
  const { query, bytes, epoch } = asked;
  await beforeOpening(segments, asked);
  const { native, owner, directory } = segments;
  const { version } = segments.store;
  const opener: AnswerOpener = new native.AnswerOpener(
    owner,
    query,
    directory,
    ends.most,
    ends.threshold,
    ends.allow,
  );
  const timer = timed(call, bytes.length);
  let opening = 0;
  const sink: Sink = {
    most: MAX_ANSWER,
    restart: (headers, length) => {
      // Before any of it is opened: which state it is of.
      const now = committed(versionOf(headers), "the server").version;
      if (now !== version) throw tooFast(segments);
      opener.restart();
      timer.begin(length);
    },
    write: (piece) => {
      const began = performance.now();
      opener.write(piece);
      opening += performance.now() - began;
      timer.came(piece.length);
    },
  };
  const opened = async (): Promise<Answers> => {
    try {
      await meanwhile(segments, query, answered(segments, bytes, epoch, query.rows, call, sink));
      segments.call = call;
      await segments.settle(call);
    } catch (error) {
      opener.restart(); // whatever ended it: what came may have failed its check
      throw error;
    }
    const began = performance.now();
    const answers = opener.finish();
    call.progress?.({
      phase: "open",
      done: timer.done,
      total: timer.done,
      ms: opening + performance.now() - began,
    });
    return answers;
  };
  try {
    return await checking(segments, opened, call);
  } finally {
    opener.free();
  }
}

/** Expands the query's tree while the server works, which opening its answer takes. */
async function meanwhile<T>(
  { owner, directory }: Segments,
  query: SealedQuery,
  answer: Promise<T>,
): Promise<T> {
  const later = setTimeout(() => {
    try {
      owner.prepare(query, directory);
    } catch {
      // Opening says what is wrong; or others have put other keys in the owner's place.
    }
  }, 0);
  try {
    return await answer;
  } finally {
    clearTimeout(later);
  }
}

/** Tells how long the server took, and what came. */
function timed(call: Call, up: number) {
  const began = performance.now();
  call.progress?.({ phase: "upload", done: up, total: up });
  return {
    done: 0,
    total: null as number | null,
    begin(length: number | null) {
      this.done = 0;
      this.total = length;
      call.progress?.({ phase: "server", done: 0, total: null, ms: performance.now() - began });
    },
    came(bytes: number) {
      this.done += bytes;
      call.progress?.({
        phase: "download",
        done: this.done,
        total: this.total,
        ms: performance.now() - began,
      });
    },
  };
}

function tooFast(segments: Segments): Conflict {
  return new Conflict(
    `collection "${segments.description.spec.collection}" changes faster than a query takes. Ask again.`,
  );
}

/**
 * Read the native scores: the similarity under cosine and ip, the distance under l2 and hamming. Rows that are not exact are ranked at full
 * precision and reported rounded; under ip and l2 neighbours closer than that are put in the reported order.
 */
function ranked(metric: Metric, { ids, scores: raw }: Found, { exact, checked }: Answers): Matches {
  const { similar, directed } = METRICS[metric];
  const values = Array.from(raw, (one) => {
    if (directed) return Math.min(1, Math.max(-1, one)); // a perfect match may decode one rounding step beyond
    return similar ? one : Math.max(0, one); // so may two equal vectors, to below zero
  });
  const hits = values.map((value, i) => ({
    id: ids[i] as Id,
    distance: similar ? 1 - value : value,
    score: similar ? value : 0 - value,
  }));
  hits.sort((a, b) => a.distance - b.distance); // stable
  return {
    ids: hits.map(({ id }) => id),
    distances: hits.map(({ distance }) => distance),
    scores: hits.map(({ score }) => score),
    exact,
    checked,
  };
}
