"""HTTP client: vectors and questions are sealed here, and only bytes without a key in them
travel."""

from __future__ import annotations

from .aio import AsyncHttpClient, AsyncHttpCollection, AsyncRemoteProgram, AsyncRemoteTable
from .client import HttpClient, HttpCollection
from .local import LocalServer
from .programs import RemoteProgram
from .tables import RemoteTable
from .tokens import IdentityScope, TokenScope

__all__ = [
    "AsyncHttpClient",
    "AsyncHttpCollection",
    "AsyncRemoteProgram",
    "AsyncRemoteTable",
    "HttpClient",
    "HttpCollection",
    "IdentityScope",
    "LocalServer",
    "RemoteProgram",
    "RemoteTable",
    "TokenScope",
]
