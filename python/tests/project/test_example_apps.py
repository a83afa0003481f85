"""The apps of examples/apps: letters of every shape, a model behind HTTP, and what their pages show of them."""

from __future__ import annotations

import asyncio
import http.server
import importlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import ciphervec
from embedders import Words

ROOT = Path(__file__).resolve().parents[3]
APPS = ROOT / "examples" / "apps"
PAGES = {"mail": "docs/apps/mail.md", "agents": "docs/apps/agents.md"}

pytestmark = [
    pytest.mark.skipif(not APPS.exists(), reason="needs the repository, not only the wheel"),
]


def app(name: str) -> Any:
    if name == "agents":
        pytest.importorskip("mcp", reason="needs its extra: pip install 'ciphervec[mcp]'")
    sys.path.insert(0, str(APPS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_shows_what_the_app_prints(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the default model: pip install 'ciphervec[texts]'")
    app(name)
    done = subprocess.run(
        [sys.executable, APPS / f"{name}.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.search(r"```text\n(.*?)```", (ROOT / PAGES[name]).read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert shown[1] == done.stdout


def mbox(path: Path, *letters: bytes) -> Path:
    path.write_bytes(b"".join(b"From someone Mon Mar  3 09:12:00 2025\n" + one + b"\n\n" for one in letters))
    return path


@pytest.mark.parametrize(
    ("letter", "text"),
    [
        (b"Subject: a\n\nplain words\n> quoted\n-- \nsignature", "a. plain words"),
        (
            b"Subject: =?utf-8?b?xZF6?=\nContent-Type: text/plain; charset=no-such\n\nw\xc3\xb6rds",
            "őz. wörds",
        ),
        (b"Content-Type: text/plain; charset=utf-8\n\nhalf \xff a letter", ". half � a letter"),
        (
            b"Subject: h\nContent-Type: text/html\n\n<style>p{}</style><p>one</p><p>two &amp; three",
            "h. one two & three",
        ),
        (b"Subject: >\n\nFromage and From\n>From here on", None),
        (b"Subject: none\nContent-Type: image/png\n\nxxxx", None),
        (b"Subject: empty\n\n\n", None),
    ],
    ids=["plain", "charset", "bytes", "html", "quoted-from", "picture", "empty"],
)
def test_a_letter_is_its_own_words(letter: bytes, text: str | None, tmp_path: Path) -> None:
    read = app("mail").rows(mbox(tmp_path / "box", letter))["documents"]
    if text is None and letter.startswith(b"Subject: >"):
        text = ">. Fromage and From"
    assert read == ([] if text is None else [text])


def test_passages_have_every_word_once_and_none_is_long() -> None:
    mail = app("mail")
    paragraphs = [" ".join(f"w{i}x{j}" for j in range(i * 37 % 211)) for i in range(60)]
    paragraphs.append("y" * (3 * mail.SIZE))
    found = list(mail.passages("\n\n".join(paragraphs)))
    assert "".join("".join(found).split()) == "".join("".join(paragraphs).split())
    assert all(0 < len(one) <= mail.SIZE for one in found)


def test_a_second_run_adds_what_is_new(tmp_path: Path) -> None:
    mail = app("mail")
    first, second = (f"Message-ID: <{i}@x>\nSubject: {i}\n\nletter {i}".encode() for i in (1, 2))
    with ciphervec.Client() as client:
        with pytest.raises(SystemExit, match="has no letter with a text"):
            mail.seal(client, mbox(tmp_path / "none"))
        client.create_collection("mail", 48, embedding_function=Words(), sparse=ciphervec.BM25())
        assert mail.seal(client, mbox(tmp_path / "box", first)).count() == 1
        box = mail.seal(client, mbox(tmp_path / "box", first, second, first))
        assert sorted(box.ids()) == ["1@x 0", "2@x 0"]


# A model


class Stub(http.server.BaseHTTPRequestHandler):
    """Answers as /v1/chat/completions does, what it is told to; keeps what it was asked."""

    answers: ClassVar[list[tuple[int, bytes]]] = []
    asked: ClassVar[list[tuple[str, Any]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, json.loads(body)))
        status, answer = self.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def stub() -> Iterator[str]:
    Stub.answers, Stub.asked = [], []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stub) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/"
        server.shutdown()


def completion(**message: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"choices": [{"message": {"role": "assistant", **message}}]}).encode()


def test_a_model_is_asked_as_the_interface_says(stub: str) -> None:
    mail, chat = app("mail"), app("chat")
    Stub.answers = [completion(content="On 14 June [1].")]
    letters = [{"from": "a", "date": "b", "subject": "c", "text": "c. The ferry leaves on 14 June."}]
    assert mail.answer(chat.Endpoint(stub, "small"), "When?", letters) == "On 14 June [1]."
    ((path, body),) = Stub.asked
    assert path == "/v1/chat/completions"
    assert body["model"] == "small" and body["stream"] is False and "tools" not in body
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert "[1] a, b\nc. The ferry leaves on 14 June." in body["messages"][0]["content"]
    assert body["messages"][1]["content"] == "When?"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((404, b'{"error": "model not found"}'), "answered 404: .*model not found"),
        ((200, b"<html>"), "answered no message of a model, but '<html>'"),
        ((200, b'{"choices": []}'), "no message of a model"),
        ((200, b'{"choices": [{"message": {"content": null}}]}'), "no message of a model"),
        ((200, b'{"choices": [{"message": "text"}]}'), "no message of a model"),
    ],
)
def test_what_is_no_answer_of_a_model_is_said(answer: tuple[int, bytes], says: str, stub: str) -> None:
    Stub.answers = [answer]
    with pytest.raises(RuntimeError, match=says):
        app("chat").Endpoint(stub, "small")([{"role": "user", "content": "a"}], [])


def test_a_model_elsewhere_reads_nothing_unless_allowed() -> None:
    chat = app("chat")
    for url in ("https://api.example/v1", "http://127.0.0.1.example/v1", "http://10.0.0.1/v1"):
        with pytest.raises(ValueError, match="is another machine"):
            chat.Endpoint(url, "large")
    chat.Endpoint("https://api.example/v1", "large", elsewhere=True)


class Tools:
    """A memory's program, as an agent sees it."""

    instructions = "Recall first."

    def __init__(self) -> None:
        self.called: list[tuple[str, Any]] = []

    async def list_tools(self) -> Any:
        kinds = {"recall": True, "remember": False, "share": False, "forget": False}
        return Record(
            tools=[
                Record(name=name, description=name, input_schema={"type": "object"},
                       annotations=Record(read_only_hint=reads))
                for name, reads in kinds.items()
            ]
        )  # fmt: skip

    async def call_tool(self, name: str, arguments: Any) -> Any:
        self.called.append((name, arguments))
        return Record(content=[Record(text='{"memories": []}')])


class Record:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def run(agents: Any, model: Any, tools: Tools, allowed: bool) -> str:
    return str(asyncio.run(agents.Agent(tools, model, lambda *_: allowed).answer("hello")))


def calls(*named: tuple[str, str]) -> tuple[int, bytes]:
    return completion(
        content=None,
        tool_calls=[
            {"id": str(i), "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, (name, arguments) in enumerate(named)
        ],
    )


@pytest.mark.parametrize("allowed", [True, False])
def test_a_person_is_asked_before_an_agent_shares_or_deletes(allowed: bool, stub: str) -> None:
    agents, tools = app("agents"), Tools()
    wanted = [("recall", '{"question": "q"}'), ("share", '{"ids": []}'), ("forget", "{"), ("forget", "{}")]
    Stub.answers = [calls(*wanted), completion(content="Done.")]
    assert run(agents, app("chat").Endpoint(stub, "small"), tools, allowed) == "Done."
    assert [name for name, _ in tools.called] == (["recall", "share", "forget"] if allowed else ["recall"])
    assert [one["function"]["name"] for one in Stub.asked[0][1]["tools"]] == [
        "recall",
        "remember",
        "share",
        "forget",
    ]
    told = {
        one["tool_call_id"]: one["content"] for one in Stub.asked[1][1]["messages"] if one["role"] == "tool"
    }
    assert told["0"] == '{"memories": []}' and "expected the arguments of forget as JSON" in told["2"]
    assert (told["1"] == "The person said no.") is not allowed


def test_an_agent_that_only_calls_tools_ends(stub: str) -> None:
    agents, tools = app("agents"), Tools()
    Stub.answers = [calls(("recall", "{}"))] * 99
    with pytest.raises(RuntimeError, match="and said nothing"):
        run(agents, app("chat").Endpoint(stub, "small"), tools, True)
    assert len(tools.called) == agents.MOST_STEPS
