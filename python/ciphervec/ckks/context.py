"""Contexts of CKKS: the key owner's, which encrypts and decrypts, and a server's, which computes on encrypted
vectors."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import ciphervec._native as _native

from ..errors import CorruptData, InvalidInput, UnsupportedVersion, WrongKey
from ..ingest.arrays import count, finite, whole
from ..ingest.files import StrPath, at_home
from ..ingest.uses import Use, Uses, user_uses
from .array import CkksArray, as_interval, as_rows
from .base import BaseContext
from .bootstrapping import Bootstrapper, BootstrappingKeys, Progress, shown

MAGIC = b"CVCK"
VERSION = 1
_HEAD = struct.Struct("<4sII")


class PublicContext(BaseContext):
    """What a server gets: parameters and evaluation keys. Computes on arrays, can't decrypt them.

    Encrypts too where the owner sent a public key: `context.public(encryption=True)`.
    """

    __slots__ = ("_encryptor",)

    def __init__(self, server: _native.CkksServer, encryptor: _native.CkksPublicKey | None = None) -> None:
        """Not for callers: use `context.public()`, or `PublicContext.from_bytes`."""
        if not isinstance(server, _native.CkksServer):
            raise InvalidInput(
                "use context.public(), or PublicContext.from_bytes(data) for one that was sent."
            )
        self._server, self._encryptor = server, encryptor

    def encrypt(
        self,
        x: Any,
        *,
        layout: str | None = None,
        role: str = "both",
        spread: str = "pairs",
        normalise: bool | None = None,
    ) -> CkksArray:
        """As the owner's `encrypt`, with more noise. Raises InvalidInput without a public key."""
        if self._encryptor is None:
            raise InvalidInput(
                "this context computes but does not encrypt; ask the owner for context.public(encryption=True)."
            )
        rows, batch = as_rows(x, "what is encrypted")
        names, scaled, magnitude = self._options(layout, role, spread, normalise)
        inner = self._encryptor.encrypt(
            rows, batch, *names, normalise=scaled, magnitude=magnitude, level=self._server.fresh_level
        )
        return CkksArray(self, inner)

    def array_from_bytes(self, data: bytes) -> CkksArray:
        """What `to_bytes` of an array wrote. Raises CorruptData, UnsupportedVersion, WrongKey or
        InvalidInput."""
        return CkksArray(self, self._server.array_from_bytes(_as_bytes(data)))

    def to_bytes(self) -> bytes:
        """Parameters and keys, to be sent. None of it is secret."""
        server = self._server.to_bytes()
        key = b"" if self._encryptor is None else self._encryptor.to_bytes()
        return _HEAD.pack(MAGIC, VERSION, len(server)) + server + key

    @classmethod
    def from_bytes(cls, data: bytes) -> PublicContext:
        """What `to_bytes` wrote. Raises CorruptData, UnsupportedVersion, WrongKey or
        InvalidInput."""
        data = _as_bytes(data)
        if len(data) < _HEAD.size:
            raise CorruptData(f"a context has at least {_HEAD.size} bytes, got {len(data)}. It is truncated.")
        magic, version, length = _HEAD.unpack_from(data)
        if magic != MAGIC:
            raise CorruptData(f"a context starts with {MAGIC!r}, got {magic!r}; these are other bytes.")
        if version > VERSION:
            raise UnsupportedVersion(
                f"a context of format {version}; this ciphervec reads up to {VERSION}. Upgrade ciphervec."
            )
        end = _HEAD.size + length
        if version != VERSION or end > len(data):
            raise CorruptData(
                f"a context of {end} bytes and format {VERSION} expected, got {len(data)} bytes."
            )
        server = _native.CkksServer.from_bytes(data[_HEAD.size : end])
        key = _native.CkksPublicKey.from_bytes(server, data[end:]) if len(data) > end else None
        return cls(server, key)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return PublicContext.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        what = self.operation or ("bootstrapping" if self._server.bootstraps else f"depth {self.depth}")
        return f"<ciphervec.ckks.PublicContext, {what}, degree {self.degree}, key {self.key_id}>"


