"""Stands between a client and its server, and shows the client what it likes. For tests of authenticated states."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import httpx

from ciphervec.http.frame import split_blobs

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
