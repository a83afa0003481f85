/** Members of a collection: the script that every client runs, Python's owner beside a member in Node and back. */

import { readFileSync } from "node:fs";
import * as client from "@ciphervec/client";
import { Client, type Collection, Identity, type Member } from "@ciphervec/client";
import { describe, expect, test } from "vitest";
import { missing, python, type TestServer } from "../support/server.js";
import { withServer } from "../support/setup.js";

interface Step {
  as: string;
  call: string;
  args?: unknown[];
  with?: { [name: string]: unknown };
  gives?: unknown;
  author?: string;
  raises?: string;
  says?: string;
}

interface Script {
  people: string[];
  create: { [name: string]: unknown };
  steps: Step[];
}

type Methods = { [name: string]: (...args: unknown[]) => Promise<unknown> };

const FILE = new URL("../../../../vectors/client/members.json", import.meta.url);
const SCRIPT = JSON.parse(readFileSync(FILE, "utf8")) as Script;

describe.skipIf(missing !== "")("members", () => {
  let server: TestServer;

  withServer((started) => {
    server = started;
  });

  const at = (who: Identity) =>
    new Client({
      url: server.url,
      keys: who,
      storage: "memory",
      onWarning: (says) => expect.unreachable(says),
    });

  test("each may do what the script says", async () => {
    const people = new Map<string, Identity>();
    for (const name of SCRIPT.people) people.set(name, await Identity.generate(name));
    const person = (name: string) => people.get(name) as Identity;
    const print = async (name: string) =>
      (await Identity.readMemberCard(person(name).memberCard)).fingerprint;
    const read = async (value: unknown) => {
      if (typeof value !== "object" || value === null) return value;
      const { $card, $fingerprint, $identity } = value as { [kind: string]: string };
      if ($card !== undefined) return person($card).memberCard;
      if ($fingerprint !== undefined) return print($fingerprint);
      return person($identity as string);
    };
    const call = async ({ as, call: path, args = [], with: options, author }: Step) => {
      const opened = at(person(as));
      try {
        const docs: Collection = await opened.getCollection({ name: "script" });
        const name = path.replace("members.", "");
        const target = (path === name ? docs : docs.members) as unknown as Methods;
        const given = [...(await Promise.all(args.map(read))), ...(options === undefined ? [] : [options])];
        const found = await target[name]?.(...given);
        if (author !== undefined) expect((await docs.info()).author?.name).toBe(author);
        return found;
      } finally {
        await opened.close();
      }
    };
    await at(person("alice")).createCollection({ name: "script", ...SCRIPT.create } as never);
    for (const [number, step] of SCRIPT.steps.entries()) {
      const shown = `step ${number}, ${JSON.stringify(step)}`;
      if (step.raises !== undefined) {
        const error = await call(step).then(
          () => null,
          (caught: Error) => caught,
        );
        const kinds = step.raises.split("|").map((name) => (client as { [name: string]: unknown })[name]);
        const fits = kinds.some((kind) => typeof kind === "function" && error instanceof kind);
        expect(fits, `${shown}: ${error}`).toBe(true);
        expect(error?.message, shown).toContain(step.says);
        continue;
      }
      const found = await call(step).catch((error: Error) => expect.unreachable(`${shown}: ${error}`));
      if (step.gives !== undefined) expect(found, shown).toMatchObject(step.gives as object);
      for (const one of [found].flat() as Member[])
        if (one?.fingerprint !== undefined) expect(one.fingerprint).toBe(await print(one.name));
    }
  });

  test("Python's owner, a member in Node, and back", async () => {
    const bob = await Identity.generate("bob");
    const inPython = <T>(given: object, code: string) => python<T>({ url: server.url, ...given }, code);
    const card = Buffer.from(bob.memberCard).toString("hex");
    const made = await inPython<{ owner: string; print: string; file: string }>(
      { card },
      `
alice = ciphervec.Identity.generate("alice")
docs = client(alice).create_collection("team", 2, mode="sealed-index")
docs.add(["a"], [[1.0, 0.0]], documents=["by alice"])
added = docs.members.add(bytes.fromhex(given["card"]))
import tempfile, pathlib
file = pathlib.Path(tempfile.mkdtemp()) / "alice.key"
alice.save(file, allow_plaintext=True)
result = {"owner": alice.member_card.fingerprint, "print": added.fingerprint, "file": file.read_bytes().hex()}
`,
    );
    expect((await Identity.readMemberCard(bob.memberCard)).fingerprint).toBe(made.print);
    const docs = await at(bob).getCollection({ name: "team" });
    expect((await docs.get()).documents).toEqual(["by alice"]);
    await docs.add({ ids: ["b"], embeddings: [[0, 1]], documents: ["by bob"] });
    const members = [
      { name: "alice", fingerprint: made.owner, role: "owner" },
      { name: "bob", fingerprint: made.print, role: "member" },
    ];
    expect(await docs.members.list()).toEqual(members);
    expect((await docs.info()).author).toEqual({ name: "bob", fingerprint: made.print, members: 2 });

    // The owner's file is opened here, and Python sees what that owner did.
    const alice = await Identity.fromFile(Buffer.from(made.file, "hex"));
    const owners = await at(alice).getCollection({ name: "team" });
    await owners.members.remove("bob");
    await owners.members.reseal();
    await owners.upsert({ ids: ["c"], embeddings: [[1, 1]], documents: ["after bob"] });
    await expect(docs.refresh()).rejects.toBeInstanceOf(client.WrongKey);
    await expect(at(bob).getCollection({ name: "team" })).rejects.toBeInstanceOf(client.WrongKey);
    const seen = await inPython<{ documents: string[]; author: string; changes: string[] }>(
      { file: made.file },
      `
import tempfile, pathlib
file = pathlib.Path(tempfile.mkdtemp()) / "alice.key"
file.write_bytes(bytes.fromhex(given["file"]))
docs = client(ciphervec.Identity.load(file)).get_collection("team")
result = {"documents": docs.get()["documents"], "author": docs.info()["author"]["name"],
          "changes": [f"{one.what} {one.who}" for one in docs.members.changes()]}
`,
    );
    expect(seen.documents).toEqual(["by alice", "by bob", "after bob"]);
    expect(seen.author).toBe("alice");
    expect(seen.changes).toEqual(["founded alice", "added bob", "removed bob"]);
  });

  test("what is no card, and an identity that was disposed of", async () => {
    const eve = await Identity.generate("eve");
    const docs = await at(eve).createCollection({ name: "eves", dimension: 2 });
    await expect(docs.members.add(eve.recipient)).rejects.toBeInstanceOf(client.CorruptData);
    await expect(docs.members.add(eve.memberCard.slice(1))).rejects.toBeInstanceOf(client.CorruptData);
    await expect(docs.members.add("eve.card" as never)).rejects.toThrow("bytes expected");
    await expect(docs.members.add(eve.memberCard, { rule: "reader" } as never)).rejects.toThrow('"role"');
    await expect(docs.members.found({} as never)).rejects.toThrow("Identity");
    await eve.dispose();
    await expect(docs.members.list()).rejects.toThrow("closed or disposed of");
  });
});
