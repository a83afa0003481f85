"""What an encrypted array knows of its key: enough to compute on ciphertexts, and no secret."""

from __future__ import annotations

from typing import Any

import ciphervec._native as _native

from ..errors import InvalidInput

# Most binary digits of the fraction of a float, and of a plain float factor.
_FRACTION = 64
_DIGITS = 53


class Evaluator:
    """What an encrypted array knows of its key: enough to compute. A `PublicKey` is one that
    encrypts as well."""

    __slots__ = ("_digits", "_fraction", "_native")

    def __init__(self, native: _native.AdditivePublicKey) -> None:
        """Not for callers: use a `PublicKey`."""
        self._native = native
        # Half of a message is for the numbers, half for what is computed of them; a third of a
        # number is its integer.
        room = 2 * self._default_bits // 3
        self._fraction, self._digits = min(_FRACTION, room), min(_DIGITS, room)

    @property
    def _default_bits(self) -> int:
        return (self.message_bits - 1) // 2

    @property
    def scheme(self) -> str:
        """paillier, damgard-jurik, okamoto-uchiyama or elgamal."""
        return self._native.scheme

    @property
    def bits(self) -> int:
        """The length of n; 255 for ElGamal, the length of its field."""
        return self._native.bits

    @property
    def key_id(self) -> str:
        """The public name of the key, in hexadecimal. Everything encrypted under it carries it."""
        return self._native.key_id

    @property
    def message_bits(self) -> int:
        """b: integers m are encrypted and decrypted exactly while |m| < 2^(b - 1)."""
        return self._native.message_bits

    def security(self) -> dict[str, Any]:
        """What the key rests on: bits of security and the table they are from, the assumption,
        `post_quantum`, and `insecure` for keys that are for tests and papers only."""
        return self._native.security()

    def to_bytes(self) -> bytes:
        """The key, to be sent."""
        return self._native.to_bytes()

    def _check_bound(self, bound: int, what: str) -> None:
        room = self.message_bits - 1
        if bound.bit_length() > room:
            raise InvalidInput(
                f"{what} may need {bound.bit_length()} bits, a message of this key has {room}: it might overflow. "
                "Declare fewer bits or fraction_bits when encrypting, take smaller factors, or a longer key."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Evaluator) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.key_id)
