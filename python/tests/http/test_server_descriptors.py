"""A server with fewer file descriptors than collections: it lists all of them, opens all of them, and stays reachable."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import HttpClient, Keys, PersistentClient
from ciphervec.http import LocalServer
from network import D

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of open files are those of Unix")

COUNT = 150


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Keys]:
    keys = Keys.generate()
    root = tmp_path_factory.mktemp("many")
    with PersistentClient(root / "one", keys) as client:
        client.create_collection("c0", D, mode="sealed-index").add([1], np.ones((1, D)))
    for number in range(COUNT):
        shutil.copytree(root / "one" / "c0", root / "db" / f"c{number}")
    return root / "db", keys


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["ulimit -Sn 64", "ulimit -n 64"])
def test_it_lists_and_opens_more_collections_than_it_may_have_files(
    data: tuple[Path, Keys], limit: str
) -> None:
    folder, keys = data
    prefix = ["bash", "-c", f'{limit}; exec "$@"', "limited"]
    with LocalServer(folder, prefix=prefix) as server, httpx.Client(trust_env=False, timeout=60) as client:
        for _ in range(2):
            answer = client.get(f"{server.url}/v1/collections")
            assert answer.status_code == 200, answer.text
            assert len(answer.json()["collections"]) == COUNT
        # All others are copies under other names, which open here: only their owner sees that.
        assert all(
            client.get(f"{server.url}/v1/collections/c{number}").status_code == 200 for number in range(COUNT)
        )
        assert httpx.get(f"{server.url}/healthz", trust_env=False, timeout=30).status_code == 200
        with HttpClient(server.url, keys=keys, state=None) as owner:
            books = owner.get_collection("c0")
            books.upsert([2], -np.ones((1, D)))
            assert books.query(np.ones(D), 1)["ids"] == [[1]]
            assert len(owner.list_collections()) == COUNT
        if "-S" in limit and Path("/proc").is_dir():
            soft, hard = Path(f"/proc/{server.pid}/limits").read_text().split("Max open files")[1].split()[:2]
            assert soft == hard


@pytest.mark.slow
def test_it_says_that_it_has_no_files_left_rather_than_leave_collections_out(data: tuple[Path, Keys]) -> None:
    """Connections that rest take what there is: until they go the list is 503, or all of it."""
    folder, _ = data
    prefix = ["bash", "-c", 'ulimit -n 64; exec "$@"', "limited"]
    with LocalServer(folder, prefix=prefix) as server:
        held = [httpx.Client(trust_env=False, timeout=20) for _ in range(60)]
        answers = []
        try:
            for client in held:
                try:
                    answers.append(client.get(f"{server.url}/v1/collections"))
                except httpx.HTTPError:
                    break  # not even a connection
        finally:
            for client in held:
                client.close()
        assert answers
        for answer in answers:
            if answer.status_code == 200:
                assert len(answer.json()["collections"]) == COUNT
            else:
                assert answer.status_code == 503 and answer.headers["retry-after"]
