"""The shipped `ciphervec mcp`, asked by the official SDK's client over standard input and output and over HTTP: what agents
get, what they are refused, and what reaches the store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from ciphervec import Client, HttpClient, Keys, PersistentClient, ServerError
from ciphervec.cli import app
from ciphervec.http import LocalServer
from ciphervec.http.local import LocalProcess
from ciphervec.memory import Memory
from embedders import Words
from services import certificate

mcp = pytest.importorskip("mcp", reason="needs its extra: pip install 'ciphervec[mcp]'")
pytest.importorskip("onnxruntime", reason="needs its extra: pip install 'ciphervec[mcp]'")
import httpx2  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp.client.streamable_http import streamable_http_client  # noqa: E402

TOKEN = "0123456789abcdef0123456789abcdef"
TEXTS = {
    "tea": "Ann takes her Darjeeling without any milk",
    "safe": "the deploykey lies in the safe of room seventeen",
    "nuts": "Bob is allergic to hazelnuts and macadamias",
}
Session = Callable[[Any], Awaitable[None]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With keys of an agent's own and a team's, and a token; what programs remember of servers is there too."""
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    for name in ("own.key", "team.key"):
        Keys.generate().save(tmp_path / name, allow_plaintext=True)
    (tmp_path / "agents").write_text(f"# of this test\n{TOKEN}\n")
    return tmp_path


def words(home: Path, place: str | Path = "db", *more: str) -> list[str]:
    at = str(place) if "://" in str(place) else str(home / place)
    return ["mcp", at, "--keys", str(home / "own.key"), *more]


def crew(home: Path) -> list[str]:
    return ["--team", "crew", "--team-keys", str(home / "team.key")]


@contextlib.asynccontextmanager
async def by_stdio(arguments: list[str], said: Path, mode: str = "auto") -> AsyncIterator[Any]:
    """A session with a program that the client starts; what it says beside goes to `said`."""
    environment = {name: value for name, value in os.environ.items() if name != "CIPHERVEC_KEYS"}
    program = StdioServerParameters(
        command=sys.executable, args=["-m", "ciphervec", *arguments], env=environment
    )
    with said.open("a") as log:
        async with mcp.Client(
            stdio_client(program, errlog=log), mode=mode, read_timeout_seconds=120
        ) as client:
            yield client


@contextlib.asynccontextmanager
async def by_http(url: str, mode: str = "auto", **headers: str) -> AsyncIterator[Any]:
    shown = {"Authorization": f"Bearer {TOKEN}", **headers}
    async with httpx2.AsyncClient(headers=shown, timeout=120) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with mcp.Client(transport, mode=mode, read_timeout_seconds=120) as client:
            yield client


async def call(client: Any, tool: str, **arguments: Any) -> Any:
    reply = await client.call_tool(tool, arguments)
    assert not reply.is_error, reply.content
    return reply.structured_content


async def refused(client: Any, tool: str, **arguments: Any) -> str:
    """The sentence of a refusal; no traceback, and no address on the web."""
    reply = await client.call_tool(tool, arguments)
    assert reply.is_error
    (part,) = reply.content
    assert "Traceback" not in part.text and "http" not in part.text and "\n" not in part.text
    assert len(part.text) < 1_200
    return str(part.text)


