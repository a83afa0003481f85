"""Memory bench: how long an agent recalls, remembers and forgets, each a call of the Model Context Protocol to `ciphervec
mcp`, which embeds the question, asks, and reads the texts. Plays agent and owner.

What fills the memory has random vectors, since a model takes minutes for so many texts; their texts are as long as a few
sentences. The facts that are recalled go the whole way.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ciphervec import CiphervecError, Client, Keys, PersistentClient
from ciphervec.http import HttpClient, LocalServer
from ciphervec.http.local import LocalProcess
from ciphervec.memory import Memory

from .machine import describe, versions

Notify = Callable[[str], object]
Call = Callable[..., Awaitable[Any]]
PLACES = ("folder", "server", "server-private")
"""Of the last the texts of hits are fetched in private each time, and of the one before all texts once."""
TRANSPORTS = ("stdio", "http")
_NAME = "memories"
_TOKEN = "0123456789abcdef0123456789abcdef"  # noqa: S105, of a server that ends with the bench
_BATCH = 10_000
_RECALLED = 5
_FACTS = {
    "who is allergic to nuts": "Bob is allergic to hazelnuts.",
    "when do we deploy": "The team never deploys on a Friday.",
    "what does Ann drink": "Ann drinks tea without milk.",
    "where is the spare key": "The spare key is under the third flower pot.",
}


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    memories: int = 100_000
    calls: int = 40
    places: tuple[str, ...] = PLACES
    transports: tuple[str, ...] = TRANSPORTS
    seed: int = 0
    folder: Path | None = None


def run(settings: Settings, notify: Notify) -> list[dict[str, Any]]:
    """A record for each place and transport."""
    records = []
    for place in settings.places:
        for transport in settings.transports:
            with (
                tempfile.TemporaryDirectory(prefix="ciphervec-bench-", dir=settings.folder) as folder,
                _filled(settings, place, Path(folder), notify) as arguments,
            ):
                records.append(
                    asyncio.run(_measured(settings, place, transport, Path(folder), arguments, notify))
                )
    return records


@contextmanager
def _filled(settings: Settings, place: str, folder: Path, notify: Notify) -> Iterator[list[str]]:
    """A memory with so many rows, and the words that start `ciphervec mcp` on it."""
    keys = Keys.generate()
    keys.save(folder / "keys", allow_plaintext=True)
    with ExitStack() as stack:
        at, more = str(folder / "db"), []
        client: Client
        if place == "folder":
            client = PersistentClient(at, keys)
        else:
            at = stack.enter_context(LocalServer(folder / "data")).url
            more = ["--fetch", "private" if place == "server-private" else "collection"]
            client = HttpClient(at, keys=keys, state=folder / "client-state")
        with client:
            collection = Memory.open(client, _NAME).collection
            rng = np.random.default_rng(settings.seed)
            for start in range(0, settings.memories, _BATCH):
                notify(f"filling a {place} ({start:,}/{settings.memories:,})")
                some = range(start, min(start + _BATCH, settings.memories))
                vectors = rng.standard_normal((len(some), collection.dimension)).astype(np.float32)
                texts = [f"memory {row}: {'what was said at the time, ' * 6}" for row in some]
                collection.add([f"row-{row}" for row in some], vectors, documents=texts)
        yield ["mcp", at, _NAME, "--keys", str(folder / "keys"), *more]


@asynccontextmanager
async def _agent(transport: str, folder: Path, arguments: list[str]) -> AsyncIterator[Call]:
    """A session of the official SDK's client."""
    import httpx2
    from mcp import Client as Agent
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    state = {"CIPHERVEC_STATE": str(folder / "state")}
    with ExitStack() as stack:
        if transport == "stdio":
            words = ["-m", "ciphervec", *arguments]
            program = StdioServerParameters(command=sys.executable, args=words, env={**os.environ, **state})
            door = stdio_client(program)
        else:
            (folder / "agents").write_text(_TOKEN)
            web = ["--http", "127.0.0.1:0", "--client-tokens", str(folder / "agents")]
            served = stack.enter_context(LocalProcess([*arguments, *web], environment=state, wait=300))
            shown = httpx2.AsyncClient(headers={"Authorization": f"Bearer {_TOKEN}"}, timeout=300)
            door = streamable_http_client(f"{served.url}/mcp", http_client=shown)
        async with Agent(door, read_timeout_seconds=300) as agent:

            async def call(tool: str, **given: Any) -> Any:
                reply = await agent.call_tool(tool, given)
                if reply.is_error:
                    raise CiphervecError(f"{tool} was refused: {reply.content}")
                return reply.structured_content

            yield call


async def _measured(
    settings: Settings, place: str, transport: str, folder: Path, arguments: list[str], notify: Notify
) -> dict[str, Any]:
    times: dict[str, list[float]] = {"recall": [], "remember": [], "hide": [], "forget": []}
    notify(f"starting `ciphervec mcp` on a {place} by {transport}")
    began = time.perf_counter()
    async with _agent(transport, folder, arguments) as call:

        async def timed(kind: str, tool: str, **given: Any) -> Any:
            start = time.perf_counter()
            found = await call(tool, **given)
            times[kind].append(1e3 * (time.perf_counter() - start))
            return found

        names = [(await call("remember", text=text))["ids"][0] for text in _FACTS.values()]
        await call("recall", question="anything", count=_RECALLED)  # loads what is asked about
        first = time.perf_counter() - began
        for turn in range(settings.calls):
            notify(f"recalling from a {place} by {transport} ({turn}/{settings.calls})")
            question, fact = list(_FACTS.items())[turn % len(_FACTS)]
            found = (await timed("recall", "recall", question=question, count=_RECALLED))["memories"]
            if found[0]["text"] != fact:
                raise CiphervecError(f"{question!r} recalls {found[0]['text']!r} from a {place}")
        for turn in range(max(2, settings.calls // 4)):
            names += (await timed("remember", "remember", text=f"The meeting number {turn} is at noon."))[
                "ids"
            ]
        for name in names[1:]:
            await timed("hide", "forget", ids=[name], shred=False)
        notify(f"shredding in a {place}")
        await timed("forget", "forget", ids=names[:1])
    embedding = _embedding(settings.calls)
    return {
        "place": place,
        "transport": transport,
        "memories": settings.memories,
        "recalled": _RECALLED,
        "recall_ms": statistics.median(times["recall"]),
        "recall_p95_ms": float(np.percentile(times["recall"], 95)),
        "embedding_ms": embedding,
        "remember_ms": statistics.median(times["remember"]),
        "hide_ms": statistics.median(times["hide"]),
        "forget_ms": statistics.median(times["forget"]),
        "first_s": first,
        "load": os.getloadavg()[0],
        "machine": describe(),
        "versions": versions("mcp", "onnxruntime", "starlette", "uvicorn"),
    }


def _embedding(calls: int) -> float:
    """Milliseconds of a question's own embedding, which every recall has in it, measured alone."""
    with Client() as client:
        memory = Memory.open(client, _NAME)
        taken = []
        for turn in range(calls):
            start = time.perf_counter()
            memory.collection._asked(None, list(_FACTS)[turn % len(_FACTS)])
            taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


def lines(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A table of the records."""
    return [
        [
            one["place"],
            one["transport"],
            f"{one['recall_ms']:.1f}",
            f"{one['recall_p95_ms']:.1f}",
            f"{one['embedding_ms']:.1f}",
            f"{one['remember_ms']:.1f}",
            f"{one['hide_ms']:.1f}",
            f"{one['forget_ms']:,.0f}",
        ]
        for one in records
    ]
