"""The front under a certificate, before a server that is elsewhere and has one of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
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


def test_tls_on_both_sides(cluster: Any, keys: Keys, vectors: np.ndarray, tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("skipped: no openssl program to make a certificate with")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    (tmp_path / "db").mkdir()
    admin = token(tmp_path / "db", "*", "admin")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    with LocalServer(tmp_path / "db", ["--tls-cert", str(certificate), "--tls-key", str(key)]) as server:
        with HttpClient(server.url, admin, keys=keys, state=None, ca=certificate) as client:
            client.create_collection("books", D).add(list(range(50)), vectors[:50])
        with serve_front(
            tmp_path / "db",
            ["books"],
            upstream=server.url,
            ca=certificate,
            port=port,
            tls_cert=certificate,
            tls_key=key,
        ) as front:
            assert front.url == f"https://127.0.0.1:{port}" and front.server is None
            with HttpClient(front.url, admin, keys=keys, state=None, ca=certificate) as client:
                books = client.get_collection("books")
                assert books.query(vectors[:5], 1)["ids"] == [[row] for row in range(5)]
            with (
                HttpClient(front.url, admin, keys=keys, state=None) as client,
                pytest.raises(ServerError, match="certificate is not trusted"),
            ):
                client.list_collections()
