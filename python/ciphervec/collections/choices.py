"""What a new collection is to be, as a caller says it, checked, for the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._native import IndexSpec
from ..errors import InvalidInput
from ..ingest.arrays import FloatArray, Vectors, vectors
from ..ingest.metrics import METRICS
from ..ingest.naming import check_name
from ..ingest.network import Network, check_network
from .embedding.function import SavedFunction
from .hybrid import Sparse, check_sparse, to_native
from .routing import Clusters
from .spec import filterable_names, index_spec


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
        return cls(spec, fields, originals, over, embedding, routing, around, check_sparse(sparse))

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
