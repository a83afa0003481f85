"""Clients of collections in memory and in folders, for the key owner: they make, open, copy and delete them. The core does the
work."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

import ciphervec._native as _native

from ..errors import CiphervecError, CollectionExists, CollectionNotFound, InvalidInput, RollbackDetected
from ..ingest.arrays import Vectors
from ..ingest.files import StrPath, at_home
from ..ingest.forks import open_in_child
from ..ingest.metrics import MetricName
from ..ingest.naming import check_name
from ..ingest.network import Network
from ..ingest.remarks import Progress, reporting
from ..ingest.state_folder import user_folder
from .collection import OPENING, Collection, opened_in, register
from .embedding.function import Embedder, EmbeddingFunction
from .embedding.multi import Muvera, check_multi
from .keys import Identity, Keys
from .ranking import Sparse
from .spec import Choices, Clusters, Mode, Precision, SchemeName, open_refused, refuse_open
from .unborn import UnbornCollection
from .world import host_of, told

_ANY = 8  # numbers a vector, where the other choices are to be checked


class Look(NamedTuple):
    """A collection as its store has it."""

    meta: bytes
    """The description, whose settings are sealed."""
    segments: list[tuple[str, int, int, dict[str, int]]]
    """Id, rows, rows that were deleted, and bytes by blob."""


class Client:
    """Collections in memory: they end with the process. `PersistentClient` keeps them in a
    folder."""

    _kind: type[Collection] = Collection

    _alone = False
    """Whether no other client of this process may share what this one has open: whoever keeps an account of it sets
    this before it opens anything."""

    _turn: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    """Held while a collection is opened or made."""

    _read_only = False

    _locks = False
    """Whether what is open is locked, and closed before it can be deleted."""

    def __init__(self, keys: Keys | Identity | None = None) -> None:
        """`keys` seals everything; without it, fresh keys are made and held in `client.keys`. In its place, an
        `Identity` opens collections that its person is a member of, and founds the list of those it makes."""
        holder = Keys.generate() if keys is None else checked_holder(keys)
        self._start(_native.Client.in_memory(holder._native), host_of(None, None), holder)

    def _start(self, native: _native.Client, host: _native.CallHost, keys: Keys | Identity | None) -> None:
        self._native, self._host, self._keys = native, host, keys
        self._lock = threading.RLock()
        open_in_child(self._lock)
        self._opened: dict[str, Collection] = {}
        self._closed = False

    @property
    def keys(self) -> Keys | None:
        """The secret keys given, or made; None for a client made with an `Identity`."""
        return self._keys if isinstance(self._keys, Keys) else None

    @property
    def identity(self) -> Identity | None:
        """The person given in the place of keys."""
        return self._keys if isinstance(self._keys, Identity) else None

    def create_collection(
        self,
        name: str,
        dimension: int | None = None,
        metric: MetricName = "cosine",
        mode: Mode = "sealed",
        precision: Precision = "standard",
        filterable: Sequence[str] = (),
        *,
        scheme: SchemeName = "lattice",
        bits: int | None = None,
        originals: bool | None = None,
        network: Network | None = None,
        embedding_function: EmbeddingFunction | None = None,
        routing: Clusters | None = None,
        center: Vectors | None = None,
        sparse: Sparse | None = None,
        multi: Muvera | None = None,
    ) -> Collection:
        """Make an empty collection.

        `dimension` is 1 to 16,384; left out, it is that of the first rows, and until these are added the
        collection is known to this client alone. `metric`: cosine, ip, l2, hamming. `mode` says what the server
        sees: sealed (neither vectors nor queries), sealed-query (the vectors), sealed-index (the
        queries), open (all). `precision`: standard; small (3 bytes a number) or wide (8) in
        sealed-index. `filterable` names metadata fields on which the server may test equality; it
        learns which rows have equal values there.

        `scheme`: lattice does every mode; paillier, damgard-jurik, okamoto-uchiyama and elgamal do
        sealed-index, under a key pair of the collection's own with a modulus of `bits` (3072 unless
        given; elgamal has none), which is kept beside the vectors, encrypted.

        `network`: what answers of modes `sealed` and `sealed-query` travel over, a gigabit a second unless
        given; rows are packed for it as their number grows, see `optimize`.

        `originals`: keep each vector as it is put in, encrypted like a document, for `get` to return
        it to the last bit: 4 bytes a number. So it is unless `originals=False`; under hamming there
        is nothing to keep.

        `embedding_function` embeds texts, for `add(documents=...)` and `query(query_texts=...)`: any
        function from a list of texts to a vector for each, Chroma's with `embed_query` too, a model of
        sentence-transformers or the name of one. It runs here. Its name and configuration are saved
        with the collection, sealed as all of it is.

        `routing`: ask about a few clusters of near rows instead of all of them, which shows the server their
        names, see `Clusters`; None: every query scans everything, and shows nothing of that kind.

        `center`: under `l2`, a vector of shape (dimension,) that rows and queries are taken less, which changes no
        distance and makes their errors smaller where data lies far from zero. Left out, it is the mean of the first rows
        where that helps, and `optimize` follows it. Writers' cards have it, in clear.

        `sparse=BM25()` ranks rows by the words of their documents too, `sparse=SparseVectors()` by sparse vectors, which
        `query(fusion=...)` takes in; they are sealed beside the rows.

        `multi=Muvera(width)`, under metric `ip`: rows have many vectors, which MaxSim ranks, see `Muvera`; `dimension` is that
        of the vector that is made of them, and left out. Raises CollectionExists, InvalidInput, StorageError.
        """
        embedder = None if embedding_function is None else Embedder(embedding_function)
        with self._open():
            saved = None if embedder is None else embedder.saved
            many = check_multi(multi, dimension)
            length = dimension = dimension if many is None else many.dimension
            if center is not None and dimension is None:
                length = np.shape(center)[-1] if np.ndim(center) else _ANY
                dimension = length
            choices = Choices.new(
                name, _ANY if length is None else length, metric, mode, precision, filterable, scheme, bits, originals,
                network, saved, routing, center, sparse, many,
            )  # fmt: skip
            self._native.check_new(choices.native())
            self._refuse_unborn(name)
            if dimension is None:
                if name in self.list_collections():
                    raise _exists(name)
                made = self._unborn(choices)
            else:
                made = self._create(choices)
            made._texts.replace(embedder)
            return made

    def _create(self, choices: Choices, dimension: int | None = None) -> Collection:
        with self._turn:
            return self._collection(
                choices.spec.collection,
                self._native.create_collection(self._host, choices.native(dimension)),
            )

    def _unborn(self, like: Choices) -> Collection:
        """A collection to be made with its first rows."""
        name = like.spec.collection

        def make(dimension: int, chosen: Choices, unborn: Collection) -> Collection:
            with self._open():
                made = self._create(chosen, dimension)
                self._keep(name, unborn)  # which becomes it
                return made

        made = UnbornCollection(like, make, _forgetter(self), self._kind._query_default)
        self._opened[name] = made
        return made

    def _refuse_unborn(self, name: str) -> None:
        if isinstance(self._opened.get(name), UnbornCollection):
            raise _exists(name)

    def get_collection(
        self,
        name: str,
        embedding_function: EmbeddingFunction | None = None,
        *,
        allow_open: bool = False,
        expect: str | None = None,
    ) -> Collection:
        """Open a collection that is there; asked for twice, it is the same object.

        A client with keys refuses one in mode `open`, which whoever keeps it could have put there, unless
        `allow_open=True`. `expect` is a checkpoint that somebody else sees, or saw (`Collection.checkpoint`): one whose
        history does not have it is refused, see `Collection.expect`.

        `embedding_function` as of `create_collection`; left out, the one whose name was saved is made
        again by the first text, if it is a model of sentence-transformers, registered (see
        `register_embedding_function`), or of Chroma where that is installed. Given where none is
        saved it is used and not saved, see `Collection.set_embedding_function`. Raises InvalidInput
        for a function of another name than the one saved.

        Raises CollectionNotFound, WrongKey (by key id, before anything is decrypted), StoreLocked
        when another process is writing to it, CorruptData, PinMismatch for mode `open`, RollbackDetected,
        InvalidInput when it is sealed and the client has no keys.
        """
        embedder = None if embedding_function is None else Embedder(embedding_function)
        with self._open():
            known = self._live(check_name(name)) is not None
            collection = self._get(name, embedder, allow_open=allow_open)
            if expect is not None:
                try:
                    collection.expect(expect)
                except BaseException:
                    if not known:
                        collection.close()
                    raise
            return collection

    def _get(self, name: str, embedder: Embedder | None = None, *, allow_open: bool = False) -> Collection:
        check_name(name)
        with self._turn:
            known = name in self._opened
            opened = self._live(name)
            if opened is None:
                native = self._native.get_collection(self._host, name, allow_open, None)
                collection = self._collection(name, native)
        if opened is not None:
            # The client that opened it may have allowed what this one does not.
            if not known and not allow_open and self._keys is not None and opened.mode == "open":
                raise open_refused(f"the collection {name!r}")
            opened._holders.add(self)
            self._opened[name] = opened
            opened._give(embedder)
            return opened
        try:
            collection._give(embedder)
        except BaseException:
            collection.close()
            raise
        return collection

    def _live(self, name: str) -> Collection | None:
        """The collection of that name that is open here, or in another client of this process in the same folder."""
        opened = self._opened.get(name)
        if opened is None or not opened._closed:
            return opened
        del self._opened[name]  # another client has closed it
        return None

    def get_or_create_collection(
        self,
        name: str,
        dimension: int | None = None,
        metric: MetricName = "cosine",
        mode: Mode = "sealed",
        precision: Precision = "standard",
        filterable: Sequence[str] = (),
        *,
        scheme: SchemeName = "lattice",
        bits: int | None = None,
        originals: bool | None = None,
        network: Network | None = None,
        embedding_function: EmbeddingFunction | None = None,
        routing: Clusters | None = None,
        center: Vectors | None = None,
        sparse: Sparse | None = None,
        multi: Muvera | None = None,
    ) -> Collection:
        """Open the collection, or make it. Raises InvalidInput when it is there with other
        choices; one that is there may keep `originals` or not, and be routed or not, unless that is
        given, keeps its `network`, its `center`, its `sparse` and its `multi`, and may have no `embedding_function` saved."""
        with self._open():
            many = check_multi(multi, dimension)
            dimension = dimension if many is None else many.dimension
            wanted = Choices.new(
                name, _ANY if dimension is None else dimension, metric, mode, precision, filterable, scheme, bits, originals,
                network, routing=routing, sparse=sparse, multi=many,
            )  # fmt: skip
            embedder = None if embedding_function is None else Embedder(embedding_function)
            try:
                collection = self._get(name, allow_open=mode == "open")
            except CollectionNotFound:
                # Of several clients that come here at once, one makes it and the others open it.
                with contextlib.suppress(CollectionExists):
                    return self.create_collection(
                        name, dimension, metric, mode, precision, filterable,
                        scheme=scheme, bits=bits, originals=originals, network=network,
                        embedding_function=embedding_function, routing=routing, center=center, sparse=sparse, multi=multi,
                    )  # fmt: skip
                collection = self._get(name, allow_open=mode == "open")
            if isinstance(collection, UnbornCollection) and dimension is not None:
                raise _exists(name)
            _same_choices(wanted, collection, any_dimension=dimension is None)
            collection._give(embedder)
            return collection

    def accept_restore(self, name: str) -> Collection:
        """Go on from an older state of a collection, which whoever keeps it put back from a copy.

        Only its owner can: the state is checked as ever, but for coming after what was seen here,
        and another lineage of states begins with a commit. Other clients that saw what is lost are
        told so, and follow with `forget`. If the query key was changed after the copy was made, a
        new one is. Segments of writers that were adopted or discarded since stay so, as far as this client saw it. Raises
        RollbackDetected for what is no state of the owner's, CollectionNotFound, InvalidInput when its states aren't
        authenticated, or when nothing was restored: it shows the state that was last seen here, or a later one.
        """
        with self._open():
            self._let_go(name)
            return self._collection(name, self._native.accept_restore(self._host, name))

    def forget(self, name: str) -> None:
        """Drop what was seen of a collection, to follow its owner who accepted a restore, or to
        accept one that was put there on purpose: the next `get_collection` trusts what it finds."""
        with self._open():
            self._let_go(name)
            self._native.forget(self._host, name)

    def _let_go(self, name: str) -> None:
        """Close what is open of this name."""
        opened = self._live(check_name(name))
        if opened is not None:
            opened.close()

    def list_collections(self) -> list[str]:
        """Every collection's name, sorted."""
        with self._open():
            unborn = [name for name, one in self._opened.items() if isinstance(one, UnbornCollection)]
            stored = [name for name, *_ in self._native.list_collections(self._host)]
            return sorted({*stored, *unborn})

    def delete_collection(self, name: str) -> None:
        """Delete a collection and everything in it. Raises CollectionNotFound, StoreLocked,
        StorageError."""
        with self._open():
            opened = self._live(check_name(name))
            if isinstance(opened, UnbornCollection):
                opened.close()
                return
            if opened is not None and self._locks:
                opened._shut("deleted")
            self._native.delete_collection(self._host, name)
            if opened is not None:
                opened._shut("deleted")
            self._opened.pop(name, None)

    def _look(self, name: str) -> Look:
        """What a collection's store has of it, which takes no key. Raises CollectionNotFound, CorruptData."""
        with self._open():
            return Look(*self._native.look(self._host, check_name(name)))

    def _check(self, name: str, *, progress: Progress | bool | None = None) -> dict[str, int]:
        """As `Collection.verify`, which takes no key here. Raises CorruptData."""
        with self._open(), told(read=reporting(progress, f"checking {name}")):
            files, size, strays = self._native.verify(self._host, check_name(name))
            return {"files": files, "bytes": size, "strays": strays}

    def snapshot(self, name: str, folder: StrPath, *, progress: Progress | None = None) -> int:
        """Copy one state of a collection, sealed as it is, into a collection of that name in
        `folder`, which `PersistentClient` opens; returns its rows. Needs no key, and from a server
        the verb read. `progress(done, total)` counts bytes. Raises CollectionNotFound,
        CollectionExists when the folder has one, CorruptData, StorageError."""
        with self._open():
            into = _native.Client.in_folder(Path(at_home(folder)), None, False)
            check_name(name)
            try:
                with told(upload=progress):
                    return self._native.copy_to(self._host, name, into)
            except CollectionExists as error:
                raise CollectionExists(
                    f"{folder} holds a copy of {name!r} already. Choose another folder, one for each snapshot."
                ) from error

    def restore(
        self,
        name: str,
        folder: StrPath,
        *,
        allow_open: bool = False,
        progress: Progress | None = None,
    ) -> Collection:
        """Take a collection back from a `snapshot`, and accept it where later states of it were seen
        here, see `accept_restore`; `allow_open` as of `get_collection`. Raises CollectionExists when it is still there
        (delete it first), CollectionNotFound, PinMismatch, CorruptData, StorageError."""
        with self._open():
            source = _native.Client.in_folder(Path(at_home(folder)), None, True)
            check_name(name)
            names = sorted(one for one, *_ in source.list_collections(self._host))
            if name not in names:
                there = ", ".join(map(repr, names)) or "none"
                raise CollectionNotFound(
                    f"the folder {folder} holds no copy of {name!r}; it holds: {there}. A copy goes back under its own name."
                )
            if self._keys is not None and not allow_open:
                refuse_open(source.look(self._host, name)[0], name)
            try:
                with told(upload=progress):
                    source.copy_to(self._host, name, self._native)
            except CollectionExists as error:
                raise CollectionExists(
                    f"the collection {name!r} is there, and its copy goes back under that name alone, to which its keys "
                    "are bound. Take a snapshot of what is there if you may need it, call delete_collection, and restore "
                    "again."
                ) from error
            try:
                return self.get_collection(name, allow_open=allow_open)
            except RollbackDetected:
                return self.accept_restore(name)

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """Alone, and not after `close`."""
        with self._lock:
            if self._closed:
                raise CiphervecError(f"this {type(self).__name__} was closed; make another one.")
            yield

    def close(self) -> None:
        """Close every collection, so that another process can write to them; one that another client of this process
        has open too is closed with the last of them. The client can't be used afterwards; closing twice is fine."""
        with self._lock:
            self._closed = True
            for collection in list(self._opened.values()):
                collection._holders.discard(self)
                if not collection._holders:
                    collection.close()
            self._opened.clear()

    def _collection(self, name: str, native: _native.Collection) -> Collection:
        collection = self._kind(
            native,
            self._host,
            _forgetter(self),
            keys=self._keys,
            read_only=self._read_only,
            again=self._opener(name, native.spec.mode),
        )
        collection._holders.add(self)
        self._keep(name, collection)
        return collection

    def _opener(self, name: str, mode: str) -> Callable[[], tuple[_native.Collection, bool]]:
        """Opens a collection anew that is open here, and says whether to be read alone, without keeping the client alive."""

        def refused() -> NoReturn:
            raise CiphervecError(
                f"collection {name!r} was in use by another thread when this process was forked: what is in memory can't be "
                "read here."
            )

        return refused

    def _keep(self, name: str, collection: Collection) -> None:
        """Have this collection open under that name."""
        self._opened[name] = collection

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"{len(self.list_collections())} collections"
        return f"<ciphervec.{type(self).__name__}, {state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a client holds secret keys and can't be pickled. Make it again with the path and the keys."
        )


