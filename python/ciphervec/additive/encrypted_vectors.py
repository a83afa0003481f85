"""Encrypted embeddings, and their encrypted scores with plain probes, which a server computes.

Only the key owner decrypts. Rows are normalised and rounded on the way in; how finely is the
precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from ..errors import InvalidInput, WrongKey
from ..ingest.arrays import numbers
from ..ingest.arrays import vectors as checked_vectors
from ..ingest.metrics import METRICS
from .evaluator import Evaluator

LAYOUTS = ("elements", "lanes", "horizontal")
PRECISIONS = ("standard", "small", "high")
Doubles = npt.NDArray[np.float64]
_NONE: Doubles = np.zeros(0)


def as_rows(value: Any, metric: str, what: str) -> Doubles:
    """A C-contiguous (n, d) array of float64; a single vector is one row. Raises InvalidInput."""
    array = numbers(value, what)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim == 2 and array.size and metric in METRICS and METRICS[metric].bits:
        array = checked_vectors(array, array.shape[1], metric, what=what)
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise InvalidInput(f"{what} must be an (n, d) array of at least one row, got shape {array.shape}.")
    return rows


class EncryptedVectors:
    """A gallery: rows of one dimension under one key. `gallery @ probe` gives encrypted scores.
    Immutable.

    Made by `encrypt_vectors`. Whoever holds it and the public key computes scores and learns
    neither the rows nor the scores; the probe is plain to that machine, so this is not for
    biometrics on a server that must not see probes.
    """

    __slots__ = ("_inner", "_public")
    __array_ufunc__ = None

    def __init__(self, public: Evaluator, inner: _native.EncryptedVectors) -> None:
        """Not for callers: use `encrypt_vectors`, or `vectors_from_bytes` of a public key."""
        self._public, self._inner = public, inner

    def __len__(self) -> int:
        return self._inner.rows

    @property
    def dimension(self) -> int:
        """Coordinates a row."""
        return self._inner.dimension

    @property
    def metric(self) -> str:
        """cosine, ip, l2 or hamming."""
        return self._inner.metric

    @property
    def precision(self) -> str:
        """small, standard or high."""
        return self._inner.precision

    @property
    def layout(self) -> str:
        """elements, lanes or horizontal."""
        return self._inner.layout

    @property
    def ciphertexts(self) -> int:
        """How many there are."""
        return self._inner.ciphertexts

    @property
    def public(self) -> Evaluator:
        """The key they are encrypted under."""
        return self._public

    @property
    def key_id(self) -> str:
        """The public name of that key."""
        return self._inner.key_id

    @property
    def error_bound(self) -> float:
        """What the error of a cosine exceeds with probability below 2^-64."""
        return self._inner.error_bound

    def scores(self, probes: Any, *, rerandomise: bool = True) -> EncryptedScores:
        """The encrypted scores of every row with a plain probe, or with each of several.

        Results are re-randomised, so that they show nothing of the probe to the key owner beyond
        the scores; `rerandomise=False` is for owners who compute for themselves.
        """
        flat = np.ndim(probes) == 1
        rows = as_rows(probes, self.metric, "probes")
        answer, norms = self._inner.score(self._public._native, rows, bare=not rerandomise)
        return EncryptedScores(self._public, answer, self._inner.norms(), norms, flat=flat)

    def __matmul__(self, probe: Any) -> EncryptedScores:
        """The scores with one plain probe."""
        if np.ndim(probe) != 1:
            raise InvalidInput(
                f"the right side of @ must be one probe of {self.dimension} numbers, got shape {np.shape(probe)}; "
                "for several probes, a row each, use scores()."
            )
        return self.scores(probe)

    @staticmethod
    def append(parts: Sequence[EncryptedVectors]) -> EncryptedVectors:
        """Galleries of one key, dimension, metric, precision and layout as one, in this order."""
        if not parts:
            raise InvalidInput("give at least one gallery.")
        public = parts[0]._public
        return EncryptedVectors(
            public, _native.EncryptedVectors.append(public._native, [part._inner for part in parts])
        )

    def to_bytes(self) -> bytes:
        """The rows for `vectors_from_bytes` of the public key. Norms are not among them: they stay
        here."""
        return self._inner.to_bytes(self._public._native)

    def __reduce__(self) -> tuple[Any, tuple[Evaluator, bytes]]:
        return read_vectors, (self._public, self.to_bytes())

    def __repr__(self) -> str:
        return (
            f"<ciphervec.EncryptedVectors, {len(self)} x {self.dimension}, {self.metric}, {self.precision}, "
            f"{self.layout}, {self._public.scheme} key {self.key_id}>"
        )


class EncryptedScores:
    """Encrypted similarities, a row for each probe and a column for each vector. The key owner
    decrypts them."""

    __slots__ = ("_flat", "_inner", "_norms", "_probe_norms", "_public")

    def __init__(
        self,
        public: Evaluator,
        inner: _native.EncryptedScores,
        norms: Doubles = _NONE,
        probe_norms: Doubles = _NONE,
        *,
        flat: bool,
    ) -> None:
        """Not for callers: use `gallery @ probe`, or `scores_from_bytes` of a public key."""
        self._public, self._inner, self._flat = public, inner, flat
        self._norms, self._probe_norms = norms, probe_norms

    @property
    def shape(self) -> tuple[int, ...]:
        """(vectors,) for one probe, (probes, vectors) for several."""
        full = (self._inner.probes, self._inner.rows)
        return full[1:] if self._flat else full

    @property
    def metric(self) -> str:
        """What the scores are: cosines, inner products, distances."""
        return self._inner.metric

    @property
    def key_id(self) -> str:
        """The public name of the key they are encrypted under."""
        return self._inner.key_id

    @property
    def ciphertexts(self) -> int:
        """How many there are."""
        return self._inner.ciphertexts

    def to_bytes(self) -> bytes:
        """The scores for `scores_from_bytes` of the public key."""
        return self._inner.to_bytes(self._public._native)

    def __reduce__(self) -> tuple[Any, tuple[Evaluator, bytes]]:
        return read_scores, (self._public, self.to_bytes())

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"<ciphervec.EncryptedScores, {shape}, {self.metric}, {self._public.scheme} key {self.key_id}>"

    def _open(self, keys: _native.AdditiveSecretKey, norms: Any, probe_norms: Any) -> Doubles:
        return self._inner.open(keys, *self._lengths(norms, probe_norms)).reshape(self.shape)

    def _matches(
        self, keys: _native.AdditiveSecretKey, threshold: float, norms: Any, probe_norms: Any
    ) -> npt.NDArray[np.bool_]:
        lengths = self._lengths(norms, probe_norms)
        return self._inner.matches(keys, float(threshold), *lengths).reshape(self.shape)

    def _lengths(self, norms: Any, probe_norms: Any) -> tuple[Doubles, Doubles]:
        """The norms that inner products and distances need: those given, or those known here."""
        if not METRICS[self.metric].sized:
            return _NONE, _NONE
        given = (
            ("norms", norms, self._norms, self._inner.rows),
            ("probe_norms", probe_norms, self._probe_norms, self._inner.probes),
        )
        found = []
        for name, value, known, count in given:
            lengths = (
                known if value is None else np.ascontiguousarray(numbers(value, name), np.float64).reshape(-1)
            )
            if len(lengths) != count:
                raise InvalidInput(
                    f"metric {self.metric!r} needs {name}: {count} lengths of the vectors before they were "
                    f"normalised, got {len(lengths)}. They are not encrypted and don't travel; keep them where you "
                    "keep the keys."
                )
            found.append(lengths)
        return found[0], found[1]


def read_vectors(public: Evaluator, data: bytes) -> EncryptedVectors:
    """What `to_bytes` of encrypted vectors wrote. Raises CorruptData, UnsupportedVersion or
    WrongKey."""
    return EncryptedVectors(public, _native.EncryptedVectors.from_bytes(public._native, data))


def read_scores(public: Evaluator, data: bytes) -> EncryptedScores:
    """What `to_bytes` of encrypted scores wrote. Raises CorruptData, UnsupportedVersion or
    WrongKey."""
    inner = _native.EncryptedScores.from_bytes(public._native, data)
    return EncryptedScores(public, inner, flat=inner.probes == 1)


def check_key(what: str, given: str, expected: str) -> None:
    """Raise WrongKey unless the key ids agree."""
    if given != expected:
        raise WrongKey(
            f"{what} {'is' if what.startswith('the array') else 'are'} encrypted under key {given}, "
            f"you hold key {expected}; load the key file it was made with."
        )
