"""HTTP client: vectors and questions are sealed here, and only bytes without a key in them
travel."""

from __future__ import annotations

from .aio import AsyncHttpClient, AsyncHttpCollection
from .client import HttpClient, HttpCollection
from .local import LocalServer

__all__ = ["AsyncHttpClient", "AsyncHttpCollection", "HttpClient", "HttpCollection", "LocalServer"]