class Context(BaseContext):
    """The key owner's context: a secret key and parameters. Encrypts, computes and decrypts.

    Save it with a passphrase; losing it loses the data. It is never printed, can't be pickled, and
    `public()` is what others get.
    """

    __slots__ = ("_bootstrapper", "_budgets", "_owner", "_publishing")

    def __init__(self, owner: _native.CkksOwner, *budgets: Path) -> None:
        """Not for callers: use `for_similarity`, `for_depth`, `from_sizes` or `load`."""
        if not isinstance(owner, _native.CkksOwner):
            raise InvalidInput("use Context.for_similarity, Context.for_depth or Context.load.")
        self._owner = owner
        # The one that was asked for; kept for as long as the context is, so that it is made once.
        self._bootstrapper: Bootstrapper | None = None
        self._budgets = list(budgets)
        self._publishing = threading.Lock()
        self._server = owner.server

    @classmethod
    def for_similarity(
        cls,
        operation: str = "cosine",
        *,
        dimension: int,
        layout: str = "slots",
        precision_bits: int = 20,
        magnitude: float = 1.0,
        plain: bool = False,
        quantum: bool = False,
    ) -> Context:
        """Parameters and keys for one similarity and nothing else: the smallest that serve.

        `operation`: "dot", "cosine", "squared_distance" or "distance". `magnitude` bounds the
        coordinates (cosines need none). A result is off by less than 2^-precision_bits of the
        largest possible one. `plain=True` when one of the two vectors is plain on the server.
        `quantum=True` takes the table's row for quantum attacks. Raises InvalidInput.
        """
        owner = _native.CkksOwner.for_similarity(
            operation,
            layout,
            _whole(dimension, "dimension"),
            magnitude=finite(magnitude, "magnitude"),
            precision_bits=_whole(precision_bits, "precision_bits"),
            plain=plain,
            quantum=quantum,
        )
        return cls(owner)

    @classmethod
    def for_depth(
        cls,
        depth: int,
        *,
        precision_bits: int = 20,
        ring: str = "real",
        rotations: Iterable[int] = (),
        sums: int = 0,
        quantum: bool = False,
        magnitude: float = 1.0,
    ) -> Context:
        """The smallest parameters for `depth` products in a row, with results of size 1 right to
        `precision_bits`, and with room for results up to `magnitude`: levels for it are added below, where one prime
        does not hold such numbers. What would be beyond is refused.

        There is a key for products. Keys for rotations are made as asked for: `rotations` for
        `rotate`, and `sums=d` for dot products and sums of d-dimensional vectors in layout "slots".
        `ring`: "real" has N slots, and layouts "slots" and "single"; "standard" has N/2, and every
        layout. Raises InvalidInput.
        """
        owner = _native.CkksOwner.for_depth(
            _whole(depth, "depth"),
            precision_bits=_whole(precision_bits, "precision_bits"),
            ring_name=ring,
            quantum=quantum,
            rotations=_steps(rotations),
            sums=_whole(sums, "sums"),
            magnitude=float(magnitude),
        )
        return cls(owner)

    @classmethod
    def from_sizes(
        cls,
        *,
        log_degree: int,
        base_bits: int,
        scale_bits: int,
        levels: int,
        special_primes: int = 1,
        special_bits: int = 50,
        digits: int | None = None,
        ring: str = "real",
        rotations: Iterable[int] = (),
        sums: int = 0,
        quantum: bool = False,
    ) -> Context:
        """Parameters of one's own: log2 of the degree, bits of the primes, levels, digits of key
        switching.

        Checked against the security table as all are. Raises InvalidInput.
        """
        sizes = (
            _whole(log_degree, "log_degree"),
            _whole(base_bits, "base_bits"),
            _whole(scale_bits, "scale_bits"),
            _whole(special_bits, "special_bits"),
            _whole(levels, "levels"),
            _whole(special_primes, "special_primes"),
            _whole(levels + 1 if digits is None else digits, "digits"),
        )
        owner = _native.CkksOwner.from_sizes(
            sizes,
            ring_name=ring,
            quantum=quantum,
            rotations=_steps(rotations),
            sums=_whole(sums, "sums"),
        )
        return cls(owner)

    @classmethod
    def for_bootstrapping(
        cls,
        log_n: int = 16,
        *,
        slots: int | None = None,
        precise: bool = False,
        rotations: Iterable[int] = (),
        sums: int = 0,
    ) -> Context:
        """Parameters whose arrays can be refreshed, so that depth has no end: `log_n` 16 or 15,
        `slots` up to 512 for little data in less time, 32,768 or 65,536 for twice the room,
        `precise=True` for more bits, see `Bootstrapper`.

        Numbers lie within ±1; larger ones are refused when they are encrypted. Keys for products and
        rotations are made as by `for_depth`; those for refreshing by `bootstrapping_keys`, as they
        are large. Raises InvalidInput.
        """
        bootstrapper = Bootstrapper.of(_whole(log_n, "log_n"), slots=slots, precise=precise)
        steps = _steps(rotations)
        context = cls(bootstrapper._native.owner(steps, _whole(sums, "sums")))
        context._bootstrapper = bootstrapper
        return context

    def bootstrapper(self) -> Bootstrapper:
        """What refreshes arrays of this context, and its plan; after `for_bootstrapping`, or of a saved context
        the one for the most slots under its parameters. Raises InvalidInput."""
        return self._bootstrapper or super().bootstrapper()

    def bootstrapping_keys(
        self, *, slots: int | None = None, progress: Progress | bool | None = None
    ) -> BootstrappingKeys:
        """What a server refreshes the arrays of this context with: seconds of work, and as many bytes
        as the plan says.

        `slots`: for another number of few slots than `for_bootstrapping` was asked for, which a saved context
        does not keep: it makes keys for 512. `progress(made, all)` is called after each key; with True a
        bar shows on standard error. Raises InvalidInput for a context of other parameters.
        """
        bootstrapper = self.bootstrapper()
        if slots is not None:
            name = bootstrapper.name
            bootstrapper = Bootstrapper.of(name.log_n, slots=slots, precise=name.precise)
        with shown(progress) as report:
            keys = bootstrapper._native.generate(self._owner, report)
        return BootstrappingKeys(bootstrapper, keys)

    def public(self, *, encryption: bool = False) -> PublicContext:
        """What a server gets: parameters and evaluation keys; with `encryption=True` a public key
        too."""
        return PublicContext(self._server, self._owner.public_key() if encryption else None)

    def encrypt(
        self,
        x: Any,
        *,
        layout: str | None = None,
        role: str = "both",
        spread: str = "pairs",
        normalise: bool | None = None,
    ) -> CkksArray:
        """Encrypts a vector or an (n, d) array of them.

        `layout`: "slots" computes everything and needs keys for rotations; "coefficients" takes dot
        products and distances without any key; "single" has a ciphertext for each coordinate, whose
        slots are the vectors. In layout "coefficients" `role` "left" or "right" says on which side
        of a product the vectors stand, at half the size of "both"; `spread="gallery"` packs as many
        as fit, to be compared with single vectors. `normalise` scales vectors to length 1 first;
        contexts for cosines do unless told otherwise. Raises InvalidInput.
        """
        rows, batch = as_rows(x, "what is encrypted")
        names, scaled, magnitude = self._options(layout, role, spread, normalise)
        inner = self._owner.encrypt(
            rows, batch, *names, normalise=scaled, magnitude=magnitude, level=self._server.fresh_level
        )
        return CkksArray(self, inner)

    def array_from_bytes(self, data: bytes) -> CkksArray:
        """What `to_bytes` of an array wrote. Raises CorruptData, UnsupportedVersion, WrongKey or
        InvalidInput."""
        return CkksArray(self, self._server.array_from_bytes(_as_bytes(data)))

    def decrypt(self, array: CkksArray) -> Any:
        """The numbers: a float for a scalar, else an array of the encrypted one's shape.

        For the key owner: who sees many of these exact results learns the key from their errors.
        Raises WrongKey, or BoundExceeded for numbers beyond the array's magnitude, or computed from
        some beyond the interval that was stated for them: they mean nothing.
        """
        if not isinstance(array, CkksArray):
            raise InvalidInput(f"decrypt takes an encrypted array, got {type(array).__name__}.")
        if array.key_id != self.key_id:
            raise WrongKey(
                f"the array is encrypted under key {array.key_id}, you hold key {self.key_id}; load the context it was "
                "made with."
            )
        return _shaped(self._owner.decrypt(array._inner), array.shape)

    def publish(
        self,
        array: CkksArray,
        *,
        expected: CkksArray | None = None,
        uses: int = 1024,
        statistical_bits: int = 30,
    ) -> Any:
        """As `decrypt`, for others to see: flooded with noise that hides the exact error, and
        rounded.

        The noise is for the error of the computation. Of an array that was computed in this process
        from what it encrypted, the computation is known. What an array that was read from bytes says
        of itself is not believed: run the same operations here on arrays of the same shape,
        magnitude and key that you encrypt yourself, zeros will do, and give the result as
        `expected`, for as many results as you like. That is for results of a server which you trust
        to have computed just that. Whoever makes an array up reads the key in what you publish of
        it: never publish an array that a stranger sent, nor what was computed from one.

        Numbers beyond the array's magnitude, or computed from some beyond an interval that was
        stated (`lengths`, `within`) or near its ends, raise BoundExceeded after their uses are
        counted: that they were refused is a result, too.

        A key publishes `uses` ciphertexts in its life, with two more of each vector's lengths for a
        cosine with `lengths` and one more for a distance `within`; together they give away less than
        2^-statistical_bits. In layouts "slots" and "single". They are counted on the disk before
        the result is computed: by the key's id in the user's state folder (CIPHERVEC_STATE), so
        that neither another load nor a copy of the key's file begins anew here, and in
        `<file>.budget` beside the file it was loaded from or saved to, which is to go wherever that
        file goes. A process that ends in between wastes uses and repeats none. Copies of a key on
        machines that share neither file count each for itself: publish on one of them.

        Raises InvalidInput, where the noise would drown the numbers too, BoundExceeded, WrongKey,
        StorageError when it can't be counted, or PoolExhausted when the key has no use left.
        """
        like = array if expected is None else expected
        for one in (array, like):
            if not isinstance(one, CkksArray):
                raise InvalidInput(f"publish takes encrypted arrays, got {type(one).__name__}.")
        uses, bits = _whole(uses, "uses"), _whole(statistical_bits, "statistical_bits")
        with self._publishing:
            needed = self._owner.uses_of(array._inner, like._inner, uses, bits)
            self._owner.count_published(uses, bits, 0)
            use = Use(
                needed,
                uses,
                f"key {self.key_id} may publish {{allowed}} results in its life and has published {{used}}; {needed:,} more "
                "are asked for. Encrypt under a new key.",
                policy=f"{uses} uses, {bits} bits",
                floor=self._owner.published[1],
            )
            name = self._budget_name
            counted = Uses([user_uses(), *self._budgets]).reserve({name: use})[name]
            self._owner.count_published(uses, bits, counted - needed)
            return _shaped(self._owner.publish(array._inner, like._inner, uses, bits), array.shape)

    @property
    def _budget_name(self) -> str:
        return f"ckks key {self.key_id}"

    def save(self, path: StrPath, passphrase: str | None = None, *, allow_plaintext: bool = False) -> None:
        """Write the context, secret key included, to a new file, readable by its owner only,
        encrypted under `passphrase` (scrypt, then AEAD).

        Without a passphrase the key lies in the file in clear; that must be asked for with
        `allow_plaintext=True`. An existing file is never overwritten. What the key publishes from
        now on is counted in `<path>.budget`, too, see `publish`. Raises InvalidInput or
        StorageError.
        """
        self._owner.save(at_home(path), passphrase, allow_plaintext=allow_plaintext)
        self._budgets.append(_budget_beside(path))

    @classmethod
    def load(cls, path: StrPath, passphrase: str | None = None) -> Context:
        """Read what `save` wrote. Evaluation keys are made anew. What the key publishes is counted
        in `<path>.budget`, too, see `publish`.

        Raises WrongKey when the passphrase does not open it, CorruptData when the file was altered
        or is no such file, StorageError when it cannot be read.
        """
        return cls(_native.CkksOwner.load(at_home(path), passphrase), _budget_beside(path))

    def to_bytes(self, passphrase: str | None = None, *, allow_plaintext: bool = False) -> bytes:
        """What `save` writes."""
        return self._owner.to_bytes(passphrase, allow_plaintext=allow_plaintext)

    @classmethod
    def from_bytes(cls, data: bytes, passphrase: str | None = None) -> Context:
        """A context from what `to_bytes` gave; raises as `load` does."""
        return cls(_native.CkksOwner.from_bytes(_as_bytes(data), passphrase))

    def __reduce__(self) -> NoReturn:
        raise TypeError("secret keys can't be pickled; save them to a file and load them there")

    def __repr__(self) -> str:
        what = self.operation or ("bootstrapping" if self._server.bootstraps else f"depth {self.depth}")
        return f"<ciphervec.ckks.Context, {what}, degree {self.degree}, key {self.key_id}, secret not shown>"


