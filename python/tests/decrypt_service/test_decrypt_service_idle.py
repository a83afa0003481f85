"""Connections of the decrypt service: silent ones, slow ones and many of them do not keep anybody
else from asking."""

from __future__ import annotations

import http.client
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from ciphervec import Keys, PersistentClient, Probe
from ciphervec.decrypt_service import Ledger, MatchClient
from services import certificate

D = 8
SERVICE = """
import sys
from ciphervec import Client, Keys
from ciphervec.decrypt_service import Ledger, Matcher
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.connections import Gate
from ciphervec.decrypt_service.serve import serve
faces = Client(keys=Keys.generate()).create_collection("faces", 8, mode="sealed-index")
app = application([Matcher(faces, 0.2)], Ledger(sys.argv[1]))
tls = {"certificate": sys.argv[2], "key": sys.argv[3]} if len(sys.argv) > 2 else {}
serve(app, "127.0.0.1", 0, gate=Gate(connections=40, an_address=30, seconds=0.7), **tls)
"""


class Service:
    """A process that serves, and sockets to it."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line.startswith("listening on "), line
        self.url = line.split()[-1]
        self.host, self.port = urlsplit(self.url).hostname or "", urlsplit(self.url).port or 0
        self.silent: list[socket.socket] = []

    def idle(self, count: int, source: str = "127.0.0.1", said: bytes = b"") -> None:
        for _ in range(count):
            one = socket.create_connection((self.host, self.port), source_address=(source, 0), timeout=20)
            if said:
                one.sendall(said)
            self.silent.append(one)

    def healthy(self, context: ssl.SSLContext | None = None) -> bool:
        kind = (
            http.client.HTTPConnection(self.host, self.port, timeout=20)
            if context is None
            else http.client.HTTPSConnection(self.host, self.port, timeout=20, context=context)
        )
        try:
            kind.request("GET", "/healthz")
            return kind.getresponse().status == 200
        finally:
            kind.close()

    def close(self) -> None:
        for one in self.silent:
            one.close()
        self.process.terminate()
        self.process.communicate(timeout=20)


def ended(one: socket.socket) -> bool:
    """Whether the service closes it; waits for that as long as the socket's own time-out."""
    try:
        while one.recv(4096):
            pass
    except (ConnectionError, ssl.SSLError):
        return True
    except TimeoutError:
        return False
    return True


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Service]:
    service = Service([sys.executable, "-c", SERVICE, str(tmp_path / "l.db")])
    yield service
    service.close()


def test_silent_sockets_lock_nobody_out_of_the_shipped_service(
    tmp_path: Path, keys: Keys, rng: np.random.Generator
) -> None:
    """Three hundred of them from six addresses, more than the service holds in all."""
    rows = rng.normal(size=(3, D)).astype(np.float32)
    keys.save(tmp_path / "key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(range(3), rows)
        probe = Probe(faces.spec)
    _, token = Ledger(tmp_path / "ledger.db").add("door", "faces", budget=100)
    command = [sys.executable, "-m", "ciphervec", "decrypt-service", "serve", str(tmp_path / "db"), "faces"]
    command += ["--within", "0.2", "--ledger", str(tmp_path / "ledger.db"), "--keys", str(tmp_path / "key")]
    service = Service([*command, "--listen", "127.0.0.1:0"])
    try:
        edge = MatchClient(service.url, token)
        service.idle(64)
        assert edge.match("faces", probe.query(rows[0])).matched == [True]
        for last in range(1, 7):
            service.idle(50, f"127.0.0.{last}", said=b"POST /v1/match/faces HTTP/1.1\r\n")
            assert edge.match("faces", probe.query(rows[1])).matched == [True]
            assert service.healthy()
    finally:
        service.close()


def test_a_head_that_does_not_come_ends_the_connection(quick: Service) -> None:
    """Nothing at all, one byte at a time, and nothing after an answer."""
    quick.idle(3)
    (trickle,) = quick.silent[:1]
    answered = socket.create_connection((quick.host, quick.port), timeout=20)
    quick.silent.append(answered)
    answered.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
    assert answered.recv(4096).startswith(b"HTTP/1.1 200")
    try:
        for byte in b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"x" * 1000:
            trickle.sendall(bytes([byte]))
            time.sleep(0.05)
        pytest.fail("a trickle of bytes was listened to for fifty seconds")
    except (BrokenPipeError, ConnectionError):
        pass
    assert all(ended(one) for one in quick.silent[1:])
    assert quick.healthy()


def test_requests_that_are_refused_leave_no_connection_behind(quick: Service) -> None:
    """A body that never ends, after the answer that nobody may send it."""
    head = b"POST /v1/match/faces HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n"
    quick.idle(1, said=head)
    (one,) = quick.silent
    assert one.recv(4096).startswith(b"HTTP/1.1 401")
    with pytest.raises(OSError):
        for _ in range(1000):
            one.sendall(b"x")
            time.sleep(0.05)


def test_a_tls_handshake_counts_as_silence(tmp_path: Path) -> None:
    files = [str(file) for file in certificate(tmp_path)]
    service = Service([sys.executable, "-c", SERVICE, str(tmp_path / "l.db"), *files])
    try:
        trusted = ssl.create_default_context(cafile=files[0])
        service.idle(35)  # more than one address may hold: the first ones go at once
        assert service.healthy(trusted)
        service.idle(35, "127.0.0.2", said=b"\x16\x03\x01\x02\x00\x01")  # the beginning of a hello
        assert service.healthy(trusted)
        assert all(ended(one) for one in service.silent)
        assert service.healthy(trusted)
    finally:
        service.close()