class PersistentClient(Client):
    """Collections in a folder: every method that returned has been written and synced to disk."""

    _turn = OPENING

    def __init__(
        self, path: StrPath, keys: Keys | Identity | None = None, *, read_only: bool = False
    ) -> None:
        """`path` is made if it isn't there. `keys` may be left out only for collections in mode
        `open`.

        One process writes to a collection at a time; its clients of one folder share what they have open, if
        their keys are the same. With `read_only=True` nothing is locked or written there.
        Segments that fail a check are remembered in the user's data folder (or
        CIPHERVEC_STATE), where a copy of `path` doesn't bring them back. Raises StorageError when the folder can't be used.
        """
        self._path, self._read_only, self._locks = at_home(path), read_only, not read_only
        self._root = Path(self._path)
        held = None if keys is None else checked_holder(keys)._native
        native = _native.Client.in_folder(self._root, held, read_only)
        self._start(native, host_of(None, user_folder(), needed=False), keys)

    def _live(self, name: str) -> Collection | None:
        opened = super()._live(name)
        if opened is None and not self._read_only and not self._alone:
            return opened_in(self._root / name, self._keys)
        return opened

    def _keep(self, name: str, collection: Collection) -> None:
        super()._keep(name, collection)
        if not self._read_only:
            register(self._root / name, collection)

    def _opener(self, name: str, mode: str) -> Callable[[], tuple[_native.Collection, bool]]:
        root, host, keys = self._root, self._host, None if self._keys is None else self._keys._native

        def opened() -> tuple[_native.Collection, bool]:
            # Another process, the parent, may write to it.
            native = _native.Client.in_folder(root, keys, True)
            return native.get_collection(host, name, mode == "open", None), True

        return opened

    @property
    def path(self) -> str:
        """The folder."""
        return self._path


