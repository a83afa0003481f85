"""Seals rows under a card into segments that nobody here can decrypt. Runs on the writer's side, without a secret."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import ciphervec._native as _native

from .._native import IndexSpec, WriterCard
from ..collections.batch import KEY_PAIR_ROWS, SEGMENT_ROWS, Batch, NewSegment, WriteBatch
from ..errors import CollectionNotFound, CorruptData, InvalidInput, PinMismatch, StorageError, WrongKey
from ..ingest.arrays import Id, Vectors
from ..ingest.files import StrPath, at_home
from ..ingest.naming import check_name
from ..ingest.records import payload
from ..ingest.remarks import Progress
from .pending_batch import WrittenBatch, is_url, post

_REQUEST_BYTES = 16 << 20
_SEGMENT_BYTES = 256 << 20
_EXPECTED = 32
"""Times its rows that a segment is packed for at most."""


class Writer:
    """Adds rows to a collection and reads none: what an edge device holds.

        card = collection.writer_card("door 3")        # the owner, once; card.to_bytes() goes to the device
        writer = Writer(card, fingerprint="…")          # the device
        writer.add_to("db", ids, embeddings)            # or a server: add_to("https://…", …, token=…)

    Every segment is sealed under a key that is drawn for it, wrapped to the owner (HPKE with
    X-Wing, ML-KEM-768 and X25519) and forgotten. A stolen device exposes what it is sealing at that
    moment and nothing it sealed before. It can not make filter tags, which are keyed: the owner
    makes them with `adopt` or `optimize`.
    """

    def __init__(self, card: WriterCard | bytes | StrPath, *, fingerprint: str | None = None) -> None:
        """`card` as an object, as its bytes, or the path of a file that holds them. With
        `fingerprint`, from the owner and not from where the card came, another card is refused: one
        whose public key is somebody else's would send everything to them. Raises PinMismatch,
        CorruptData, UnsupportedVersion, StorageError."""
        self._card = read_card(card)
        if fingerprint is not None and fingerprint != self._card.fingerprint:
            raise PinMismatch(
                f"the card's fingerprint is {self._card.fingerprint}, not {fingerprint}: this is not the card that the "
                "owner made. Nothing was sealed; get the card from the owner again."
            )
        self._native = _native.Writer(self._card)

    @property
    def card(self) -> WriterCard:
        """The card: public, and the same before and after any call."""
        return self._card

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme of the collection."""
        return self._card.spec

    def seal(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        expected_rows: int | None = None,
        for_server: bool = True,
        progress: Progress | None = None,
    ) -> WrittenBatch:
        """Seal n rows, as `Collection.add` takes them, and keep nothing.

        `expected_rows` is how many the collection is to hold, where more come than these: it chooses
        how the rows are packed, deeper for more, with shorter answers. With `for_server=False`
        segments are as large as a folder or a bucket takes them, and not only a server's intake.

        To send them again after a failure, send the same batch again: sealed anew they would be
        other segments. Raises InvalidInput, or DuplicateId when an id repeats; ids that are in the
        collection already are not known here, and the row that is committed last counts.
        """
        batch = Batch.of(self.spec, ids, embeddings, metadatas, documents)
        names, rows = batch.ids, batch.rows
        if not names:
            raise InvalidInput("there is nothing to seal: 0 ids were given.")
        payloads = [
            payload(record, f"id {name!r}") for name, record in zip(names, batch.records, strict=True)
        ]
        step = segment_rows(self.spec, for_server=for_server)
        segments = []
        for start in range(0, len(names), step):
            stop = min(start + step, len(names))
            # What comes beside it is not there when it is committed, and a server does not take a
            # segment that is packed for far more rows than it sees.
            expected = max(len(names), expected_rows or 0)
            if for_server:
                expected = min(expected, _EXPECTED * (stop - start))
            sealed = self._native.seal(rows[start:stop], names[start:stop], payloads[start:stop], expected)
            segments.append(NewSegment(*sealed))
            if progress is not None:
                progress(stop, len(names))
        return WrittenBatch(segments)

    def add_to(
        self,
        place: StrPath,
        ids: Id | Iterable[Id],
        embeddings: Vectors,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        token: str | None = None,
        ca: StrPath | None = None,
        progress: Progress | None = None,
    ) -> WrittenBatch:
        """Seal rows and send them, see `seal` and `send`; the batch that was sent."""
        batch = self.seal(ids, embeddings, metadatas, documents, for_server=is_url(place), progress=progress)
        self.send(place, batch, token=token, ca=ca)
        return batch

    def send(
        self, place: StrPath, batch: WrittenBatch, *, token: str | None = None, ca: StrPath | None = None
    ) -> None:
        """Add a sealed batch to the collection: to a folder in one commit, to a server in one
        for each segment, of at most 16 MB.

        `place` is a database's folder, or the URL of a server, for which a token with the verb
        `append` is enough (it adds and does nothing else), and `ca` a file of certificates if its
        own is not from a public authority. A batch that is there already is not added twice, also if
        only a part of it arrived: after an error, or another process has read it from a file, send
        it again. It is known by its key for the next 256 commits, and by its segments for as long
        as they are there. Raises CollectionNotFound, WrongKey when the collection is not the card's any
        more, StoreLocked, StorageError, AuthenticationError, ServerError.
        """
        if is_url(place):
            post(str(place), check_name(self.spec.collection), batch, token, ca)
        elif token is not None:
            raise InvalidInput(f"a token is for a server's URL; {os.fspath(place)!r} is a folder.")
        else:
            self._append(Path(at_home(place)), batch)

    def _append(self, folder: Path, batch: WrittenBatch) -> None:
        store = _native.Store.open(os.fspath(self.folder_of(folder)))
        try:
            self.expect_meta(store.meta)
            present = {segment[0] for segment in store.segments()}
            change = WriteBatch(add=[new for new in batch.segments if new.id not in present])
            if change.add:
                # By its key it is known even after its segments were sealed anew by the owner.
                store.commit(add=list(change.add), key=bytes.fromhex(batch.key))
        finally:
            store.close()

    def folder_of(self, database: Path) -> Path:
        """Where the card's collection lies in a database's folder. Raises CollectionNotFound."""
        path = database / check_name(self.spec.collection)
        if not path.is_dir():
            raise CollectionNotFound(
                f"there is no collection {self.spec.collection!r} in {database}; check the path."
            )
        return path

    def expect_meta(self, meta: bytes) -> None:
        """Compare the public part of a collection's description with the card. Raises WrongKey,
        CorruptData."""
        name = self.spec.collection
        try:
            content: dict[str, Any] = json.loads(meta)
            spec = base64.b64decode(content["spec"], validate=True)
            rotation = content.get("rotation") or {}
            keys: Sequence[str] = (str(content["key_id"]), str(rotation.get("previous_id")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptData(f"the description of collection {name!r} does not parse ({error}).") from error
        if spec != self.spec.to_bytes() or self._card.key_id not in keys:
            raise WrongKey(
                f"the card is for {self.spec!r} under key {self._card.key_id}, and the collection here is another or was "
                "given new keys. Nothing was added; ask the owner for a new card."
            )

    def __repr__(self) -> str:
        return f"<ciphervec.Writer {self._card.writer!r} for {self.spec.collection!r}, no secret>"


def segment_rows(spec: IndexSpec, *, for_server: bool = True) -> int:
    """So few that a segment goes into one request, or else into a worker's memory: a vector takes at
    most 8 bytes a number, 64 under ElGamal, and the ring form pads to a power of two."""
    padded = 1 << (spec.dimension - 1).bit_length()
    most = SEGMENT_ROWS if spec.scheme == "lattice" else KEY_PAIR_ROWS
    room = _REQUEST_BYTES if for_server else _SEGMENT_BYTES
    return max(64, min(most, room // (padded * (64 if spec.scheme == "elgamal" else 8))))


def read_card(card: WriterCard | bytes | StrPath) -> WriterCard:
    """A card as an object, as its bytes, or from the file at this path. Raises CorruptData,
    StorageError."""
    if isinstance(card, WriterCard):
        return card
    if isinstance(card, bytes):
        return WriterCard.from_bytes(card)
    try:
        return WriterCard.from_bytes(Path(at_home(card)).read_bytes())
    except OSError as error:
        raise StorageError(f"cannot read the card {os.fspath(card)}: {error.strerror or error}.") from error


__all__ = ["Writer", "WriterCard", "WrittenBatch", "read_card"]
