/** Members of a collection, for those who opened it: owners change the list, everybody reads it. Runs on the page. */

import type { Engine } from "./engine.js";
import { InvalidInput } from "./errors.js";
import { type Bytes, bytesOf, Identity } from "./keys.js";
import { CALL, known } from "./known.js";
import { ADD_MEMBER, type AddMemberOptions } from "./options.js";
import type { CallOptions, Member, MemberChange, Role } from "./types.js";
import type { Handle } from "./worker/messages.js";

/**
 * The members of a collection, `collection.members`.
 *
 * An owner changes the list, each change is signed, and clients refuse a list that does not go on from the one they saw. In a collection
 * with members every commit is signed by its author, whom `info()` names.
 */
export class Members {
  readonly #engine: Engine;
  readonly #handle: Handle;

  /** Not for callers: use `collection.members`. */
  constructor(engine: Engine, handle: Handle) {
    this.#engine = engine;
    this.#handle = handle;
  }

  /**
   * Begin the list, with this person as its owner, who signs from then on; clients made with the keys go on reading until the keys are changed.
   * Rejects with InvalidInput where there is a list, and in mode `open`.
   */
  async found(by: Identity, options: CallOptions = {}): Promise<void> {
    if (!(by instanceof Identity)) throw new InvalidInput(`by must be an Identity, got ${typeof by}.`);
    if (by.engine !== this.#engine)
      throw new InvalidInput("the identity is in another engine than the collection; load it there.");
    return this.#call("found", [by.handle], options);
  }

  /**
   * Add the holder of a card, `Identity.memberCard`; somebody who is on the list gets this role. Compare the fingerprint with its holder
   * first. Rejects with InvalidInput for anybody but an owner, for a name that another member has, and where no owner would be left;
   * CorruptData for what is no member's card.
   */
  async add(card: Bytes, options: AddMemberOptions = {}): Promise<Member> {
    const { role = "member", ...rest } = known(options, ADD_MEMBER, "members.add");
    return this.#call("add", [await bytesOf(card), String(role)], rest);
  }

  /** Give a member, by name or fingerprint, another role. Rejects with InvalidInput, as `add`. */
  async appoint(who: string, role: Role, options: CallOptions = {}): Promise<Member> {
    return this.#call("appoint", [String(who), String(role)], options);
  }

  /**
   * Remove a member, by name or fingerprint. The same commit gives the collection new keys, which that person does not get: nothing
   * sealed from then on opens for them. What is older stays under the keys before until `reseal`. Rejects with InvalidInput, as `add`.
   */
  async remove(who: string, options: CallOptions = {}): Promise<void> {
    return this.#call("remove", [String(who)], options);
  }

  /** Seal what is still under the keys before a removal again, each segment in a commit of its own; an interrupted call goes on with the next. */
  async reseal(options: CallOptions = {}): Promise<void> {
    return this.#call("reseal", [], options);
  }

  /** Who is on the list now; nobody where there is none. */
  async list(options: CallOptions = {}): Promise<Member[]> {
    return this.#call("list", [], options);
  }

  /** Every change of the list, the oldest first. */
  async changes(options: CallOptions = {}): Promise<MemberChange[]> {
    return this.#call("changes", [], options);
  }

  #call<T>(method: string, args: unknown[], options: CallOptions): Promise<T> {
    known(options, CALL, `members.${method}`);
    return this.#engine.call(this.#handle, `members.${method}`, args, options);
  }
}
