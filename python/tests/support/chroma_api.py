"""A sidecar in a thread of this process over a client of collections, for the tests."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ciphervec import Client

uvicorn = pytest.importorskip(
    "uvicorn", reason="the sidecar needs its extra: pip install 'ciphervec[sidecar]'"
)
pytest.importorskip("orjson", reason="the sidecar needs its extra: pip install 'ciphervec[sidecar]'")

from ciphervec.sidecar.access import Access  # noqa: E402
from ciphervec.sidecar.app import application  # noqa: E402

DATABASE = "/tenants/default_tenant/databases/default_database"
COLLECTIONS = DATABASE + "/collections"


@contextlib.contextmanager
def running(client: Client, *, access: Access | None = None, **options: Any) -> Iterator[httpx.Client]:
    """Its API, below /api/v2."""
    app = application(client, access or Access("127.0.0.1"), **options)
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{bound.getsockname()[1]}/api/v2", timeout=60) as api:
            yield api
    finally:
        server.should_exit = True
        thread.join()
        bound.close()
        app.state.catalog.close()


def made(api: httpx.Client, name: str = "docs", **more: Any) -> str:
    """The path of a new collection."""
    reply = api.post(COLLECTIONS, json={"name": name, **more})
    assert reply.status_code == 200, reply.text
    return f"{COLLECTIONS}/{reply.json()['id']}"


def asked(api: httpx.Client, path: str, content: dict[str, Any], status: int = 200) -> Any:
    """What a POST answers."""
    reply = api.post(path, json=content)
    assert reply.status_code == status, reply.text
    return reply.json()
