"""The client of a server that holds no key: collections, and programs, for the key owner. The core does the work of
collections; httpx carries its requests."""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import ciphervec._native as _native

from ..collections.client import Client, checked_holder
from ..collections.collection import Collection
from ..collections.keys import Identity, Keys
from ..collections.private_table import PrivateTable
from ..collections.results import Fetch, check_fetch
from ..collections.world import host_of, log_of, told
from ..errors import InvalidInput
from ..ingest.files import StrPath, at_home, read_file
from ..ingest.remarks import Progress
from ..ingest.state_folder import user_folder
from .address import Token, base_url, by_proxy, token_of
from .programs import RemoteProgram, ServedProgram, get_program, program_rows, put_program
from .session import Session
from .tables import RemoteTable
from .tokens import IdentityScope, TokenScope, own_token, token_rows

if TYPE_CHECKING:
    import httpx

    from ..programs import Plan
    from .transport_types import Transport

CACHE_BYTES = 1 << 30


class HttpCollection(Collection):
    """A collection on a server: the methods of `Collection`, with these differences.

    `query` returns ids, distances and scores unless `include` says otherwise. Metadata, documents and kept vectors lie
    encrypted on the server. `fetch`, of the client or of a call, is what it may see where `get` by id or filter, and `query`,
    read them:

    - "private": whether up to 1, 10 or 100 rows are read, at most 100 at once; see `Collection.private_fetch`.
    - "rows": which rows.
    - "segments": which segments the rows lie in. These are kept here.
    - "collection": that some are read, because metadata and documents of all rows are, once.
    - None: in modes that hide queries as little as "private" or "collection" shows. Up to a megabyte all rows are read, once;
      else those that are wanted, in private, and InvalidInput is raised where the server does not offer that or says that it
      takes a second or longer. In other modes, and where rows are routed, "segments".

    `peek`, `get` of everything, and filters on fields that are not `filterable` read whole segments; so do `update`, which
    names its rows anyway, and `optimize`.

    Others may write at the same time. A change that meets theirs is derived again from the latest
    state, which can find what was not there before: `add` raises DuplicateId then. After
    CommitUncertain all of a change is there, or nothing. `optimize` reads and writes everything it
    merges.
    """

    _query_default = ("distances", "scores")
    _on_upload: Callable[[], Progress | None]

    @contextlib.contextmanager
    def _open(self, *, write: bool = False, **reports: Progress | None) -> Iterator[_native.Collection]:
        if write:
            reports = {"upload": self._on_upload(), **reports}
        with super()._open(write=write, **reports) as native:
            yield native


