"""The client of a server for programs on an event loop: the same methods as coroutines. Key owner's side.

Sealing, opening and waiting happen in threads, requests on an event loop of the client's own, so the caller's loop only waits.
A call that is cancelled closes its request; what it was doing ends at the next step. A commit on its way when that happens is
made, all of it, or not.
"""

from __future__ import annotations

import asyncio
import contextvars
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Names
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar

from .._native import IndexSpec
from ..collections.collection import Collection
from ..collections.keys import Keys
from ..collections.owner import Owner
from ..collections.results import GET_DEFAULT, GetResult, QueryResult
from ..collections.store import Progress
from ..ingest.arrays import Id, Vectors
from ..ingest.files import StrPath
from .address import base_url, by_proxy
from .client import CACHE_BYTES, HttpClient, verification
from .store import Fetch

if TYPE_CHECKING:
    import httpx

P = ParamSpec("P")
T = TypeVar("T")
_THREADS = 64


class _Runner:
    """Runs the calls of one client in threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "ciphervec")

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in a thread. Cancelled, it returns at once and the thread ends at its next step."""
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


class AsyncHttpCollection:
    """`HttpCollection` with coroutines for methods. Properties are the same; arguments and results too."""

    def __init__(self, collection: Collection, runner: _Runner) -> None:
        """Not for callers: use a client."""
        self._collection = collection
        self._run = runner.run

    @property
    def spec(self) -> IndexSpec:
        """As `Collection.spec`."""
        return self._collection.spec

    @property
    def name(self) -> str:
        """As `Collection.name`."""
        return self._collection.name

    @property
    def dimension(self) -> int:
        """As `Collection.dimension`."""
        return self._collection.dimension

    @property
    def metric(self) -> str:
        """As `Collection.metric`."""
        return self._collection.metric

    @property
    def mode(self) -> str:
        """As `Collection.mode`."""
        return self._collection.mode

    @property
    def scheme(self) -> str:
        """As `Collection.scheme`."""
        return self._collection.scheme

    @property
    def filterable(self) -> tuple[str, ...]:
        """As `Collection.filterable`."""
        return self._collection.filterable

    @property
    def owner(self) -> Owner:
        """As `Collection.owner`."""
        return self._collection.owner

    async def add(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """As `Collection.add`; `progress` is called in another thread."""
        await self._run(self._collection.add, ids, embeddings, metadatas, documents, progress=progress)

    async def upsert(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        progress: Progress | None = None,
    ) -> None:
        """As `Collection.upsert`; `progress` is called in another thread."""
        await self._run(self._collection.upsert, ids, embeddings, metadatas, documents, progress=progress)

    async def update(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
    ) -> None:
        """As `Collection.update`."""
        await self._run(self._collection.update, ids, embeddings, metadatas, documents)

    async def delete(
        self, ids: Id | Iterable[Id] | None = None, where: Mapping[str, Any] | None = None
    ) -> int:
        """As `Collection.delete`."""
        return await self._run(self._collection.delete, ids, where)

    async def get(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] = GET_DEFAULT,
        *,
        limit: int | None = None,
        offset: int = 0,
    ) -> GetResult:
        """As `Collection.get`."""
        return await self._run(self._collection.get, ids, where, include, limit=limit, offset=offset)

    async def peek(self, limit: int = 10) -> GetResult:
        """As `Collection.peek`."""
        return await self._run(self._collection.peek, limit)

    async def count(self) -> int:
        """As `Collection.count`."""
        return await self._run(self._collection.count)

    async def contains(self, id: Id) -> bool:
        """As `id in collection`."""
        return await self._run(self._collection.__contains__, id)

    async def query(
        self,
        query_embeddings: Vectors,
        n_results: int | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] | None = None,
        *,
        within: float | None = None,
    ) -> QueryResult:
        """As `HttpCollection.query`. Several at once travel at once."""
        return await self._run(
            self._collection.query, query_embeddings, n_results, where, include, within=within
        )

    async def optimize(self, *, progress: Progress | None = None) -> None:
        """As `Collection.optimize`; `progress` is called in another thread."""
        await self._run(self._collection.optimize, progress=progress)

    async def rotate_query_key(self) -> None:
        """As `Collection.rotate_query_key`."""
        await self._run(self._collection.rotate_query_key)

    async def refresh(self) -> None:
        """As `Collection.refresh`."""
        await self._run(self._collection.refresh)

    async def verify(self, *, progress: Progress | None = None) -> dict[str, Any]:
        """As `Collection.verify`; the server does it, for a token with the verb admin."""
        return await self._run(self._collection.verify, progress=progress)

    async def info(self) -> dict[str, Any]:
        """As `Collection.info`."""
        return await self._run(self._collection.info)

    async def close(self) -> None:
        """As `Collection.close`."""
        await self._run(self._collection.close)

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
        keys: Keys | None,
        *,
        state: StrPath | Literal[True] | None,
        certificates: bool | ssl.SSLContext,
        timeout: float,
        retries: int,
        http2: bool,
        fetch: Fetch,
        cache_bytes: int,
        on_upload: Progress | None,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        from .transport import Looped

        self._connect(url, token, keys, state, Looped(certificates, http2, transport, proxies=by_proxy(url)),
                      timeout, retries, fetch, cache_bytes, on_upload)  # fmt: skip


