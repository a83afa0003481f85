"""Identity: a person's pair enters and leaves as a passphrase-protected file; its public half, which
others share keys with, leaves in clear. The side of whoever is to open shared keys."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import ciphervec._native as _native

from .._native import Recipient, SharedKeys
from ..errors import InvalidInput
from ..ingest.files import StrPath, at_home, read_file
from ..ingest.passphrase import weakness
from ..ingest.remarks import remark


class Identity:
    """A person's pair, to which those who hold keys can seal them.

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


def read_shared(source: SharedKeys | bytes | StrPath) -> SharedKeys:
    """Shared keys as an object, as their bytes, or from the file at this path. Raises CorruptData,
    StorageError."""
    if isinstance(source, SharedKeys):
        return source
    return SharedKeys.from_bytes(source if isinstance(source, bytes) else read_file(Path(at_home(source))))


__all__ = ["Identity", "Recipient", "SharedKeys", "check_passphrase", "read_recipient", "read_shared"]