class HttpClient(Client):
    """Collections on a ciphervec server, which holds no key. The methods are those of
    `PersistentClient`."""

    _kind = HttpCollection

    def __init__(
        self,
        url: str,
        token: str | None = None,
        keys: Keys | Identity | None = None,
        *,
        state: StrPath | Literal[True] | None = True,
        ca: StrPath | None = None,
        verify: bool | ssl.SSLContext = True,
        insecure: bool = False,
        timeout: float = 120.0,
        retries: int = 6,
        http2: bool = False,
        fetch: Fetch | None = None,
        cache_bytes: int = CACHE_BYTES,
        on_upload: Progress | None = None,
        audit_log: StrPath | None = None,
        audit_key: StrPath | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`url` begins with https://, or http:// for a server on this machine. Nothing is sent yet.

        `token` is from `ciphervec token create`; the environment variable CIPHERVEC_TOKEN stands in
        for it. `keys` may be left out only for collections in mode `open`; an `Identity` in their place opens
        collections that its person is a member of.

        `state` is a folder in which the client remembers each collection's public parameters
        (pinned on first use) and latest version (so that a server that rolls back is found out),
        and keeps sealed blobs, `cache_bytes` of them. Unless given it is in the user's data folder
        (or CIPHERVEC_STATE); None remembers nothing between processes.

        `ca`: a .pem file of the authorities to trust instead of the usual ones; `verify`: an
        SSLContext, for anything else. `insecure=True` allows plain HTTP to another machine, and
        `verify=False`. `timeout` is seconds for one request, or one piece of an upload, with all
        its attempts; `retries` how many follow the first after a lost connection. `http2` needs the
        package h2. `fetch`: see `HttpCollection`. `on_upload(sent, total)` counts the bytes of
        large changes as they are acknowledged. `audit_log` is a file that gets a line of each call: what was
        done, to which collection, how many rows and bytes, never content; lines are chained, and signed
        where `audit_key` is a file of `ciphervec audit key`. Each client has a file of its own, which
        `close` gives back. `transport` replaces httpx's own, for tests. Raises
        InvalidInput, and StorageError for a log that can't be written or gone on with.
        """
        base = base_url(url, insecure=insecure)
        from . import transport as carriers

        context = verification(ca, verify, insecure)
        self._connect(base, token, keys, state, carriers.Direct(context, http2, transport, proxies=by_proxy(base)),
                      timeout, retries, fetch, cache_bytes, on_upload, (audit_log, audit_key))  # fmt: skip

    def _connect(
        self,
        url: str,
        token: str | None,
        keys: Keys | Identity | None,
        state: StrPath | Literal[True] | None,
        transport: Transport,
        timeout: float,
        retries: int,
        fetch: Fetch | None,
        cache_bytes: int,
        on_upload: Progress | None,
        audit: tuple[StrPath | None, StrPath | None] = (None, None),
    ) -> None:
        way = check_fetch(fetch)
        folder = (
            user_folder() if state is True else None if state is None else Path(at_home(state)).absolute()
        )
        held = None if keys is None else checked_holder(keys)._native
        text = token_of(token)
        native = _native.Client.on_server(
            url,
            held,
            None if text is None else text.header().removeprefix("Bearer "),
            insecure=True,  # the address was checked
            timeout=timeout,
            retries=retries,
            cache_bytes=cache_bytes,
            fetch=way,
        )
        self._url, self._on_upload = url, on_upload
        self._session = Session(transport, url, text, timeout, retries)
        self._log = log_of(*audit)
        self._start(native, host_of(transport, folder, log=self._log), keys)

    @property
    def url(self) -> str:
        """The server."""
        return self._url

    @property
    def on_upload(self) -> Progress | None:
        """Called with (bytes sent, bytes in all) while a large change, or large keys of a program, are
        on their way."""
        return self._on_upload

    @on_upload.setter
    def on_upload(self, progress: Progress | None) -> None:
        self._on_upload = progress

    def put_table(self, name: str, table: PrivateTable | StrPath) -> dict[str, Any]:
        """Store a table of records, or its file, under a name, in place of one that is there; what the server says of it. The
        token needs the permission admin: whoever may store a table decides what is found. `on_upload` counts the bytes of
        large ones.

        Raises InvalidInput for what is no table or more than the server has memory for; AuthenticationError, StorageError,
        ServerError.
        """
        if isinstance(table, PrivateTable):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "table"
                table.save(path)
                return self.put_table(name, path)
        with told(upload=self._on_upload):
            return self._native.put_table(self._host, name, read_file(Path(at_home(table))))

    def get_table(self, name: str, fingerprint: str | None = None) -> RemoteTable:
        """A table on the server, to look records up in without showing which. The token needs the permission query.

        `fingerprint` is that of its publisher, from elsewhere than the server: a server that knows which client asks could show
        it another table. Without one the table must be the one that was seen first under the name. A table that its owner
        sealed needs the client's `keys` to be the owner's.

        Raises TableNotFound; PinMismatch for another table than expected; WrongKey or CorruptData for other keys.
        """
        pinned = None if fingerprint is None else str(fingerprint)
        native = self._native.get_table(self._host, name, pinned)
        return RemoteTable(native, self._host, self._url)

    def list_tables(self) -> list[dict[str, Any]]:
        """The tables that the token may see: `name`, `records`, `record_bytes`, `sealed`, `bytes`, and `fingerprint` by the
        server's word."""
        return self._native.list_tables(self._host)

    def delete_table(self, name: str) -> None:
        """Remove a table. The token needs the permission admin. Raises TableNotFound."""
        self._native.delete_table(self._host, name)

    def put_program(self, name: str, plan: Plan) -> RemoteProgram:
        """Store a program's plan under a name; the same plan again is no change. The token needs the
        verb admin: whoever may store a program decides what is computed.

        Raises InvalidInput for another plan of that name and for one that is beyond the server's
        limits, which the message names; AuthenticationError, StorageError, ServerError.
        """
        return put_program(self._session, name, plan, lambda: self.on_upload)

    def get_program(self, name: str, plan: Plan) -> RemoteProgram:
        """A program that is there, for whoever has its plan. Raises ProgramNotFound, and InvalidInput if
        the server has another plan of that name."""
        return get_program(self._session, name, plan, lambda: self.on_upload)

    def list_programs(self) -> list[str]:
        """The names of the programs that the token may see."""
        return sorted(one["name"] for one in program_rows(self._session))

    def delete_program(self, name: str) -> None:
        """Remove a program with the keys and kept inputs of all clients. The token needs the verb
        admin. Raises ProgramNotFound."""
        self._served_program(name).delete()

    def _served_program(self, name: str) -> ServedProgram:
        """A program that is there, for whoever has neither its plan nor a key."""
        return ServedProgram(self._session, name, lambda: self.on_upload)

    def _program_rows(self) -> list[dict[str, Any]]:
        """Every program that the token may see, as the server describes it."""
        return program_rows(self._session)

    def set_token(self, token: str) -> None:
        """Show the server another token from now on: one that an identity provider signs is valid for minutes. Collections
        of this client use it too. Raises InvalidInput."""
        text = Token(token.strip())
        self._native.set_token(token)
        self._session.set_token(text)

    def own_token(self) -> TokenScope | IdentityScope | None:
        """What this client's token may do, and until when; an IdentityScope where an identity provider signed it; None
        where the server asks for no token.
        Raises AuthenticationError, ServerError."""
        return own_token(self._session)

    def list_tokens(self) -> list[TokenScope]:
        """What every token of the server may do, in the order in which they were made; never a token
        itself. The token needs admin on `*`. Raises AuthenticationError, ServerError."""
        return token_rows(self._session)

    def close(self) -> None:
        """Close every collection and the connections."""
        super().close()
        self._session.transport.close()
        if self._log is not None:
            self._log.close()

    def _opener(self, name: str, mode: str) -> Callable[[], tuple[_native.Collection, bool]]:
        client, host = self._native, self._host
        return lambda: (client.get_collection(host, name, mode == "open", None), False)

    def _collection(self, name: str, native: _native.Collection) -> Collection:
        collection = super()._collection(name, native)
        assert isinstance(collection, HttpCollection)
        mine = weakref.ref(self)
        collection._on_upload = lambda: None if (live := mine()) is None else live.on_upload
        return collection

    def __enter__(self) -> HttpClient:
        return self

    def __repr__(self) -> str:
        return f"<ciphervec.{type(self).__name__} of {self._url}>"


def verification(ca: StrPath | None, verify: bool | ssl.SSLContext, insecure: bool) -> bool | ssl.SSLContext:
    """What httpx checks a server's certificate by. Raises InvalidInput."""
    if verify is False and not insecure:
        raise InvalidInput(
            "verify=False accepts any certificate, so anybody in between can read the token. Pass ca='its.pem' to trust an "
            "authority of your own, or say insecure=True as well."
        )
    if ca is not None:
        if verify is not True:
            raise InvalidInput("pass either ca=... or verify=..., not both.")
        try:
            return ssl.create_default_context(cafile=at_home(ca))
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(
                f"{at_home(ca)!r} is not a file of certificates in PEM form: {error}."
            ) from error
    return verify
