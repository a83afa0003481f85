"""Requests to an engine that is read over HTTP without a client of its own: JSON in, JSON out. The key owner's side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from ...errors import AuthenticationError, ServerError
from ...http.address import by_proxy
from .source import Address


class Web:
    """One server. Raises ServerError for what is no answer of JSON."""

    def __init__(self, address: Address, port: int, scheme: str) -> None:
        """`scheme` stands before the token."""
        self._text, base = address.text, address.url(port)
        headers = {"Authorization": f"{scheme} {address.token}"} if address.token else {}
        self._http = httpx.Client(base_url=base, headers=headers, timeout=120, trust_env=by_proxy(base))

    def __call__(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: object | None = None
    ) -> Any:
        """What the server answers."""
        try:
            answer = self._http.request(method, path, params=query, json=body)
            if answer.status_code in (401, 403):
                raise AuthenticationError(
                    f"{self._text} refuses the token ({answer.status_code}). Give another with --source-token-file."
                )
            if answer.is_error:
                raise ServerError(f"{self._text} answered {answer.status_code} to {path}: {answer.text:.300}")
            return answer.json()
        except (httpx.HTTPError, ValueError) as error:
            raise ServerError(f"{self._text} was not read: {error!r:.300}") from error

    def close(self) -> None:
        """No more requests."""
        self._http.close()
