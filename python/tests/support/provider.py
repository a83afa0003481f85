"""An identity provider of the tests: a file of issuers, and tokens that it signs."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ISSUER = "https://id.example"


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class Provider:
    """Its keys and the file of issuers lie in `folder`."""

    def __init__(self, folder: Path, grants: Sequence[Mapping[str, Any]] = ()) -> None:
        ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
        self._key = ed25519.Ed25519PrivateKey.generate()
        public = _text(self._key.public_key().public_bytes_raw())
        jwk = {"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": public}
        (folder / "keys.json").write_text(json.dumps({"keys": [jwk]}))
        issuer = {"issuer": ISSUER, "audience": ["search"], "jwks": "keys.json", "grants": list(grants)}
        content = {"format": 1, "roles": {"reader": ["read", "query"]}, "issuers": [issuer]}
        self.file = folder / "issuers.json"
        self.file.write_text(json.dumps(content))

    def sign(self, subject: str, *groups: str, seconds: float = 600, **more: Any) -> str:
        """A token for this subject."""
        dates = {"exp": int(time.time() + seconds)}
        claims = {"iss": ISSUER, "aud": "search", "sub": subject, "groups": groups, **dates, **more}
        parts = [_text(json.dumps(one).encode()) for one in ({"alg": "EdDSA", "kid": "1"}, claims)]
        message = ".".join(parts)
        return f"{message}.{_text(self._key.sign(message.encode()))}"
