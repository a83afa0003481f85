"""Two agents with a shared memory: each has its own and the crew's, over `ciphervec mcp`; the server of both reads neither.

    python examples/apps/agents.py
    python examples/apps/agents.py --model http://127.0.0.1:11434/v1 --name llama3.2

Without `--model` rules take a model's place: they call the same tools. A person is asked before a tool gives memories to
others or deletes them; here, the answer is yes for sharing and no for all else.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import mcp
from chat import Endpoint, Message, Model
from mcp.client.stdio import StdioServerParameters, stdio_client

import ciphervec
from ciphervec.http import LocalServer

MOST_STEPS = 8
TALKS = [
    ("ann", "Tell the crew: the spare key of the van hangs in locker 14."),
    ("ann", "Remember: my sister Ida likes tulips."),
    ("bo", "Where is the key of the van?"),
    ("bo", "Which flowers does Ida like?"),
    ("ann", "Which flowers does Ida like?"),
]


class Agent:
    """A model, the tools of a memory, and somebody who is asked before memories are shared or deleted."""

    def __init__(self, client: mcp.Client, model: Model, allows: Callable[[str, Message], bool]) -> None:
        self._client, self._model, self._allows = client, model, allows
        self._instructions = str(client.instructions or "")

    async def answer(self, text: str) -> str:
        """A conversation of one sentence: the model calls tools until it says something. Raises RuntimeError."""
        listed = (await self._client.list_tools()).tools
        harmless = {tool.name for tool in listed if tool.annotations and tool.annotations.read_only_hint}
        tools = [
            {
                "type": "function",
                "function": {
                    "name": one.name,
                    "description": one.description,
                    "parameters": one.input_schema,
                },
            }
            for one in listed
        ]
        messages: list[Message] = [
            {"role": "system", "content": self._instructions},
            {"role": "user", "content": text},
        ]
        for _ in range(MOST_STEPS):
            message = await asyncio.to_thread(self._model, messages, tools)
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message.get("content"))
            for call in message["tool_calls"]:
                name, given = call["function"]["name"], call["function"]["arguments"]
                told = await self._call(name, given, asks=name not in {*harmless, "remember"})
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
        raise RuntimeError(f"the model called tools {MOST_STEPS} times and said nothing")

    async def _call(self, name: str, given: str, *, asks: bool) -> str:
        """What a tool tells the model; a mistake of the model's is told to it too."""
        try:
            arguments = json.loads(given)
        except ValueError:
            return f"expected the arguments of {name} as JSON, got {given[:100]!r}"
        if asks and not self._allows(name, arguments):
            return "The person said no."
        print(f"    {name}")
        reply = await self._client.call_tool(name, arguments)
        return "\n".join(getattr(part, "text", "") for part in reply.content)


def rules(messages: list[Message], tools: list[Message]) -> Message:
    """No model: "Remember: …" and "Tell the crew: …" are stored, anything else is asked, and the first memory with two of the
    question's longer words answers it."""
    asked = next(one["content"] for one in messages if one["role"] == "user")
    order, _, fact = asked.partition(": ")
    told = [one["content"] for one in messages if one["role"] == "tool"]
    if fact and not told:
        return _calling("remember", text=fact)
    if order == "Tell the crew" and len(told) == 1:
        return _calling("share", ids=json.loads(told[0])["ids"])
    if fact:
        return {"role": "assistant", "content": "Noted."}
    if not told:
        return _calling("recall", question=asked)
    stems = {word[:4] for word in re.findall(r"\w+", asked.lower()) if len(word) > 2}
    for memory in json.loads(told[0])["memories"]:
        text = memory["text"]
        if len(stems & {word[:4] for word in re.findall(r"\w+", text.lower())}) >= 2:
            return {"role": "assistant", "content": f"{memory['by']} said: {text}"}
    return {"role": "assistant", "content": "I remember nothing about that."}


def _calling(name: str, **arguments: Any) -> Message:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": name, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


@contextlib.asynccontextmanager
async def memory(who: str, url: str, home: Path) -> AsyncIterator[mcp.Client]:
    """The memory of one person and of the crew, by a program of that person's."""
    words = [
        "-m", "ciphervec", "mcp", url, who, "--keys", str(home / f"{who}.key"), "--by", who,
        "--team", "crew", "--team-keys", str(home / "crew.key"), "--fetch", "private",
    ]  # fmt: skip
    beside = {**os.environ, "CIPHERVEC_STATE": str(home / f"{who}-state")}
    with (home / f"{who}.log").open("a") as log:
        program = stdio_client(
            StdioServerParameters(command=sys.executable, args=words, env=beside), errlog=log
        )
        async with mcp.Client(program, read_timeout_seconds=120) as client:
            yield client


async def talk(model: Model, url: str, home: Path) -> None:
    for who, said in itertools.groupby(TALKS, key=lambda one: one[0]):
        async with memory(who, url, home) as client:  # a new program each time: what it knows, it recalled
            agent = Agent(client, model, lambda tool, _: tool == "share")
            for _, text in said:
                print(f"{who}: {text}")
                print(f"    “{await agent.answer(text)}”")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="an address with /v1/chat/completions, without these words")
    parser.add_argument("--name", default="llama3.2", help="the model's name there")
    chosen = parser.parse_args()
    model: Model = Endpoint(chosen.model, chosen.name) if chosen.model else rules
    with tempfile.TemporaryDirectory() as folder, LocalServer(f"{folder}/server") as server:
        home = Path(folder)
        for name in ("ann", "bo", "crew"):
            ciphervec.Keys.generate().save(home / f"{name}.key", allow_plaintext=True)
        asyncio.run(talk(model, server.url, home))
        stored = b"".join(path.read_bytes() for path in (home / "server").rglob("*") if path.is_file())
        found = [word for word in (b"locker", b"sister", b"tulips") if word in stored]
        print(f"words of memories in the server's files: {len(found)}")


if __name__ == "__main__":
    main()
