"""The owner's secret key, kept as a file under a passphrase or a wrapping key, as words, or as shares. Its 32 bytes are in
the native module alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn, Protocol

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec, KeyShare, Recipient, SharedKeys
from ..errors import CorruptData, InvalidInput, StorageError, WrongKey
from ..ingest.arrays import count
from ..ingest.files import StrPath, at_home, sync_folder
from . import wrapping
from .identity import Identity, check_passphrase, read_recipient, read_shared

_MOST_SHARES = 255


class HasSpec(Protocol):
    """A `Collection`, `Index` or `Owner`: anything that says which index it belongs to."""

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme."""
        ...


class Keys:
    """The key owner's secret: 32 random bytes from which every other key is derived.

    Make one with `Keys.generate()`, keep it with `save`, get it back with `load`; write
    `recovery_phrase` down on paper, or `share` it with people who have pairs of their own. Losing
    all of these loses the data: nobody else can recover it. It never goes to a server, is never
    printed unasked, and can't be pickled or copied into another process.
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
    def load(cls, path: StrPath, passphrase: str | None = None, *, key_id: str | None = None) -> Keys:
        """Read a key file written by `save`.

        A file that is wrapped names its wrapper, which is asked once.
        `"awskms://alias/ciphervec#my.key"` refuses a file of another wrapper. Whoever may write the
        file and wrap by the same key, as everyone may by an age recipient or an RSA key, can put a
        key of their own there: with `key_id`, told by another way, another key is refused.

        Raises WrongKey when the passphrase or the wrapper does not open it, or it holds another key
        than that of `key_id`; CorruptData when the file was altered or is not a key file,
        StorageError when it cannot be read, InvalidInput when it has a passphrase and none is given
        or the other way round, ServerError when the wrapper is away, AuthenticationError when it
        refuses.
        """
        file, uri = wrapping.named_file(path)
        unwrapped = wrapping.load(file, uri, passphrase, key_id)
        keys = cls(_native.Keys.load(file, passphrase) if unwrapped is None else unwrapped)
        return _expected(keys, key_id, f"{file} holds")

    def save(
        self,
        path: StrPath,
        passphrase: str | None = None,
        *,
        wrapped_by: str | None = None,
        allow_plaintext: bool = False,
    ) -> None:
        """Write the key to a new file, readable by its owner only, encrypted under `passphrase`
        (scrypt, then AEAD), or under a key that a KMS, an HSM, a keyring or age wraps.

        `wrapped_by` names that wrapper: "awskms://…", "gcpkms://…", "azurekv://…", "vault://…",
        "pkcs11:…", "keyring:…" or "age:…". It unwraps once for the check that the file opens.

        Without either the key lies in the file in clear; that must be asked for with
        `allow_plaintext=True`. An existing file is never overwritten. Raises InvalidInput or
        StorageError; of wrappers ServerError, AuthenticationError and WrongKey, as `load`.
        """
        if wrapped_by is None:
            check_passphrase(passphrase, allow_plaintext, "key")
            self._native.save(at_home(path), passphrase, allow_plaintext=allow_plaintext)
            return
        if passphrase is not None or allow_plaintext:
            raise InvalidInput("a key file is wrapped, or under a passphrase, or in clear: give one of them.")
        wrapping.save(self._native, at_home(path), wrapped_by)

    @staticmethod
    def rewrap(paths: Iterable[StrPath], *, wrapped_by: str | None = None) -> list[wrapping.Rewrapped]:
        """Wrap key files anew, in place: by the key of this URI, or by the newest version of the one
        that each names. The keys inside stay, and nothing is sealed again.

        Each file is replaced whole or stays as it was; what became of it is in its result, with the
        `error` if there was one. A service is logged in at once for all files.
        """
        return wrapping.rewrap(paths, wrapped_by)

    def split(self, need: int, of: int) -> list[KeyShare]:
        """The key in `of` shares: any `need` of them give it back with `combine`, fewer nothing.

        Give each to another holder; a share's `save` writes it to a file. Raises InvalidInput.
        """
        if not 2 <= count(need, "need") <= count(of, "of") <= _MOST_SHARES:
            raise InvalidInput(
                f"2 <= need <= of <= {_MOST_SHARES} shares expected, got need {need} of {of}: one alone would be the key."
            )
        return KeyShare._split(self._native, need, of)

    @classmethod
    def combine(cls, shares: Iterable[KeyShare | StrPath], *, key_id: str | None = None) -> Keys:
        """The key that `split` took apart, from as many shares as it needs, or their files.

        With `key_id`, told by another way, shares of another key are refused. Raises InvalidInput
        for too few, or shares of different splits; CorruptData for a share that was changed;
        WrongKey.
        """
        read = [one if isinstance(one, KeyShare) else KeyShare.load(at_home(one)) for one in shares]
        return _expected(cls(KeyShare._combine(read)), key_id, "the shares are of")

    def recovery_phrase(self) -> str:
        """The key as 24 English words (BIP-39), to be written down and kept like the key itself:
        whoever reads them has it. Python can't wipe the text from memory."""
        return self._native.recovery_phrase()

    @classmethod
    def from_recovery_phrase(cls, words: str, *, key_id: str | None = None) -> Keys:
        """The key that `recovery_phrase` gave; case and spaces don't matter.

        Of wrong words the checksum lets one in 256 pass: with `key_id`, the id that was noted
        beside them or that `info()` of the collection says, none. Raises InvalidInput, which names
        the place of a word that is not in the list, or WrongKey.
        """
        if not isinstance(words, str):
            raise InvalidInput(f"a recovery phrase is a text of 24 words, got {type(words).__name__}.")
        return _expected(cls(_native.Keys.from_recovery_phrase(words)), key_id, "these words are of")

    def for_tenant(self, name: str) -> Keys:
        """The keys of the tenant of this name, which can be handed out alone: they open what is sealed
        under them and nothing else, neither these keys nor another tenant's.

        They follow from these keys and the name, 1 to 255 bytes: there is nothing to keep, and whoever
        holds these keys has them. Keys that can be destroyed one by one are those of a `KeyRing`.
        Raises InvalidInput.
        """
        return self._derived(self._native.for_tenant, name)

    def for_collection(self, name: str) -> Keys:
        """The keys of one collection, in the same way as `for_tenant`: a client with them makes and opens
        that collection, and `share` hands out nothing else."""
        return self._derived(self._native.for_collection, name)

    @classmethod
    def _derived(cls, of: Callable[[str], _native.Keys], name: str) -> Keys:
        if not isinstance(name, str):
            raise InvalidInput(
                f"keys are derived for a name, a text of 1 to 255 bytes, got {type(name).__name__}."
            )
        return cls(of(name))

    def share(self, recipients: Iterable[Recipient | bytes | StrPath]) -> SharedKeys:
        """Seal the key to several people (HPKE with X-Wing, ML-KEM-768 and X25519): each of them
        opens it with `open_shared`, and nobody else.

        `recipients` are public keys of theirs, their bytes or files; compare the `fingerprint` of
        each with its holder first. The file of `.to_bytes()` may lie anywhere: it shows who can open
        it. To take the key back from somebody, make a new one with `rotate_keys` and share that with
        the others. Raises InvalidInput, CorruptData, StorageError.
        """
        return SharedKeys._seal(self._native, [read_recipient(one) for one in recipients])

    @classmethod
    def open_shared(
        cls, shared: SharedKeys | bytes | StrPath, identity: Identity, *, key_id: str | None = None
    ) -> Keys:
        """The key that somebody shared with the holder of `identity`.

        The file proves that whoever wrote it had the key inside, not that it is the key of your
        collections: with `key_id`, told by another way, another one is refused. Raises WrongKey for
        somebody who is none of the recipients, CorruptData for a file that was changed.
        """
        if not isinstance(identity, Identity):
            raise InvalidInput(f"identity must be ciphervec.Identity, got {type(identity).__name__}.")
        return _expected(cls(read_shared(shared)._open(identity._native)), key_id, "the file holds")

    @property
    def key_id(self) -> str:
        """The public name of this key, in hexadecimal. Everything sealed under it carries it."""
        return self._native.key_id

    def evaluation(self, collection: HasSpec | IndexSpec, *, epoch: int = 0) -> EvaluationKeys:
        """What a server needs to answer encrypted queries to `collection`; none of it is secret.

        Send `.to_bytes()` (at most 1.5 MB) and give it to `ServerIndex.set_evaluation_keys`. Empty
        in the modes whose queries are not encrypted. A query key lives for one `epoch`; a new epoch
        needs new evaluation keys. Under the additively homomorphic schemes they are the public key,
        which the collection has: `collection.evaluation()`.
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


def _expected(keys: Keys, key_id: str | None, where: str) -> Keys:
    if key_id is not None and keys.key_id != key_id:
        raise WrongKey(f"{where} key {keys.key_id}, not {key_id}.")
    return keys


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
    file_path, name = Path(at_home(path)), os.fspath(path)
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
