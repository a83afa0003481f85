"""Public keys and key pairs of the additively homomorphic schemes. What all the modules `paillier`, `damgard_jurik`,
`okamoto_uchiyama` and `elgamal` share."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from ..errors import InvalidInput
from ..ingest.arrays import count
from ..ingest.files import StrPath, at_home
from ..ingest.passphrase import weakness
from ..ingest.remarks import remark
from .encrypted_array import EncryptedArray, Numbers, read_array
from .encrypted_vectors import (
    EncryptedScores,
    EncryptedVectors,
    as_rows,
    check_key,
    read_scores,
    read_vectors,
)
from .evaluator import Evaluator
from .fixed_point import Integers, as_numbers, from_words, largest, round_to, to_words, width_of


class PublicKey(Evaluator):
    """What everybody may have: encrypts, computes on ciphertexts, re-randomises. Can't decrypt."""

    __slots__ = ()

    def __init__(self, native: _native.AdditivePublicKey) -> None:
        """Not for callers: use `keys.public`, or `PublicKey.from_bytes`."""
        if not isinstance(native, _native.AdditivePublicKey):
            raise InvalidInput("use keys.public, or PublicKey.from_bytes(data) for a key that was sent.")
        super().__init__(native)

    @classmethod
    def from_bytes(cls, data: bytes, *, insecure: bool = False) -> PublicKey:
        """A key that was sent, checked as far as that goes without its secret.

        Short keys are refused unless `insecure=True`. Raises CorruptData, UnsupportedVersion or
        InvalidInput.
        """
        return cls(_native.AdditivePublicKey.from_bytes(_as_bytes(data), insecure=insecure))

    def encrypt(self, x: Any, *, bits: int | None = None, fraction_bits: int | None = None) -> EncryptedArray:
        """Encrypts a number, a vector or a matrix, with a ciphertext for each number.

        Integers are exact. Floats are rounded to multiples of 2^-fraction_bits (64 bits, or as many
        as the scheme has room for). `bits` bounds the integers that result, |x · 2^fraction_bits| <
        2^bits: it is public, half a message unless given, and what is not needed here is room for
        computing. Raises InvalidInput.
        """
        table, numbers = _sealed(self, self._native.encrypt, x, bits, fraction_bits)
        return EncryptedArray(self, table, numbers, fresh=True)

    def array_from_bytes(self, data: bytes) -> EncryptedArray:
        """What `to_bytes` of an encrypted array wrote. Raises CorruptData, UnsupportedVersion or
        WrongKey."""
        return read_array(self, _as_bytes(data))

    def encrypt_vectors(
        self, rows: Any, *, metric: str = "cosine", precision: str = "standard", layout: str = "elements"
    ) -> EncryptedVectors:
        """Encrypts embeddings for similarities with plain probes: an (n, d) array, or one vector.

        `layout`: "elements" has a ciphertext for each coordinate; "lanes" has coordinate i of many
        rows in one, the smallest and fastest for galleries; "horizontal" has many coordinates of
        one row in one, for small single embeddings. `precision`: a cosine is off by less than
        10^-12 (high, always), 10^-4 (standard, to 4.4 standard deviations) or 10^-3 (small, to 7).
        `error_bound` has what is exceeded with probability below 2^-64. Raises InvalidInput.
        """
        checked = as_rows(rows, metric, "rows")
        inner = _native.EncryptedVectors.encrypt(self._native, checked, metric, precision, layout)
        return EncryptedVectors(self, inner)

    def vectors_from_bytes(self, data: bytes) -> EncryptedVectors:
        """What `to_bytes` of encrypted vectors wrote. Raises CorruptData, UnsupportedVersion or
        WrongKey."""
        return read_vectors(self, _as_bytes(data))

    def scores_from_bytes(self, data: bytes) -> EncryptedScores:
        """What `to_bytes` of encrypted scores wrote. Raises CorruptData, UnsupportedVersion or
        WrongKey."""
        return read_scores(self, _as_bytes(data))

    def lanes(self, precision: str = "standard", *, dimension: int = 512, metric: str = "cosine") -> int:
        """How many embeddings share a ciphertext in layout "lanes"."""
        return _native.additive_packing(self._native, dimension, metric, precision, "lanes")[0]

    def __reduce__(self) -> tuple[Any, tuple[bytes, bool]]:
        return _read_public, (self.to_bytes(), bool(self.security()["insecure"]))

    def __repr__(self) -> str:
        return f"<ciphervec.PublicKey, {self.scheme}, {self.bits} bits, {self.key_id}>"


