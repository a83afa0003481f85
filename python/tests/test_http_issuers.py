"""Tokens that an identity provider signs, through the shipped program: sealed rows are kept and searched by whom the
provider names, while his tokens change, and nobody else."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import AuthenticationError, HttpClient, InvalidInput, Keys
from ciphervec.http import IdentityScope, LocalServer

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")

ISSUER = "https://id.example"
D = 16
Sign = Callable[..., str]


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture
def sign(tmp_path: Path) -> Sign:
    key = ed25519.Ed25519PrivateKey.generate()
    jwk = {"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": _text(key.public_key().public_bytes_raw())}
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [jwk]}))

    def made(subject: str, *groups: str, seconds: float = 600, **more: Any) -> str:
        claims = {
            "iss": ISSUER, "aud": "search", "sub": subject, "exp": int(time.time() + seconds), "groups": groups, **more
        }  # fmt: skip
        parts = [_text(json.dumps(one).encode()) for one in ({"alg": "EdDSA", "kid": "1"}, claims)]
        message = ".".join(parts)
        return f"{message}.{_text(key.sign(message.encode()))}"

    return made


@pytest.fixture
def server(tmp_path: Path, sign: Sign) -> Iterator[LocalServer]:
    grants = [
        {"claim": "groups", "is": "keepers", "permissions": ["admin"], "collections": ["books"]},
        {"claim": "groups", "is": "readers", "role": "reader", "collections": ["books"]},
    ]
    issuer = {"issuer": ISSUER, "audience": ["search"], "jwks": "keys.json", "grants": grants}
    file = {"format": 1, "roles": {"reader": ["read", "query"]}, "issuers": [issuer]}
    (tmp_path / "issuers.json").write_text(json.dumps(file))
    with LocalServer(tmp_path / "db", ["--issuers", str(tmp_path / "issuers.json")]) as made:
        yield made


def test_groups_of_a_provider_keep_and_search_a_sealed_collection(
    server: LocalServer, sign: Sign, keys: Keys
) -> None:
    rows = np.random.default_rng(3).standard_normal((40, D)).astype("f4")
    with HttpClient(server.url, sign("ann", "keepers"), keys=keys, state=None) as client:
        books = client.create_collection("books", D, mode="sealed")
        books.add(list(range(40)), rows)
        own = client.own_token()
        assert isinstance(own, IdentityScope)
        assert (own.subject, own.grants) == ("ann", ((("books",), ("admin",)),))
    with HttpClient(server.url, sign("bo", "readers"), keys=keys, state=None) as client:
        books = client.get_collection("books")
        assert books.query(rows[7], 1)["ids"] == [[7]]
        with pytest.raises(AuthenticationError, match="write"):
            books.delete([7])
    with HttpClient(server.url, sign("cy", "cooks"), keys=keys, state=None) as client:
        assert client.list_collections() == []
    for nobody in (
        None,
        "cv1_" + "A" * 43,
        sign("ann", "keepers", seconds=-60),
        sign("ann", "keepers", aud="mail"),
    ):
        with HttpClient(server.url, nobody, keys=keys, state=None) as client, pytest.raises(AuthenticationError):
            client.list_collections()


def test_a_client_goes_on_with_the_next_token(server: LocalServer, sign: Sign, keys: Keys) -> None:
    rows = np.random.default_rng(4).standard_normal((9, D)).astype("f4")
    with HttpClient(server.url, sign("ann", "keepers"), keys=keys, state=None) as client:
        books = client.create_collection("books", D, mode="sealed")
        books.add(list(range(9)), rows)
        assert books.query(rows[2], 1)["ids"] == [[2]]
        client.set_token(sign("ann", "keepers", seconds=-60))
        with pytest.raises(AuthenticationError):
            books.query(rows[2], 1)
        client.set_token(sign("ann", "keepers"))
        assert books.query(rows[3], 1)["ids"] == [[3]]
        with pytest.raises(InvalidInput, match="visible ASCII"):
            client.set_token("a b")
        assert books.query(rows[4], 1)["ids"] == [[4]]
