"""Index: vectors under labels without documents, both halves joined in one process; and nearest
neighbours on it, as scikit-learn's, which need not be installed. For the key owner.

    index = Index(ndim=256, metric="cosine")
    index.add(keys=[1, 2, 3], vectors=rows)  # `keys` are the labels, as in other vector indexes
    matches = index.search(question, count=10)
    index.save("rows.cvix")  # sealed; index.secret_keys.save(...) keeps the key
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from .._native import IndexSpec, RecordBatch
from ..errors import InvalidInput, WrongKey
from ..ingest import arrays
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.files import StrPath, at_home, read_file, write_file
from ..ingest.metrics import METRICS, Metric
from .audience import DEVIATION, Audience
from .keys import Keys
from .owner import Owner
from .results import Matches
from .spec import check_key, index_spec, open_refused
from .world import host_of


class Index:
    """Sealed vectors under labels. `owner` and `server` are its two halves, for a network between
    them."""

    def __init__(
        self,
        ndim: int,
        metric: str = "cosine",
        mode: str = "sealed",
        precision: str = "standard",
        *,
        secret_keys: Keys | None = None,
        name: str = "index",
        scheme: str = "lattice",
        bits: int | None = None,
    ) -> None:
        """An empty index; without `secret_keys`, fresh ones are made. Keep them:
        `index.secret_keys.save(...)`.

        `ndim` is 1 to 16,384; `metric`: cosine, ip, l2, hamming; `mode`: sealed, sealed-query,
        sealed-index, open; `precision`: standard, or small and wide in sealed-index. `name` is
        bound into every key. `scheme` and `bits` are as of `create_collection`. Raises
        InvalidInput.
        """
        spec = index_spec(name, ndim, metric, mode, precision, scheme, bits)
        if secret_keys is None and mode != "open":
            secret_keys = Keys.generate()
        self._spec = spec
        self._server = _native.ServerIndex(spec)
        self._authenticated = True
        owner = self._new_owner(secret_keys)
        if owner.has_key_pair:
            owner.generate_key_pair()
        key_pair = owner.sealed_key_pair() if owner.has_key_pair else b""
        self._file = _native.IndexFile(owner.key_id, key_pair)
        self._owner: Owner | None = owner
        self._secret_keys = secret_keys
        self._server.set_evaluation_keys(owner.evaluation().to_bytes())

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme."""
        return self._spec

    @property
    def ndim(self) -> int:
        """Numbers per vector."""
        return self._spec.dimension

    @property
    def metric(self) -> str:
        """`cosine`, `ip`, `l2` or `hamming`."""
        return self._spec.metric

    @property
    def secret_keys(self) -> Keys | None:
        """The key owner's secret, if this object has it."""
        return self._secret_keys

    @property
    def owner(self) -> Owner:
        """The half that holds the keys. Raises WrongKey while the index is locked."""
        if self._owner is None:
            raise WrongKey(
                f"this index was loaded without its secret keys ({self._file.key_id}). Call "
                "index.unlock(keys) first."
            )
        return self._owner

    @property
    def server(self) -> _native.ServerIndex:
        """The half that searches, without a key."""
        return self._server

    def add(self, keys: Id | Iterable[Id] | None, vectors: Vectors) -> list[Id]:
        """Seal n vectors, shape (n, ndim) or (ndim,), under n labels (None: the next integers);
        returns the labels.

        Raises DuplicateId or InvalidInput; nothing is added then.
        """
        rows = arrays.vectors(vectors, self.ndim, self.metric, what="vectors")
        labels = self._next_labels(len(rows)) if keys is None else arrays.ids(keys, what="keys", paired=True)
        arrays.same_length(len(labels), rows, "vectors")
        arrays.distinct(labels)
        if labels:
            self.owner.refuse_known(labels)
            self.owner._see(host_of(None, None), rows)
            segment = self.owner.seal(labels, rows, attach=False)
            self._server.add(segment)
            self.owner.attach(segment.id, segment.sidecar)
            self._file.add(segment.id, segment.sidecar)
        return labels

    def search(
        self,
        vectors: Vectors,
        count: int | None = 10,
        *,
        within: float | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> Matches | list[Matches]:
        """The closest labels: `Matches` for one vector of shape (ndim,), a list of them for shape
        (n, ndim).

        At most `count` each (None: no limit), and with `within` only those at a distance of at most
        that. Fewer come back when the index holds fewer. In modes `sealed` and `sealed-query` they
        are the owner's own, `OwnerMatches`, until `audience` is named: see `Owner.open`. Raises
        InvalidInput, PoolExhausted.
        """
        rows = arrays.vectors(vectors, self.ndim, self.metric, what="vectors")
        found = self.search_batch(rows, count, within=within, audience=audience, flooding=flooding)
        return found[0] if np.ndim(vectors) == 1 and len(found) == 1 else found

    def search_batch(
        self,
        vectors: FloatArray,
        count: int | None = 10,
        *,
        within: float | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> list[Matches]:
        """As `search`, always a list: one `Matches` per row."""
        return self.owner.search(
            self._server, vectors, count, within=within, audience=audience, flooding=flooding
        )

    def remove(self, keys: Id | Iterable[Id]) -> None:
        """Leave these labels out of every answer. Raises UnknownId; nothing is removed then."""
        self._file.remove(self.owner.forget(keys))

    def vectors(self) -> tuple[list[Id], FloatArray]:
        """All labels and their unsealed vectors (n, ndim), to within the precision of the seal."""
        labels: list[Id] = []
        rows = [np.empty((0, self.ndim), np.float32)]
        for segment_id, names in self.owner.row_ids().items():
            live = [(row, name) for row, name in enumerate(names) if name is not None]
            labels.extend(name for _, name in live)
            rows.append(self.owner.unseal(self._server.segment(segment_id), [row for row, _ in live]))
        return labels, self.owner.rescale(labels, np.concatenate(rows))

    def to_bytes(self) -> bytes:
        """Everything sealed, and nothing secret: the spec, the segments, their sidecars, the
        evaluation keys, the sealed key pair of a scheme that has one. All of it, and which rows are removed, is
        authenticated under the owner's key; an older copy of it is as well."""
        return self._file.to_bytes(self._server, None if self._spec.mode == "open" else self._owner)

    @classmethod
    def from_bytes(cls, data: bytes, secret_keys: Keys | None = None, *, allow_open: bool = False) -> Index:
        """Read what `to_bytes` wrote. Without `secret_keys` the index is locked until `unlock`; with them one in mode
        `open`, which anybody could have written, is refused unless `allow_open=True`.

        Of bytes that release 0.1 wrote nobody can tell which rows were removed, nor whether segments are missing: a UserWarning
        says so, and saving them again mends it. Raises CorruptData, UnsupportedVersion, PinMismatch or WrongKey.
        """
        index = cls.__new__(cls)
        index._file, index._server = _native.IndexFile.from_bytes(data)
        index._spec = index._server.spec
        index._secret_keys, index._owner = None, None
        index._authenticated = False
        if index._spec.mode == "open" and secret_keys is not None and not allow_open:
            raise open_refused(f"the index {index._spec.collection!r}")
        if secret_keys is not None or index._spec.mode == "open":
            index._unlock(secret_keys)
        return index

    def unlock(self, secret_keys: Keys) -> Index:
        """Give a loaded index its secret keys; returns the index. Raises WrongKey, CorruptData, and PinMismatch in
        mode `open`, which has none."""
        if self._spec.mode == "open":
            raise open_refused(f"the index {self._spec.collection!r}")
        self._unlock(secret_keys)
        return self

    @property
    def authenticated(self) -> bool:
        """Whether its owner's key vouches for all of it: not in mode `open`, while it is locked, nor for what release 0.1
        saved."""
        return self._authenticated and self._spec.mode != "open"

    def save(self, path: StrPath) -> None:
        """Write `to_bytes()` to a file, all or nothing. Raises StorageError."""
        write_file(Path(at_home(path)), self.to_bytes())

    @classmethod
    def load(cls, path: StrPath, secret_keys: Keys | None = None, *, allow_open: bool = False) -> Index:
        """Read a file that `save` wrote; as `from_bytes`. Raises StorageError too."""
        return cls.from_bytes(read_file(Path(at_home(path))), secret_keys, allow_open=allow_open)

    def _new_owner(self, secret_keys: Keys | None) -> Owner:
        if secret_keys is not None and not isinstance(secret_keys, Keys):
            raise InvalidInput(f"secret_keys must be ciphervec.Keys, got {type(secret_keys).__name__}.")
        return Owner(secret_keys, self._spec)

    def _unlock(self, secret_keys: Keys | None) -> None:
        owner = self._new_owner(secret_keys)
        check_key(owner.key_id, self._file.key_id, self._spec.collection)
        if self._spec.mode != "open":
            self._check(owner)
        if owner.has_key_pair:
            owner.open_key_pair(self._file.key_pair)
        for segment_id, sidecar, deleted in self._file.parts():
            owner.attach(segment_id, sidecar, deleted)
        self._owner, self._secret_keys = owner, secret_keys

    def _check(self, owner: Owner) -> None:
        """That the owner has said all this."""
        self._authenticated = self._file.is_authenticated(self._server, owner)
        if not self._authenticated:
            warnings.warn(
                f"the index {self._spec.collection!r} was saved by release 0.1, or by somebody who wants it to look so: that "
                "rows are removed, or segments missing, is not authenticated. If it is the file that you saved, save it again.",
                stacklevel=5,  # whoever called load or unlock
            )

    def _next_labels(self, count: int) -> list[Id]:
        start, taken = len(self), self.owner
        labels: list[Id] = []
        while len(labels) < count:
            if start not in taken:
                labels.append(start)
            start += 1
        return labels

    def __len__(self) -> int:
        return len(self.owner)

    def __contains__(self, key: object) -> bool:
        return key in self.owner

    def __repr__(self) -> str:
        rows = "locked" if self._owner is None else f"{len(self._owner):,} rows"
        return f"<ciphervec.Index, {self.ndim}-d {self.metric}, {self._spec.mode}, {rows}>"

    def __reduce__(self) -> tuple[object, tuple[bytes]]:
        # Secret keys stay behind: the copy is locked until `unlock`.
        return Index.from_bytes, (self.to_bytes(),)

    def __copy__(self) -> NoReturn:
        raise TypeError(
            "an Index can't be copied in place; use Index.from_bytes(index.to_bytes(), secret_keys)."
        )


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
