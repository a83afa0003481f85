"""Frameworks' own suites enter; collections in memory, in a folder and on a server stand behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ciphervec
from ciphervec import Collection

Collections = Callable[..., Collection]


@pytest.fixture(params=["memory", "folder", "server"])
def collections(
    request: pytest.FixtureRequest, tmp_path: Path, keys: ciphervec.Keys
) -> Iterator[Collections]:
    """Makes empty collections of a dimension."""
    client: ciphervec.Client
    if request.param == "memory":
        client = ciphervec.Client(keys)
    elif request.param == "folder":
        client = ciphervec.PersistentClient(tmp_path / "db", keys)
    else:
        url = request.getfixturevalue("server_url")
        client = ciphervec.HttpClient(url, keys=keys, state=tmp_path / "state")

    def make(dimension: int, name: str = "docs", **choices: Any) -> Collection:
        return client.create_collection(name, dimension, **choices)

    with client:
        yield make
