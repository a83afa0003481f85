"""A server's address as a caller gives it: a checked base URL, and a token that never shows itself."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import NoReturn
from urllib.parse import urlsplit

from ..errors import InvalidInput

TOKEN_VARIABLE = "CIPHERVEC_TOKEN"  # noqa: S105, the name of a variable
_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")


class Token:
    """A bearer token. Its text is in the header of requests and nowhere else."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        """Raises InvalidInput on what can't stand in a header; the message doesn't repeat it."""
        if not _TOKEN.fullmatch(text):
            raise InvalidInput(
                "the token must be 1 to 16,384 visible ASCII characters without spaces, as `ciphervec token create` "
                "printed it or an identity provider signed it."
            )
        self._text = text

    def header(self) -> str:
        """The value of `Authorization`."""
        return f"Bearer {self._text}"

    def __repr__(self) -> str:
        return "<ciphervec token, secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a token can't be pickled. Hand it to the other process through CIPHERVEC_TOKEN or a file."
        )


def token_of(given: str | None) -> Token | None:
    """The token given, else that of the environment variable CIPHERVEC_TOKEN, else none. Raises
    InvalidInput."""
    text = os.environ.get(TOKEN_VARIABLE) if given is None else given
    return None if not text else Token(text.strip())


def is_url(text: str) -> bool:
    """Whether this names a server rather than a folder."""
    return text.lower().startswith(("http://", "https://"))


def base_url(url: str, *, insecure: bool) -> str:
    """Scheme, host and path without a slash at the end. Raises InvalidInput, also on plain HTTP to
    another machine unless `insecure`."""
    if not is_url(str(url)):
        raise InvalidInput(
            f"the URL of a server starts with https:// (or http:// on this machine); got {url!r}."
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{url!r} is not a URL: {error}.") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("the URL holds a user or a password; take them out, and pass token=... instead.")
    if not host or parts.query or parts.fragment:
        raise InvalidInput(f"a server's URL has a host and no '?' or '#'; got {url!r}.")
    scheme = parts.scheme.lower()
    if scheme == "http" and not insecure and not is_loopback(host):
        raise InvalidInput(
            f"{url!r} is plain HTTP to another machine: anybody in between reads the token and alters answers. Use "
            "https://, or say insecure=True where the network itself is trusted."
        )
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def by_proxy(base: str) -> bool:
    """Whether a proxy that the environment names may be used: not for plain HTTP on this machine,
    which would leave it."""
    parts = urlsplit(base)
    return parts.scheme != "http" or not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
