"""Serves the sidecar at an address until a signal ends it. Key owner's side."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from starlette.applications import Starlette


def serve(
    app: Starlette, host: str, port: int, *, certificate: Path | None = None, key: Path | None = None
) -> None:
    """Serve; requests under way are finished at the end. Prints `listening on …` to stderr when ready. Port 0
    takes a free one. Raises OSError."""
    # Of a filter that nothing passes the client is told by an empty answer.
    warnings.filterwarnings("ignore", message="no row of .* passes the filter")
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",
        log_level="warning",
        access_log=False,  # paths have the names of tenants and collections
        server_header=False,
        timeout_keep_alive=60,
        timeout_graceful_shutdown=30,
        ssl_certfile=None if certificate is None else os.fspath(certificate),
        ssl_keyfile=None if key is None else os.fspath(key),
        ws="none",
        lifespan="on",
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=128) as bound:
        # Heads and bodies of answers are written one after the other; neither is to wait for the other's ACK.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if certificate is None else "https"
        where = f"{scheme}://{shown}:{bound.getsockname()[1]}"
        print(f"listening on {where}", file=sys.stderr, flush=True)  # noqa: T201
        uvicorn.Server(config).run(sockets=[bound])
