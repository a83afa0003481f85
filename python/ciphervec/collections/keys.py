"""Secret keys: the secret 32 bytes enter and leave as a passphrase-protected file; what a server
needs leaves in clear. Owner only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn, Protocol

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec
from ..errors import CorruptData, InvalidInput, StorageError
from ..ingest.arrays import count
from ..ingest.files import StrPath, sync_folder


class HasSpec(Protocol):
    """A `Collection`, `Index` or `Owner`: anything that says which index it belongs to."""

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme."""
        ...


class Keys:
    """The key owner's secret: 32 random bytes from which every other key is derived.

    Make one with `Keys.generate()`, keep it with `save`, get it back with `load`. Losing it loses
    the data; there is no recovery. It never goes to a server, is never printed, and can't be
    pickled or copied into another process.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Keys) -> None:
        """Not for callers: use `Keys.generate()` or `Keys.load(path, passphrase=...)`."""
        if not isinstance(native, _native.Keys):
            raise InvalidInput(
                "use Keys.generate() for a new key or Keys.load(path, passphrase=...) for a saved one."
            )
        self._native = native

    @classmethod
    def generate(cls) -> Keys:
        """A new key from the operating system's random generator."""
        return cls(_native.Keys.generate())

    @classmethod
    def load(cls, path: StrPath, passphrase: str | None = None) -> Keys:
        """Read a key file written by `save`.

        Raises WrongKey when the passphrase does not open it, CorruptData when the file was altered
        or is not a key file, StorageError when it cannot be read, InvalidInput when it has a
        passphrase and none is given.
        """
        return cls(_native.Keys.load(os.fspath(path), passphrase))

    def save(self, path: StrPath, passphrase: str | None = None, *, allow_plaintext: bool = False) -> None:
        """Write the key to a new file, readable by its owner only, encrypted under `passphrase`
        (scrypt, then AEAD).

        Without a passphrase the key lies in the file in clear; that must be asked for with
        `allow_plaintext=True`. An existing file is never overwritten. Raises InvalidInput or
        StorageError.
        """
        _native_save(self._native, os.fspath(path), passphrase, allow_plaintext)

    @property
    def key_id(self) -> str:
        """The public name of this key, in hexadecimal. Everything sealed under it carries it."""
        return self._native.key_id

    def evaluation(self, collection: HasSpec | IndexSpec, *, epoch: int = 0) -> EvaluationKeys:
        """What a server needs to answer encrypted queries to `collection`; none of it is secret.

        Send `.to_bytes()` (at most 1.5 MB) and give it to `ServerIndex.set_evaluation_keys`. Empty
        in the modes whose queries are not encrypted. A query key lives for one `epoch`; a new epoch
        needs new evaluation keys. Under the additively homomorphic schemes they are the public key,
        which the owner has: `collection.owner.evaluation()`.
        """
        spec = collection if isinstance(collection, IndexSpec) else getattr(collection, "spec", None)
        if not isinstance(spec, IndexSpec):
            raise InvalidInput(
                f"evaluation() takes a collection, an Index or an IndexSpec, got {type(collection).__name__}."
            )
        return self._native.evaluation(spec, count(epoch + 1, "epoch + 1") - 1)

    def __repr__(self) -> str:
        return f"<ciphervec.Keys {self.key_id}, secret>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Keys) and self._native.same(other._native)

    def __hash__(self) -> int:
        return hash(self.key_id)

    def __copy__(self) -> Keys:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Keys:
        # scikit-learn clones an estimator by deep-copying its parameters; the secret is not
        # duplicated.
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "secret keys can't be pickled. Use keys.save(path, passphrase=...) and Keys.load there."
        )


def _native_save(native: _native.Keys, path: str, passphrase: str | None, allow_plaintext: bool) -> None:
    if passphrase is not None and not passphrase:
        raise InvalidInput(
            "the passphrase is empty. Choose one, or pass allow_plaintext=True and no passphrase."
        )
    if passphrase is None and not allow_plaintext:
        raise InvalidInput(
            "save() needs passphrase=... to protect the key. To store it in clear (on an encrypted disk, in a "
            "secrets manager's mount), say so with allow_plaintext=True."
        )
    native.save(path, passphrase, allow_plaintext=allow_plaintext)


_KEY_FILE = b"CVKEYFIL"
_HEAD_BYTES = 16  # magic, version, kind, cost
_ID_BYTES = 8


def shred(path: StrPath, confirm: str | None) -> str:
    """Destroy a key file: overwrite it with random bytes on the disk, then remove it; the key's id.

    `confirm` is that id, typed out. What is sealed under the key is lost with the last copy of the
    file; copies in backups, in snapshots of a file system, or in blocks that a flash disk has set
    aside are not reached from here. Raises InvalidInput without the right `confirm`, CorruptData
    when it is no key file, StorageError.
    """
    file_path, name = Path(path), os.fspath(path)
    try:
        with file_path.open("r+b") as file:
            head = file.read(_HEAD_BYTES + _ID_BYTES)
            if not head.startswith(_KEY_FILE) or len(head) < _HEAD_BYTES + _ID_BYTES:
                raise CorruptData(f"{name} is not a key file; nothing was destroyed.")
            key_id = head[_HEAD_BYTES:].hex()
            if confirm != key_id:
                raise InvalidInput(
                    f"{name} holds the key {key_id}. Everything sealed under it is lost with its last copy; if that is what "
                    f"you want, confirm with {key_id}."
                )
            length = file.seek(0, os.SEEK_END)
            for _ in range(2):
                file.seek(0)
                file.write(os.urandom(length))
                file.flush()
                os.fsync(file.fileno())
        file_path.unlink()
        sync_folder(file_path.absolute().parent)
    except OSError as error:
        raise StorageError(f"cannot destroy {name}: {error.strerror or error}.") from error
    return key_id


_PUBLIC = bytes(32)


def native_for(keys: Keys | None, spec: IndexSpec) -> _native.Keys:
    """The native key that seals under `spec`. Mode `open` hides nothing, so its key is a published
    constant.

    Raises InvalidInput with the next step when a sealed mode is asked for without keys.
    """
    if spec.mode == "open":
        return _native.Keys._from_master(_PUBLIC)
    if keys is None:
        raise InvalidInput(
            f"mode {spec.mode!r} needs keys. Make them with keys = ciphervec.Keys.generate(), keep them with "
            "keys.save('my.key', passphrase=...), and pass keys=keys."
        )
    if not isinstance(keys, Keys):
        raise InvalidInput(f"keys must be ciphervec.Keys, got {type(keys).__name__}.")
    return keys._native
