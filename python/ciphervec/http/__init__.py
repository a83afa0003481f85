"""HTTP client: vectors and questions are sealed here, and only bytes without a key in them
travel."""

from __future__ import annotations

from .aio import AsyncHttpClient, AsyncHttpCollection, AsyncRemoteProgram
from .client import HttpClient, HttpCollection
from .local import LocalServer
from .programs import RemoteProgram
from .tokens import TokenScope

__all__ = [
    "AsyncHttpClient",
    "AsyncHttpCollection",
    "AsyncRemoteProgram",
    "HttpClient",
    "HttpCollection",
    "LocalServer",
    "RemoteProgram",
    "TokenScope",
]
