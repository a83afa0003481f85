"""Commands `decrypt-service`, for a key's owner: they run the service and manage who may query it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..collections.client import Client, PersistentClient
from ..decrypt_service.audit import Audit
from ..decrypt_service.ledger import CAPABILITIES, Ledger, Principal
from ..decrypt_service.matcher import Matcher
from ..decrypt_service.receipts import Receipts
from ..errors import InvalidInput
from ..ingest.counts import several
from ..ingest.extras import needed
from ..ingest.files import read_text
from ..writer.pending_batch import is_url
from .audit import read_key, write_secret
from .tables import grid
from .terminal import NO_KEYS, Json, KeyOptions, aside, command, existing, print_json, screen

service_app = typer.Typer(
    no_args_is_help=True,
    help="Decrypt a cloud's answers for devices that hold no key: match or no match, and not too often.",
)

LedgerFile = Annotated[Path, typer.Argument(help="The file with principals and what they have used.")]
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@service_app.command()
@command
def serve(
    place: Annotated[str, typer.Argument(help="The database folder, or the URL of the cloud's server.")],
    name: Annotated[str, typer.Argument(help="The collection, of mode sealed-index.")],
    within: Annotated[
        float, typer.Option(help="What matches: a distance of at most this, 1 − cosine or differing bits.")
    ],
    ledger: Annotated[Path, typer.Option(help="The file that `allow` made.")],
    holder: KeyOptions = NO_KEYS,
    listen: Annotated[
        str, typer.Option(help="Address and port; port 0 takes a free one.")
    ] = "127.0.0.1:8708",
    receipt_key: Annotated[
        Path | None,
        typer.Option(
            help="Take answers from the edge that carry the cloud's receipt, instead of querying it."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A token for the cloud's server, permissions read and query; else CIPHERVEC_TOKEN."
        ),
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="Certificates to trust for the cloud's server.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="The service's own certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    issuers: Annotated[
        Path | None,
        typer.Option(help="Identity providers whose tokens principals of `allow --issuer` show."),
    ] = None,
    usage: Annotated[
        Path | None,
        typer.Option(
            help="Where queries of days that the file of issuers limits are counted; unless given, beside the ledger."
        ),
    ] = None,
    audit: Annotated[Path | None, typer.Option(help="A file that gets a line of JSON a request.")] = None,
    audit_key: Annotated[
        Path | None,
        typer.Option(help="Sign the audit file with this key, which `ciphervec audit key` makes."),
    ] = None,
    max_queries: Annotated[int, typer.Option(help="Queries in one request, at most.")] = 16,
    max_body: Annotated[int, typer.Option(help="MiB of one request, at most.")] = 64,
    metrics: Annotated[
        bool,
        typer.Option("--metrics", help="Counters for Prometheus at /metrics, for anybody who reaches it."),
    ] = False,
) -> None:
    """Serve until stopped. Off loopback it takes TLS and at least one principal.

    **Examples**

    - `ciphervec decrypt-service serve https://cloud.example faces --within 0.35 --ledger l.db --keys my.key`
    - `ciphervec decrypt-service serve db faces --within 0.35 --ledger l.db --keys my.key --receipt-key shared.bin`
    """
    from ..decrypt_service.serve import check_exposure, serve

    host, port = _address(listen)
    book = Ledger(existing(ledger, "ledger"))
    check_exposure(host, tls_cert, tls_key, book)
    try:
        from ..decrypt_service.app import application
    except ModuleNotFoundError as error:
        raise needed("the decrypt service", str(error.name), "service") from error
    receipts = None if receipt_key is None else Receipts(receipt_key.read_bytes())
    with _client(place, holder, token_file, ca) as client:
        matcher = Matcher(client.get_collection(name), within, receipts=receipts, max_queries=max_queries)
        log = Audit(audit, None if audit_key is None else read_key(audit_key))
        app = application(
            [matcher],
            book,
            log,
            max_body=max_body << 20,
            metrics=metrics,
            issuers=issuers,
            usage=usage or ledger.with_name(ledger.name + ".usage.redb"),
        )
        try:
            serve(app, host, port, certificate=tls_cert, key=tls_key)
        finally:
            app.state.accounts.close()
            log.close()


@service_app.command()
@command
def allow(
    ledger: Annotated[Path, typer.Argument(help="The ledger; made if it isn't there.")],
    who: Annotated[str, typer.Argument(help="A name for the principal; with --issuer its subject there.")],
    collection: Annotated[str, typer.Argument(help="The collection it may query.")],
    budget: Annotated[int, typer.Option(help="Queries in each period.")],
    period: Annotated[str, typer.Option(help="The period, e.g. 1h or 7d.")] = "1d",
    lifetime: Annotated[int | None, typer.Option(help="Queries in all; no limit if left out.")] = None,
    may: Annotated[
        list[str] | None,
        typer.Option(help="match; identify: ids too; scores: scores too, which give templates away. Repeat."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Requests in a second, a minute or an hour: 20/s, 100/m, 1000/h.")
    ] = None,
    burst: Annotated[
        int | None,
        typer.Option(help="Requests at once after a pause; as many as --rate names if left out."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="When the token ends, e.g. 30d.")] = None,
    issuer: Annotated[
        str | None,
        typer.Option(
            help="An identity provider of `serve --issuers`: the principal shows its tokens and gets none here."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Allow a principal to query, and print its token, this once.

    **Examples**

    - `ciphervec decrypt-service allow l.db "door 3" faces --budget 200 --period 1d --expires 90d`
    - `ciphervec decrypt-service allow l.db "reception" faces --budget 50 --may match --may identify`
    - `ciphervec decrypt-service allow l.db ann faces --budget 50 --issuer https://id.example.com`
    """
    book = Ledger(ledger)
    seconds = _seconds(period)
    terms: dict[str, Any] = {
        "budget": budget,
        "period": seconds,
        "lifetime": lifetime,
        "may": tuple(may or ("match",)),
        "expires_in": None if expires is None else _seconds(expires),
        "rate": rate,
        "burst": burst,
    }
    if issuer is not None:
        principal = book.add_identity(issuer, who, collection, **terms)
        if as_json:
            print_json(_shown(principal))
        else:
            said = f"{who} of {issuer} ({principal.id}): {', '.join(principal.may)}, {several(budget, 'query')} in {period}"
            screen.print(said, highlight=False, soft_wrap=True)
        return
    principal, token = book.add(who, collection, **terms)
    if as_json:
        print_json({**_shown(principal), "token": token})
        return
    screen.print(token, highlight=False, soft_wrap=True)
    aside.print(  # so that the token alone is what a file or another program gets
        f"{who} ({principal.id}): {', '.join(principal.may)}, {several(budget, 'query')} in {period}. "
        "The token is not shown again.",
        style="dim",
        highlight=False,
        soft_wrap=True,
    )


