/**
 * The Worker's end of the engine: answers the page's calls, also several at once. All wasm and all keys are here, and no
 * key ever leaves but sealed under a passphrase, or as the words that were asked for.
 */

import { ClientEngine, type GetChoices } from "../collections/client.js";
import type { CollectionEngine } from "../collections/collection.js";
import { type RemoteTableEngine, TableEngine, type TableParts } from "../collections/tables.js";
import { CiphervecError, fromMessage, fromNative, InvalidInput, toMessage, WrongKey } from "../errors.js";
import type { Call } from "../host.js";
import type { Fetch } from "../http/transport.js";
import { known } from "../known.js";
import type { Identity, Keys, LookupNative, Native, SearchNative } from "../native.js";
import {
  ADD,
  ADOPT,
  CREATE,
  DELETE,
  DISCARD,
  GET,
  MERGE,
  OPTIMIZE,
  QUERY,
  RECLUSTER,
  SEAL,
  UPDATE,
} from "../options.js";
import type { PasskeyQuestion } from "../passkey.js";
import { type ClientLog, type LogChoice, MemoryStorage, refused, type Storage } from "../storage/storage.js";
import type { Progress } from "../types.js";
import type { LookupChoices, LookupEngine, Tokens } from "./lookup.js";
import {
  buffersOf,
  type Handle,
  type Port,
  ROOT,
  type StorageChoice,
  type ToPage,
  type ToWorker,
} from "./messages.js";
import type * as Whole from "./whole.js";
import type { WriterEngine } from "./writer.js";

/** What the page adds to a caller's options: which rows have vectors. */
const CROSSING_UPDATE = { ...UPDATE, there: true } as const;
const CROSSING_MERGE = { ...MERGE, there: true } as const;

/** What differs between a browser and Node, and between a wasm with all of the package and one that only searches. */
export interface Engine {
  native(): Promise<SearchNative>;
  lookup?(): Promise<LookupNative>;
  /** `./whole.js`, untyped: its classes have private members, which the sources and what is built of them do not share. */
  whole?: object;
  storage(choice: { kind: "indexeddb"; database: string } | { kind: "folder"; path: string }): Storage;
  openLog(native: Native, choice: LogChoice): ClientLog;
}

/** The same with what reaches a server. */
export interface Platform extends Engine {
  fetch: Fetch;
}

/** What the page says of a client that it wants. */
export interface ClientChoices {
  url: string;
  token: string | null;
  keys: Handle | null;
  storage: StorageChoice;
  insecure: boolean;
  timeout: number;
  retries: number;
  cacheBytes: number;
  log?: LogChoice;
}

type Method = (call: Call, ...args: never[]) => unknown;
type Held = {
  kind: string;
  object: unknown;
  methods: { [name: string]: Method };
  free: () => void | Promise<void>;
};

/** Answer the calls that come by a port. */
export function serve(port: Port, platform: Platform): void {
  new Server(port, platform).start();
}

class Server {
  readonly #port: Port;
  readonly #platform: Platform;
  #native: Promise<Native> | null = null;
  #lookup: Promise<LookupNative> | null = null;
  readonly #held = new Map<Handle, Held>();
  #last = ROOT;
  readonly #running = new Map<number, AbortController>();
  readonly #asked = new Map<number, { resolve: (value: never) => void; reject: (error: unknown) => void }>();
  #questions = 0;

  constructor(port: Port, platform: Platform) {
    this.#port = port;
    this.#platform = platform;
  }

  start(): void {
    this.#port.listen((message) => this.#take(message as ToWorker));
  }

