"""Command `mcp`: serves agents a memory until they are done. Key owner's side."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, cast

import typer

from ..collections.audience import check_audience
from ..collections.results import Fetch, check_fetch
from ..errors import InvalidInput
from ..http.address import is_url
from ..ingest.extras import needed
from .place import ANYHOW, Access, Place, Reading, opened
from .sidecar import address
from .terminal import NO_KEYS, KeyOptions, command, load_keys, say_aside

_PATIENCE = 20.0
"""Seconds that a server has to answer; agents' programs wait for a minute or so."""


@command
def mcp(
    place: Place,
    name: Annotated[
        str, typer.Argument(help="The collection; made if it isn't there, which takes a token with admin.")
    ] = "memories",
    holder: KeyOptions = NO_KEYS,
    team: Annotated[
        str | None, typer.Option(help="A collection that a team shares: agents recall it, and share into it.")
    ] = None,
    team_keys: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The key file of the team's collection, which each member has a copy of."
        ),
    ] = None,
    team_place: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Where the team's collection is. Unless given, at PLACE."),
    ] = None,
    team_passphrase_file: Annotated[
        Path | None, typer.Option(help="The passphrase of --team-keys, if it isn't that of --keys.")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Who remembers, written beside each memory: ann's laptop.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="What embeds texts, on this machine, in a collection that is made: default, or the name of a model of "
            "sentence-transformers."
        ),
    ] = None,
    audience: Annotated[
        str,
        typer.Option(
            help="Who reads the agent's answers: owner, or others, which adds noise to the order in mode sealed."
        ),
    ] = "owner",
    sweep: Annotated[
        float, typer.Option(help="Erase what expired now, and then every so many minutes.")
    ] = 60.0,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Serve over HTTP, at /mcp: such as 127.0.0.1:8708; port 0 takes a free one. Unless given: standard input and "
            "output.",
        ),
    ] = None,
    client_tokens: Annotated[
        Path | None,
        typer.Option(help="For --http: a file with tokens, one a line, of which an agent must show one."),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="For --http: its certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="For --http: the certificate's key.")] = None,
    access: Reading = ANYHOW,
) -> None:
    """Give an agent a memory that its host stores encrypted: a server of the Model Context Protocol.

    It holds the key: texts are embedded and sealed here before they leave for the folder or server. Agents get the tools
    remember, recall, forget, list and share. An agent's program starts it, by its configuration:

    `{"mcpServers": {"memory": {"command": "ciphervec", "args": ["mcp", "/home/ann/memory", "--keys", "/home/ann/my.key"]}}}`

    One process at a time can have a folder: for several agents give the URL of `ciphervec serve`, or let them share one
    with --http. Ask the agent to remember something, then grep the folder for it: it is not there.

    **Examples**

    - `ciphervec mcp memory --keys my.key`
    - `ciphervec mcp https://vectors.example notes --token-file token --keys my.key --team crew --team-keys crew.key`
    - `openssl rand -hex 32 > agents; ciphervec mcp memory --keys my.key --http 127.0.0.1:8708 --client-tokens agents`
    """
    web = (client_tokens, tls_cert, tls_key)
    if http is None and any(one is not None for one in web):
        raise InvalidInput("--client-tokens, --tls-cert and --tls-key are for --http, which was not given.")
    if http is not None and client_tokens is None:
        raise InvalidInput(
            "--http needs a token of every agent: make one with `openssl rand -hex 32 > agents`, and give "
            "--client-tokens agents."
        )
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput("TLS takes both a certificate and its key: --tls-cert and --tls-key.")
    if (team is None) != (team_keys is None) or (team is None and team_place is not None):
        raise InvalidInput(
            "a team's memory takes its name and the key that the team shares: --team and --team-keys."
        )
    if holder.keys is None:
        raise InvalidInput(
            "a memory is sealed with a key: give --keys, the file that `ciphervec keygen` made."
        )
    if not sweep > 0:
        raise InvalidInput(f"--sweep is a number of minutes above zero, got {sweep}.")
    try:
        from ..memory import Memory
        from ..sidecar.access import Access as Agents
        from ..sidecar.access import check_exposure, read_tokens
        from ..sidecar.agents import application, server, swept
        from ..sidecar.serve import serve
    except ModuleNotFoundError as error:
        raise needed("`ciphervec mcp`", str(error.name), "mcp") from error
    host, port = address(http) if http is not None else ("127.0.0.1", 0)
    agents = Agents(host, read_tokens(client_tokens))
    if http is not None:
        check_exposure(host, read_tokens(client_tokens), tls_cert, insecure=access.insecure)
    remote = replace(access, timeout=_PATIENCE)
    at = team_place or place
    if not is_url(place) and not is_url(at):
        replace(access, insecure=False).nothing_for_folders()
    wanted = [(place, name, holder.load())]
    if team is not None:
        wanted.append((at, team, load_keys(team_keys, team_passphrase_file or holder.passphrase_file)))
    check_fetch(access.fetch)
    with ExitStack() as stack:
        memories = []
        for where, collection, secret in wanted:
            reach = remote if is_url(where) else Access()
            memories.append(
                Memory.open(
                    stack.enter_context(opened(where, secret, reach, make=True)),
                    collection,
                    embedding_function=model,
                    by=by,
                    audience=check_audience(audience) or "owner",
                    fetch=cast(Fetch, access.fetch or "collection"),
                )
            )
        speaks = server(*memories)
        stack.enter_context(swept(memories, sweep, lambda text: say_aside("note:", "bold yellow", text)))
        if http is None:
            speaks.run("stdio")
        else:
            serve(application(speaks, agents), host, port, certificate=tls_cert, key=tls_key)
