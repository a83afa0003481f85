"""ciphervec for ann-benchmarks: rows stay encrypted while they are searched. Both halves run in its one process.

To run it, copy this folder to `ann_benchmarks/algorithms/ciphervec` of a clone of ann-benchmarks; see
docs/integrations.md. Every row is compared, so recall tells of the seal's precision alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import ciphervec

from ..base.module import BaseANN

METRICS = {"angular": "cosine", "euclidean": "l2", "hamming": "hamming"}


class Ciphervec(BaseANN):
    """Exhaustive search of encrypted rows."""

    def __init__(self, metric: str, mode: str = "sealed", precision: str = "standard") -> None:
        if metric not in METRICS:
            raise NotImplementedError(f"ciphervec has no metric {metric}")
        self._metric, self._mode, self._precision = METRICS[metric], mode, precision
        self._found: list[list[int]] = []
        self.name = f"Ciphervec({mode}, {precision})"

    def fit(self, X: np.ndarray) -> None:
        """Seal the rows, under new keys."""
        self._index = ciphervec.Index(X.shape[1], self._metric, self._mode, self._precision)
        self._index.add(range(len(X)), X)

    def query(self, q: np.ndarray, n: int) -> list[int]:
        """Ask, answer and open, all in the time that is taken."""
        (found,) = self._index.search_batch(q[None], n)
        return [int(one) for one in found.ids]

    def batch_query(self, X: np.ndarray, n: int) -> None:
        """The same for all rows of X at once."""
        self._found = [[int(one) for one in found.ids] for found in self._index.search_batch(X, n)]

    def get_batch_results(self) -> list[list[int]]:
        """What `batch_query` found."""
        return self._found

    def get_additional(self) -> dict[str, Any]:
        """What protects the rows, beside the result."""
        return {"mode": self._mode, "precision": self._precision, "version": ciphervec.__version__}
