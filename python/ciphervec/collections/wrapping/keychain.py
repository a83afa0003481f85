"""Wrapping keys of the system's keyring: 32 random bytes, made by the first use of a name, which the keyring keeps while
somebody is logged in. File keys are sealed under them here (XChaCha20-Poly1305)."""

from __future__ import annotations

import base64
import secrets
from typing import Any

import ciphervec._native as _native

from ...errors import CorruptData, InvalidInput
from ...ingest.extras import needed
from ...ingest.state_folder import locked, user_folder
from .wrapper import Context, after, away, denied, gone, not_its_own, without

_EXAMPLE = "keyring:NAME"
_SERVICE = "ciphervec"
"""Under which the keyring keeps all of them: a key file can name no other entry."""
_BYTES = 32


class Keyring:
    """A key of the system's keyring."""

    def __init__(self, uri: str) -> None:
        """Asks nothing yet. Raises InvalidInput."""
        self._uri, self._name = uri, after(uri, "keyring:", _EXAMPLE)
        try:
            import keyring
        except ImportError:
            raise needed("a key wrapped by the system's keyring", "keyring", "keyring") from None
        self._keyring: Any = keyring

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """Makes the wrapping key if there is none of that name."""
        if self._read() is None:
            # Two first uses at once would each make one, and the later would replace what has wrapped a file.
            with locked(user_folder() / "keyring.lock"):
                if self._read() is None:
                    self._call("set_password", base64.b64encode(secrets.token_bytes(_BYTES)).decode())
        return _native.wrap_locally(file_key, self._wrapping(), context.data)

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """By the wrapping key of that name."""
        wrapping = self._wrapping()
        try:
            return _native.unwrap_locally(wrapped, wrapping, context.data)
        except CorruptData:
            not_its_own(self._uri, "it was sealed under another key than the one of that name")

    def _wrapping(self) -> bytes:
        found = self._read()
        if found is None:
            step = (
                "Log in as the user, on the machine, that wrapped the file; without it the file stays shut."
            )
            gone(self._uri, "the keyring has no key of that name", step)
        try:
            key = base64.b64decode(found, validate=True)
        except ValueError:
            key = b""
        if len(key) != _BYTES:
            gone(self._uri, "the keyring's entry of that name is no key", "Restore it, or take another name.")
        return key

    def _read(self) -> str | None:
        found = self._call("get_password")
        return None if found is None else str(found)

    def _call(self, operation: str, *given: str) -> Any:
        from keyring.errors import InitError, KeyringError, KeyringLocked, NoKeyringError

        try:
            return getattr(self._keyring, operation)(_SERVICE, self._name, *given)
        except NoKeyringError:
            raise InvalidInput(
                f"{self._uri}: there is no keyring on this machine. Take another wrapper, or a passphrase."
            ) from None
        except (InitError, KeyringLocked) as error:
            denied(self._uri, f"{type(error).__name__}, {without(error, *given)}", "unlock the keyring")
        except KeyringError as error:
            away(self._uri, f"{type(error).__name__}, {without(error, *given)}")

    def close(self) -> None:
        """Nothing is held."""
