"""Places, for commands on collections: a client of the folder or server that a command names, with the token of a
file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, cast

import typer

from ..collections.client import Client, PersistentClient
from ..collections.keys import Identity, Keys
from ..collections.results import Fetch
from ..errors import InvalidInput
from ..http import HttpClient
from ..http.address import is_url
from ..ingest.files import at_home, read_text
from .terminal import options

Place = Annotated[
    str, typer.Argument(metavar="PLACE", help="The database folder, or the URL of a server: https://…")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(help="For a server: read the token from the first line of this file. Else CIPHERVEC_TOKEN."),
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--ca", help="For a server: trust the certificate authorities in this .pem file, and no others."
    ),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="For a server: allow plain HTTP to another machine.")
]
Fetched = Annotated[
    str | None,
    typer.Option(
        "--fetch",
        help="Of a server: what it may see of the rows that are read: private, rows, segments or collection. Unless given, in "
        "modes that hide queries, not which they are.",
    ),
]


@options
@dataclass(frozen=True)
class Sending:
    """How to reach a server over TLS; nothing of it is for folders."""

    token_file: TokenFile = None
    ca: Authority = None
    insecure: bool = False
    fetch: str | None = None
    timeout: float = field(default=120.0, compare=False)
    """Seconds that the command waits for an answer; no option of anybody's."""

    def token(self) -> str | None:
        """From the file; None leaves it to the environment. Never from an argument, which others
        can see."""
        if self.token_file is None:
            return None
        lines = read_text(self.token_file).splitlines()
        if not lines or not lines[0].strip():
            raise InvalidInput(f"{self.token_file} holds no token; it should be the first line.")
        return lines[0].strip()

    def client(self, url: str, keys: Keys | Identity | None) -> HttpClient:
        """A client of the server at `url`."""
        fetch = cast(Fetch | None, self.fetch)  # which the client checks
        return HttpClient(
            url, self.token(), keys, ca=self.ca, insecure=self.insecure, fetch=fetch, timeout=self.timeout
        )

    def nothing_for_folders(self) -> None:
        """Raises InvalidInput: whoever gave these meant a server."""
        if self != type(self)():
            raise InvalidInput(
                "--token-file, --ca, --insecure and --fetch are for servers; the place given is a folder."
            )


@options
@dataclass(frozen=True)
class Access(Sending):
    """The same, of a command that may do without TLS."""

    insecure: Insecure = False


@options
@dataclass(frozen=True)
class Reading(Access):
    """The same, of a command that reads rows."""

    fetch: Fetched = None


OVER_TLS = Sending()
ANYWHERE = Access()
ANYHOW = Reading()


def _folder(place: str) -> Path:
    """Raises InvalidInput for what looks like a URL that is none of a server."""
    if "://" in place:
        raise InvalidInput(f"a server's URL begins with https:// or http://, got {place}.")
    return Path(at_home(place))


def stored(place: str, access: Access) -> Client:
    """A client without keys, to look at what a folder or server holds."""
    if is_url(place):
        return access.client(place, None)
    access.nothing_for_folders()
    folder = _folder(place)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}. Make a collection in it with: ciphervec create"
        )
    return PersistentClient(folder, read_only=True)


def opened(
    place: str, keys: Keys | Identity | None, access: Access, *, read_only: bool = False, make: bool = False
) -> Client:
    """The client of a server, or of a folder, which must be there unless it is to be made."""
    if is_url(place):
        return access.client(place, keys)
    access.nothing_for_folders()
    if not _folder(place).exists() and not make:
        raise FileNotFoundError(f"there is no folder {place}. Make a collection in it with: ciphervec create")
    return PersistentClient(place, keys, read_only=read_only)
