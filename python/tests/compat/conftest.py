"""Collections in memory, in a folder and on a server, for frameworks' own suites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ciphervec
from ciphervec import Collection

Collections = Callable[..., Collection]


@pytest.fixture(params=["memory", "folder", "server"])
def client(
    request: pytest.FixtureRequest, tmp_path: Path, keys: ciphervec.Keys
) -> Iterator[ciphervec.Client]:
    """Of collections in memory, in a folder, on a server."""
    made: ciphervec.Client
    if request.param == "memory":
        made = ciphervec.Client(keys)
    elif request.param == "folder":
        made = ciphervec.PersistentClient(tmp_path / "db", keys)
    else:
        url = request.getfixturevalue("server_url")
        made = ciphervec.HttpClient(url, keys=keys, state=tmp_path / "state")
    with made:
        yield made


@pytest.fixture
def collections(client: ciphervec.Client) -> Collections:
    """Makes empty collections of a dimension."""

    def make(dimension: int, name: str = "docs", **choices: Any) -> Collection:
        return client.create_collection(name, dimension, **choices)

    return make
