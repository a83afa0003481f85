"""Adds a job's sealed batches to the collection, each once. Sealing workers' side, without a key.

A folder or a bucket takes the segments and the ledger's entry in one commit, straight from the
worker. A server's intake knows no ledger, since a token that only appends can't write one: there the
sealed batch lies in a spool folder, which all workers share, before it is sent the first time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import ciphervec._native as _native

from ..errors import CorruptData, InvalidInput, StorageError, StoreLocked
from ..ingest.files import read_file, read_text, storage_errors, sync_folder, write_file
from ..ingest.naming import check_name
from ..ingest.state_folder import user_folder
from ..writer import Writer, WrittenBatch
from ..writer.pending_batch import is_url
from .ledger import Entry, Ledger, attachment_of

_PATIENCE = 600.0
"""Seconds that a worker waits for its turn at a folder: the others write meanwhile."""

_SPOOLED = re.compile(r"(\d{15})-(\d{10})-([0-9a-f]{32})\.(batch|done)")


class Destination(NamedTuple):
    """Where a job's rows go; plain data, which travels."""

    place: str
    """A database's folder, `s3://bucket/prefix`, or a server's URL."""
    job: str
    spool: str | None = None
    token_file: str | None = None
    ca: str | None = None
    key: bytes = b""
    """Of the job, for digests; secret, and known to the sealing cluster alone."""

    def __repr__(self) -> str:
        return f"Destination({self.place!r}, {self.job!r})"

    def check(self) -> None:
        """Raises InvalidInput for what doesn't go together."""
        attachment_of(self.job)
        if is_url(self.place) and self.spool is None:
            raise InvalidInput(
                "a server's intake has no place for what was sealed so far: give spool=, a folder that all workers share and "
                "that outlives them. A folder or a bucket needs none."
            )
        if not is_url(self.place) and (self.spool or self.token_file or self.ca):
            raise InvalidInput(f"spool, token_file and ca are for a server's URL; {self.place!r} is none.")


def sealed_so_far(writer: Writer, to: Destination) -> Ledger:
    """What the job has sealed. Raises CollectionNotFound, WrongKey, StorageError."""
    if is_url(to.place):
        return Ledger(entry for entry, done in _spooled(to) if done)
    store = _native.Store.open_read_only(_path(writer, to))
    try:
        while True:
            writer.expect_meta(store.meta)
            try:
                return _ledger(store, to)
            except CorruptData:
                # Other workers may have replaced it meanwhile, and the file went with the state.
                if not store.refresh():
                    raise
    finally:
        store.close()


def add_once(writer: Writer, to: Destination, entry: Entry, seal: Callable[[], WrittenBatch]) -> bool:
    """Seal a batch and add it, unless the job has done so; whether it was added now. Raises
    InvalidInput where the ledger has other rows in its place, StoreLocked, StorageError."""
    if is_url(to.place):
        return _send(writer, to, entry, seal)
    return _commit(writer, to, entry, seal)


def _commit(writer: Writer, to: Destination, entry: Entry, seal: Callable[[], WrittenBatch]) -> bool:
    """Sealing before the lock is taken lets workers seal beside each other; a batch that turns out
    to be there is thrown away."""
    if sealed_so_far(writer, to).holds(*entry):
        return False
    batch = seal()
    store = _opened(_path(writer, to))
    try:
        staged: _native.StagedSegments | None = None
        while True:
            writer.expect_meta(store.meta)
            ledger = _ledger(store, to)
            if ledger.holds(*entry):
                return False
            if staged is None:
                staged = store.stage(list(batch.segments))
            attached = {attachment_of(to.job): ledger.with_entry(entry).to_bytes()}
            if store.commit_staged(staged, attached) is not None:
                return True
    finally:
        store.close()


def _send(writer: Writer, to: Destination, entry: Entry, seal: Callable[[], WrittenBatch]) -> bool:
    """What lies in the spool is sent, by whoever finds it, until it is marked as done: sent twice it
    is added once."""
    ledger = Ledger(one for one, _ in _spooled(to))
    done = _spool(to) / _file(entry, "done")
    if ledger.holds(*entry) and done.exists():
        return False
    path = _spool(to) / _file(entry, "batch")
    if not path.exists():
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        write_file(draft, seal().to_bytes())
        with storage_errors(f"cannot write {path}"):
            # Whoever is first decides what the batch is: a link replaces nothing.
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
            draft.unlink()
            sync_folder(path.parent)
    if done.exists():
        path.unlink(missing_ok=True)
        return False
    token = None if to.token_file is None else read_text(Path(to.token_file)).split()[0]
    writer.send(to.place, WrittenBatch.load(path), token=token, ca=to.ca)
    write_file(done, b"")
    path.unlink(missing_ok=True)
    return True


def _path(writer: Writer, to: Destination) -> str:
    name = check_name(writer.spec.collection)
    if to.place.startswith("s3://"):
        return f"{to.place.rstrip('/')}/{name}"
    return os.fspath(writer.folder_of(Path(to.place)))


def _opened(path: str) -> _native.Store:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return _native.Store.open(path)
        except StoreLocked:
            if time.monotonic() > until:
                raise
            time.sleep(0.005 + secrets.randbelow(20) / 1000)


def _ledger(store: _native.Store, to: Destination) -> Ledger:
    try:
        data = store.attachment(attachment_of(to.job))
    except CorruptData as error:
        if str(error).startswith("no blob named"):  # and none that is damaged
            return Ledger().under(to.key)
        raise
    return Ledger.from_bytes(data).under(to.key)


def key_of(to: Destination, collection: str, file: str | None) -> bytes:
    """The job's key: 32 random bytes from `file`, or where this user keeps state; drawn at the first
    run. A spool has its own. Raises StorageError, CorruptData."""
    if file is not None:
        path = Path(file)
    elif to.spool is not None:
        path = _spool(to) / "key"
    else:
        about = f"{to.place}\n{collection}\n{to.job}".encode()
        name = hashlib.blake2b(about, digest_size=12).hexdigest()
        path = user_folder() / "sealing" / f"{name}.key"
    with storage_errors(f"cannot make the key {path}"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as opened:
                opened.write(secrets.token_bytes(32))
                opened.flush()
                os.fsync(opened.fileno())
            try:
                os.link(draft, path)  # whoever is first decides
            finally:
                draft.unlink()
            sync_folder(path.parent)
    key = read_file(path)
    if len(key) != 32:
        raise CorruptData(f"{path} is no key of a sealing job: 32 bytes expected, {len(key)} are there.")
    return key


def _spool(to: Destination) -> Path:
    folder = Path(to.spool or "") / to.job
    with storage_errors(f"cannot create the spool {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _file(entry: Entry, kind: str) -> str:
    return f"{entry.start:015d}-{entry.rows:010d}-{entry.digest.hex()}.{kind}"


def _spooled(to: Destination) -> list[tuple[Entry, bool]]:
    """Every batch in the spool, and whether it arrived."""
    found: dict[Entry, bool] = {}
    try:
        names = [entry.name for entry in os.scandir(_spool(to))]
    except OSError as error:
        raise StorageError(f"cannot list the spool {to.spool}: {error.strerror or error}.") from error
    for name in names:
        if match := _SPOOLED.fullmatch(name):
            entry = Entry(int(match[1]), int(match[2]), bytes.fromhex(match[3]))
            found[entry] = found.get(entry, False) or match[4] == "done"
    return sorted(found.items())
