"""What the holders of wrapping keys have in common, for those who add one. A key file names a wrapping key, never a host to
send credentials to, code to load, or a secret: those come from the environment."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, NoReturn, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote_to_bytes

from ...errors import AuthenticationError, InvalidInput, ServerError, WrongKey

_NAMES = {"pkcs11:": "token|serial|object|id", "awskms:": "region"}
"""Of values that are nobody's secret. What else is given a value may be one, whatever its name."""
_SECRET = re.compile(r"(?<=//).*(?=@)|(?<=AGE-SECRET-KEY-)[\w-]*", re.I | re.S)
_HEADER = re.compile(
    r"(?P<name>\b(?:authorization|x-amz-security-token|x-vault-token)\W{0,3}[=:]|\b(?:aws4-hmac-sha256|bearer)\s).*",
    re.I | re.S,
)
_LONGEST = 300
"""Characters of what a service says."""
_SHORTEST = 8
"""Characters of a secret: the letters of a shorter one are in every text."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def shown(uri: str) -> str:
    """A URI that is refused, without what somebody may have put into it that is nobody else's."""
    names = _NAMES.get(uri.partition(":")[0] + ":", "(?!)")
    value = re.compile(rf"(?P<kept>(?<![^:;?&])(?:{names})=[^;&?#]*)|(?P<name>[^:;&?#/=]*=).*", re.S)
    told = value.sub(lambda found: found["kept"] or f"{found['name']}…", _SECRET.sub("…", uri))
    return told if told.isprintable() else ascii(told)


def without(said: object, *secrets: str | bytes) -> str:
    """What a service or its client says, without credentials and what it was sent, of which some tell a part."""
    text = str(said)
    for secret in secrets:
        for form in (secret,) if isinstance(secret, str) else _forms(secret):
            text = text.replace(form, "…") if len(form) >= _SHORTEST else text
    return _HEADER.sub(lambda found: f"{found['name']}…", text)


def _forms(secret: bytes) -> Iterable[str]:
    plain, in_urls = base64.b64encode(secret), base64.urlsafe_b64encode(secret)
    return [plain.decode().rstrip("="), in_urls.decode().rstrip("="), secret.hex(), secret.decode("latin-1")]


def _line(said: object) -> str:
    """On one line, of bounded length: nobody chose what a service sends to a terminal."""
    line = " ".join("".join(one if one.isprintable() else " " for one in str(said)).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def is_local(place: SplitResult) -> bool:
    """Whether requests stay on this machine, where nobody reads them who does not read its memory."""
    return place.hostname in _LOOPBACK


class Context(NamedTuple):
    """What a wrapped file key belongs to. Services that authenticate more than they encrypt are given it."""

    key_id: str
    uri: str

    @property
    def data(self) -> bytes:
        """For services that take bytes."""
        return f"ciphervec file key v1 {self.key_id} {self.uri}".encode()


class Wrapper(Protocol):
    """The holder of one wrapping key. Not for several threads."""

    def wrap(self, file_key: bytes, context: Context) -> bytes:
        """The file key as only this holder unwraps it."""
        ...

    def unwrap(self, wrapped: bytes, context: Context) -> bytes:
        """What `wrap` was given, in one request at most. Raises WrongKey for anything else."""
        ...

    def close(self) -> None:
        """Give back sessions and connections."""
        ...


def away(uri: str, why: object, next_step: str = "try again") -> NoReturn:
    """The holder of the key was not reached, or is busy."""
    raise ServerError(
        f"{uri} can't be asked now: {_line(why)}. No key file was changed; {next_step}."
    ) from None


def denied(uri: str, why: object, next_step: str) -> NoReturn:
    """The holder of the key doesn't do it for this caller."""
    raise AuthenticationError(f"{uri} refuses: {_line(why)}. No key file was changed; {next_step}.") from None


def gone(uri: str, why: object, next_step: str) -> NoReturn:
    """There is no such wrapping key, or not any more, or it is switched off."""
    raise WrongKey(f"{uri} can't be used: {_line(why)}. {next_step}") from None


def not_its_own(uri: str, why: object) -> NoReturn:
    """The wrapped file key was made by another wrapping key, for another file, or was changed."""
    raise WrongKey(
        f"{uri} does not unwrap this file key: {_line(why)}. The file was wrapped by another key, or changed; "
        "take it from a copy."
    ) from None


def after(uri: str, scheme: str, example: str) -> str:
    """What follows the scheme of a URI."""
    rest = uri.removeprefix(scheme)
    if rest == uri or not rest:
        raise InvalidInput(f"{example} expected, got {shown(uri)}.")
    return rest


def parameters(uri: str, query: str, allowed: tuple[str, ...]) -> dict[str, str]:
    """`name=value&…` behind a URI. Raises InvalidInput for a name that isn't allowed."""
    pairs = parse_qsl(query, keep_blank_values=True)
    _once(uri, [name for name, _ in pairs])
    found = dict(pairs)
    if strange := sorted(set(found) - set(allowed)):
        raise InvalidInput(
            f"{shown(uri)}: no parameter {strange[0]!r} is taken, only {', '.join(allowed)}. A key file names a key; "
            "where it is asked for, and with what credentials, is the environment's."
        )
    return found


def attributes(uri: str, rest: str, allowed: tuple[str, ...]) -> dict[str, bytes]:
    """`name=value;…` of RFC 7512, decoded, without a query. Raises InvalidInput for one that isn't allowed, or is there
    twice."""
    pairs = [one.partition("=") for one in rest.replace("?", ";").split(";") if one]
    if strange := [name for name, mark, _ in pairs if name not in allowed or not mark]:
        raise InvalidInput(
            f"{shown(uri)}: no attribute {strange[0]!r} is taken, only {', '.join(allowed)}. Module and PIN come from the "
            "environment: a key file must not name code to load, or hold a secret."
        )
    _once(uri, [name for name, _, _ in pairs])
    return {name: unquote_to_bytes(value) for name, _, value in pairs}


def _once(uri: str, names: Iterable[str]) -> None:
    """People and programs differ in which of two they take."""
    if twice := [name for name, number in Counter(names).items() if number > 1]:
        raise InvalidInput(f"{shown(uri)}: {twice[0]!r} is taken once. Leave one of them out.")
