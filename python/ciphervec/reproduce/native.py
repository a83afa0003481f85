"""A scheme's name and a length enter; the package's own Paillier leaves, with every precomputation on or off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _native
from ..errors import InvalidInput
from .paillier_precompute import SCHEMES, Scheme


class Precomputed:
    """The native class behind `Scheme`. It takes 1 or 3, and the techniques by name."""

    def __init__(self, native: Any, scheme: str, bits: int) -> None:
        self.native = native(int(scheme.removeprefix("Scheme ")), bits)

    def prepare(self, messages: Sequence[int], noises: int, using: frozenset[str]) -> None:
        self.native.prepare(list(messages), noises, sorted(using))

    def encrypt(self, message: int) -> Any:
        return self.native.encrypt(message)

    def decrypt(self, ciphertext: Any) -> int:
        return int(self.native.decrypt(ciphertext))


def make(scheme: str, bits: int) -> Scheme:
    """A fresh key of Scheme 1 or 3. Raises InvalidInput where this build cannot leave a precomputation out."""
    if scheme not in SCHEMES:
        raise InvalidInput(f"the schemes are {', '.join(SCHEMES)}, got {scheme!r}")
    native = getattr(_native, "PaillierPrecompute", None)
    if native is None:
        raise InvalidInput("this build has no PaillierPrecompute; install a newer wheel with: make wheel")
    return Precomputed(native, scheme, bits)