  #take(message: ToWorker): void {
    if (message.type === "call") void this.#answer(message);
    else if (message.type === "abort") this.#running.get(message.id)?.abort();
    else {
      const asked = this.#asked.get(message.id);
      this.#asked.delete(message.id);
      if (message.error !== undefined) asked?.reject(fromMessage(message.error));
      else asked?.resolve(message.value as never);
    }
  }

  async #answer({
    id,
    target,
    method,
    args,
    wantsProgress,
  }: Extract<ToWorker, { type: "call" }>): Promise<void> {
    const abort = new AbortController();
    this.#running.set(id, abort);
    const call: Call = { signal: abort.signal };
    if (wantsProgress) call.progress = (progress: Progress) => this.#send({ type: "progress", id, progress });
    try {
      // What the page was given calls nothing that a module without it lacks.
      this.#native ??= this.#platform.native() as Promise<Native>;
      const native = await this.#native;
      const methods = target === ROOT ? this.#root(native) : this.#of(target).methods;
      if (!Object.hasOwn(methods, method)) throw new InvalidInput(`there is no ${method} here.`);
      const value = await methods[method]?.(call, ...(args as never[]));
      this.#send({ type: "result", id, value });
    } catch (error) {
      this.#send({ type: "error", id, error: toMessage(fromNative(error)) });
    } finally {
      this.#running.delete(id);
    }
  }

  #send(message: ToPage): void {
    this.#port.post(message, message.type === "result" ? buffersOf(message.value) : []);
  }

  #hold(kind: string, object: unknown, methods: Held["methods"], free: Held["free"]): Handle {
    this.#last++;
    this.#held.set(this.#last, { kind, object, methods, free });
    return this.#last;
  }

  #of(handle: Handle): Held {
    const held = this.#held.get(handle);
    if (held === undefined) throw new CiphervecError("this was closed or disposed of; make it again.");
    return held;
  }

  #get<T>(handle: Handle, kind: string): T {
    const held = this.#of(handle);
    if (held.kind !== kind) throw new InvalidInput(`${kind} expected, ${held.kind} came.`);
    return held.object as T;
  }

  async #release(handle: Handle): Promise<void> {
    const held = this.#held.get(handle);
    this.#held.delete(handle);
    await held?.free();
  }

  #root(native: Native): Held["methods"] {
    const keys = (made: Keys, keyId: string | undefined): { handle: Handle; keyId: string } => {
      if (keyId !== undefined && made.keyId !== keyId) {
        const found = made.keyId;
        made.free();
        throw new WrongKey(`these are the keys ${found}, not ${keyId}.`);
      }
      return this.#told(made);
    };
    return {
      about: () => ({ version: native.version(), backend: native.backend() }),
      generateKeys: () => keys(native.Keys.generate(), undefined),
      keysFromFile: (_: Call, data: Uint8Array, passphrase: string | undefined, keyId: string | undefined) =>
        keys(native.Keys.fromFile(data, passphrase), keyId),
      passkeyQuestion: (_: Call, data: Uint8Array) => native.passkeyQuestion(data),
      keysFromPasskey: (_: Call, data: Uint8Array, output: Uint8Array, keyId: string | undefined) => {
        const made = native.Keys.fromPasskeyFile(data, output);
        output.fill(0);
        return keys(made, keyId);
      },
      keysFromPhrase: (_: Call, words: string, keyId: string | undefined) =>
        keys(native.Keys.fromRecoveryPhrase(words), keyId),
      openShared: (_: Call, data: Uint8Array, identity: Handle, keyId: string | undefined) => {
        const shared = native.SharedKeys.fromBytes(data);
        try {
          return keys(shared.open(this.#get<Identity>(identity, "identity")), keyId);
        } finally {
          shared.free();
        }
      },
      generateIdentity: (_: Call, name: string) => this.#holdIdentity(native.Identity.generate(name)),
      identityFromFile: (_: Call, data: Uint8Array, passphrase: string | undefined) =>
        this.#holdIdentity(native.Identity.fromFile(data, passphrase)),
      readMemberCard: (_: Call, data: Uint8Array) => {
        const card = native.MemberCard.fromBytes(data);
        const { name, fingerprint } = card;
        card.free();
        return { name, fingerprint };
      },
      openClient: (_: Call, choices: ClientChoices) => this.#openClient(native, choices),
      openWriter: (_: Call, card: Uint8Array, fingerprint: string | undefined) => {
        const writer = new this.#whole.WriterEngine(native, card, fingerprint, this.#platform.fetch);
        const handle = this.#hold("writer", writer, writerMethods(writer), () => writer.free());
        return { handle, facts: writer.facts() };
      },
      openLookup: async (_: Call, choices: LookupChoices) => {
        this.#lookup ??= (this.#platform.lookup as () => Promise<LookupNative>)();
        const lookup = new this.#whole.LookupEngine(await this.#lookup, choices);
        return {
          handle: this.#hold("lookup", lookup, lookupMethods(lookup), () => lookup.free()),
          facts: lookup.facts(),
        };
      },
      buildTable: (_: Call, { keys, ...parts }: TableParts & { keys?: Handle }) =>
        this.#holdTable(TableEngine.build(native, parts, this.#owner(keys))),
      loadTable: (_: Call, file: Uint8Array) => this.#holdTable(TableEngine.load(native, file)),
      release: (_: Call, handle: Handle) => this.#release(handle),
    };
  }

  /** What the page was given calls nothing of it that an engine without it lacks. */
  get #whole(): typeof Whole {
    return this.#platform.whole as typeof Whole;
  }

  /** The owner's keys, where some were given. */
  #owner(keys: Handle | undefined): Keys | null {
    return keys === undefined ? null : this.#get<Keys>(keys, "keys");
  }

  #holdTable(table: TableEngine) {
    const methods = {
      toBytes: () => table.toBytes(),
      verify: () => table.verify(),
      get: (_: Call, key: unknown, keys: Handle | undefined) => table.get(key, this.#owner(keys)),
    };
    return { handle: this.#hold("table", table, methods, () => table.free()), facts: table.facts() };
  }

  #told(keys: Keys): { handle: Handle; keyId: string } {
    return { handle: this.#holdKeys(keys), keyId: keys.keyId };
  }

  #holdKeys(keys: Keys): Handle {
    const methods = {
      toFile: (_: Call, passphrase: string | undefined, plain: boolean | undefined) =>
        keys.toFile(passphrase, plain),
      toPasskeyFile: (_: Call, { rp, credential, salt }: PasskeyQuestion, output: Uint8Array) => {
        const file = keys.toPasskeyFile(rp, credential, salt, output);
        output.fill(0);
        return file;
      },
      recoveryPhrase: () => keys.recoveryPhrase(),
      forTenant: (_: Call, name: string) => this.#told(keys.forTenant(name)),
      forCollection: (_: Call, name: string) => this.#told(keys.forCollection(name)),
      share: async (_: Call, recipients: Uint8Array[]) => {
        const native = await (this.#native as Promise<Native>);
        const shared = native.SharedKeys.seal(keys, recipients);
        const bytes = shared.toBytes();
        shared.free();
        return bytes;
      },
      same: (_: Call, other: Handle) => keys.same(this.#get<Keys>(other, "keys")),
    };
    return this.#holdSecret("keys", keys, methods);
  }

  #holdSecret(kind: string, secret: Keys | Identity, methods: Held["methods"]): Handle {
    const handle: Handle = this.#hold(kind, secret, methods, async () => {
      // Whatever was derived from it goes with it.
      const clients = [...this.#held].filter(([, held]) => (held as { of?: Handle }).of === handle);
      await Promise.all(clients.map(([client]) => this.#release(client)));
      secret.free();
    });
    return handle;
  }

  #holdIdentity(identity: Identity) {
    const methods = {
      toFile: (_: Call, passphrase: string | undefined, plain: boolean | undefined) =>
        identity.toFile(passphrase, plain),
    };
    const { recipient, memberCard } = identity;
    const { name, fingerprint } = recipient;
    const made = {
      handle: this.#holdSecret("identity", identity, methods),
      name,
      fingerprint,
      recipient: recipient.toBytes(),
      memberCard: memberCard.toBytes(),
    };
    recipient.free();
    memberCard.free();
    return made;
  }

  /** Keys, or the identity of a member. */
  #holder(handle: Handle): Keys | Identity {
    const held = this.#of(handle);
    return held.kind === "identity" ? (held.object as Identity) : this.#get<Keys>(handle, "keys");
  }

  #openClient(native: Native, choices: ClientChoices): { handle: Handle } {
    const keys = choices.keys === null ? null : this.#holder(choices.keys);
    const number = this.#last + 1;
    const client = new ClientEngine({
      ...choices,
      native,
      keys,
      storage: this.#storage(choices.storage),
      log: choices.log === undefined ? null : this.#platform.openLog(native, choices.log),
      fetch: this.#platform.fetch,
      warn: (message) => this.#send({ type: "warning", client: number, message }),
    });
    const collections = new Map<CollectionEngine, Handle>();
    const tables: Handle[] = [];
    const shown = (collection: CollectionEngine) => {
      let handle = collections.get(collection);
      if (handle === undefined || !this.#held.has(handle)) {
        const keys = (handle: Handle) => this.#get<Keys>(handle, "keys");
        const person = (handle: Handle) => this.#get<Identity>(handle, "identity");
        const methods = { ...collectionMethods(collection, keys), ...memberMethods(collection, person) };
        handle = this.#hold("collection", collection, methods, () => undefined);
        collections.set(collection, handle);
      }
      return { handle, facts: collection.facts() };
    };
    const methods = {
      create: async (call: Call, of: never) =>
        shown(await client.createCollection(known(of, CREATE, "createCollection"), call)),
      get: async (call: Call, which: GetChoices) => shown(await client.getCollection(which, call)),
      getOrCreate: async (call: Call, of: never) =>
        shown(await client.getOrCreateCollection(known(of, CREATE, "getOrCreateCollection"), call)),
      list: (call: Call) => client.listCollections(call),
      delete: (call: Call, name: string) => client.deleteCollection(name, call),
      acceptRestore: async (call: Call, name: string) => shown(await client.acceptRestore(name, call)),
      forget: (_: Call, name: string) => client.forget(name),
      setToken: (_: Call, token: string) => client.setToken(token),
      getTable: async (call: Call, which: { name: string; fingerprint?: string }) => {
        const table = await client.getTable(which, call);
        const handle = this.#hold("table on a server", table, remoteMethods(table), () => table.free());
        tables.push(handle);
        return { handle, facts: table.facts() };
      },
      putTable: (call: Call, given: { name: string; file: Uint8Array }) => client.putTable(given, call),
      listTables: (call: Call) => client.listTables(call),
      deleteTable: (call: Call, name: string) => client.deleteTable(name, call),
    };
    const handle = this.#hold("client", client, methods, async () => {
      for (const one of collections.values()) this.#held.delete(one);
      await Promise.all(tables.map((one) => this.#release(one)));
      await client.close();
    });
    Object.assign(this.#of(handle), { of: choices.keys });
    return { handle };
  }

  #storage(choice: StorageChoice): Storage {
    if (choice.kind === "memory") return new MemoryStorage();
    if (choice.kind !== "page") return this.#platform.storage(choice);
    const ask = (method: string, ...args: unknown[]) =>
      new Promise<never>((resolve, reject) => {
        const id = ++this.#questions;
        this.#asked.set(id, { resolve, reject: (error) => reject(refused("the storage given", error)) });
        this.#send({ type: "storage", id, storage: choice.number, method, args });
      });
    return {
      get: (name) => ask("get", name),
      set: (name, data) => ask("set", name, data),
      delete: (name) => ask("delete", name),
      list: (prefix) => ask("list", prefix),
    };
  }
}