def depth_for(
    operation: str, *, lengths: tuple[float, float], precision_bits: int = 16, batch: bool = False
) -> int:
    """How many levels `cosine(..., lengths=...)` or `distance(..., within=...)` takes: the depth of
    a context for it.

    `batch=True` where several vectors share a ciphertext in layout "slots". Raises InvalidInput.
    """
    return _native.ckks_depth(operation, as_interval(lengths, precision_bits), batch)


def load(path: StrPath, passphrase: str | None = None) -> Context:
    """`Context.load`."""
    return Context.load(path, passphrase)


def _budget_beside(path: StrPath) -> Path:
    """The ledger that goes with a key file."""
    file = Path(at_home(path)).absolute()
    return file.with_name(f"{file.name}.budget")


def _shaped(numbers: Any, shape: tuple[int, ...]) -> Any:
    return float(numbers[0, 0]) if not shape else np.ascontiguousarray(numbers.reshape(shape))


def _whole(value: Any, what: str) -> int:
    return count(value, what, 0)


def _steps(rotations: Iterable[int]) -> list[int]:
    if not isinstance(rotations, Iterable):
        raise InvalidInput(f"rotations must be a list of whole numbers, got {rotations!r:.100}.")
    return [whole(step, "rotations") for step in rotations]


def _as_bytes(data: Any) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InvalidInput(f"bytes expected, got {type(data).__name__}.")
    return bytes(data)