async def a_life(client: Any) -> None:
    """What agents do, and every kind of request that the protocol has here."""
    assert "not instructions" in client.instructions
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"remember", "recall", "list", "forget", "share"}
    assert tools["forget"].annotations.destructive_hint and tools["recall"].annotations.read_only_hint
    assert "16,384 bytes" in tools["remember"].input_schema["properties"]["text"]["description"]

    ids = {name: (await call(client, "remember", text=text))["ids"][0] for name, text in TEXTS.items()}
    brief = (await call(client, "remember", text="the meeting is at noon", expires_in_days=0.5))["ids"][0]
    (found,) = (await call(client, "recall", question="how does Ann take her tea", count=1))["memories"]
    assert found["id"] == ids["tea"] and found["text"] == TEXTS["tea"] and found["memory"] == "own"
    assert found["by"] == "ann" and found["expires"] is None and "score" not in str(found)
    listed = (await call(client, "list"))["memories"]
    assert [one["id"] for one in listed] == [brief, *reversed(ids.values())]
    assert listed[0]["expires"] > listed[0]["remembered"]
    assert [one["id"] for one in (await call(client, "list", count=1, offset=1))["memories"]] == [ids["nuts"]]

    await call(client, "share", ids=[ids["nuts"]])
    both = (await call(client, "recall", question="food allergies", count=50))["memories"]
    assert sorted(one["id"] for one in both) == sorted([*ids.values(), brief]), (
        "what is in both is shown once"
    )
    theirs = (await call(client, "recall", question="food allergies", memory="team"))["memories"]
    assert [(one["id"], one["memory"]) for one in theirs] == [(ids["nuts"], "team")]

    done = await call(client, "forget", ids=[ids["safe"], brief])
    assert "erased" in done["done"]
    left = (await call(client, "recall", question="where is the key", count=50))["memories"]
    assert ids["safe"] not in [one["id"] for one in left]

    (newest,) = (await client.list_resources()).resources
    read = (await client.read_resource(newest.uri)).contents[0]
    assert (
        read.mime_type == "application/json" and TEXTS["tea"] in read.text and TEXTS["safe"] not in read.text
    )
    (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "memory://{memory}/{id}"
    assert (await client.read_resource(f"memory://team/{ids['nuts']}")).contents[0].text == TEXTS["nuts"]
    (prompt,) = (await client.list_prompts()).prompts
    rendered = await client.get_prompt(prompt.name, {"topic": "tea"})
    assert TEXTS["tea"] in rendered.messages[0].content.text
    for odd in (
        f"memory://own/{ids['safe']}",
        "memory://own/..%2F..%2Fetc%2Fpasswd",
        "memory://own/%00",
        "memory://own/%FF",
        "memory://own/a/b",
        "memory://theirs/x",
        "memory://own/" + "a" * 5_000,
        "memory://own/%7Bid%7D",
        "file:///etc/passwd",
        "",
    ):
        with pytest.raises(mcp.MCPError) as raised:
            await client.read_resource(odd)
        assert "Traceback" not in str(raised.value)
    await call(client, "forget", ids=[ids["nuts"]], memory="team")
    await call(client, "forget", ids=[ids["tea"], ids["nuts"]], shred=False)
    assert (await call(client, "list"))["memories"] == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("place", ["folder", "server"])
def test_an_agents_life_over_standard_input_and_output(
    home: Path, mode: str, place: str, request: pytest.FixtureRequest
) -> None:
    at = "db" if place == "folder" else request.getfixturevalue("server_url")
    said = home / "said"

    async def session() -> None:
        async with by_stdio(words(home, at, *crew(home), "--by", "ann"), said, mode) as client:
            await a_life(client)

    asyncio.run(session())
    assert said.read_text() == "", "nothing was said beside"


@contextlib.contextmanager
def serving(home: Path, *more: str, place: str | Path = "db") -> Iterator[LocalProcess]:
    given = ["--http", "127.0.0.1:0", "--client-tokens", str(home / "agents")]
    with LocalProcess([*words(home, place, *more), *given]) as process:
        yield process


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agents_life_over_http(home: Path, mode: str) -> None:
    async def session(url: str) -> None:
        async with by_http(url, mode) as client:
            await a_life(client)

    with serving(home, *crew(home), "--by", "ann") as process:
        asyncio.run(session(process.url))
        assert TOKEN not in process.log and "Darjeeling" not in process.log


def test_what_is_refused_is_refused_in_a_sentence(home: Path) -> None:
    async def session() -> None:
        async with by_stdio(words(home), home / "said") as client:
            assert "not empty" in await refused(client, "remember", text=" ")
            assert "16,384 bytes of UTF-8 at most, got 10,000,000" in await refused(
                client, "remember", text="x" * 10_000_000
            )
            assert "at most, got 10,000,000" in await refused(client, "recall", question="x" * 10_000_000)
            for days in (-1, 0, 1e300, 1e6):
                assert "expires" in await refused(client, "remember", text="late", expires_in_days=days)
            assert "text: Field required" in await refused(client, "remember")
            assert "ids: Input should be" in await refused(client, "forget", ids=7)
            assert "memory: Input should be" in await refused(client, "list", memory="../team")
            assert "50 at most" in await refused(client, "recall", question="x", count=10**9)
            assert "not in" in await refused(client, "forget", ids=["nobody"])
            assert "bytes" in await refused(client, "forget", ids=["x" * 1_000_000])
            assert "--team" in await refused(client, "share", ids=["nobody"])
            assert "--team" in await refused(client, "recall", question="x", memory="team")
            assert "Unknown tool" in await refused(client, "drop_everything")
            assert (await call(client, "list"))["memories"] == []
            for text in (
                "冬になる前に",
                "قهوة بدون سكر",
                "🦊" * 100,
                "a\x00b",
                "\u202etxt",
                "'; DROP TABLE--",
            ):
                await call(client, "remember", text=text)
                assert text in [one["text"] for one in (await call(client, "list"))["memories"]]

    asyncio.run(session())


def test_expired_memories_are_in_no_answer(home: Path) -> None:
    async def session() -> None:
        async with by_stdio(words(home), home / "said") as client:
            (name,) = (await call(client, "remember", text=TEXTS["tea"], expires_in_days=1e-5))["ids"]
            await call(client, "remember", text=TEXTS["nuts"])
            await asyncio.sleep(1)
            assert [one["text"] for one in (await call(client, "recall", question="tea"))["memories"]] == [
                TEXTS["nuts"]
            ]
            assert [one["text"] for one in (await call(client, "list"))["memories"]] == [TEXTS["nuts"]]
            assert TEXTS["tea"] not in (await client.read_resource("memory://own")).contents[0].text
            assert TEXTS["tea"] not in str(await client.get_prompt("briefing", {"topic": "tea"}))
            with pytest.raises(mcp.MCPError, match="no memory"):
                await client.read_resource(f"memory://own/{name}")

    asyncio.run(session())
    with PersistentClient(home / "db", Keys.load(home / "own.key")) as client:
        assert client.get_collection("memories").count() == 2

    async def later() -> None:
        async with by_stdio(words(home), home / "said") as client:
            await call(client, "list")

    asyncio.run(later())  # it sweeps when it starts
    with PersistentClient(home / "db", Keys.load(home / "own.key")) as client:
        collection = client.get_collection("memories")
        assert collection.count() == 1 and collection.info()["deleted"] == 0


def test_agents_of_a_team_at_once_with_one_key(home: Path, server_url: str) -> None:
    """Two programs, each with its own state, on one server."""

    async def session() -> None:
        async with (
            by_stdio([*words(home, server_url), *crew(home), "--by", "ann"], home / "said") as ann,
            by_stdio(
                ["mcp", server_url, "crew", "--keys", str(home / "team.key"), "--by", "bob"], home / "said"
            ) as bob,
        ):
            secret, shared = [
                (await call(ann, "remember", text=TEXTS[one]))["ids"][0] for one in ("safe", "nuts")
            ]
            await call(ann, "share", ids=[shared])
            mine = [
                call(ann, "share", ids=[secret]),
                *(call(bob, "remember", text=f"bob's fact {i}") for i in range(6)),
            ]
            await asyncio.gather(*mine)
            seen = (await call(bob, "list"))["memories"]
            assert {one["by"] for one in seen} == {"ann", "bob"} and len(seen) == 8
            (found,) = (await call(bob, "recall", question="which nuts are dangerous", count=1))["memories"]
            assert found["text"] == TEXTS["nuts"] and found["by"] == "ann"
            await call(bob, "forget", ids=[secret, shared])
            assert (await call(ann, "recall", question="nuts", memory="team", count=50))["memories"][0][
                "by"
            ] == "bob"
            assert len((await call(ann, "list"))["memories"]) == 2, "her own are hers"

    asyncio.run(session())


@contextlib.contextmanager
def tapped(url: str) -> Iterator[tuple[str, bytearray]]:
    """An address in front of a server's, and all bytes that pass to it."""
    seen, host, port = bytearray(), "127.0.0.1", int(url.rpartition(":")[2])
    door = socket.create_server((host, 0))

    def pump(source: socket.socket, target: socket.socket, record: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if record:
                    seen.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                inside, _ = door.accept()
                outside = socket.create_connection((host, port))
                for ends in ((inside, outside, True), (outside, inside, False)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://{host}:{door.getsockname()[1]}", seen
    finally:
        door.close()


def test_no_word_of_a_memory_reaches_the_server(home: Path) -> None:
    """All bytes that the program sends to `ciphervec serve`, and all that this, and the client's own state, keep on disk."""

    async def session(url: str) -> None:
        async with by_stdio(words(home, url, *crew(home), "--by", "Annabel"), home / "said") as client:
            for text in TEXTS.values():
                (name,) = (await call(client, "remember", text=text, expires_in_days=30))["ids"]
            await call(client, "recall", question="which Ingredients are lifethreatening")
            await call(client, "share", ids=[name])
            await call(client, "list")
            await call(client, "forget", ids=[name])

    with LocalServer(home / "served") as server, tapped(server.url) as (url, seen):
        asyncio.run(session(url))
    assert len(seen) > 100_000 and b"POST /v1/collections/memories" in seen
    written = b"".join(
        path.read_bytes() for at in ("served", "state") for path in (home / at).rglob("*") if path.is_file()
    )
    everything = bytes(seen) + written
    secrets = [*TEXTS.values(), "which Ingredients are lifethreatening", "Annabel"]
    longer = {word for text in secrets for word in text.split() if len(word) >= 7}
    assert len(longer) >= 8
    found = [word for word in longer if word.lower().encode() in everything.lower()]
    found += [word for word in longer if word.encode("utf-16-le") in everything]
    assert found == []
    key = Keys.load(home / "own.key").recovery_phrase()
    assert key.encode() not in everything


def test_what_is_forgotten_stays_so_where_erasing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    from ciphervec.sidecar.agents import Tools

    def fails() -> bool:
        raise ServerError("it went away.")

    memory = Memory.open(Client(), "memories", embedding_function=Words())
    monkeypatch.setattr(memory, "shred", fails)
    done = Tools(memory, None).forget([str(memory.remember(TEXTS["tea"]))])
    assert "tried again with the next sweep: it went away." in done.done and memory.latest() == []
    monkeypatch.undo()
    assert memory.sweep() == 0 and memory.collection.info()["deleted"] == 0


def test_a_server_that_dies_midway_is_a_sentence(home: Path) -> None:
    server = LocalServer(home / "served")

    async def session() -> None:
        async with by_stdio(words(home, server.url), home / "said") as client:
            await call(client, "remember", text=TEXTS["tea"])
            server.kill()
            for tool, given in (("recall", {"question": "tea"}), ("remember", {"text": "lost"})):
                reply = await client.call_tool(tool, given)
                assert reply.is_error and "did not answer" in reply.content[0].text
                assert "Traceback" not in reply.content[0].text and str(home) not in reply.content[0].text
            with pytest.raises(mcp.MCPError, match="did not answer"):
                await client.get_prompt("briefing", {"topic": "tea"})
            with pytest.raises(mcp.MCPError, match="did not answer"):
                await client.read_resource("memory://own")

    asyncio.run(session())


def post(url: str, content: bytes = b"{}", **headers: str) -> httpx.Response:
    shown = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    return httpx.post(f"{url}/mcp", content=content, headers=shown, trust_env=False, timeout=60)


HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"x","version":"1"}}}'
)