function collectionMethods(collection: CollectionEngine, keys: (handle: Handle) => Keys): Held["methods"] {
  return {
    add: (call: Call, given: never) => collection.add(known(given, ADD, "add"), call),
    upsert: (call: Call, given: never) => collection.upsert(known(given, ADD, "upsert"), call),
    update: (call: Call, given: never) => collection.update(known(given, CROSSING_UPDATE, "update"), call),
    merge: (call: Call, given: never) => collection.merge(known(given, CROSSING_MERGE, "merge"), call),
    delete: (call: Call, given: never) => collection.delete(known(given, DELETE, "delete"), call),
    get: (call: Call, question: never) => collection.get(known(question, GET, "get"), call),
    query: (call: Call, question: never) => collection.query(known(question, QUERY, "query"), call),
    floodingPlan: (call: Call, flooding: unknown) => collection.floodingPlan(flooding, call),
    prefetch: (call: Call, queries: unknown) => collection.prefetch(queries, call),
    recluster: (call: Call, given: never) => collection.recluster(known(given, RECLUSTER, "recluster"), call),
    count: (call: Call) => collection.count(call),
    has: (call: Call, ids: unknown) => collection.has(ids, call),
    refresh: (call: Call) => collection.refresh(call),
    privateFetch: (call: Call) => collection.privateFetch(call),
    resumePrivateFetch: (call: Call) => collection.resumePrivateFetch(call),
    checkpoint: (call: Call) => collection.checkpoint(call),
    expect: (call: Call, checkpoint: string) => collection.expect(checkpoint, call),
    release: (call: Call, segment: string) => collection.release(segment, call),
    info: (call: Call) => collection.info(call),
    verify: (call: Call) => collection.verify(call),
    purge: (call: Call) => collection.purge(call),
    optimize: (call: Call, how: never) => collection.optimize(known(how, OPTIMIZE, "optimize"), call),
    explain: (call: Call) => collection.explain(call),
    upgrade: (call: Call) => collection.upgrade(call),
    extendFilterable: (call: Call, fields: unknown) => collection.extendFilterable(fields, call),
    setSparse: (call: Call, sparse: unknown) => collection.setSparse(sparse, call),
    adopt: (call: Call, how: never) => collection.adopt(known(how, ADOPT, "adopt"), call),
    discard: (call: Call, which: never) => collection.discard(known(which, DISCARD, "discard"), call),
    rotateKeys: (call: Call, to: Handle, overlap: boolean) => collection.rotateKeys(keys(to), overlap, call),
    rotateQueryKey: (call: Call) => collection.rotateQueryKey(call),
    writerCard: (call: Call, writer: string) => collection.writerCard(writer, call),
  };
}

