"""Probe: a public description and vectors enter; plain query bytes leave. Runs on an edge device,
without a key.

The other two parties of a two-tower deployment are the cloud's `ServerIndex`, which answers such
bytes with encrypted scores, and the key owner's decrypt service, which opens the answer and says
match or no match.
"""

from __future__ import annotations

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec
from ..errors import InvalidInput
from ..ingest import arrays
from ..ingest.arrays import Vectors


class Probe:
    """Asks a collection of mode `sealed-index` whether it holds something like a vector, and can't
    read the answer."""

    def __init__(self, spec: IndexSpec, public_key: EvaluationKeys | bytes | None = None) -> None:
        """`spec` is public: `collection.spec`, or `IndexSpec.from_bytes`. Under an additively
        homomorphic scheme `public_key` is the collection's, as its server has it:
        `collection.evaluation()`. Raises InvalidInput in modes whose queries are encrypted,
        which takes the owner's key."""
        if not isinstance(spec, IndexSpec):
            raise InvalidInput(f"spec must be an IndexSpec, got {type(spec).__name__}.")
        public = public_key.to_bytes() if isinstance(public_key, EvaluationKeys) else public_key
        self._spec = spec
        self._native = _native.Probe(spec, public or None)

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme."""
        return self._spec

    def query(self, embeddings: Vectors) -> bytes:
        """Normalise and round a (d,) or (n, d) array, n up to 4,096, into what
        `ServerIndex.evaluate` takes. Not encrypted: the server sees the vectors. Raises
        InvalidInput."""
        rows = arrays.vectors(embeddings, self._spec.dimension, self._spec.metric, what="embeddings")
        if len(rows) == 0:
            raise InvalidInput("there is nothing to ask: 0 rows were given.")
        return self._native.query(rows)

    def __repr__(self) -> str:
        return f"<ciphervec.Probe of {self._spec.collection!r}, {self._spec.dimension}-d, no key>"


__all__ = ["Probe"]