def test_over_http_only_who_shows_the_token_and_no_web_page(home: Path) -> None:
    good = {"authorization": f"Bearer {TOKEN}"}
    with serving(home) as process:
        url = process.url
        assert post(url, HELLO, **good).status_code == 200
        for wrong in (
            {},
            {"authorization": "Bearer"},
            {"authorization": f"Bearer {TOKEN[:-1]}"},
            {"authorization": f"Bearer {TOKEN}x"},
            {"authorization": f"Basic {TOKEN}"},
            {"authorization": TOKEN},
            {"authorization": "Bearer # of this test"},
            {"cookie": f"token={TOKEN}"},
        ):
            reply = post(url, HELLO, **wrong)
            assert reply.status_code == 401 and reply.headers["www-authenticate"] == "Bearer"
            assert TOKEN not in reply.text and TOKEN[:-1] not in reply.text
        assert post(f"{url}/mcp?token={TOKEN}#").status_code in (401, 404)
        # A page in a browser, and one that points a name of its own at this machine.
        for page in (
            {"origin": "https://evil.example"},
            {"origin": "null"},
            {"origin": url},
            {"origin": "http://localhost:3000"},
            {"host": "evil.example"},
            {"host": "127.0.0.1.evil.example:80"},
            {"host": "localhost.evil.example"},
        ):
            for shown in (good, {}):
                reply = post(url, HELLO, **shown, **page)
                assert reply.status_code == 403, page
                assert "access-control-allow-origin" not in reply.headers
        for method in ("GET", "DELETE", "OPTIONS", "PUT"):
            assert httpx.request(method, f"{url}/mcp", trust_env=False).status_code == 401
        for path in ("/", "/mcp/..", "/docs", "/openapi.json", "/.well-known/oauth-protected-resource"):
            assert httpx.get(url + path, trust_env=False).status_code == 401
            assert httpx.get(url + path, headers=good, trust_env=False).status_code == 404
        for host in ("localhost", "127.0.0.1:80", "[::1]:9"):
            assert post(url, HELLO, **good, host=host).status_code == 200
        # What is too much is refused; what is no request at all is an error and ends nothing.
        assert post(url, b"x" * (33 << 20), **good).status_code == 413
        for junk in (b"", b"{", b"[]", b"\xff\xfe", b'{"jsonrpc":"2.0"}', b"[" * 100_000):
            reply = post(url, junk, **good)
            assert 400 <= reply.status_code < 500 and "Traceback" not in reply.text
        big = HELLO.replace(b'"name":"x"', b'"name":"' + b"x" * 10_000_000 + b'"')
        assert post(url, big, **good).status_code == 200
        assert post(url, HELLO, **good).status_code == 200
        assert TOKEN not in process.log


