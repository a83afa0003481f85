"""Nearest neighbours: an array to fit and arrays to ask about enter; distances and row numbers
leave, as scikit-learn's neighbours do.

Works without scikit-learn installed, and inside its pipelines, `clone` and grid searches when it
is. Owner's side.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._native import RecordBatch
from ..errors import InvalidInput
from ..ingest import arrays
from ..ingest.arrays import FloatArray, Vectors
from ..ingest.metrics import METRICS, Metric
from .audience import Audience
from .index import Index
from .keys import Keys
from .matches import Matches

Distances = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
ObjectArray = npt.NDArray[np.object_]

# scikit-learn's names for one of ours, of which it takes the root, and for its square.
_METRICS = {name: name for name in METRICS} | {"euclidean": "l2", "sqeuclidean": "l2"}
EUCLIDEAN = tuple(name for name, metric in _METRICS.items() if metric == "l2")
_ROOTS = ("euclidean", "l2")
_CENTRE = "centre"
_PARAMETERS = ("n_neighbors", "radius", "metric", "mode", "precision", "keys", "scheme", "bits", "audience")
_Self = TypeVar("_Self", bound="EncryptedNearestNeighbors")


class EncryptedNearestNeighbors:
    """`sklearn.neighbors.NearestNeighbors` whose fitted data and queries are encrypted while they
    are searched.

    Distances are scikit-learn's: `cosine` 1 − cos, `euclidean` (or `l2`) the root, `sqeuclidean`
    its square, `hamming` the fraction of differing bits; `ip` is 1 − q·x. They carry the seal's
    error, about 1e-5 in cosine, and in modes `sealed` and `sealed-query` noise of the key: these are
    plain arrays, and they are the key owner's own unless `audience="others"` floods them.

    An error of a cosine counts in a Euclidean distance times the lengths of both vectors. So `fit` subtracts the mean of
    its rows, and a question has it subtracted too, which changes no distance and keeps those lengths as short as they
    can be.

    Fitted attributes: `index_` (an `Index`), `keys_`, `n_features_in_`, `n_samples_fit_`; `centre_`, the mean that the rows in
    `index_` are without, float64 (d,), None under other metrics. A pickle has it sealed.
    """

    _sealed_centre: bytes | None = None

    def __init__(
        self,
        n_neighbors: int = 5,
        radius: float = 1.0,
        metric: str = "cosine",
        mode: str = "sealed",
        precision: str = "standard",
        keys: Keys | None = None,
        scheme: str = "lattice",
        bits: int | None = None,
        audience: Audience = "owner",
    ) -> None:
        """`keys=None` makes fresh secret keys in `fit`. `scheme` and `bits` are as of
        `Client.create_collection`, `audience` as of `Index.search`. Parameters are checked in
        `fit`, the audience when neighbours are asked for."""
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.mode = mode
        self.precision = precision
        self.keys = keys
        self.scheme = scheme
        self.bits = bits
        self.audience = audience

    def fit(self: _Self, X: Vectors, y: object = None) -> _Self:
        """Seal the rows of X, shape (n, d), n ≥ 1. `y` is ignored. Raises InvalidInput."""
        if self.metric not in tuple(_METRICS):  # which compares, and asks no list for its hash
            raise InvalidInput(f"metric must be one of {', '.join(_METRICS)}; got {self.metric!r}.")
        shape = arrays.numbers(X, "X").shape
        if len(shape) != 2 or 0 in shape:
            raise InvalidInput(f"X must have shape (n, d) with n and d of at least 1, got {shape}.")
        index = Index(
            shape[1],
            _METRICS[self.metric],
            self.mode,
            self.precision,
            secret_keys=self.keys,
            scheme=self.scheme,
            bits=self.bits,
        )
        self.centre_: npt.NDArray[np.float64] | None = None
        if index.metric == "l2":
            rows = arrays.doubles(X, index.ndim, index.metric, what="X")
            self.centre_ = rows.mean(axis=0)
            X = rows - self.centre_
        index.add(None, X)
        self.index_ = index
        self.keys_ = index.secret_keys
        self.n_features_in_ = shape[1]
        self.n_samples_fit_ = shape[0]
        return self

    def kneighbors(
        self, X: Vectors | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> tuple[Distances, Rows] | Rows:
        """The nearest fitted rows of each row of X: distances and row numbers, both (n, k), nearest
        first.

        Without X, of each fitted row, itself left out. Raises InvalidInput when k is more than
        there is.
        """
        k = arrays.count(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors")
        most = len(self._index()) - (X is None)
        if k > most:
            raise InvalidInput(f"n_neighbors must be at most the {most} rows there are to find, got {k}.")
        found = self._search(X, k + (X is None), None)
        found = [_cut(matches, k) for matches in found]
        rows = np.array([m.ids for m in found], dtype=np.intp).reshape(len(found), k)
        if not return_distance:
            return rows
        return np.array([self._distances(m) for m in found], dtype=np.float64).reshape(len(found), k), rows

    def radius_neighbors(
        self,
        X: Vectors | None = None,
        radius: float | None = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> tuple[ObjectArray, ObjectArray] | ObjectArray:
        """Every fitted row within `radius` of each row of X: object arrays (n,) of distances and of
        row numbers.

        They come nearest first whatever `sort_results` says. Without X, of each fitted row, itself
        left out.
        """
        limit = arrays.finite(self.radius if radius is None else radius, "radius")
        found = self._search(X, None, self._within(limit))
        rows = _objects([np.array(m.ids, dtype=np.intp) for m in found])
        if not return_distance:
            return rows
        return _objects([self._distances(m) for m in found]), rows

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self: _Self, **params: Any) -> _Self:
        """Change the constructor's arguments; takes effect with the next `fit`. Raises
        InvalidInput."""
        for name, value in params.items():
            if name not in _PARAMETERS:
                raise InvalidInput(f"no parameter {name!r}; there are {', '.join(_PARAMETERS)}.")
            setattr(self, name, value)
        return self

    def unlock(self: _Self, keys: Keys) -> _Self:
        """Give an unpickled estimator its secret keys again. Raises WrongKey."""
        self.keys = self.keys_ = keys
        self._index().unlock(keys)
        if self._sealed_centre is not None:
            self.centre_ = self._opened_centre(self._sealed_centre)
            self._sealed_centre = None
        return self

    def _index(self) -> Index:
        index: Index | None = getattr(self, "index_", None)
        if index is None:
            raise InvalidInput("this EncryptedNearestNeighbors is not fitted yet; call fit(X) first.")
        return index

    def _search(self, X: Vectors | None, count: int | None, within: float | None) -> list[Matches]:
        index = self._index()
        if X is not None:
            rows = self._centred(X, index)
            return index.search_batch(rows, count, within=within, audience=self.audience)
        labels, rows = index.vectors()
        found = index.search_batch(rows, count, within=within, audience=self.audience)
        return [_without(matches, label) for matches, label in zip(found, labels, strict=True)]

    def _centred(self, X: Vectors, index: Index) -> FloatArray:
        centre = getattr(self, "centre_", None)  # none in a pickle of release 0.1
        rows = X if centre is None else arrays.doubles(X, index.ndim, index.metric, what="X") - centre
        return arrays.vectors(rows, index.ndim, index.metric, what="X")

    def _seal_centre(self, centre: npt.NDArray[np.float64]) -> bytes:
        """It says as much of the data as a row: under the index's key, in the place of a segment of it."""
        owner = self._index().owner
        return owner.seal_records(
            next(iter(owner.row_ids())), [_CENTRE], [centre.astype("<f8").tobytes()]
        ).to_bytes()

    def _opened_centre(self, sealed: bytes) -> npt.NDArray[np.float64]:
        owner = self._index().owner
        records = RecordBatch.from_bytes(sealed)
        data = owner.open_record(next(iter(owner.row_ids())), records, 0, _CENTRE)
        return np.frombuffer(data, "<f8").astype(np.float64)

    @property
    def _kind(self) -> Metric:
        return METRICS[_METRICS[self.metric]]

    def _within(self, radius: float) -> float:
        if self.metric in _ROOTS:
            return radius * abs(radius)
        return radius * self._index().ndim if self._kind.bits else radius

    def _distances(self, matches: Matches) -> Distances:
        distances = np.maximum(matches.distances.astype(np.float64), -np.inf if self._kind.below_zero else 0)
        if self.metric in _ROOTS:
            return np.sqrt(distances)
        return distances / self._index().ndim if self._kind.bits else distances

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "index_")

    def __sklearn_tags__(self) -> Any:
        # Asked for by scikit-learn 1.6 and later, which is installed then.
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=InputTags())

    def __getstate__(self) -> dict[str, Any]:
        """Secret keys stay behind: the copy answers after `unlock(keys)`."""
        state = {name: value for name, value in self.__dict__.items() if name != "keys_"} | {"keys": None}
        centre = state.get("centre_")
        if centre is not None and self.mode != "open":
            state |= {"centre_": None, "_sealed_centre": self._seal_centre(centre)}
        return state

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in _PARAMETERS)
        return f"EncryptedNearestNeighbors({shown})"


def _cut(matches: Matches, k: int) -> Matches:
    return matches.only(range(k))


def _without(matches: Matches, label: object) -> Matches:
    kept = [i for i, one in enumerate(matches.ids) if one != label]
    return Matches(
        [matches.ids[i] for i in kept], matches.distances[kept], matches.scores[kept], matches.exact
    )


def _objects(values: list[Any]) -> ObjectArray:
    out = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        out[i] = value
    return out
