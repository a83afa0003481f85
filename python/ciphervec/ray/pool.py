"""A pool of scanners, which answers sealed queries as one server with all segments would. Outside the owner's trust,
without a key.

    pool = ScannerPool.start("s3://bucket/db", "faces", memory=64 << 30)
    answer = pool.answer(query)            # bytes of a query frame; answer.data goes to its owner
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any, NamedTuple, TypeVar

import ray

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import CiphervecError, InvalidInput, ServerError
from ..ingest.files import StrPath
from ..ingest.naming import check_name
from .cluster import expect_guarded
from .director import Director, Plan, Settings
from .scanner import ANYONE, Moved

T = TypeVar("T")
_INLINE = 64 << 10
"""Bytes of a query beyond which it is put into Ray's memory once, for all scanners."""
_SMALL = 4 << 20
"""Bytes of answers that are put together in less time than a thread takes to be woken."""
_SLACK = 15.0
"""Seconds beside its patience that a director may take to say that it ran out."""


class PoolAnswer(NamedTuple):
    """What goes to the query's owner, and which state it is about."""

    data: bytes
    version: int
    head: bytes
    wait_ms: float
    """Until there was a plan to answer it by."""
    scan_ms: float
    """From then until all scanners had answered, and their answers were one."""


class ScannerPool:
    """Scanners on the nodes of a Ray cluster, each with a share of a collection's segments.

    Answers are bit for bit those of one process. Each is about one committed state, also while
    states change and scanners die: what fails is asked again, of the scanners that hold the newest
    state then. An instance can be given to other processes of the cluster.
    """

    def __init__(self, director: Any, collection: str, patience: float) -> None:
        """Of a pool that runs; `start` makes one."""
        self._director, self._patience = director, patience
        self._plan: Plan | None = None
        self.collection = collection

    @classmethod
    def start(
        cls,
        place: StrPath,
        collection: str,
        *,
        memory: int | None = None,
        beyond_memory: str = "refuse",
        per_node: int = 1,
        threads: int = 0,
        resource: str | None = None,
        every: float = 1.0,
        patience: float = 60.0,
        trusted_network: bool = False,
    ) -> ScannerPool:
        """Scanners for a collection at `place`, a database's folder that all nodes read or
        `s3://bucket/prefix`, on the cluster that this process is in; ready when this returns.

        `memory` is how many bytes of segments each scanner may hold, `beyond_memory='read'` lets
        them read the rest with every query. There are `per_node` of them on every node that has
        processors and the custom `resource`, if one is named, also on those that come later. Each
        scans with `threads` threads, by default its share of the node's processors. New states are
        looked for every `every` seconds; whoever asks waits for `patience` seconds at most.
        `trusted_network` says that nobody else reaches the cluster's ports. Raises PoolTooSmall,
        InvalidInput, StorageError, CorruptData, ServerError.
        """
        expect_guarded(trusted_network=trusted_network)
        if beyond_memory not in ("refuse", "read"):
            raise InvalidInput(f"beyond_memory is 'refuse' or 'read', got {beyond_memory!r}.")
        if beyond_memory == "read" and memory is None:
            raise InvalidInput("beyond_memory='read' needs memory=, the bytes that a scanner may hold.")
        if per_node < 1 or threads < 0 or (memory is not None and memory < 1) or every <= 0 or patience <= 0:
            raise InvalidInput("per_node, memory, every and patience are positive, threads is not negative.")
        text, name = os.fspath(place), check_name(collection)
        path = (
            f"{text.rstrip('/')}/{name}" if "://" in text else os.path.abspath(os.path.join(text, name))  # noqa: PTH100, PTH118
        )
        settings = Settings(
            path, memory, per_node, threads, beyond_memory == "read", resource, every, patience
        )
        _native.Store.open_read_only(path).close()  # what is wrong with it is said here
        actor = ray.remote(num_cpus=0, max_restarts=-1)(Director)
        pool = cls(actor.remote(settings), name, patience)
        try:
            pool.version()
        except BaseException:
            ray.kill(pool._director)
            raise
        return pool

    def answer(self, query: bytes, *, at_least: int | None = None, token: str = ANYONE) -> PoolAnswer:
        """Answer one message of queries over every segment of the newest state, or of one that has
        version `at_least`, if that is given and held. A query of a session is answered with the keys
        that `put_keys` was given for the same `token`. Raises InvalidInput, WrongKey or CorruptData
        for what is no query of this collection, QueryKeysMissing where a scanner lacks the session's
        keys, ServerError when scanners stay away longer than the pool's patience."""
        return _here(self.ask(query, at_least=at_least, token=token))

    async def ask(self, query: bytes, *, at_least: int | None = None, token: str = ANYONE) -> PoolAnswer:
        """As `answer`, in an event loop."""
        began = time.monotonic()
        plan, planned, shares = await self._asked(query, token, at_least, began + self._patience)
        work = (IndexSpec.from_bytes(plan.spec), query, plan.order, shares)
        if sum(map(len, shares)) < _SMALL:
            data = _native.merge_responses(*work)
        else:  # others go on meanwhile
            data = await asyncio.to_thread(_native.merge_responses, *work)
        done = time.monotonic()
        return PoolAnswer(data, plan.version, plan.head, (planned - began) * 1e3, (done - planned) * 1e3)

    async def shares(
        self, query: bytes, *, at_least: int | None = None, token: str = ANYONE
    ) -> AsyncIterator[bytes]:
        """The answers of the scanners as they come, each a response frame over some segments. All
        together are about one state. When one dies in between this ends in ServerError: ask again."""
        plan = await self._planned(at_least)
        try:
            async for share in _answers(plan, query, token):
                yield share
        except Moved as error:
            raise ServerError(f"a scanner of {self.collection!r} went away: {error}. Ask again.") from error

    def put_keys(self, keys: bytes, *, at_least: int = 0, token: str = ANYONE) -> None:
        """Answer this token's queries of a session with these evaluation keys of it. All scanners hold
        them when this returns; one that is started later or anew does not, and who asks hears
        QueryKeysMissing. `token` is whatever tells those who may ask from each other, and no secret.
        Raises InvalidInput, WrongKey or CorruptData for what is no such keys of the collection's
        owner, OtherQueryKeys where the token has sent others of this session, ServerError as
        `answer`."""
        _here(self.bring(keys, at_least=at_least, token=token))

    async def bring(self, keys: bytes, *, at_least: int = 0, token: str = ANYONE) -> None:
        """As `put_keys`, in an event loop."""
        until = time.monotonic() + self._patience
        # The newest plan, whichever is known here: a query may be answered by another front's.
        plan = await self._fetch(at_least)
        message = ray.put(keys) if len(keys) > _INLINE else keys
        while True:
            told = [_told(scanner, plan.version, token, message) for scanner in plan.everybody]
            failures = [failure for failure in await asyncio.gather(*told) if failure is not None]
            for failure in failures:
                if not isinstance(failure, Moved):
                    raise failure
            if not failures:
                return
            if time.monotonic() > until:
                raise self._silent(failures[0]) from failures[0]
            plan = await self._fetch(plan.version, after=plan.serial)

    def version(self) -> int:
        """The newest committed version, once all scanners hold it. Raises as `answer`."""
        return _here(self._fetch(0)).version

    def matches(self, version: int, head: bytes) -> bool:
        """Whether the plan that is known here is the one of this state."""
        return self._plan is not None and (self._plan.version, self._plan.head) == (version, head)

    async def catch_up(self, at_least: int) -> None:
        """Wait until the scanners hold the newest state, and that has version `at_least`."""
        await self._fetch(at_least)

    def status(self) -> dict[str, Any]:
        """The version held, and of every scanner: node, process, segments, bytes."""
        return dict(ray.get(self._director.status.remote()))

    def close(self) -> None:
        """End the scanners. What they held is in the bucket."""
        ray.get(self._director.close.remote())
        ray.kill(self._director)

    async def _asked(
        self, query: bytes, token: str, at_least: int | None, until: float
    ) -> tuple[Plan, float, list[bytes]]:
        """The plan that the answers are by, when they were asked for, and they.

        Where the newest state has to be asked for, the scanners work by the plan that is known
        meanwhile: mostly it is the one."""
        plan, newest = self._plan, None
        if plan is not None and at_least is None:
            newest = asyncio.ensure_future(self._fetch(0))
        else:
            plan = await self._planned(at_least)
        try:
            while True:
                began = time.monotonic()
                failure: CiphervecError | None = None
                shares: list[bytes] = []
                try:
                    shares = [share async for share in _answers(plan, query, token)]
                except CiphervecError as error:
                    failure = error
                if newest is not None:
                    confirmed, newest = await newest, None
                    if confirmed.serial != plan.serial:
                        plan = confirmed
                        continue
                if failure is None:
                    return plan, began, shares
                if not isinstance(failure, Moved):
                    raise failure
                if time.monotonic() > until:
                    raise self._silent(failure) from failure
                plan = await self._fetch(plan.version, after=plan.serial)
        finally:
            if newest is not None:
                newest.cancel()

    def _silent(self, failure: Exception) -> ServerError:
        return ServerError(
            f"the scanners of {self.collection!r} did not answer within {self._patience:g} s: {failure}"
        )

    async def _planned(self, at_least: int | None) -> Plan:
        if at_least is not None and self._plan is not None and self._plan.version >= at_least:
            return self._plan
        return await self._fetch(at_least or 0)

    async def _fetch(self, at_least: int, after: int = 0) -> Plan:
        known = 0 if self._plan is None else self._plan.serial
        until = time.monotonic() + self._patience
        while True:
            try:
                work = self._director.plan.remote(at_least, after, known)
                plan = await asyncio.wait_for(work, self._patience + _SLACK)
                break
            except ray.exceptions.RayTaskError as error:
                raise _failure(error) from None
            except (ray.exceptions.RayError, TimeoutError, asyncio.TimeoutError) as error:
                # Ray starts it anew, and it finds everything out again.
                if time.monotonic() > until:
                    raise ServerError(
                        f"the pool of scanners of {self.collection!r} does not answer: {error or 'time ran out'}. Look at the "
                        "cluster."
                    ) from error
                await asyncio.sleep(0.1)
        if plan is not None:
            self._plan = plan
        if self._plan is None:
            raise ServerError(f"the pool of scanners of {self.collection!r} has no plan.")
        return self._plan

    def __reduce__(self) -> tuple[type[ScannerPool], tuple[Any, str, float]]:
        return type(self), (self._director, self.collection, self._patience)

    def __enter__(self) -> ScannerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        version = 0 if self._plan is None else self._plan.version
        return f"<ciphervec.ray.ScannerPool of {self.collection!r}, version {version}>"


