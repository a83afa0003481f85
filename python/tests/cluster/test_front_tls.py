"""The front under a certificate, before a server that is elsewhere and has one of its own."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import HttpClient, Keys, ServerError
from ciphervec.http import LocalServer
from program import token
from ray_scenes import D

pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")

from ciphervec.ray import serve_front
from services import certificate


def test_tls_on_both_sides(cluster: Any, keys: Keys, vectors: np.ndarray, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    (tmp_path / "db").mkdir()
    admin = token(tmp_path / "db", "*", "admin")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    with LocalServer(tmp_path / "db", ["--tls-cert", str(cert), "--tls-key", str(key)]) as server:
        with HttpClient(server.url, admin, keys=keys, state=None, ca=cert) as client:
            client.create_collection("books", D).add(list(range(50)), vectors[:50])
        with serve_front(
            tmp_path / "db",
            ["books"],
            upstream=server.url,
            ca=cert,
            port=port,
            tls_cert=cert,
            tls_key=key,
        ) as front:
            assert front.url == f"https://127.0.0.1:{port}" and front.server is None
            with HttpClient(front.url, admin, keys=keys, state=None, ca=cert) as client:
                books = client.get_collection("books")
                assert books.query(vectors[:5], 1)["ids"] == [[row] for row in range(5)]
            with (
                HttpClient(front.url, admin, keys=keys, state=None) as client,
                pytest.raises(ServerError, match="certificate is not trusted"),
            ):
                client.list_collections()
