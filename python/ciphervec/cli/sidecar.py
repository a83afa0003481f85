"""Command `sidecar`, for a key's owner: serves another vector store's API on this machine until it is stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..collections.audience import check_audience
from ..collections.client import Client
from ..collections.keys import KeyRing, Keys
from ..errors import InvalidInput, ServerError
from ..http.address import is_url
from ..ingest.extras import needed
from .place import ANYHOW, Access, Reading, opened
from .terminal import NO_KEYS, KeyOptions, aside, command, passphrase

SPEAKS = ("chroma",)
MEMORY = ":memory:"


@command
def sidecar(
    upstream: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="The database folder, the URL of a server: https://…, or :memory: to keep nothing.",
        ),
    ],
    speak: Annotated[str, typer.Option(help="Whose API to speak: chroma.")] = "chroma",
    holder: KeyOptions = NO_KEYS,
    listen: Annotated[
        str, typer.Option(help="Address and port; port 0 takes a free one.")
    ] = "127.0.0.1:8000",
    mode: Annotated[
        str, typer.Option(help="How new collections are sealed: sealed, sealed-query, sealed-index.")
    ] = "sealed",
    filterable: Annotated[
        list[str] | None,
        typer.Option(help="A metadata field whose equality the server may test, in new collections. Repeat."),
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--sealed-scores",
            help="Compute distances here, from the kept vectors. Unless given: for folders, not for servers.",
        ),
    ] = None,
    audience: Annotated[
        str,
        typer.Option(
            help="Who reads the answers: owner, or others (what the application shows its users), which adds noise in mode "
            "sealed."
        ),
    ] = "owner",
    tenant_keys: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Give each tenant that is made a key of its own, in a file in this folder.",
        ),
    ] = None,
    tenant_keys_by: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="What wraps these files, as in `keys wrap`. Unless given they are under a passphrase of their own.",
        ),
    ] = None,
    tenant_passphrase_file: Annotated[
        Path | None,
        typer.Option(
            help="Read that passphrase from the first line of this file; else the command prompts for it."
        ),
    ] = None,
    allow_reset: Annotated[
        bool, typer.Option("--allow-reset", help="Let clients delete everything at once.")
    ] = False,
    client_tokens: Annotated[
        Path | None,
        typer.Option(
            help="A file with tokens, one a line, of which a client must show one; limits may follow a token: "
            '{"rate": "20/s"}. Needed off loopback.'
        ),
    ] = None,
    issuers: Annotated[
        Path | None,
        typer.Option(
            help="A file of identity providers, as that of `serve --issuers`: clients show their tokens, and may do in "
            "a tenant what it grants."
        ),
    ] = None,
    usage: Annotated[
        Path | None,
        typer.Option(
            help="Where queries of limited days are counted; unless given, sidecar-usage.redb beside that file."
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Let web pages of this origin send requests: https://app.example. Repeat."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The sidecar's own certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    max_body: Annotated[int, typer.Option(help="MiB of one request, at most.")] = 1024,
    access: Reading = ANYHOW,
) -> None:
    """Speak Chroma's HTTP API to applications on this machine, and seal what they store.

    It holds the key: documents, metadata and vectors are sealed before they leave for the folder or server, and
    filters are applied after decryption. Chroma's clients need no change but the address.

    **Examples**

    - `ciphervec sidecar --upstream db --keys my.key`
    - `ciphervec sidecar --upstream https://vectors.example --token-file token --keys my.key --listen 127.0.0.1:8001`
    - `ciphervec sidecar --upstream db --keys my.key --tenant-keys tenants --tenant-keys-by awskms://alias/tenants`
    """
    if speak not in SPEAKS:
        raise InvalidInput(f"--speak {speak} is not known; there is: {', '.join(SPEAKS)}.")
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("TLS takes both a certificate and its key: --tls-cert and --tls-key.")
    host, port = address(listen)
    try:
        from ..sidecar.access import Access as Clients
        from ..sidecar.access import check_exposure, read_tokens
        from ..sidecar.app import application
        from ..sidecar.rows import Choices
        from ..sidecar.serve import serve
    except ModuleNotFoundError as error:
        raise needed("the sidecar", str(error.name), "sidecar") from error
    tokens = read_tokens(client_tokens)
    check_exposure(host, tokens, tls_cert, insecure=access.insecure, issuers=issuers)
    beside = client_tokens or issuers
    if usage is None and beside is not None:
        usage = beside.with_name("sidecar-usage.redb")
    clients = Clients(host, tokens, tuple(allow_origin or ()), issuers, usage)
    remote = is_url(upstream)
    choices = Choices(
        mode,
        tuple(filterable or ()),
        not remote if exact is None else exact,
        check_audience(audience) or "owner",
    )
    # --insecure is about both ends; a folder has none.
    access = replace(access, insecure=access.insecure and remote)
    ring = _ring(tenant_keys, tenant_keys_by, tenant_passphrase_file)
    with _client(upstream, holder, access) as client:
        app = application(
            client,
            clients,
            choices,
            allow_reset=allow_reset,
            origins=tuple(allow_origin or ()),
            max_body=max_body << 20,
            tenant_keys=ring,
            under=lambda of: _under(of, upstream, access),
        )
        try:
            app.state.catalog.open()
        except ServerError as error:
            # It may come up later; until then clients are told so.
            aside.print("warning:", style="bold yellow", end=" ")
            aside.print(f"starting without the server: {error}", markup=False, highlight=False)
        try:
            serve(app, host, port, certificate=tls_cert, key=tls_key)
        finally:
            app.state.catalog.close()
            clients.close()


def _client(upstream: str, holder: KeyOptions, access: Access) -> Client:
    if upstream == MEMORY:
        access.nothing_for_folders()
        return Client(holder.load())
    if holder.keys is None:
        raise InvalidInput(
            "the sidecar seals with a key: give --keys, the file that `ciphervec keygen` made."
        )
    return opened(upstream, holder.load(), access, make=True)


def _under(keys: Keys, upstream: str, access: Access) -> Client:
    return Client(keys) if upstream == MEMORY else opened(upstream, keys, access)


def _ring(folder: Path | None, by: str | None, passphrase_file: Path | None) -> KeyRing | None:
    if folder is None:
        if by is not None or passphrase_file is not None:
            raise InvalidInput("there are no tenants' keys to protect: give --tenant-keys, too.")
        return None
    if by is not None:
        return KeyRing(folder, wrapped_by=by)
    first = next(iter(KeyRing(folder)), None)
    ring = KeyRing(folder, passphrase(passphrase_file, f"Passphrase of {folder}", confirm=first is None))
    if first is not None:
        ring[first]  # a mistyped one must not protect the next tenant's key
    return ring


def address(listen: str) -> tuple[str, int]:
    """Host and port of `--listen`. Raises InvalidInput."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(
            f"--listen takes an address and a port, 127.0.0.1:8000 or [::1]:8000; got {listen!r}."
        )
    return host.removeprefix("[").removesuffix("]"), int(port)
