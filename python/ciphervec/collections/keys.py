"""The owner's secret key, kept as a file under a passphrase or a wrapping key, as words, or as shares; those of many tenants in
a ring of files; and identities that a key is shared with. Secret bytes are in the native module alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import ascii_lowercase, digits
from typing import NoReturn, Protocol

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec, KeyShare, MemberCard, Recipient, SharedKeys
from ..errors import CorruptData, InvalidInput, StorageError, WrongKey
from ..ingest.arrays import count
from ..ingest.files import StrPath, at_home, read_file, sync_folder
from ..ingest.passphrase import weakness
from ..ingest.remarks import remark
from . import wrapping


class Identity:
    """A person, to whom those who hold keys can seal them, and who can be a member of collections: a client is made with
    it in the place of keys, `PersistentClient("db", alice)`, and signs what it commits.

        alice = ciphervec.Identity.generate("alice")          # she
        alice.save("alice.key", passphrase="…")
        Path("alice.pub").write_bytes(alice.recipient.to_bytes())

        shared = keys.share([alice_pub, bob_pub])              # the owner
        keys = ciphervec.Keys.open_shared(shared, alice)       # she again

    X-Wing, that is ML-KEM-768 with X25519. It never leaves the process but by `save`, is never
    printed, and can't be pickled.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Identity) -> None:
        """Not for callers: use `Identity.generate(name)` or `Identity.load(path, passphrase=...)`."""
        if not isinstance(native, _native.Identity):
            raise InvalidInput(
                "use Identity.generate(name) for a new pair or Identity.load(path) for a saved one."
            )
        self._native = native

    @classmethod
    def generate(cls, name: str) -> Identity:
        """A new pair for the person of this name, 1 to 64 bytes: those who share see it. Raises
        InvalidInput."""
        return cls(_native.Identity.generate(name))

    @classmethod
    def load(cls, path: StrPath, passphrase: str | None = None) -> Identity:
        """Read what `save` wrote. Raises WrongKey, CorruptData, StorageError, or InvalidInput when it
        has a passphrase and none is given."""
        return cls(_native.Identity.load(at_home(path), passphrase))

    def save(self, path: StrPath, passphrase: str | None = None, *, allow_plaintext: bool = False) -> None:
        """Write the pair to a new file, readable by its owner only, as `Keys.save` does. Raises
        InvalidInput or StorageError."""
        check_passphrase(passphrase, allow_plaintext, "pair")
        self._native.save(at_home(path), passphrase, allow_plaintext=allow_plaintext)

    @property
    def name(self) -> str:
        """The person's name."""
        return self.recipient.name

    @property
    def recipient(self) -> Recipient:
        """The public half, for whoever shares keys with this person."""
        return self._native.recipient

    @property
    def member_card(self) -> MemberCard:
        """The public half, for owners of collections who make this person a member: see `Members.add`."""
        return self._native.member_card

    def __repr__(self) -> str:
        return f"<ciphervec.Identity {self.name!r}, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a person's pair can't be pickled. Use save(path, passphrase=...) and Identity.load there."
        )


def check_passphrase(passphrase: str | None, allow_plaintext: bool, what: str) -> None:
    """Raises InvalidInput for a secret that would be written in clear unasked, and warns of a passphrase
    that would be guessed."""
    if passphrase is not None and not passphrase:
        raise InvalidInput(
            "the passphrase is empty. Choose one, or pass allow_plaintext=True and no passphrase."
        )
    if passphrase is None and not allow_plaintext:
        raise InvalidInput(
            f"save() needs passphrase=... to protect the {what}. To store it in clear (on an encrypted disk, in a "
            "secrets manager's mount), say so with allow_plaintext=True."
        )
    if passphrase is not None and (weak := weakness(passphrase)):
        remark(weak)


def read_recipient(source: Recipient | bytes | StrPath) -> Recipient:
    """A public key as an object, as its bytes, or from the file at this path. Raises CorruptData,
    StorageError."""
    if isinstance(source, Recipient):
        return source
    return Recipient.from_bytes(source if isinstance(source, bytes) else read_file(Path(at_home(source))))


def read_card(source: MemberCard | bytes | StrPath) -> bytes:
    """The bytes of a member's card, or those of the file at this path. Raises StorageError."""
    if isinstance(source, MemberCard):
        return source.to_bytes()
    return source if isinstance(source, bytes) else read_file(Path(at_home(source)))


def read_shared(source: SharedKeys | bytes | StrPath) -> SharedKeys:
    """Shared keys as an object, as their bytes, or from the file at this path. Raises CorruptData,
    StorageError."""
    if isinstance(source, SharedKeys):
        return source
    return SharedKeys.from_bytes(source if isinstance(source, bytes) else read_file(Path(at_home(source))))


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
