"""Serves the decrypt service at an address until the process ends. Key owner's side."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..http.address import is_loopback
from ..ingest.extras import needed
from ..ingest.files import StrPath, at_home

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from .connections import Gate
    from .ledger import Ledger


def check_exposure(host: str, certificate: StrPath | None, key: StrPath | None, ledger: Ledger) -> None:
    """Raise InvalidInput where this would show tokens to a network, or have nobody to answer."""
    if (certificate is None) != (key is None):
        raise InvalidInput("TLS takes both a certificate and its key: --tls-cert and --tls-key.")
    if is_loopback(host):
        return
    if certificate is None:
        raise InvalidInput(
            f"{host} is not loopback, and without TLS everybody in between reads tokens and answers. Give --tls-cert and "
            "--tls-key, or listen on 127.0.0.1 behind a proxy that has them."
        )
    if not any(principal.revoked is None for principal in ledger.list()):
        raise InvalidInput(
            "no principal may ask yet. Make one first: ciphervec decrypt-service allow LEDGER NAME COLLECTION --budget 100"
        )


def serve(
    app: Starlette,
    host: str,
    port: int,
    *,
    certificate: StrPath | None = None,
    key: StrPath | None = None,
    gate: Gate | None = None,
) -> None:
    """Serve until a signal ends the process; requests under way are finished. Prints
    `listening on …` to stderr when ready. Port 0 takes a free one; `gate` has
    other limits on connections than the usual ones. Raises InvalidInput, OSError."""
    try:
        import uvicorn

        from . import connections
    except ModuleNotFoundError as error:
        raise needed("the decrypt service", str(error.name), "service") from error
    gate = connections.Gate() if gate is None else gate
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=connections.protocol(gate),
        log_level="warning",
        access_log=False,  # paths and addresses belong to the audit log
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=30,
        ssl_certfile=None if certificate is None else at_home(certificate),
        ssl_keyfile=None if key is None else at_home(key),
        ws="none",
        lifespan="off",
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.create_server((host, port), family=family, backlog=128)
    with connections.Listener(bound, gate) as listener:
        chosen = listener.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if certificate is None else "https"
        print(f"listening on {scheme}://{shown}:{chosen}", file=sys.stderr, flush=True)  # noqa: T201
        # Its own loop: not every kind accepts by way of the socket, and so of the gate.
        loop = asyncio.SelectorEventLoop()
        try:
            loop.run_until_complete(uvicorn.Server(config).serve(sockets=[listener]))
        finally:
            loop.close()


__all__ = ["check_exposure", "serve"]
