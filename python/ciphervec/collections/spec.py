"""What an index and a collection may be, for the key owner: modes, metrics, schemes, fields and clusters, checked as a
caller says them. The core has the last word."""

from __future__ import annotations

import base64
import contextlib
import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import CorruptData, InvalidInput, PinMismatch, WrongKey
from ..ingest.arrays import FloatArray, Vectors, count, finite, refuse_unordered, vectors
from ..ingest.metrics import METRICS
from ..ingest.naming import check_name
from ..ingest.network import Network, check_network
from ..ingest.records import field_names
from .embedding.function import SavedFunction
from .embedding.multi import Muvera
from .ranking import Sparse, check_sparse, to_native

T = TypeVar("T", bound=str)

FORMAT = 8
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


MAX_CLUSTERS = 1 << 20
"""Clusters of one collection: a query names segments by 16 bytes each."""

_OPEN = "sealed-query"


@dataclass(frozen=True)
class Clusters:
    """Routing for `create_collection(..., routing=Clusters())`: a query asks about a few clusters of near rows
    instead of all rows, and shows the server which.

    `count` clusters of equally many rows, `probes` of them scanned for a query, and `decoys` beside these: what is
    left out is chosen when the rows are clustered (`Collection.recluster`), so that `recall` of the ten nearest rows are
    found, measured on the key holder's own rows; as many decoys as probes. Clusters stand in fixed secret groups of one
    and its decoys, so that decoys are rounded up to a multiple of the probes, and a query names whole groups. In mode
    `sealed-query`, where the server can compute the centroids from the rows it holds and so learns where each query
    lies, routing has to be asked for with `server_learns_queries=True`.

    With `oblivious=True` the server scans all clusters and folds them, under encryption, to those near the query: it learns
    nothing of which they are, there are no decoys, and the answer is as short. It takes longer than naming clusters.

    What one query shows otherwise: the names of `probes + decoys` clusters, in a random order, and nothing else of which are
    the real ones. Related queries share whole groups, so that however many there are, the server can't tell within a group;
    that they are related it sees. `where=` and `ids=` choose among the rows of these clusters, and no others are scanned
    for them.
    """

    count: int | None = None
    probes: int | None = None
    decoys: int | None = None
    recall: float = 0.95
    server_learns_queries: bool = False
    oblivious: bool = False

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        for name, least in (("count", 2), ("probes", 1), ("decoys", 0)):
            value = getattr(self, name)
            if value is not None:
                # Zero decoys are a choice; `count` takes what is counted from one.
                object.__setattr__(self, name, count(value + 1, f"{name} + 1") - 1)
                if not least <= getattr(self, name) <= MAX_CLUSTERS:
                    raise InvalidInput(f"{name} must be {least} to {MAX_CLUSTERS:,}, got {value!r}.")
        if not 0 < finite(self.recall, "recall") <= 1:
            raise InvalidInput(f"recall must be above 0 and at most 1, got {self.recall!r}.")
        if self.count is not None and (self.probes or 1) + (self.decoys or 0) > self.count:
            raise InvalidInput(
                f"{self.probes or 1} probes and {self.decoys or 0} decoys are more than {self.count} clusters."
            )

    def check(self, spec: IndexSpec, filterable: tuple[str, ...]) -> None:
        """Whether a collection of this description may be routed. Raises InvalidInput saying why not."""
        if spec.mode == "sealed-index":
            raise InvalidInput(
                "routing is refused in mode 'sealed-index': the server sees the queries, and from where they lie and which "
                "clusters they name it learns where the centroids are, and so about where each sealed row is. Use mode "
                "'sealed'."
            )
        if spec.mode == "open":
            raise InvalidInput("mode 'open' hides nothing and is not routed: it is there to compare with.")
        if spec.mode == _OPEN and not self.server_learns_queries and not self.oblivious:
            raise InvalidInput(
                "in mode 'sealed-query' the server has the rows, computes the centroids itself, and learns from the clusters "
                "that a query names where it lies: to the precision of a cluster. If that is acceptable, say so with "
                "Clusters(server_learns_queries=True); mode 'sealed' does not show it."
            )
        if filterable:
            raise InvalidInput(
                "a routed collection has no filterable fields: their tags would show the server which rows of a cluster are "
                "alike, and which are padding. where= works on every field without, and is tested here."
            )

    def to_json(self) -> dict[str, Any]:
        """What the description keeps, sealed."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> Clusters | None:
        """The same, read."""
        return None if content is None else cls(**content)


@dataclass(frozen=True)
class Choices:
    """All of them. Of one without a dimension yet, `spec` has any."""

    spec: IndexSpec
    filterable: tuple[str, ...] = ()
    originals: bool | None = None
    network: Network | None = None
    embedding: SavedFunction | None = None
    routing: Clusters | None = None
    center: FloatArray | None = None
    sparse: Sparse | None = None
    multi: Muvera | None = None

    @classmethod
    def new(
        cls,
        name: str,
        dimension: int,
        metric: str,
        mode: str,
        precision: str,
        filterable: Sequence[str],
        scheme: str = "lattice",
        bits: int | None = None,
        originals: bool | None = None,
        network: Network | None = None,
        embedding: SavedFunction | None = None,
        routing: Clusters | None = None,
        center: Vectors | None = None,
        sparse: Sparse | None = None,
        multi: Muvera | None = None,
    ) -> Choices:
        """Check what `create_collection` was given. Raises InvalidInput."""
        spec = index_spec(check_name(name), dimension, metric, mode, precision, scheme, bits)
        fields = filterable_names(filterable)
        if routing is not None:
            if not isinstance(routing, Clusters):
                raise InvalidInput(f"routing must be ciphervec.Clusters, got {type(routing).__name__}.")
            routing.check(spec, fields)
        over = None if network is None else check_network(network)
        around = None if center is None else _center(center, spec)
        return cls(spec, fields, originals, over, embedding, routing, around, check_sparse(sparse), multi)

    def with_embedding(self, embedding: SavedFunction | None) -> Choices:
        """The same, embedded by this function, or by none that is known."""
        return replace(self, embedding=embedding)

    def with_sparse(self, sparse: Sparse) -> Choices:
        """The same, with rows ranked by this beside their vectors. Raises InvalidInput."""
        return replace(self, sparse=check_sparse(sparse))

    @property
    def kept(self) -> bool:
        """Whether vectors are kept as they are put in; what is unsealed under hamming is what was put in."""
        return self.originals is not False and not METRICS[self.spec.metric].bits

    def native(self, dimension: int | None = None) -> dict[str, Any]:
        """As the core takes them, with this dimension."""
        spec = self.spec
        return {
            "name": spec.collection,
            "dimension": spec.dimension if dimension is None else dimension,
            "metric": spec.metric,
            "mode": spec.mode,
            "precision": spec.precision,
            "filterable": list(self.filterable),
            "originals": self.originals,
            "routing": self.routing,
            "scheme": spec.scheme,
            "bits": spec.bits,
            "network": None if self.network is None else self.network.native,
            "center": [] if self.center is None else self.center.tolist(),
            "sparse": to_native(self.sparse),
            "multi": None if self.multi is None else self.multi.native(),
            "embedding_function": None if self.embedding is None else self.embedding.to_text(),
        }


def _center(center: Vectors, spec: IndexSpec) -> FloatArray:
    if not METRICS[spec.metric].centred or spec.mode == "open":
        raise InvalidInput(
            f"center is for metric='l2' in sealed modes, whose distances it leaves as they are; got metric={spec.metric!r}, "
            f"mode={spec.mode!r}. Leave it out."
        )
    rows = vectors(center, spec.dimension, spec.metric, what="center")
    if len(rows) != 1:
        raise InvalidInput(f"center must be one vector, shape ({spec.dimension},), got {len(rows)} of them.")
    return np.ascontiguousarray(rows[0])
