"""What an index may be, for the key owner: names of modes, metrics, schemes and fields, checked."""

from __future__ import annotations

import base64
import contextlib
import json
import warnings
from collections.abc import Iterable
from typing import Literal, TypeAlias, TypeVar, cast

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import CorruptData, InvalidInput, PinMismatch, WrongKey
from ..ingest.arrays import count, refuse_unordered
from ..ingest.metrics import METRICS
from ..ingest.records import field_names

T = TypeVar("T", bound=str)

FORMAT = 7
"""Of descriptions: the latest that the core reads."""
Mode: TypeAlias = Literal["sealed", "sealed-query", "sealed-index", "open"]
Precision: TypeAlias = Literal["standard", "small", "wide"]
SchemeName: TypeAlias = Literal["lattice", "paillier", "damgard-jurik", "okamoto-uchiyama", "elgamal"]
MODES: tuple[Mode, ...] = ("sealed", "sealed-query", "sealed-index", "open")
PRECISIONS: tuple[Precision, ...] = ("standard", "small", "wide")
SCHEMES: tuple[SchemeName, ...] = cast("tuple[SchemeName, ...]", _native.SCHEMES)
LATTICE: SchemeName = "lattice"
FORMER_LATTICE = "sealed"
"""What release 0.1 called the scheme `lattice`, and descriptions call it for good."""
MAX_DIMENSION = 16_384


def chosen(what: str, value: str, known: Iterable[T]) -> T:
    """The one of these names that a text is. Raises InvalidInput naming the ones there are."""
    for one in known:
        if one == value:
            return one
    raise InvalidInput(f"{what} must be one of {', '.join(map(str, known))}; got {value!r}.")


def index_spec(
    name: str,
    dimension: int,
    metric: str,
    mode: str,
    precision: str,
    scheme: str = "lattice",
    bits: int | None = None,
    incarnation: bytes | None = None,
) -> IndexSpec:
    """Check the choices and make the native spec. Raises InvalidInput naming the ones there are."""
    if scheme == FORMER_LATTICE:
        warnings.warn(
            'scheme="sealed" is called scheme="lattice"; the old name goes with the next minor version.',
            DeprecationWarning,
            stacklevel=4,
        )
        scheme = "lattice"
    for what, value, known in (
        ("metric", metric, METRICS),
        ("mode", mode, MODES),
        ("precision", precision, PRECISIONS),
        ("scheme", scheme, SCHEMES),
    ):
        if value not in tuple(known):  # which compares, and asks no list for its hash
            raise InvalidInput(f"{what} must be one of {', '.join(known)}; got {value!r:.100}.")
    dimension = count(dimension, "dimension")
    if dimension > MAX_DIMENSION:
        raise InvalidInput(
            f"dimension must be 1 to {MAX_DIMENSION:,}, got {dimension:,}. Reduce it first, e.g. by PCA."
        )
    length = None if bits is None else count(bits, "bits")
    return IndexSpec(name, dimension, metric, mode, precision, scheme, length, incarnation)


def refuse_open(meta: bytes, name: str) -> None:
    """Raise PinMismatch for the description of a collection in mode `open`, which anybody could have written."""
    with contextlib.suppress(ValueError, KeyError, TypeError, CorruptData):  # told when it is read
        if IndexSpec.from_bytes(base64.b64decode(json.loads(meta)["spec"], validate=True)).mode == "open":
            raise open_refused(f"the collection {name!r}")


def open_refused(what: str) -> PinMismatch:
    """What is told whoever has keys and is shown something in mode `open`."""
    return PinMismatch(
        f"{what} shows mode 'open': nothing in it is sealed, and whoever keeps it can put such a one under any name. Keys were "
        "given, so it was to be sealed. If it is meant to be open, pass allow_open=True, or open it without keys."
    )


def filterable_names(filterable: Iterable[str], what: str = "filterable") -> tuple[str, ...]:
    """Names of filterable fields, which keep their order, checked. Raises InvalidInput."""
    refuse_unordered(filterable, what)
    fields = tuple(field_names(filterable, what))
    if len(set(fields)) != len(fields):
        raise InvalidInput(f"filterable names a field twice: {', '.join(fields)}.")
    return fields


def check_key(given: str, expected: str, name: str) -> None:
    """Raise WrongKey unless the key ids agree."""
    if given != expected:
        raise WrongKey(
            f"{name!r} is sealed under key {expected}, but the key given is {given}. "
            "Load the key file it was made with."
        )
