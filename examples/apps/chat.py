"""A language model as the apps of this folder ask it: a function of messages, and of tools that it may call, to a message.

`Endpoint` asks Ollama, llama.cpp's server or any other that has their `/v1/chat/completions`. The stand-ins of each app have
the same form, so that it runs without a model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx

Message = dict[str, Any]
Model = Callable[[list[Message], list[Message]], Message]
"""Messages and tools, as the interface has them, to the model's message."""


class Endpoint:
    """A model behind `/v1/chat/completions`, on this machine unless `elsewhere` allows another: it reads what is found."""

    def __init__(self, url: str, name: str, *, elsewhere: bool = False, seconds: float = 300) -> None:
        if urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1") and not elsewhere:
            raise ValueError(
                f"{url} is another machine, whose keeper would read what your collection protects."
            )
        self._url, self._name = f"{url.rstrip('/')}/chat/completions", name
        self._http = httpx.Client(timeout=seconds, trust_env=False)

    def __call__(self, messages: list[Message], tools: list[Message]) -> Message:
        asked: Message = {"model": self._name, "messages": messages, "temperature": 0, "stream": False}
        if tools:
            asked["tools"] = tools
        reply = self._http.post(self._url, json=asked)
        if reply.status_code != httpx.codes.OK:
            raise RuntimeError(f"{self._url} answered {reply.status_code}: {reply.text[:200]}")
        try:
            message = reply.json()["choices"][0]["message"]
            assert isinstance(message.get("content") or message.get("tool_calls") or None, str | list)
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError):
            raise RuntimeError(
                f"{self._url} answered no message of a model, but {reply.text[:200]!r}"
            ) from None
        return dict(message)
