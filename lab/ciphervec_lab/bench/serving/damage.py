"""Damage run: flips bits and fills a disk; passes if all was noticed and nothing lost. Plays the failing disk."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import ciphervec._native as _native
from ciphervec import CiphervecError, Keys, StorageError
from ciphervec.http import HttpClient, LocalServer

from .kill import DIMENSION, vector

NAME = "damage"
WHOLE = 4_096
"""Files up to so many bytes are flipped at every byte."""


class UndetectedError(CiphervecError):
    """A change of the stored bytes that nobody noticed."""


def flips(
    samples: int,
    notify: Callable[[str], None],
    step: Callable[[], None],
    *,
    seed: int = 0,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Flips one bit at a time in every file of a collection: `samples` bytes of a long file, all of
    a short one. LOCK is left out: what it says is who holds it, for messages.

    Raises UndetectedError for the first that opening and `verify` let pass.
    """
    chance = random.Random(seed)  # noqa: S311
    with tempfile.TemporaryDirectory(prefix="ciphervec-flip-", dir=folder) as temporary:
        data = Path(temporary) / "data"
        with LocalServer(data) as server:
            _fill(server, Keys.generate())
        root = data / NAME
        files = sorted(
            file for file in root.rglob("*") if file.is_file() and file.stat().st_size and file.name != "LOCK"
        )
        count = 0
        for file in files:
            notify(f"{file.name[:24]}, {file.stat().st_size:,} bytes")
            whole = file.read_bytes()
            every = range(len(whole))
            places = every if len(whole) <= WHOLE else sorted(chance.sample(every, min(samples, len(whole))))
            for place in places:
                _flip(file, place, 1 << chance.randrange(8))
                found = _noticed(root)
                file.write_bytes(whole)
                if not found:
                    raise UndetectedError(
                        f"byte {place:,} of {file.relative_to(root)} was flipped and nobody noticed"
                    )
                count += 1
            step()
        if not _noticed_nothing(root):
            raise UndetectedError("the files were put back and are still called damaged")
    return {"run": "flips", "files": len(files), "flips": count}


def full_disk(megabytes: int, notify: Callable[[str], None], *, seed: int = 0) -> dict[str, Any]:
    """Fills a small file system through the server, frees some of it, goes on, and restarts. Raises
    CiphervecError.

    Needs Linux and the right to mount in a namespace of its own; `mountable()` tells.
    """
    keys = Keys.generate()
    with (
        tempfile.TemporaryDirectory(prefix="ciphervec-full-") as temporary,
        _mounted(Path(temporary), megabytes) as prefix,
    ):
        notify(f"a file system of {megabytes} MB")
        data = Path(temporary) / "data"
        server = LocalServer(data, prefix=prefix)
        try:
            with closing(HttpClient(server.url, keys=keys, state=None, retries=0)) as client:
                collection = client.create_collection(NAME, DIMENSION, mode="sealed-index")
                refused = _fill_up(collection, 0, seed)
                stored = collection.count()
                notify(f"full at {stored:,} rows: {refused}")
                _expect(collection, stored)
                # The state before the last is kept as well: room comes with the commit after a
                # deletion.
                gone = stored * 3 // 4
                collection.delete(list(range(gone)))
                collection.add([1 << 40], vector(1 << 40)[None, :])
                collection.optimize()
                kept = {*range(gone, stored), 1 << 40}
        finally:
            server.kill()
        with (
            LocalServer(data, prefix=prefix) as server,
            closing(HttpClient(server.url, keys=keys, state=None)) as client,
        ):
            found = {int(name) for name in client.get_collection(NAME).ids()}
        if found != kept:
            raise CiphervecError(f"after the disk was full {len(found):,} rows are there, not {len(kept):,}")
    return {
        "run": "full disk",
        "megabytes": megabytes,
        "rows_until_full": stored,
        "refusal": refused,
        "rows_after_restart": len(found),
    }


def mountable() -> bool:
    """Whether this system lets us mount a small file system that only our own processes see."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        try:
            with _mounted(Path(folder), 1):
                return True
        except CiphervecError:
            return False


def _fill(server: LocalServer, keys: Keys) -> None:
    with closing(HttpClient(server.url, keys=keys, state=None)) as client:
        collection = client.create_collection(NAME, DIMENSION, mode="sealed-index", filterable=["kind"])
        for start in (0, 300):
            ids = list(range(start, start + 300))
            rows = np.stack([vector(name) for name in ids])
            metadata = [{"kind": name % 3, "text": "x" * (name % 50)} for name in ids]
            collection.add(ids, rows, metadatas=metadata)
        collection.delete(list(range(0, 600, 7)))


def _flip(file: Path, place: int, bit: int) -> None:
    with file.open("r+b") as handle:
        handle.seek(place)
        byte = handle.read(1)[0]
        handle.seek(place)
        handle.write(bytes([byte ^ bit]))


def _noticed(root: Path) -> bool:
    return not _noticed_nothing(root)


def _noticed_nothing(root: Path) -> bool:
    try:
        store = _native.Store.open_read_only(os.fspath(root))
    except CiphervecError:
        return False
    try:
        return not store.verify(None)["problems"]
    finally:
        store.close()


def _fill_up(collection: Any, first: int, seed: int) -> str:
    """Adds until the disk is full; the reason that came back."""
    rows = 1_000
    block = np.random.default_rng(seed).standard_normal((rows, DIMENSION)).astype(np.float32)
    while True:
        try:
            collection.add(list(range(first, first + rows)), block)
        except StorageError as error:
            return str(error)
        first += rows


def _expect(collection: Any, rows: int) -> None:
    """The rows that were acknowledged answer while the disk is full."""
    found = collection.query(vector(1), 5)["ids"][0]
    if len(found) != 5 or collection.count() != rows:
        raise CiphervecError(f"{collection.count():,} of {rows:,} rows are there while the disk is full")


@contextlib.contextmanager
def _mounted(folder: Path, megabytes: int) -> Iterator[list[str]]:
    """A file system of that size on `folder`, seen by commands that are started with the prefix
    yielded."""
    script = f'mount -t tmpfs -o size={megabytes}m none "$0" && echo mounted && exec sleep 86400'
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    holder = subprocess.Popen(  # noqa: S603, a fixed command
        ["unshare", *user, "--mount", "sh", "-c", script, os.fspath(folder)],  # noqa: S607
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        if holder.stdout.readline().strip() != "mounted":
            raise CiphervecError("this system does not let us mount a small file system to fill")
        entering = ["--user", "--preserve-credentials"] if user else []
        yield ["nsenter", "--target", str(holder.pid), *entering, "--mount"]
    finally:
        holder.kill()
        holder.wait()