class AsyncHttpClient:
    """`HttpClient` with coroutines for methods, for `async with`. Many calls may be on their way at once."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        keys: Keys | None = None,
        *,
        state: StrPath | Literal[True] | None = True,
        ca: StrPath | None = None,
        verify: bool | ssl.SSLContext = True,
        insecure: bool = False,
        timeout: float = 120.0,
        retries: int = 6,
        http2: bool = False,
        fetch: Fetch = "segments",
        cache_bytes: int = CACHE_BYTES,
        on_upload: Progress | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """As `HttpClient`. `on_upload` is called in another thread. Raises InvalidInput."""
        base = base_url(url, insecure=insecure)
        certificates = verification(ca, verify, insecure)
        self._client = _LoopedClient(
            base, token, keys, state=state, certificates=certificates, timeout=timeout, retries=retries, http2=http2,
            fetch=fetch, cache_bytes=cache_bytes, on_upload=on_upload, transport=transport,
        )  # fmt: skip
        self._runner = _Runner()

    @property
    def url(self) -> str:
        """The server."""
        return self._client.url

    @property
    def keys(self) -> Keys | None:
        """The secret keys given."""
        return self._client.keys

    async def create_collection(
        self,
        name: str,
        dimension: int,
        metric: str = "cosine",
        mode: str = "sealed",
        precision: str = "standard",
        filterable: Sequence[str] = (),
        *,
        scheme: str = "sealed",
        bits: int | None = None,
    ) -> AsyncHttpCollection:
        """As `Client.create_collection`."""
        return self._wrapped(
            await self._runner.run(
                self._client.create_collection, name, dimension, metric, mode, precision, filterable,
                scheme=scheme, bits=bits,
            )
        )  # fmt: skip

    async def get_collection(self, name: str) -> AsyncHttpCollection:
        """As `Client.get_collection`."""
        return self._wrapped(await self._runner.run(self._client.get_collection, name))

    async def get_or_create_collection(
        self,
        name: str,
        dimension: int,
        metric: str = "cosine",
        mode: str = "sealed",
        precision: str = "standard",
        filterable: Sequence[str] = (),
        *,
        scheme: str = "sealed",
        bits: int | None = None,
    ) -> AsyncHttpCollection:
        """As `Client.get_or_create_collection`."""
        return self._wrapped(
            await self._runner.run(
                self._client.get_or_create_collection, name, dimension, metric, mode, precision, filterable,
                scheme=scheme, bits=bits,
            )
        )  # fmt: skip

    async def list_collections(self) -> list[str]:
        """As `Client.list_collections`."""
        return await self._runner.run(self._client.list_collections)

    async def delete_collection(self, name: str) -> None:
        """As `Client.delete_collection`."""
        await self._runner.run(self._client.delete_collection, name)

    async def forget(self, name: str) -> None:
        """As `HttpClient.forget`."""
        await self._runner.run(self._client.forget, name)

    async def close(self) -> None:
        """Wait for what is under way, then close every collection and the connections."""
        await self._runner.close()
        await asyncio.get_running_loop().run_in_executor(None, self._client.close)

    def _wrapped(self, collection: Collection) -> AsyncHttpCollection:
        return AsyncHttpCollection(collection, self._runner)

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
