"""Asynchronous client: the blocking client's methods as coroutines. Key owner's side.

Sealing, opening and waiting happen in threads, requests on an event loop of the client's own, so
the caller's loop only waits. A call that is cancelled closes its request; what it was doing ends at
the next step. A commit on its way when that happens is made, all of it, or not.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import ssl
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, Literal, NoReturn, ParamSpec, TypeVar

from .._native import IndexSpec
from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.embedding.multi import Muvera
from ..collections.keys import Identity, Keys
from ..collections.private_table import Key
from ..collections.ranking import Sparse
from ..collections.results import Fetch
from ..collections.spec import Clusters
from ..ingest.arrays import FloatArray, Id
from ..ingest.files import StrPath
from ..ingest.forks import fresh_in_child
from ..ingest.remarks import Progress
from .address import base_url, by_proxy
from .client import CACHE_BYTES, HttpClient, verification
from .programs import RemoteProgram
from .tables import RemoteTable

if TYPE_CHECKING:
    import httpx

    from ..programs import Plan

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
_THREADS = 64


class _Runner:
    """Runs the calls of one client in threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "ciphervec")
        fresh_in_child(self, _pool=functools.partial(ThreadPoolExecutor, _THREADS, "ciphervec"))

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in a thread. Cancelled, it returns at once and the thread ends at its
        next step."""
        from .transport import CALL, Call

        call = Call()
        context = contextvars.copy_context()
        context.run(CALL.set, call)
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._pool, lambda: context.run(function, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            call.cancel()
            work.add_done_callback(_retrieve)
            raise

    async def close(self) -> None:
        """Wait for every thread."""
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)


def _retrieve(work: asyncio.Future[Any]) -> None:
    """The outcome of a cancelled call is nobody's concern."""
    if not work.cancelled():
        work.exception()


class _Twin:
    """An object whose methods wait, and the threads in which they do."""

    _blocking: Any
    _runner: _Runner


def _coroutine(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[_Twin, P], Coroutine[Any, Any, T]]:
    """The method of this name of the blocking object as a coroutine: same arguments, defaults, text
    and result."""

    @functools.wraps(method)
    async def call(self: _Twin, /, *args: P.args, **kwargs: P.kwargs) -> T:
        blocking: Callable[P, T] = getattr(self._blocking, method.__name__)
        return await self._runner.run(blocking, *args, **kwargs)

    return call


def _opening(
    method: Callable[Concatenate[Client, P], Collection],
) -> Callable[Concatenate[_Twin, P], Coroutine[Any, Any, AsyncHttpCollection]]:
    """As `_coroutine`; the collection that comes is one of coroutines."""

    @functools.wraps(method)
    async def call(self: _Twin, /, *args: P.args, **kwargs: P.kwargs) -> AsyncHttpCollection:
        blocking: Callable[P, Collection] = getattr(self._blocking, method.__name__)
        return AsyncHttpCollection(await self._runner.run(blocking, *args, **kwargs), self._runner)

    shown = inspect.signature(method).replace(return_annotation=AsyncHttpCollection.__name__)
    setattr(call, "__signature__", shown)  # noqa: B010, no attribute of functions as mypy knows them
    return call


