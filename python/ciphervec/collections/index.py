"""Index: labels and vectors enter, ranked labels leave: a bare index without documents. Both
halves, joined in one process.

    index = Index(ndim=256, metric="cosine")
    index.add(keys=[1, 2, 3], vectors=rows)  # `keys` are the labels, as in other vector indexes
    matches = index.search(question, count=10)
    index.save("rows.cvix")  # sealed; index.secret_keys.save(...) keeps the key
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import numpy as np

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import InvalidInput, WrongKey
from ..ingest import arrays
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.files import StrPath, at_home, read_file, write_file
from .audience import Audience
from .flooding import DEVIATION
from .keys import Keys
from .matches import Matches
from .owner import Owner
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
                f"the index {self._spec.collection!r} was saved by release 0.1, or by somebody who wants it to look so: that rows are removed, "
                "or segments missing, is not authenticated. If it is the file that you saved, save it again.",
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