def _read_public(data: bytes, insecure: bool) -> PublicKey:
    return PublicKey.from_bytes(data, insecure=insecure)


class KeyPair:
    """The key owner's pair: decrypts, and encrypts faster than the public key can.

    Save it with a passphrase; losing it loses the data. It is never printed, can't be pickled, and
    `public` is what others get.
    """

    __slots__ = ("_native", "_public")

    def __init__(self, native: _native.AdditiveSecretKey) -> None:
        """Not for callers: use `generate` or `load` of the scheme's module."""
        if not isinstance(native, _native.AdditiveSecretKey):
            raise InvalidInput("use generate() of the scheme's module, or load(path, passphrase=...).")
        self._native = native
        self._public = PublicKey(native.public)

    @property
    def public(self) -> PublicKey:
        """What everybody may have."""
        return self._public

    @property
    def scheme(self) -> str:
        """paillier, damgard-jurik, okamoto-uchiyama or elgamal."""
        return self._public.scheme

    @property
    def bits(self) -> int:
        """The length of n; 255 for ElGamal, the length of its field."""
        return self._public.bits

    @property
    def key_id(self) -> str:
        """The public name of the key, in hexadecimal."""
        return self._public.key_id

    def security(self) -> dict[str, Any]:
        """As of the public key."""
        return self._public.security()

    def encrypt(self, x: Any, *, bits: int | None = None, fraction_bits: int | None = None) -> EncryptedArray:
        """As the public key's, faster."""
        table, numbers = _sealed(self._public, self._native.encrypt, x, bits, fraction_bits)
        return EncryptedArray(self._public, table, numbers, fresh=True)

    def encrypt_vectors(
        self, rows: Any, *, metric: str = "cosine", precision: str = "standard", layout: str = "elements"
    ) -> EncryptedVectors:
        """As the public key's, faster."""
        checked = as_rows(rows, metric, "rows")
        inner = _native.EncryptedVectors.encrypt_as_owner(self._native, checked, metric, precision, layout)
        return EncryptedVectors(self._public, inner)

    def decrypt(
        self,
        sealed: EncryptedArray | EncryptedScores,
        *,
        norms: npt.ArrayLike | None = None,
        probe_norms: npt.ArrayLike | None = None,
    ) -> Any:
        """The numbers: an int or a float for a scalar, else an array of the encrypted one's shape.

        Scores are the metric's values: cosines, inner products, distances, numbers of differing
        bits. Inner products and distances need the lengths of the rows and of the probes before
        they were normalised, which are known where both were encrypted and compared, and are given
        as `norms` and `probe_norms` elsewhere. Raw scores are for the key owner: who may ask for
        some hundred of them recovers a vector.

        Raises WrongKey for another key, and BoundExceeded, without a value, for a number that its
        ciphertext cannot honestly hold.
        """
        if isinstance(sealed, EncryptedScores):
            check_key("the scores", sealed.key_id, self.key_id)
            return sealed._open(self._native, norms, probe_norms)
        if not isinstance(sealed, EncryptedArray):
            raise InvalidInput(
                f"decrypt takes an encrypted array or encrypted scores, got {type(sealed).__name__}."
            )
        check_key("the array", sealed.key_id, self.key_id)
        return sealed._decoded(from_words(*self._native.decrypt(sealed._table, sealed.bits + 1)))

    def matches(
        self,
        scores: EncryptedScores,
        threshold: float,
        *,
        norms: npt.ArrayLike | None = None,
        probe_norms: npt.ArrayLike | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Match or no match, all that third parties should get: whether each score is at least
        `threshold` (cosine, ip) or at most (l2, hamming)."""
        check_key("the scores", scores.key_id, self.key_id)
        return scores._matches(self._native, threshold, norms, probe_norms)

    def save(self, path: StrPath, passphrase: str | None = None, *, allow_plaintext: bool = False) -> None:
        """Write the pair to a new file, readable by its owner only, encrypted under `passphrase`
        (scrypt, then AEAD).

        Without a passphrase the key lies in the file in clear; that must be asked for with
        `allow_plaintext=True`. An existing file is never overwritten. Raises InvalidInput or
        StorageError.
        """
        if passphrase and (weak := weakness(passphrase)):
            remark(weak)
        self._native.save(at_home(path), passphrase, allow_plaintext=allow_plaintext)

    def to_bytes(self, passphrase: str | None = None, *, allow_plaintext: bool = False) -> bytes:
        """What `save` writes."""
        return self._native.to_bytes(passphrase, allow_plaintext=allow_plaintext)

    def __reduce__(self) -> NoReturn:
        raise TypeError("secret keys can't be pickled; save them to a file and load them there")

    def __repr__(self) -> str:
        return f"<ciphervec.KeyPair, {self.scheme}, {self.bits} bits, {self.key_id}, secret not shown>"


def load(
    path: StrPath, passphrase: str | None = None, *, insecure: bool = False, schemes: tuple[str, ...]
) -> KeyPair:
    """A pair from a file that `save` wrote; each scheme's module says what it takes."""
    return _of(_native.AdditiveSecretKey.load(at_home(path), passphrase, insecure=insecure), schemes)


def from_bytes(
    data: bytes, passphrase: str | None = None, *, insecure: bool = False, schemes: tuple[str, ...]
) -> KeyPair:
    """A pair from what `to_bytes` gave."""
    native = _native.AdditiveSecretKey.from_bytes(_as_bytes(data), passphrase, insecure=insecure)
    return _of(native, schemes)


def _of(native: _native.AdditiveSecretKey, schemes: tuple[str, ...]) -> KeyPair:
    found = native.public.scheme
    if found not in schemes:
        raise InvalidInput(
            f"this is a key for {found}, expected {' or '.join(schemes)}; load it with "
            f"ciphervec.{found.replace('-', '_')}."
        )
    return KeyPair(native)


def _sealed(
    public: PublicKey, seal: Any, x: Any, bits: int | None, fraction_bits: int | None
) -> tuple[_native.Ciphertexts, Numbers]:
    """Numbers to integers, checked against their declared bound, and those to ciphertexts."""
    numbers = as_numbers(x, "what is encrypted")
    floats = numbers.dtype == np.float64
    fraction = (
        (public._fraction if floats else 0)
        if fraction_bits is None
        else count(fraction_bits, "fraction_bits", 0)
    )
    bits = public._default_bits if bits is None else count(bits, "bits")
    if not 1 <= bits < public.message_bits or not 0 <= fraction <= bits:
        raise InvalidInput(
            f"bits must be 1 to {public.message_bits - 1} and fraction_bits 0 to bits under this key, got {bits} and "
            f"{fraction}."
        )
    integers = round_to(numbers, fraction)
    if largest(integers).bit_length() > bits:
        limit = f"2^{bits - fraction}"
        raise InvalidInput(
            f"numbers must be below {limit} in absolute value (bits={bits}, fraction_bits={fraction}); one is not. "
            f"Declare more bits, up to {public.message_bits - 1} under this key."
        )
    shape = numbers.shape
    rows, columns = (1, numbers.size) if len(shape) < 2 else (shape[1], shape[0])
    width = width_of(bits)
    table = seal(rows, columns, width, to_words(_in_order(integers), width))
    error = 2.0 ** -(fraction + 1) if floats else 0.0
    return table, Numbers(shape, fraction, (1 << bits) - 1, error, bool(floats or fraction))


def _in_order(integers: Integers) -> Integers:
    return integers.T if integers.ndim == 2 else integers


def _as_bytes(data: Any) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidInput(f"bytes expected, got {type(data).__name__}.")
    return bytes(data)
