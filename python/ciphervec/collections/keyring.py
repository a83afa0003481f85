"""A folder of key files, one for each tenant, for owners who serve many: every file opens what is sealed under it and nothing
else, and is destroyed alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase, digits

import ciphervec._native as _native

from ..errors import CorruptData, InvalidInput, StorageError, WrongKey
from ..ingest.files import StrPath, at_home
from .keys import Keys, shred

MOST_NAME = 64
"""Bytes of the longest name."""
_PLAIN = frozenset((ascii_lowercase + digits + "-_").encode())
_BEFORE, _AFTER = "tenant-", ".key"


class KeyRing:
    """The keys of tenants, each in a file of its own in one folder, under a passphrase or a wrapping key.

    The keys don't depend on each other: whoever is handed one opens what that tenant has and nothing
    else, and what a tenant had is unreadable for everybody once the copies of the file are destroyed.
    `Keys.rewrap` wraps the files of a folder anew. Safe for threads; other processes may add and
    destroy keys of the folder.
    """

    def __init__(
        self, folder: StrPath, passphrase: str | None = None, *, wrapped_by: str | None = None
    ) -> None:
        """`folder` is made by the first `add`. `passphrase` opens the files and protects new ones;
        `wrapped_by` names what wraps new ones, as in `Keys.save`. Raises InvalidInput for both."""
        if passphrase is not None and wrapped_by is not None:
            raise InvalidInput(
                "a key file is wrapped, or under a passphrase: give one of passphrase= and wrapped_by=."
            )
        self._folder = Path(at_home(folder))
        self._passphrase, self._wrapped_by = passphrase, wrapped_by
        self._lock = threading.Lock()
        self._opened: dict[str, Keys] = {}

    def add(self, name: str) -> Keys:
        """A new key for the tenant of this name, 1 to 64 bytes. Raises InvalidInput where there is one already, or
        where the ring has neither a passphrase nor a wrapper; StorageError, and what a wrapper raises."""
        path = self._path(name)
        if self._passphrase is None and self._wrapped_by is None:
            raise InvalidInput(
                f"new keys of {self._folder} are protected by a passphrase or a wrapper: give passphrase= or wrapped_by=."
            )
        with self._lock:
            if path.exists():
                raise InvalidInput(f"tenant {name!r} has a key in {self._folder} already.")
            self._make_folder()
            keys = Keys.generate()
            keys.save(path, self._passphrase, wrapped_by=self._wrapped_by)
            self._opened[name] = keys
            return keys

    def __getitem__(self, name: str) -> Keys:
        """The key of a tenant; a file is opened once. Raises InvalidInput where it has none, CorruptData where two
        tenants' files hold one key, WrongKey for a file that is not protected as the ring's are, and what `Keys.load`
        raises."""
        with self._lock:
            # Another process may have destroyed it, or made another one.
            key_id = self._key_id(name)
            known = self._opened.get(name)
            if known is not None and known.key_id == key_id:
                return known
            self._opened.pop(name, None)
        opened = self._load(name, key_id)  # a wrapper may take long, and others need not wait
        with self._lock:
            return self._opened.setdefault(name, opened)

    def _load(self, name: str, key_id: str) -> Keys:
        path = self._path(name)
        for other in self:
            if other != name and self._key_id(other) == key_id:
                raise CorruptData(
                    f"tenants {name!r} and {other!r} have the same key in {self._folder}: one file was put in another's place."
                )
        protection, *_ = _native.key_file_label(str(path))
        if protection == "clear" and (self._passphrase is not None or self._wrapped_by is not None):
            raise WrongKey(
                f"{path} holds its key in clear, where this ring's are protected: somebody put it there."
            )
        source = path if self._wrapped_by is None else f"{self._wrapped_by}#{path}"
        return Keys.load(source, self._passphrase if protection == "passphrase" else None, key_id=key_id)

    def key_id(self, name: str) -> str:
        """The id of a tenant's key, as its file says; it is not opened. Raises InvalidInput where it has none."""
        with self._lock:
            return self._key_id(name)

    def destroy(self, name: str, confirm: str | None = None) -> str:
        """Destroy the key of a tenant, as `ciphervec keys shred` does; its id. What is sealed under it is lost with
        the last copy of the file, backups included. `confirm` is the key's id. Raises InvalidInput without it."""
        with self._lock:
            if confirm != self._key_id(name):
                raise InvalidInput(
                    f"all that is sealed for tenant {name!r} is lost with its key. If you want that, confirm with its id, "
                    f"{self._key_id(name)}."
                )
            gone = shred(self._path(name), confirm)
            self._opened.pop(name, None)
            return gone

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._path(name).exists()

    def __iter__(self) -> Iterator[str]:
        """The names, in their order."""
        found = self._folder.glob(f"{_BEFORE}*{_AFTER}") if self._folder.is_dir() else ()
        return iter(sorted(_name(path) for path in found))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<ciphervec.KeyRing {str(self._folder)!r}, {len(self)} keys>"

    def _path(self, name: str) -> Path:
        if not isinstance(name, str):
            raise InvalidInput(f"a tenant's name is a text, got {type(name).__name__}.")
        try:
            data = name.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"a tenant's name is Unicode text, got {name!a}.") from error
        if not 1 <= len(data) <= MOST_NAME:
            raise InvalidInput(f"a tenant's name has 1 to {MOST_NAME} bytes, got {len(data)}.")
        # No two names share a file, where capitals tell files apart and where they don't.
        shown = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in data)
        return self._folder / f"{_BEFORE}{shown}{_AFTER}"

    def _key_id(self, name: str) -> str:
        path = self._path(name)
        if not path.exists():
            self._opened.pop(name, None)
            raise InvalidInput(
                f"tenant {name!r} has no key in {self._folder}: it was destroyed, or is in another folder."
            )
        _, sort, key_id, _ = _native.key_file_label(str(path))
        if sort != "master":
            raise CorruptData(f"{path} is no tenant's key file, but one of another kind.")
        return key_id

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make {self._folder}: {error.strerror or error}.") from error


def _name(path: Path) -> str:
    shown = path.name.removeprefix(_BEFORE).removesuffix(_AFTER)
    try:
        head, *rest = shown.split("%")
        pieces = (bytes([int(one[:2], 16)]) + one[2:].encode() for one in rest)
        return (head.encode() + b"".join(pieces)).decode()
    except ValueError as error:
        raise CorruptData(f"{path} is no file of a key ring: its name is none that one writes.") from error
