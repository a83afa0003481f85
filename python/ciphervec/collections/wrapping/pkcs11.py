"""Wrapping keys of devices and tokens that speak PKCS #11: AES-GCM by an AES key that never leaves it, with key id and URI
as additional authenticated data. What is stored is a random 12-byte nonce, and what the device made."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NoReturn

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.files import at_home, read_text
from ...ingest.forks import open_in_child
from .wrapper import Context, after, attributes, away, denied, gone, not_its_own, shown

_EXAMPLE = "pkcs11:token=TOKEN;object=KEY"
_ATTRIBUTES = ("token", "serial", "object", "id")
_NONCE = 12
_PIN = {
    "PinExpired", "PinIncorrect", "PinInvalid", "PinLenRange", "PinLocked", "UserNotLoggedIn",
    "UserPinNotInitialized", "UserTypeInvalid",
}  # fmt: skip
_NOT_ITS_OWN = {"DataInvalid", "DataLenRange", "EncryptedDataInvalid", "EncryptedDataLenRange"}
_ABSENT = {"NoSuchToken", "SlotIDInvalid", "TokenNotPresent", "TokenNotRecognised"}
_UNFIT = {"FunctionNotSupported", "KeyFunctionNotPermitted", "KeyTypeInconsistent", "MechanismInvalid"}
_ONE = threading.RLock()
"""Held while logged in: a login is the whole process', and the first session that closes ends it for all."""
open_in_child(_ONE)
MODULE, PIN, PIN_FILE = "CIPHERVEC_PKCS11_MODULE", "CIPHERVEC_PKCS11_PIN", "CIPHERVEC_PKCS11_PIN_FILE"
TOKEN = "CIPHERVEC_PKCS11_TOKEN"  # noqa: S105, the name of a variable


class Pkcs11:
    """An AES key of a token, by its label, its id, or both."""

    def __init__(self, uri: str) -> None:
        """Logs in at the token. Raises InvalidInput, AuthenticationError, WrongKey, ServerError."""
        self._uri = uri
        named = attributes(uri, after(uri, "pkcs11:", _EXAMPLE), _ATTRIBUTES)
        if not ({"token", "serial"} & set(named)) or not ({"object", "id"} & set(named)):
            raise InvalidInput(f"{_EXAMPLE}, or serial= and id=, expected, got {shown(uri)}.")
        labels = {name: _label(uri, named.get(name)) for name in ("token", "object")}
        try:
            import pkcs11
        except ImportError:
            raise needed("a key wrapped by a PKCS #11 device", "python-pkcs11", "pkcs11") from None
        module = os.environ.get(MODULE)
        if not module:
            raise InvalidInput(
                f"{uri}: set {MODULE} to the library that the device came with, such as libsofthsm2.so."
            )
        try:
            library = pkcs11.lib(at_home(module))
        except RuntimeError as error:
            raise InvalidInput(f"{MODULE} is {module}, which can't be loaded: {error}") from None
        pin = _pin(uri)
        self._session: Any = None
        _ONE.acquire()
        try:
            token = library.get_token(token_label=labels["token"], token_serial=named.get("serial"))
            _expect(uri, token.label, token.serial)
            try:
                self._session = token.open(user_pin=pin)
            except pkcs11.UserAlreadyLoggedIn:
                self._session = token.open()
            self._key: Any = self._session.get_key(
                object_class=pkcs11.ObjectClass.SECRET_KEY,
                key_type=pkcs11.KeyType.AES,
                label=labels["object"],
                id=named.get("id"),
            )
        except BaseException as error:
            self.close()
            if isinstance(error, pkcs11.PKCS11Error):
                self._refused(error)
            raise

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """One call of the device."""
        nonce = os.urandom(_NONCE)
        return nonce + self._ask("encrypt", nonce, file_key, context)

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """One call of the device."""
        return self._ask("decrypt", wrapped[:_NONCE], wrapped[_NONCE:], context)

    def _ask(self, operation: str, nonce: bytes, data: bytes, context: Context) -> bytes:
        import pkcs11

        if len(nonce) != _NONCE:
            not_its_own(self._uri, "it is too short")
        try:
            how = pkcs11.GCMParams(nonce, aad=context.data, tag_bits=128)
            call = getattr(self._key, operation)
            return bytes(call(data, mechanism=pkcs11.Mechanism.AES_GCM, mechanism_param=how))
        except AttributeError:
            gone(self._uri, f"the key may not {operation}", "Take an AES key that may encrypt and decrypt.")
        except pkcs11.PKCS11Error as error:
            # Devices differ in what they call a tag that does not fit.
            if operation == "decrypt" and type(error).__name__ in {"FunctionFailed", "GeneralError"}:
                not_its_own(self._uri, type(error).__name__)
            self._refused(error)

    def _refused(self, error: Exception) -> NoReturn:
        kind = type(error).__name__
        why = f"{kind}, {error}".rstrip(", ")
        if kind in _PIN:
            denied(
                self._uri, why, f"look at {PIN} or {PIN_FILE}; after a few wrong PINs a token locks itself"
            )
        if kind in _NOT_ITS_OWN:
            not_its_own(self._uri, why)
        if kind in _ABSENT:
            away(self._uri, why, "plug the token in, or look at its label")
        if kind in ("NoSuchKey", "MultipleObjectsReturned", "MultipleTokensReturned"):
            gone(self._uri, why, "Name one AES key of that token; without it the file stays shut.")
        if kind in _UNFIT:
            gone(self._uri, why, "Take an AES key that may encrypt and decrypt by AES-GCM.")
        away(self._uri, why)

    def close(self) -> None:
        """Log out. Once."""
        try:
            if self._session is not None:
                self._session.close()
        finally:
            self._session = None
            _ONE.release()


def _label(uri: str, given: bytes | None) -> str | None:
    try:
        return None if given is None else given.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{_EXAMPLE} expected, labels in UTF-8, got {shown(uri)}.") from None


def _expect(uri: str, label: str, serial: bytes) -> None:
    """Before a PIN is sent, which a token that a changed file names could keep."""
    expected = os.environ.get(TOKEN)
    if expected and expected not in (label, serial.decode("ascii", "replace")):
        step = f"Take the file from a copy, or set {TOKEN} to the label or serial number of the token that is meant."
        gone(uri, f"its token is not {expected}, which {TOKEN} names; no PIN was sent", step)


def _pin(uri: str) -> str:
    """From the environment or a file; never from a URI, which others can see."""
    file = os.environ.get(PIN_FILE)
    if file:
        lines = read_text(Path(at_home(file))).splitlines()
        return lines[0] if lines else ""
    pin = os.environ.get(PIN)
    if pin is None:
        denied(uri, "there is no PIN", f"set {PIN_FILE} to a file that has it, or {PIN}")
    return pin