def test_over_tls_beyond_loopback(home: Path) -> None:
    made, key = certificate(home)
    given = [
        "--http",
        "0.0.0.0:0",
        "--client-tokens",
        str(home / "agents"),
        "--tls-cert",
        str(made),
        "--tls-key",
        str(key),
    ]
    with LocalProcess([*words(home), *given]) as process:
        url = process.url.replace("0.0.0.0", "localhost")
        assert url.startswith("https://")
        context = ssl.create_default_context(cafile=str(made))
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        with httpx.Client(verify=context, headers=headers, trust_env=False, timeout=60) as http:
            assert http.post(f"{url}/mcp", content=HELLO).status_code == 401
            good = {"authorization": f"Bearer {TOKEN}"}
            assert http.post(f"{url}/mcp", content=HELLO, headers=good).status_code == 200
            page = {**good, "origin": "https://evil.example"}
            assert http.post(f"{url}/mcp", content=HELLO, headers=page).status_code == 403


def test_ten_megabytes_over_http_are_told_the_limit(home: Path) -> None:
    async def session(url: str) -> None:
        async with by_http(url) as client:
            assert "16,384 bytes" in await refused(client, "remember", text="x" * 10_000_000)

    with serving(home) as process:
        asyncio.run(session(process.url))


def test_a_page_that_the_sdks_client_stands_for_is_refused(home: Path) -> None:
    async def session(url: str, **headers: str) -> None:
        async with by_http(url, **headers) as client:
            await client.list_tools()

    with serving(home) as process:
        for headers in ({"Origin": "https://evil.example"}, {"Authorization": "Bearer wrong"}):
            with pytest.raises(BaseException):  # noqa: B017, what it raises is the SDK's matter
                asyncio.run(session(process.url, **headers))