function memberMethods(collection: CollectionEngine, person: (handle: Handle) => Identity): Held["methods"] {
  return {
    "members.found": (call: Call, by: Handle) =>
      collection.members(call, (of, host) => of.found(host, person(by))),
    "members.add": (call: Call, card: Uint8Array, role: string) =>
      collection.members(call, (of, host) => of.add(host, card, role)),
    "members.appoint": (call: Call, who: string, role: string) =>
      collection.members(call, (of, host) => of.appoint(host, who, role)),
    "members.remove": (call: Call, who: string) =>
      collection.members(call, (of, host) => of.remove(host, who)),
    "members.reseal": (call: Call) => collection.members(call, (of, host) => of.reseal(host)),
    "members.list": (call: Call) => collection.members(call, (of, host) => of.list(host)),
    "members.changes": (call: Call) => collection.members(call, (of, host) => of.changes(host)),
  };
}

function remoteMethods(table: RemoteTableEngine): Held["methods"] {
  return {
    get: (call: Call, keys: unknown[], bound: number | undefined) => table.get(keys, bound, call),
    failures: (call: Call) => table.failures(call),
    resume: (call: Call) => table.resume(call),
  };
}

function writerMethods(writer: WriterEngine): Held["methods"] {
  return {
    seal: (call: Call, given: never) => writer.seal(known(given, SEAL, "seal"), call),
    send: (call: Call, to: never) => writer.send(to, call),
  };
}

function lookupMethods(lookup: LookupEngine): Held["methods"] {
  return {
    keys: () => lookup.keys(),
    query: (_: Call, tokens: Tokens) => lookup.query(tokens),
    decode: (_: Call, answer: Uint8Array) => lookup.decode(answer),
    encrypt: (_: Call, texts: string[]) => lookup.encrypt(texts),
    answers: (_: Call, answer: Uint8Array) => lookup.answers(answer),
    toFile: (_: Call, passphrase: string | undefined, plain: boolean | undefined) =>
      lookup.toFile(passphrase, plain),
  };
}