async def _told(scanner: Any, version: int, token: str, keys: Any) -> CiphervecError | None:
    """Give a scanner session keys; what it raised, Moved where it went away, None where it has them."""
    try:
        await scanner.put_keys.remote(version, token, keys)
    except ray.exceptions.RayTaskError as error:
        return _failure(error)
    except ray.exceptions.RayError as error:  # it died, or its node left
        return Moved(str(error))
    return None


def _failure(error: ray.exceptions.RayTaskError) -> CiphervecError:
    """What an actor of the pool raised; as a ServerError where it's the cluster's own (a full object store
    or disk, an object that was lost)."""
    cause = error.cause
    if isinstance(cause, CiphervecError):
        return cause
    said = next(iter(str(cause).splitlines()), "")
    return ServerError(
        f"an actor of the pool failed with {type(cause).__name__}: {said}. Look at the cluster."
    )


async def _answers(plan: Plan, query: bytes, token: str) -> AsyncIterator[bytes]:
    """The answers of all scanners to this token, as they come. Raises what the first of them raised, and
    Moved where one went away."""
    message: Any = ray.put(query) if len(query) > _INLINE and len(plan.scanners) > 1 else query
    arrived: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()

    async def listen(scanner: Any) -> None:
        try:
            async for reference in scanner.answer.remote(plan.version, message, token):
                await arrived.put(await reference)
            await arrived.put(None)
        except ray.exceptions.RayTaskError as error:
            await arrived.put(_failure(error))
        except ray.exceptions.RayError as error:  # it died, or its node left
            await arrived.put(Moved(str(error)))

    listening = [asyncio.ensure_future(listen(scanner)) for scanner in plan.scanners]
    try:
        left = len(listening)
        while left:
            item = await arrived.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        for task in listening:
            task.cancel()


@functools.cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """An event loop in a thread of its own, for all who have none: made for one call it would cost more
    than a small answer, and `asyncio.run` prints what it returns, megabytes, to set up Ctrl-C."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"ciphervec-pool-{process}", daemon=True).start()
    return loop


def _here(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also where an event loop runs already."""
    running = asyncio.run_coroutine_threadsafe(work, _loop(os.getpid()))
    try:
        return running.result()
    except BaseException:
        running.cancel()
        raise


__all__ = ["PoolAnswer", "ScannerPool"]
