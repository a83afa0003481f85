"""Tokens that an identity provider signs, through the shipped program: sealed rows are kept and searched by whom the
provider names, while his tokens change, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ciphervec import AuthenticationError, HttpClient, InvalidInput, Keys
from ciphervec.http import IdentityScope, LocalServer
from provider import Provider

D = 16


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(
        tmp_path,
        [
            {"claim": "groups", "is": "keepers", "permissions": ["admin"], "collections": ["books"]},
            {"claim": "groups", "is": "readers", "role": "reader", "collections": ["books"]},
        ],
    )


@pytest.fixture
def server(tmp_path: Path, provider: Provider) -> Iterator[LocalServer]:
    with LocalServer(tmp_path / "db", ["--issuers", str(provider.file)]) as made:
        yield made


def test_groups_of_a_provider_keep_and_search_a_sealed_collection(
    server: LocalServer, provider: Provider, keys: Keys
) -> None:
    rows = np.random.default_rng(3).standard_normal((40, D)).astype("f4")
    with HttpClient(server.url, provider.sign("ann", "keepers"), keys=keys, state=None) as client:
        books = client.create_collection("books", D, mode="sealed")
        books.add(list(range(40)), rows)
        own = client.own_token()
        assert isinstance(own, IdentityScope)
        assert (own.subject, own.grants) == ("ann", ((("books",), ("admin",)),))
    with HttpClient(server.url, provider.sign("bo", "readers"), keys=keys, state=None) as client:
        books = client.get_collection("books")
        assert books.query(rows[7], 1)["ids"] == [[7]]
        with pytest.raises(AuthenticationError, match="write"):
            books.delete([7])
    with HttpClient(server.url, provider.sign("cy", "cooks"), keys=keys, state=None) as client:
        assert client.list_collections() == []
    for nobody in (
        None,
        "cv1_" + "A" * 43,
        provider.sign("ann", "keepers", seconds=-60),
        provider.sign("ann", "keepers", aud="mail"),
    ):
        with (
            HttpClient(server.url, nobody, keys=keys, state=None) as client,
            pytest.raises(AuthenticationError),
        ):
            client.list_collections()


def test_a_client_goes_on_with_the_next_token(server: LocalServer, provider: Provider, keys: Keys) -> None:
    rows = np.random.default_rng(4).standard_normal((9, D)).astype("f4")
    with HttpClient(server.url, provider.sign("ann", "keepers"), keys=keys, state=None) as client:
        books = client.create_collection("books", D, mode="sealed")
        books.add(list(range(9)), rows)
        assert books.query(rows[2], 1)["ids"] == [[2]]
        client.set_token(provider.sign("ann", "keepers", seconds=-60))
        with pytest.raises(AuthenticationError):
            books.query(rows[2], 1)
        client.set_token(provider.sign("ann", "keepers"))
        assert books.query(rows[3], 1)["ids"] == [[3]]
        with pytest.raises(InvalidInput, match="visible ASCII"):
            client.set_token("a b")
        assert books.query(rows[4], 1)["ids"] == [[4]]
