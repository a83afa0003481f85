"""Stands between a client and its server, or at a folder's bytes, and shows the client what it likes."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

import ciphervec._native as _native
from attacks import forged
from network import Faulty

SEALED = ("sealed-index", "sealed")
"""Modes in which states are authenticated, one of each kind of answer."""


class Liar(httpx.HTTPTransport):
    """Stands for the server: `lie` may change what it says of the collection, `blobs` what it gives for a path."""

    def __init__(self) -> None:
        super().__init__()
        self.lie: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.blobs: dict[str, bytes] = {}
        self.asked: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        about = request.method == "GET" and path.count("/") == 3
        if about and self.lie:
            request.headers.pop("if-none-match", None)
        if path.endswith("/query"):
            self.asked.append(request.read())
        given = next((data for end, data in self.blobs.items() if path.endswith(end)), None)
        if request.method == "GET" and given is not None:
            return httpx.Response(200, headers={"ciphervec-api": "1"}, content=given)
        reply = super().handle_request(request)
        if path.endswith("/blobs") and self.blobs and reply.status_code == 200:
            return self._several(json.loads(request.read()), split_blobs(reply.read()))
        if not (about and self.lie and reply.status_code == 200):
            return reply
        told = json.dumps(self.lie(json.loads(reply.read()))).encode()
        kept = {
            k: v for k, v in reply.headers.items() if k.lower() not in ("content-length", "transfer-encoding")
        }
        return httpx.Response(200, headers=kept, content=told)

    def _several(self, asked: dict[str, Any], found: list[bytes | None]) -> httpx.Response:
        """The same lies about blobs that are asked for together."""
        content = b""
        for segment, true in zip(asked["segments"], found, strict=False):
            path = f"/{segment}/{asked['blob']}"
            data = next((data for end, data in self.blobs.items() if path.endswith(end)), true)
            content += b"\xff" * 8 if data is None else len(data).to_bytes(8, "little") + data
        return httpx.Response(200, headers={"ciphervec-api": "1"}, content=content)


def kept_headers(answer: httpx.Response) -> dict[str, str]:
    """Those that say nothing of its length."""
    left_out = ("content-length", "transfer-encoding", "ciphervec-api")
    return {name: value for name, value in answer.headers.items() if name.lower() not in left_out}


class Altered(Faulty):
    """Changes answers to queries, and refuses commits, while it is told to. `change` gets a question and its answer."""

    def __init__(self, change: Callable[[bytes, bytes], bytes] | None = None) -> None:
        super().__init__()
        self.change = change
        self.refuses = False
        self.fault = self._alter

    def _alter(self, request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if self.refuses and request.url.path.endswith("/commits"):
            return httpx.Response(403, headers={"ciphervec-api": "1"}, json={"detail": "no"})
        answer = go()
        if self.change is None or not request.url.path.endswith("/query") or answer.status_code != 200:
            return answer
        lie = self.change(request.content, answer.content)
        return httpx.Response(200, headers={"ciphervec-api": "1", **kept_headers(answer)}, content=lie)


class Tap(httpx.HTTPTransport):
    """Keeps the commits that pass."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/commits"):
            self.sent.append(request.read())
        return super().handle_request(request)


def shown(url: str, name: str = "faces") -> tuple[dict[str, Any], bytes]:
    """What the server says of a collection now, and the state beside it."""
    about = httpx.get(f"{url}/v1/collections/{name}", trust_env=False).json()
    return about, httpx.get(f"{url}/v1/collections/{name}/attachments/state", trust_env=False).content


def again(old: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The old content under the new version and head."""
    return lambda now: {**old, "version": now["version"], "head": now["head"]}


def post(url: str, name: str, change: bytes) -> httpx.Response:
    headers = {"Content-Type": "application/octet-stream"}
    return httpx.post(
        f"{url}/v1/collections/{name}/commits", content=change, headers=headers, trust_env=False
    )


def frame(content: dict[str, Any], blobs: bytes = b"") -> bytes:
    text = json.dumps(content).encode()
    return b"CVCHANGE" + struct.pack("<II", 1, len(text)) + text + blobs


def rewritten(folder: Path, change: Callable[[str, bytes], bytes]) -> None:
    """Whoever keeps a collection's folder puts other blobs there, by their names: of the same segments in the same order."""
    store = _native.Store.open(os.fspath(folder))
    there, deleted = [], []
    for segment, rows, blobs, gone in store.segments():
        there.append((segment, rows, {name: change(name, store.read(segment, name)) for name in blobs}))
        deleted += [(segment, gone)] if gone else []
    store.commit(remove=[segment for segment, *_ in there])
    store.commit(add=there, delete_rows=deleted)
    store.close()


def other_words(folder: Path, at: int = 200, *, first: bool = False) -> None:
    """The words of every segment, or of the first one alone, differ in a bit; done again, they are what they were."""
    left = [1 if first else -1]

    def change(name: str, data: bytes) -> bytes:
        if name != "rows" or left[0] == 0:
            return data
        left[0] -= 1
        return forged(data, at, bytes([data[at] ^ 1]))

    rewritten(folder, change)


def split_blobs(data: bytes) -> list[bytes | None]:
    """The blobs in an answer about several, each behind its length; None for one that is not there. What
    is cut short ends the list."""
    found: list[bytes | None] = []
    at = 0
    while at + 8 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        at += 8
        if length == 2**64 - 1:
            found.append(None)
            continue
        if at + length > len(data):
            break
        found.append(data[at : at + length])
        at += length
    return found