REFUSED = [
    (["--http", "127.0.0.1:0"], 2, "needs a token of every agent"),
    (["--http", "0.0.0.0:0", "--client-tokens", "agents"], 2, "not loopback, and without TLS"),
    (["--http", "nowhere", "--client-tokens", "agents"], 2, "takes an address and a port"),
    (["--http", "127.0.0.1:0", "--client-tokens", "weak"], 2, "less than 16 characters"),
    (["--client-tokens", "agents"], 2, "are for --http"),
    (["--http", "127.0.0.1:0", "--client-tokens", "agents", "--tls-cert", "agents"], 2, "both a certificate"),
    (["--team", "crew"], 2, "--team and --team-keys"),
    (["--team-place", "elsewhere"], 2, "--team and --team-keys"),
    (["--sweep", "0"], 2, "above zero"),
    (["--fetch", "private"], 2, "are for servers"),
    (["--audience", "all"], 2, "audience must be"),
    (["--keys", "missing.key"], 4, "no key file"),
    (["--model", "no/such/model"], 2, "sentence-transformers"),
]


@pytest.mark.parametrize(("more", "code", "says"), REFUSED)
def test_options_that_are_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], code: int, says: str
) -> None:
    monkeypatch.chdir(home)
    (home / "weak").write_text("short\n")
    done = CliRunner().invoke(app, [*words(home), *more])
    assert done.exit_code == code, done.output
    assert says in " ".join(done.output.split())
    assert TOKEN not in done.output