def checked_keys(keys: object) -> Keys:
    """Raises InvalidInput for anything else."""
    if not isinstance(keys, Keys):
        raise InvalidInput(
            f"keys must be ciphervec.Keys, got {type(keys).__name__}. Load them with "
            "ciphervec.Keys.load(path, passphrase=...)."
        )
    return keys


def checked_holder(keys: object) -> Keys | Identity:
    """Keys, or the identity of a member. Raises InvalidInput for anything else."""
    return keys if isinstance(keys, Identity) else checked_keys(keys)


def _exists(name: str) -> CollectionExists:
    return CollectionExists(
        f"the collection {name!r} exists already. Use get_collection, get_or_create_collection, or another name."
    )


def _forgetter(client: Client) -> Any:
    """A collection that is closed leaves its client's table, without keeping the client alive."""
    reference = weakref.ref(client)

    def forget(name: str) -> None:
        live = reference()
        if live is not None:
            live._opened.pop(name, None)

    return forget


def _same_choices(wanted: Choices, there: Collection, *, any_dimension: bool = False) -> None:
    """That a collection was chosen so. What the caller left open is as it is there. Raises InvalidInput."""
    unborn = isinstance(there, UnbornCollection)
    spec = there.like.spec if isinstance(there, UnbornCollection) else there.spec
    choices: Mapping[str, tuple[object, object]] = {
        "dimension": (spec.dimension if any_dimension or unborn else wanted.spec.dimension, spec.dimension),
        "metric": (wanted.spec.metric, spec.metric),
        "mode": (wanted.spec.mode, spec.mode),
        "precision": (wanted.spec.precision, spec.precision),
        "scheme": (wanted.spec.scheme, spec.scheme),
        "bits": (wanted.spec.bits, spec.bits),
        "filterable": (wanted.filterable, there.filterable),
        "originals": (there.originals if wanted.originals is None else wanted.kept, there.originals),
        "sparse": (there.sparse if wanted.sparse is None else wanted.sparse, there.sparse),
        "multi": (
            there.multi if wanted.multi is None or wanted.multi.suits(there.multi) else wanted.multi,
            there.multi,
        ),
        "routing": (there.routing if wanted.routing is None else wanted.routing, there.routing),
    }
    for what, (asked, found) in choices.items():
        if asked != found:
            raise InvalidInput(
                f"collection {spec.collection!r} is there with {what}={found!r}, not {asked!r}. Open it with "
                "get_collection, or choose another name."
            )
