"""Plans which scanners hold which state of a collection, and in what order its segments stand. A Ray actor; outside the
owner's trust, without a key.

It decides who holds what, and nothing about the collection: the manifests in the bucket say what is
there. Started anew it finds all of it out again.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import ciphervec._native as _native

from ..collections.batch import EVALUATION, ROWS, TAGS
from ..errors import CiphervecError, ServerError
from .placement import PoolTooSmall, place
from .scanner import Moved, Share, remote_scanner

_LOG = logging.getLogger("ciphervec.ray")
_ATTEMPTS = 16
"""States that may go by while one is being loaded."""
_REPLY = 10.0
"""Seconds after which a scanner that says nothing is looked at again."""
_GONE = (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnschedulableError)
"""What a scanner raises that Ray doesn't start again."""
_GRACE = 5.0
"""Seconds for which a state is still held once there is a newer plan."""


class Settings(NamedTuple):
    """What a pool was asked for; plain data."""

    path: str
    memory: int | None
    per_node: int
    threads: int
    reads: bool
    """Whether scanners read what their memory does not hold."""
    resource: str | None
    """Only nodes that have this custom resource."""
    every: float
    patience: float


class Plan(NamedTuple):
    """How a query is answered."""

    serial: int
    """Counts plans, also those of one state."""
    version: int
    head: bytes
    spec: bytes
    order: list[bytes]
    """The segments' ids, as the state lists them."""
    scanners: list[Any]
    """Handles of those that hold any."""
    everybody: list[Any]
    """Handles of all, also of those that hold none. Another plan of the same scanners may ask those: they
    are given session keys too."""


@dataclass
class _Member:
    handle: Any
    node: str
    incarnation: str = ""
    since: float = field(default_factory=time.monotonic)
    """When it was last heard of, or made."""


class _State(NamedTuple):
    """One committed state, as far as a pool needs it."""

    version: int
    head: bytes
    meta: bytes
    evaluation: bytes
    segments: dict[bytes, tuple[int, bool]]


