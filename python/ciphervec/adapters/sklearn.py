"""scikit-learn's neighbour searches and their graphs over rows that stay encrypted while they are searched. Key owner's
side.

    model = make_pipeline(
        EncryptedKNeighborsTransformer(n_neighbors=9, metric="euclidean"),
        KNeighborsClassifier(n_neighbors=9, metric="precomputed"),
    )
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..collections import index
from ..collections.audience import Audience
from ..collections.index import EUCLIDEAN, Distances, ObjectArray, Rows
from ..collections.keys import Keys
from ..ingest.arrays import Vectors
from .support import missing

try:
    from scipy.sparse import csr_matrix
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    raise missing("scikit-learn", "sklearn") from error
except ImportError as error:  # one before 1.6
    raise missing("scikit-learn 1.6 or newer", "sklearn") from error

_Self = TypeVar("_Self", bound="EncryptedNearestNeighbors")


class EncryptedNearestNeighbors(index.EncryptedNearestNeighbors, BaseEstimator):
    """As `ciphervec.EncryptedNearestNeighbors`, and an estimator by all of scikit-learn's own
    checks: input is validated by its rules and in its words, names of features are kept, and
    neighbours come as graphs too.

    Rows are compared as float32, under Euclidean metrics less their mean.
    Parameters and fitted attributes are those of the class below, and
    `feature_names_in_`.
    """

    def fit(self: _Self, X: Vectors, y: object = None) -> _Self:
        """Seal the rows of X, shape (n, d), n ≥ 1. `y` is ignored. Raises ValueError."""
        return super().fit(validate_data(self, X, dtype=self._dtype))

    def kneighbors(
        self, X: Vectors | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Distances, Rows] | Rows:
        """The nearest fitted rows of each row of X: distances and row numbers, both (n, k), nearest
        first. Without X, of each fitted row, itself left out."""
        return super().kneighbors(self._checked(X), n_neighbors, return_distance)

    def radius_neighbors(
        self,
        X: Vectors | None = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> tuple[ObjectArray, ObjectArray] | ObjectArray:
        """Every fitted row within `radius` of each row of X: object arrays (n,) of distances and of
        row numbers."""
        return super().radius_neighbors(self._checked(X), radius, return_distance, sort_results)

    def kneighbors_graph(
        self, X: Vectors | None = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """The graph of the nearest neighbours, (n, rows fitted), sparse: ones for `connectivity`,
        or the distances, rows in order of distance. Raises ValueError."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}.")
        found = self.kneighbors(X, n_neighbors)
        distances, rows = found[0], found[1]
        n, k = rows.shape
        data = np.ones(n * k) if mode == "connectivity" else np.asarray(distances, np.float64).ravel()
        starts = np.arange(0, n * k + 1, k)
        return csr_matrix((data, rows.ravel(), starts), shape=(n, self.n_samples_fit_))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return BaseEstimator.get_params(self, deep)

    def set_params(self: _Self, **params: Any) -> _Self:
        """Change the constructor's arguments; takes effect with the next `fit`."""
        return BaseEstimator.set_params(self, **params)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return BaseEstimator.__repr__(self, N_CHAR_MAX)

    def __sklearn_tags__(self) -> Any:
        return BaseEstimator.__sklearn_tags__(self)

    def __sklearn_clone__(self: _Self) -> _Self:
        # Keys are shared, not copied: a copy would be a secret more.
        return type(self)(**self.get_params(deep=False))

    def _checked(self, X: Vectors | None) -> npt.NDArray[Any] | None:
        check_is_fitted(self)
        return None if X is None else validate_data(self, X, dtype=self._dtype, reset=False)

    @property
    def _dtype(self) -> Any:
        """What input is validated as: where a mean is subtracted it stays float64 until then."""
        return [np.float64, np.float32] if self.metric in EUCLIDEAN else np.float32


class EncryptedKNeighborsTransformer(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, EncryptedNearestNeighbors
):
    """`sklearn.neighbors.KNeighborsTransformer` by encrypted search: turns X into the sparse
    graph of its nearest fitted rows, for estimators that take `metric="precomputed"`.

    In `distance` graphs each row has one neighbour more than asked for, since a fitted row is its
    own nearest; as in scikit-learn.
    """

    def __init__(
        self,
        *,
        graph: str = "distance",
        n_neighbors: int = 5,
        metric: str = "euclidean",
        mode: str = "sealed",
        precision: str = "standard",
        keys: Keys | None = None,
        scheme: str = "lattice",
        bits: int | None = None,
        audience: Audience = "owner",
    ) -> None:
        """`graph` is what `mode` is of scikit-learn's own: `distance` or `connectivity`. `mode` is
        how rows are encrypted; the others are as of `EncryptedNearestNeighbors`."""
        super().__init__(n_neighbors, 1.0, metric, mode, precision, keys, scheme, bits, audience)
        del self.radius
        self.graph = graph

    def fit(self, X: Vectors, y: object = None) -> EncryptedKNeighborsTransformer:
        """Seal the rows of X, shape (n, d), n ≥ 1. `y` is ignored. Raises ValueError."""
        if self.graph not in ("distance", "connectivity"):
            raise ValueError(f"graph must be 'distance' or 'connectivity', got {self.graph!r}.")
        super().fit(X)
        self._n_features_out = self.n_samples_fit_
        return self

    def transform(self, X: Vectors) -> csr_matrix:
        """The graph of the rows of X, (n, rows fitted)."""
        check_is_fitted(self)
        return self.kneighbors_graph(X, self.n_neighbors + (self.graph == "distance"), self.graph)

    def fit_transform(self, X: Vectors, y: object = None, **fit_params: Any) -> csr_matrix:
        """The graph of the rows of X among themselves."""
        return self.fit(X).transform(X)