@service_app.command("list")
@command
def list_principals(ledger: LedgerFile, as_json: Json = False) -> None:
    """Show who may query and what they have used."""
    principals = Ledger(existing(ledger, "ledger")).list()
    if as_json:
        print_json([_shown(one) for one in principals])
        return
    lines = [
        [
            one.id,
            one.name,
            one.collection,
            ", ".join(one.may),
            f"{one.used} of {one.budget}",
            one.rate or "",
            f"{one.total}",
            _state(one),
        ]
        for one in principals
    ]
    grid(
        screen,
        str(ledger),
        ["", "name", "collection", "may", "used", "rate", "in all", "state"],
        lines,
        left=4,
    )


@service_app.command()
@command
def revoke(
    ledger: LedgerFile, principal: Annotated[str, typer.Argument(help="The id that list shows.")]
) -> None:
    """Refuse a principal from now on."""
    Ledger(existing(ledger, "ledger")).revoke(principal)
    screen.print(f"{principal} is refused from now on", highlight=False)


@service_app.command()
@command
def lift(
    ledger: LedgerFile, principal: Annotated[str, typer.Argument(help="The id that list shows.")]
) -> None:
    """Allow a suspended principal to query again: its answers were none to its queries.

    A device that sends the cloud one query and the service another looks like this, or a cloud that
    alters answers; find out which before.
    """
    Ledger(existing(ledger, "ledger")).lift(principal)
    screen.print(f"{principal} may query again", highlight=False)


@service_app.command("receipt-key")
@command
def make_receipt_key(
    path: Annotated[Path, typer.Argument(help="A new file, for the cloud as well.")],
) -> None:
    """Make the key by which the cloud vouches for answers that come by way of the edge."""
    write_secret(path, Receipts.generate_key())
    screen.print(f"receipt key written to {path}; give the cloud a copy, and the edge none", highlight=False)


def _client(place: str, holder: KeyOptions, token_file: Path | None, ca: Path | None) -> Client:
    held = holder.load()
    if not is_url(place):
        return PersistentClient(place, held, read_only=True)
    from ..http import HttpClient

    token = None if token_file is None else read_text(token_file).strip()
    return HttpClient(place, token, held, ca=ca)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(f"--listen takes ADDRESS:PORT, e.g. 127.0.0.1:8708; got {text!r}.")
    return host.strip("[]"), int(port)


def _seconds(text: str) -> int:
    unit = _UNITS.get(text[-1:])
    if unit is None or not text[:-1].isascii() or not text[:-1].isdigit() or int(text[:-1]) == 0:
        raise InvalidInput(f"a length of time is a number and s, m, h or d, e.g. 12h; got {text!r}.")
    return int(text[:-1]) * unit


def _state(principal: Principal) -> str:
    if principal.revoked is not None:
        return "revoked"
    return "" if principal.suspended is None else f"suspended after {principal.failures} failed checks"


def _shown(principal: Principal) -> dict[str, object]:
    return {**vars(principal), "may": list(principal.may)}


__all__ = ["CAPABILITIES", "service_app"]