class Director:
    """One actor of a pool."""

    def __init__(self, settings: Settings) -> None:
        """Raises StorageError, CorruptData where the collection can't be opened."""
        self._settings = settings
        self._store = _native.Store.open_read_only(settings.path)
        self._members: dict[str, _Member] = {}
        self._placed: dict[bytes, str] = {}
        self._plan: Plan | None = None
        self._held: set[str] = set()
        """Those that hold what the plan says, as far as is known."""
        self._planned: set[str] = set()
        """Those among whom the plan shared the segments out."""
        self._trouble: BaseException | None = None
        self._turn = asyncio.Lock()
        self._retiring: list[tuple[float, int]] = []
        self._closed = False
        self._watch: asyncio.Task[None] | None = None

    async def plan(self, at_least: int = 0, after: int = 0, known: int = 0) -> Plan | None:
        """The plan of the newest state, once that has version `at_least` and the plan is newer than
        the one of serial `after`, which failed; None when it is still `known`. Raises PoolTooSmall,
        StorageError, CorruptData; ServerError when it takes longer than the pool's patience."""
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._run())
        until = time.monotonic() + self._settings.patience
        if self._plan is not None and self._trouble is None and self._plan.serial > after:
            # Nobody complains: only whether there is a newer state.
            async with self._turn:
                moved = await asyncio.to_thread(self._store.refresh)
            if not moved and self._is_settled() and self._plan.version >= at_least:
                return None if self._plan.serial == known else self._plan
        while True:
            await self._step(suspected=self._plan is not None and self._plan.serial == after, failed=after)
            plan = self._plan
            if (
                plan is not None
                and self._trouble is None
                and plan.version >= at_least
                and plan.serial > after
            ):
                return None if plan.serial == known else plan
            if isinstance(self._trouble, (PoolTooSmall,)):
                raise self._trouble
            if time.monotonic() > until:
                raise self._late(at_least)
            await asyncio.sleep(0.05)

    async def status(self) -> dict[str, Any]:
        """The plan's version, and what every scanner says of itself."""
        says: dict[str, Any] = {}
        for name, member in list(self._members.items()):
            try:
                says[name] = {
                    "node": member.node,
                    **await asyncio.wait_for(member.handle.status.remote(), _REPLY),
                }
            except (ray.exceptions.RayError, TimeoutError, asyncio.TimeoutError) as error:
                says[name] = {"node": member.node, "error": type(error).__name__}
        version = 0 if self._plan is None else self._plan.version
        trouble = None if self._trouble is None else str(self._trouble)
        return {"version": version, "pid": os.getpid(), "scanners": says, "trouble": trouble}

    async def close(self) -> None:
        """End the scanners."""
        self._closed = True
        if self._watch is not None:
            self._watch.cancel()
        async with self._turn:
            for member in self._members.values():
                ray.kill(member.handle)
            self._members.clear()
            self._store.close()

    async def _run(self) -> None:
        while not self._closed:
            await self._step(suspected=True)
            await asyncio.sleep(self._settings.every)

    async def _step(self, *, suspected: bool, failed: int = 0) -> None:
        """Look at bucket and cluster, and make a plan where one is due. `suspected`: also whether the
        scanners are still who they were; `failed` is the serial of a plan that is to be made anew
        even if they are."""
        async with self._turn:
            if self._closed:
                raise ServerError("the pool of scanners was closed.")
            try:
                self._staff()
                if suspected:
                    await self._call_roll()
                await asyncio.to_thread(self._store.refresh)
                await self._follow()
                if self._plan is not None and self._plan.serial == failed:
                    self._plan = self._plan._replace(serial=self._serial())
                self._trouble = None
            except (CiphervecError, ray.exceptions.RayError) as error:
                if str(error) != str(self._trouble):
                    _LOG.warning("the pool of scanners: %s", error)
                self._trouble = error
            await self._retire()

    def _staff(self) -> None:
        """Scanners for the nodes that came; those of nodes that left are forgotten."""
        wanted = {}
        for node in ray.nodes():
            resources: Mapping[str, float] = node["Resources"]
            only = self._settings.resource
            if node["Alive"] and resources.get("CPU") and (only is None or only in resources):
                for number in range(self._settings.per_node):
                    wanted[f"{node['NodeID'][:12]}-{number}"] = node
        for name in [one for one in self._members if one not in wanted]:
            _LOG.info("the node of scanner %s has left", name)
            self._drop(name)
        for name in [one for one in wanted if one not in self._members]:
            self._members[name] = self._hire(wanted[name])

    def _hire(self, node: Mapping[str, Any]) -> _Member:
        settings = self._settings
        memory, resources = settings.memory, node["Resources"]
        if memory is not None and memory * settings.per_node > resources.get("memory", float("inf")):
            raise PoolTooSmall(
                f"{settings.per_node} scanners of {memory:,} bytes each don't fit the node {node['NodeManagerAddress']}, to "
                f"which Ray gives {int(resources['memory']):,} bytes. Lower memory= or per_node=, or start the node with more."
            )
        threads = settings.threads or max(1, int(resources["CPU"]) // settings.per_node)
        actor = remote_scanner().options(
            num_cpus=0,
            memory=memory,
            max_restarts=-1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        return _Member(actor.remote(settings.path, memory, threads), node["NodeID"])

    def _drop(self, name: str) -> None:
        ray.kill(self._members.pop(name).handle)
        self._held.discard(name)

    async def _call_roll(self) -> None:
        """Ask every scanner who it is: one that was started anew holds nothing."""
        names = list(self._members)
        replies = await asyncio.gather(*(self._ask(self._members[name]) for name in names))
        for name, reply in zip(names, replies, strict=True):
            member = self._members[name]
            if isinstance(reply, _GONE):
                self._drop(name)
                continue
            if reply is None:
                self._held.discard(name)
                if time.monotonic() - member.since > self._settings.patience:
                    _LOG.warning("scanner %s says nothing and is replaced", name)
                    self._drop(name)
                continue
            member.since = time.monotonic()
            if member.incarnation not in ("", reply["incarnation"]):
                _LOG.warning("scanner %s was started anew and loads its share", name)
                self._held.discard(name)
            elif self._plan is not None and self._plan.version not in reply["versions"]:
                self._held.discard(name)
            member.incarnation = reply["incarnation"]

    async def _ask(self, member: _Member) -> Any:
        """What a scanner says; None where it says nothing now, the error where it never will."""
        try:
            return await asyncio.wait_for(member.handle.status.remote(), _REPLY)
        except _GONE as error:
            return error
        except (ray.exceptions.RayError, TimeoutError, asyncio.TimeoutError):
            return None

    async def _follow(self) -> None:
        """Bring the scanners to the newest state, where they are not there; then it is the plan."""
        for _ in range(_ATTEMPTS):
            if self._is_settled():
                return
            state = await asyncio.to_thread(self._read)
            names = set(self._members)
            limits = dict.fromkeys(names, None if self._settings.reads else self._settings.memory)
            sizes = {one: length for one, (length, _) in state.segments.items()}
            placed = place(sizes, limits, self._placed)
            shares: dict[str, list[tuple[bytes, int, bool]]] = {name: [] for name in names}
            for one, (length, tagged) in state.segments.items():
                shares[placed[one]].append((one, length, tagged))
            loading = {
                name: self._members[name].handle.hold.remote(
                    Share(state.version, state.meta, state.evaluation, held)
                )
                for name, held in shares.items()
            }
            failed = await self._loaded(loading)
            if failed is None:
                self._publish(state, placed)
                return
            if not isinstance(failed, Moved):
                raise failed
            await asyncio.to_thread(self._store.refresh)
        raise ServerError(f"{self._settings.path} changes faster than its scanners can follow.")

    def _is_settled(self) -> bool:
        """Whether the plan is of the newest state, and everybody holds what it says."""
        plan = self._plan
        if plan is None or (self._store.version, self._store.head) != (plan.version, plan.head):
            return False
        return self._held == self._planned == set(self._members)

    async def _loaded(self, loading: dict[str, Any]) -> BaseException | None:
        """Wait for all; the first failure. Who was started anew in between has to load again."""
        failed: BaseException | None = None
        for name, reference in loading.items():
            try:
                incarnation = await reference
                self._members[name].incarnation = incarnation
                self._members[name].since = time.monotonic()
            except ray.exceptions.RayTaskError as error:
                failed = failed or (error.cause if isinstance(error.cause, CiphervecError) else error)
            except ray.exceptions.RayError as error:
                self._held.discard(name)
                failed = error
        return failed

    def _publish(self, state: _State, placed: dict[bytes, str]) -> None:
        used = sorted(set(placed.values())) or sorted(self._members)[:1]
        if self._plan is not None and self._plan.version != state.version:
            self._retiring.append((time.monotonic() + _GRACE, self._plan.version))
        spec = base64.b64decode(json.loads(state.meta)["spec"], validate=True)
        scanners = [self._members[name].handle for name in used]
        everybody = [member.handle for member in self._members.values()]
        self._plan = Plan(
            self._serial(), state.version, state.head, spec, list(state.segments), scanners, everybody
        )
        self._placed, self._held, self._planned = placed, set(self._members), set(self._members)

    def _serial(self) -> int:
        """By the clock, so that a director that was started anew does not count below what is known."""
        return max(time.time_ns(), 0 if self._plan is None else self._plan.serial + 1)

    async def _retire(self) -> None:
        now = time.monotonic()
        if self._plan is None or not any(until < now for until, _ in self._retiring):
            return
        self._retiring = [one for one in self._retiring if one[0] >= now]
        keep = [self._plan.version, *(version for _, version in self._retiring)]
        for member in self._members.values():
            member.handle.retire.remote(keep)

    def _read(self) -> _State:
        store = self._store
        segments = {entry[0]: (entry[2][ROWS], TAGS in entry[2]) for entry in store.segments()}
        keys = _native.blake3(store.attachment(EVALUATION))
        return _State(store.version, store.head, store.meta, keys, segments)

    def _late(self, at_least: int) -> ServerError:
        has = "no state" if self._plan is None else f"version {self._plan.version}"
        why = f": {self._trouble}" if self._trouble is not None else ""
        return ServerError(
            f"the pool of scanners has {has} of {self._settings.path}, and after {self._settings.patience:g} s not version "
            f"{at_least}{why}. Look at pool.status(), and whether the nodes have memory for their scanners."
        )


__all__ = ["Director", "Plan", "Settings"]