@pytest.mark.parametrize("name", ["../outside", "a/b", "/etc", "..", "", "a\x00b", "x" * 300, "%2e%2e"])
def test_a_collections_name_is_no_path(home: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["mcp", str(home / "db"), name, "--keys", str(home / "own.key")])
    if name == "%2e%2e":
        assert done.exit_code in (0, 2)
    else:
        assert done.exit_code == 2 and "name" in done.output
    assert sorted(path.name for path in home.iterdir() if path.name not in ("db", "state")) == [
        "agents",
        "own.key",
        "team.key",
    ]


def test_without_a_key_or_with_another_or_locked_it_does_not_start(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CIPHERVEC_KEYS", raising=False)
    done = CliRunner().invoke(app, ["mcp", str(home / "db")])
    assert done.exit_code == 2 and "give --keys" in done.output
    with PersistentClient(home / "db", Keys.load(home / "own.key")) as client:
        memory = Memory.open(client, "memories", embedding_function="default")
        memory.remember(TEXTS["tea"])
        started = subprocess.run(
            [sys.executable, "-m", "ciphervec", *words(home)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert started.returncode == 7 and "Traceback" not in started.stderr and started.stdout == ""
    done = CliRunner().invoke(app, ["mcp", str(home / "db"), "--keys", str(home / "team.key")])
    assert done.exit_code == 3, done.output


def test_without_the_sdk_it_says_what_to_install(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        one for one in sys.modules if one == "mcp" or one.startswith(("mcp.", "ciphervec.sidecar.agents"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = CliRunner().invoke(app, words(home))
    assert done.exit_code == 2 and "pip install 'ciphervec[mcp]'" in done.output


def test_notes_over_a_collection_that_others_made(home: Path, server_url: str) -> None:
    """Any collection that embeds texts is a memory, with ids of its own."""
    with HttpClient(server_url, keys=Keys.load(home / "own.key"), state=home / "other") as client:
        notes = client.create_collection("notes", 384, embedding_function="default")
        notes.add([1, 2], documents=["a recipe of onion soup", "how to drain the boiler"])

    async def session() -> None:
        async with by_stdio(
            ["mcp", server_url, "notes", "--keys", str(home / "own.key")], home / "said"
        ) as client:
            (found,) = (await call(client, "recall", question="heating", count=1))["memories"]
            assert found == {
                "id": "2", "text": "how to drain the boiler", "memory": "own", "remembered": None, "expires": None, "by": None,
            }  # fmt: skip
            await call(client, "forget", ids=["1"])
            assert [one["id"] for one in (await call(client, "list"))["memories"]] == ["2"]

    asyncio.run(session())
