"""Search peers, plaintext and encrypted, timed on the bench's vectors and queries. Each peer in its best documented
use."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ciphervec import InvalidInput

from .data import Floats, top


class Peer(Protocol):
    """Something to be compared with: a name, and one timed batch."""

    name: str
    bytes_per_vector: float

    def search(self, queries: Floats, count: int) -> list[list[int]]:
        """The ids found, best first."""
        ...


class Faiss:
    """faiss-cpu's exact inner-product index in float32: the plaintext scan that every ratio refers
    to."""

    name = "faiss IndexFlatIP"

    def __init__(self, vectors: Floats, threads: int) -> None:
        import faiss

        faiss.omp_set_num_threads(threads)
        self.index = faiss.IndexFlatIP(vectors.shape[1])
        self.index.add(vectors)
        self.bytes_per_vector = 4.0 * vectors.shape[1]

    def search(self, queries: Floats, count: int) -> list[list[int]]:
        found: list[list[int]] = self.index.search(queries, count)[1].tolist()
        return found


class NumpyProduct:
    """A float32 matrix product by BLAS and a partial sort: often the faster plaintext search for a
    batch."""

    name = "numpy product, top-k"

    def __init__(self, vectors: Floats) -> None:
        self.vectors = vectors
        self.bytes_per_vector = 4.0 * vectors.shape[1]

    def search(self, queries: Floats, count: int) -> list[list[int]]:
        found: list[list[int]] = top(queries @ self.vectors.T, count).tolist()
        return found


def instructions() -> dict[str, str]:
    """The instructions that FAISS chose, and the processor that the BLAS beneath NumPy and FAISS is written for, as
    they call them; what does not tell is left out."""
    import faiss
    from threadpoolctl import threadpool_info

    told = {}
    if hasattr(faiss, "SIMDConfig"):
        told["faiss"] = str(faiss.SIMDConfig.get_level_name())
    kernels = {library["architecture"] for library in threadpool_info() if library.get("architecture")}
    if kernels:
        told["blas"] = ", ".join(sorted(kernels))
    return told


@dataclass
class TensealTimes:
    """One run of a TenSEAL method, milliseconds, and its largest score error."""

    method: str
    compares_with: str
    ms_total: float
    max_abs_error: float
    query_bytes: int
    response_bytes: int
    key_bytes_server: int
    seal_seconds: float


class Tenseal:
    """CKKS at N = 8192 with moduli of 60, 40 and 60 bits: one multiplication, the fastest of its
    documented settings."""

    name = "TenSEAL"

    def __init__(self, vectors: Floats, threads: int) -> None:
        try:
            import tenseal
        except ImportError as error:
            raise InvalidInput(
                "--peer tenseal needs TenSEAL, which is not installed; pip install tenseal"
            ) from error
        self.tenseal = tenseal
        self.vectors = vectors.astype(np.float64)
        self.context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 60], n_threads=threads
        )
        self.context.global_scale = 2.0**40
        self.context.generate_galois_keys()
        # One product and no more: its scale of 2^80 fits the modulus, so the rescale can be left
        # out.
        self.context.auto_rescale = False
        self.slots = 4096
        # Plain matrices are encoded once, outside of the clock, as an index would be.
        self.blocks = [
            tenseal.plain_tensor(np.ascontiguousarray(self.vectors[start : start + self.slots].T))
            for start in range(0, len(vectors), self.slots)
        ]
        public = self.context.copy()
        public.make_context_public()
        self.key_bytes = len(public.serialize())
        self.sealed: list[Any] = []

    def encrypted_query(self, query: Floats) -> TensealTimes:
        """`CKKSVector.mm`: an encrypted query against plain vectors."""
        tenseal = self.tenseal
        started = time.perf_counter()
        vector = tenseal.ckks_vector(self.context, query.astype(np.float64).tolist())
        answers = [vector.mm(block) for block in self.blocks]
        scores = np.concatenate([np.asarray(answer.decrypt()) for answer in answers])
        total = 1e3 * (time.perf_counter() - started)
        return TensealTimes(
            method="`CKKSVector.mm`, plain vectors",
            compares_with="sealed-query",
            ms_total=total,
            max_abs_error=self._error(scores, query),
            query_bytes=len(vector.serialize()),
            response_bytes=sum(len(answer.serialize()) for answer in answers),
            key_bytes_server=self.key_bytes,
            seal_seconds=0.0,
        )

    def encrypted_index(self, query: Floats) -> TensealTimes:
        """A batched `CKKSTensor.mm`: encrypted vectors, plain query. Encrypts them on the first
        call, not timed."""
        tenseal, seal_seconds = self.tenseal, 0.0
        if not self.sealed:
            began = time.perf_counter()
            self.sealed = [
                tenseal.ckks_tensor(
                    self.context,
                    tenseal.plain_tensor(self.vectors[start : start + self.slots][:, None, :].copy()),
                    batch=True,
                )
                for start in range(0, len(self.vectors), self.slots)
            ]
            seal_seconds = time.perf_counter() - began
        column = tenseal.plain_tensor(query.astype(np.float64)[:, None].copy())
        started = time.perf_counter()
        answers = [block.mm(column) for block in self.sealed]
        scores = np.concatenate([np.asarray(answer.decrypt().tolist()).ravel() for answer in answers])
        total = 1e3 * (time.perf_counter() - started)
        return TensealTimes(
            method="batched `CKKSTensor.mm`, plain query",
            compares_with="sealed-index",
            ms_total=total,
            max_abs_error=self._error(scores, query),
            query_bytes=4 * len(query),
            response_bytes=sum(len(answer.serialize()) for answer in answers),
            key_bytes_server=self.key_bytes,
            seal_seconds=seal_seconds,
        )

    def _error(self, scores: Any, query: Floats) -> float:
        exact = self.vectors @ query.astype(np.float64)
        return float(np.abs(np.asarray(scores)[: len(exact)] - exact).max())