def _programming(
    method: Callable[Concatenate[HttpClient, P], RemoteProgram],
) -> Callable[Concatenate[_Twin, P], Coroutine[Any, Any, AsyncRemoteProgram]]:
    """As `_coroutine`; the program that comes is one of coroutines."""

    @functools.wraps(method)
    async def call(self: _Twin, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRemoteProgram:
        blocking: Callable[P, RemoteProgram] = getattr(self._blocking, method.__name__)
        return AsyncRemoteProgram(await self._runner.run(blocking, *args, **kwargs), self._runner)

    shown = inspect.signature(method).replace(return_annotation=AsyncRemoteProgram.__name__)
    setattr(call, "__signature__", shown)  # noqa: B010, no attribute of functions as mypy knows them
    return call


def _looking(
    method: Callable[Concatenate[HttpClient, P], RemoteTable],
) -> Callable[Concatenate[_Twin, P], Coroutine[Any, Any, AsyncRemoteTable]]:
    """As `_coroutine`; the table that comes is one of coroutines."""

    @functools.wraps(method)
    async def call(self: _Twin, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRemoteTable:
        blocking: Callable[P, RemoteTable] = getattr(self._blocking, method.__name__)
        return AsyncRemoteTable(await self._runner.run(blocking, *args, **kwargs), self._runner)

    shown = inspect.signature(method).replace(return_annotation=AsyncRemoteTable.__name__)
    setattr(call, "__signature__", shown)  # noqa: B010, no attribute of functions as mypy knows them
    return call


class AsyncRemoteTable(_Twin):
    """`RemoteTable` with coroutines for methods."""

    _blocking: RemoteTable

    def __init__(self, table: RemoteTable, runner: _Runner) -> None:
        """Not for callers: use `AsyncHttpClient.get_table`."""
        self._blocking = table
        self._runner = runner

    @property
    def name(self) -> str:
        """As `RemoteTable.name`."""
        return self._blocking.name

    @property
    def fingerprint(self) -> str:
        """As `RemoteTable.fingerprint`."""
        return self._blocking.fingerprint

    @property
    def record_bytes(self) -> int:
        """As `RemoteTable.record_bytes`."""
        return self._blocking.record_bytes

    @property
    def sealed(self) -> bool:
        """As `RemoteTable.sealed`."""
        return self._blocking.sealed

    info = _coroutine(RemoteTable.info)
    get = _coroutine(RemoteTable.get)
    get_many = _coroutine(RemoteTable.get_many)
    resume = _coroutine(RemoteTable.resume)

    async def contains(self, key: Key) -> bool:
        """As `key in table`."""
        return await self._runner.run(self._blocking.__contains__, key)

    def __len__(self) -> int:
        return len(self._blocking)

    def __repr__(self) -> str:
        return f"<ciphervec.AsyncRemoteTable {self.name!r} of {len(self):,} records>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client of a table holds a secret key and can't be pickled. Make one there.")


class AsyncRemoteProgram(_Twin):
    """`RemoteProgram` with coroutines for methods. A call that is cancelled ends its run on the server."""

    _blocking: RemoteProgram

    def __init__(self, program: RemoteProgram, runner: _Runner) -> None:
        """Not for callers: use `AsyncHttpClient.put_program` or `get_program`."""
        self._blocking = program
        self._runner = runner

    @property
    def name(self) -> str:
        """As `RemoteProgram.name`."""
        return self._blocking.name

    @property
    def plan(self) -> Plan:
        """As `RemoteProgram.plan`."""
        return self._blocking.plan

    info = _coroutine(RemoteProgram.info)
    send_keys = _coroutine(RemoteProgram.send_keys)
    send_keys_bytes = _coroutine(RemoteProgram.send_keys_bytes)
    remove_keys = _coroutine(RemoteProgram.remove_keys)
    keep = _coroutine(RemoteProgram.keep)
    keep_bytes = _coroutine(RemoteProgram.keep_bytes)
    forget = _coroutine(RemoteProgram.forget)
    run = _coroutine(RemoteProgram.run)
    run_bytes = _coroutine(RemoteProgram.run_bytes)
    delete = _coroutine(RemoteProgram.delete)

    def __repr__(self) -> str:
        return f"<ciphervec.http.AsyncRemoteProgram {self.name!r}, plan {self.plan.id}>"


class AsyncHttpCollection(_Twin):
    """`HttpCollection` with coroutines for methods. Properties are the same; arguments and results
    too.

    `progress` is called in another thread. Several queries at once travel at once.
    """

    _blocking: Collection

    def __init__(self, collection: Collection, runner: _Runner) -> None:
        """Not for callers: use a client."""
        self._blocking = collection
        self._runner = runner

    @property
    def spec(self) -> IndexSpec:
        """As `Collection.spec`."""
        return self._blocking.spec

    @property
    def name(self) -> str:
        """As `Collection.name`."""
        return self._blocking.name

    @property
    def dimension(self) -> int:
        """As `Collection.dimension`."""
        return self._blocking.dimension

    @property
    def metric(self) -> str:
        """As `Collection.metric`."""
        return self._blocking.metric

    @property
    def mode(self) -> str:
        """As `Collection.mode`."""
        return self._blocking.mode

    @property
    def scheme(self) -> str:
        """As `Collection.scheme`."""
        return self._blocking.scheme

    @property
    def filterable(self) -> tuple[str, ...]:
        """As `Collection.filterable`."""
        return self._blocking.filterable

    @property
    def center(self) -> FloatArray | None:
        """As `Collection.center`."""
        return self._blocking.center

    @property
    def originals(self) -> bool:
        """As `Collection.originals`."""
        return self._blocking.originals

    @property
    def embedding_function(self) -> str | None:
        """As `Collection.embedding_function`."""
        return self._blocking.embedding_function

    @property
    def routing(self) -> Clusters | None:
        """As `Collection.routing`."""
        return self._blocking.routing

    @property
    def sparse(self) -> Sparse | None:
        """As `Collection.sparse`."""
        return self._blocking.sparse

    @property
    def multi(self) -> Muvera | None:
        """As `Collection.multi`."""
        return self._blocking.multi

    add = _coroutine(Collection.add)
    upsert = _coroutine(Collection.upsert)
    update = _coroutine(Collection.update)
    merge = _coroutine(Collection.merge)
    delete = _coroutine(Collection.delete)
    get = _coroutine(Collection.get)
    peek = _coroutine(Collection.peek)
    count = _coroutine(Collection.count)
    ids = _coroutine(Collection.ids)
    query = _coroutine(Collection.query)
    flooding_plan = _coroutine(Collection.flooding_plan)
    optimize = _coroutine(Collection.optimize)
    recluster = _coroutine(Collection.recluster)
    explain = _coroutine(Collection.explain)
    prefetch = _coroutine(Collection.prefetch)
    private_fetch = _coroutine(Collection.private_fetch)
    resume_private_fetch = _coroutine(Collection.resume_private_fetch)
    rotate_query_key = _coroutine(Collection.rotate_query_key)
    extend_filterable = _coroutine(Collection.extend_filterable)
    set_embedding_function = _coroutine(Collection.set_embedding_function)
    set_sparse = _coroutine(Collection.set_sparse)
    upgrade = _coroutine(Collection.upgrade)
    refresh = _coroutine(Collection.refresh)
    verify = _coroutine(Collection.verify)
    info = _coroutine(Collection.info)
    release = _coroutine(Collection.release)
    checkpoint = _coroutine(Collection.checkpoint)
    expect = _coroutine(Collection.expect)
    close = _coroutine(Collection.close)

    async def contains(self, id: Id) -> bool:
        """As `id in collection`."""
        return await self._runner.run(self._blocking.__contains__, id)

    async def __aenter__(self) -> AsyncHttpCollection:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<ciphervec.AsyncHttpCollection {self.name!r}, {self.dimension}-d {self.metric}, {self.mode}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a collection holds secret keys and can't be pickled. Open it again with the keys.")


class _LoopedClient(HttpClient):
    """An `HttpClient` whose requests can be cancelled from outside."""

    def __init__(
        self,
        url: str,
        token: str | None,
        keys: Keys | Identity | None,
        *,
        state: StrPath | Literal[True] | None,
        certificates: bool | ssl.SSLContext,
        timeout: float,
        retries: int,
        http2: bool,
        fetch: Fetch | None,
        cache_bytes: int,
        on_upload: Progress | None,
        audit: tuple[StrPath | None, StrPath | None],
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        from .transport import Looped

        self._connect(url, token, keys, state, Looped(certificates, http2, transport, proxies=by_proxy(url)),
                      timeout, retries, fetch, cache_bytes, on_upload, audit)  # fmt: skip


class AsyncHttpClient(_Twin):
    """`HttpClient` with coroutines for methods, for `async with`. Many calls may be on their way at
    once."""

    _blocking: HttpClient

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """As `HttpClient`. `on_upload` is called in another thread. Raises InvalidInput."""
        base = base_url(url, insecure=insecure)
        certificates = verification(ca, verify, insecure)
        self._blocking = _LoopedClient(
            base, token, keys, state=state, certificates=certificates, timeout=timeout, retries=retries, http2=http2,
            fetch=fetch, cache_bytes=cache_bytes, on_upload=on_upload, audit=(audit_log, audit_key), transport=transport,
        )  # fmt: skip
        self._runner = _Runner()

    @property
    def url(self) -> str:
        """The server."""
        return self._blocking.url

    @property
    def keys(self) -> Keys | None:
        """The secret keys given."""
        return self._blocking.keys

    @property
    def identity(self) -> Identity | None:
        """The person given in the place of keys."""
        return self._blocking.identity

    create_collection = _opening(Client.create_collection)
    get_collection = _opening(Client.get_collection)
    get_or_create_collection = _opening(Client.get_or_create_collection)
    list_collections = _coroutine(Client.list_collections)
    delete_collection = _coroutine(Client.delete_collection)
    put_program = _programming(HttpClient.put_program)
    get_program = _programming(HttpClient.get_program)
    list_programs = _coroutine(HttpClient.list_programs)
    delete_program = _coroutine(HttpClient.delete_program)
    put_table = _coroutine(HttpClient.put_table)
    get_table = _looking(HttpClient.get_table)
    list_tables = _coroutine(HttpClient.list_tables)
    delete_table = _coroutine(HttpClient.delete_table)
    set_token = _coroutine(HttpClient.set_token)
    own_token = _coroutine(HttpClient.own_token)
    list_tokens = _coroutine(HttpClient.list_tokens)
    forget = _coroutine(HttpClient.forget)
    accept_restore = _opening(Client.accept_restore)
    snapshot = _coroutine(Client.snapshot)
    restore = _opening(Client.restore)

    async def close(self) -> None:
        """Wait for what is under way, then close every collection and the connections."""
        await self._runner.close()
        await asyncio.get_running_loop().run_in_executor(None, self._blocking.close)

    async def __aenter__(self) -> AsyncHttpClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<ciphervec.AsyncHttpClient of {self.url}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a client holds secrets and can't be pickled. Make it again with the URL and the keys."
        )
