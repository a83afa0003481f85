"""Bootstrapping of CKKS: gives arrays whose levels are spent new levels. Server side; the owner makes the keys.

A refreshed array is as good as a new one, but for an error that `plan()` states, so that programs of
any length can be computed. `docs/pairs.md` says when that pays.
"""

from __future__ import annotations

import dataclasses
import math
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, NoReturn
from weakref import WeakValueDictionary

import ciphervec._native as _native

from ..errors import InvalidInput
from ..ingest.files import StrPath, at_home, storage_errors, sync_folder

Progress = Callable[[int, int], None]
"""Called with how many keys are made, and of how many."""


@dataclasses.dataclass(frozen=True)
class BootstrapPlan:
    """What a refreshing takes and gives.

    `log_n`: log2 of the ring degree. `slots`: numbers of a ciphertext. `ring`: "standard", or
    "conjugate-invariant", whose slots are all real. `precise`: whether it is the
    set that refreshes twice. `level`: of a refreshed array, and of one that is encrypted.
    `lowest_level`: the lowest that can still be refreshed. `levels_left`: products in a row between
    two refreshings. `precision_bits`: −log2 of the standard deviation of the error that a refreshing
    adds, for numbers spread evenly over [−1, 1]; `bound_bits`: −log2 of what it stays within in every
    slot. `failure_log2`: log2 of the chance that a slot is lost. `key_bytes`: of the keys as they are
    sent; `diagonal_bytes`: of the tables in memory. `rotations`: keys for rotations and the
    conjugation. `relinearisations`: of each of the `reductions`. `iterations`: how often numbers are
    refreshed, what was left of them after the first. `levels`: of the whole chain; `log_modulus`: bits
    of its modulus, special primes included. `scale_bits`: of the levels to compute with.
    """

    log_n: int
    slots: int
    ring: str
    precise: bool
    level: int
    lowest_level: int
    levels_left: int
    precision_bits: float
    bound_bits: float
    failure_log2: float
    key_bytes: int
    diagonal_bytes: int
    rotations: int
    relinearisations: int
    reductions: int
    iterations: int
    levels: int
    log_modulus: int
    scale_bits: int

    def explain(self) -> str:
        """The figures as a table, in words."""
        rows = (
            ("ring degree", f"2^{self.log_n}, {self.ring}, with {self.slots:,} slots"),
            ("modulus", f"2^{self.log_modulus}, special primes included; {self.levels} levels in all"),
            ("between two refreshings", f"{self.levels_left} products in a row, at a scale of 2^{self.scale_bits}"),
            ("levels", f"a refreshed array has {self.level}; refresh it while it has {self.lowest_level} or more"),
            ("numbers", "within ±1"),
            ("a refreshing", "of the numbers" + ", then of what that left" * (self.iterations - 1)),
            ("error added", f"2^-{self.precision_bits:.1f} (standard deviation); below 2^-{self.bound_bits:.1f} in every slot"),
            ("chance that a slot is lost", f"below 2^{math.ceil(self.failure_log2)}"),
            ("keys as sent", f"{self.key_bytes / 1e6:,.0f} MB, {self.rotations} of them for rotations"),
            ("tables in memory", f"{self.diagonal_bytes / 1e6:,.0f} MB"),
        )  # fmt: skip
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {words}" for name, words in rows)


@dataclasses.dataclass(frozen=True)
class SetName:
    """What a parameter set is called: log2 of the ring degree, its slots, whether it is precise."""

    log_n: int
    slots: int
    precise: bool

    @classmethod
    def of(cls, log_n: int, slots: int | None, precise: bool) -> SetName:
        """The set that is asked for so. Raises InvalidInput."""
        if not _counts(log_n):
            raise InvalidInput(f"log_n must be 15 or 16, got {log_n!r}.")
        if slots is not None and not _counts(slots):
            raise InvalidInput(f"slots must be a whole number of at least 1, or None for all, got {slots!r}.")
        return cls(*_native.CkksBootstrapper.named(log_n, slots, bool(precise)))


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


class Bootstrapper:
    """The public half: a parameter set by its name, and what is computed from it.

    Both sides make it from the same name. It takes a second or two and is shared by all that ask
    for it while anybody uses it.
    """

    __slots__ = ("__weakref__", "_name", "_native", "_plan")

    _made: ClassVar[WeakValueDictionary[SetName, Bootstrapper]] = WeakValueDictionary()

    def __init__(self, log_n: int = 16, *, slots: int | None = None, precise: bool = False) -> None:
        """`log_n`: 16 for 32,768 slots and the most levels, 15 for half the slots in a fraction of the
        time. `slots`: up to 512 with `log_n` 15, where arrays need no more: the fewer the less time, down
        to 8 (rounded up to a power of two); 32,768 with 15 or 65,536 with 16, in the
        conjugate-invariant ring, which has twice the room; all of the standard ring's unless given.
        `precise`, with `log_n` 16: refreshed twice, for more bits in twice the
        time. Raises InvalidInput, which lists the sets."""
        self._name = SetName.of(log_n, slots, precise)
        self._native = _native.CkksBootstrapper(*dataclasses.astuple(self._name))
        self._plan = BootstrapPlan(**self._native.plan())
        self._made[self._name] = self

    @classmethod
    def of(cls, log_n: int = 16, *, slots: int | None = None, precise: bool = False) -> Bootstrapper:
        """One that is in use, or a new one. Raises InvalidInput."""
        return cls.named(SetName.of(log_n, slots, precise))

    @classmethod
    def named(cls, name: SetName) -> Bootstrapper:
        """`of` by what `name` says."""
        return cls._made.get(name) or cls(name.log_n, slots=name.slots, precise=name.precise)

    @property
    def name(self) -> SetName:
        """What the set is called."""
        return self._name

    def plan(self) -> BootstrapPlan:
        """What a refreshing takes and gives."""
        return self._plan

    def explain(self) -> str:
        """The plan as a table."""
        return self._plan.explain()

    def __reduce__(self) -> tuple[Callable[[SetName], Bootstrapper], tuple[SetName]]:
        return Bootstrapper.named, (self._name,)

    def __repr__(self) -> str:
        plan = self._plan
        sizes = f"degree 2^{plan.log_n}, {plan.slots:,} slots, {plan.levels_left} levels"
        return f"<ciphervec.ckks.Bootstrapper, {sizes}, {plan.precision_bits:.1f} bits>"


class BootstrappingKeys:
    """What refreshes the arrays of one owner. Public: of no use for reading anything.

    Made by `context.bootstrapping_keys()`, kept in a file, read by whoever computes. In memory they
    take about twice the bytes of the file; neither writing nor reading takes more than a key beyond
    that.
    """

    __slots__ = ("_bootstrapper", "_native")

    def __init__(self, bootstrapper: Bootstrapper, native: _native.CkksBootstrappingKeys) -> None:
        """Not for callers: use `context.bootstrapping_keys()` or `BootstrappingKeys.load`."""
        self._bootstrapper, self._native = bootstrapper, native

    @property
    def key_id(self) -> str:
        """The public name of the key whose arrays they refresh."""
        return self._native.key_id

    @property
    def bytes(self) -> int:
        """Bytes of the file."""
        return self._native.bytes

    @property
    def memory(self) -> int:
        """Bytes in memory."""
        return self._native.memory

    @property
    def bootstrapper(self) -> Bootstrapper:
        """What they belong to."""
        return self._bootstrapper

    def plan(self) -> BootstrapPlan:
        """What a refreshing takes and gives."""
        return self._bootstrapper.plan()

    def save(self, path: StrPath) -> None:
        """Write the keys to `path`, a key at a time: a reader finds what was there before or all of
        them. Raises StorageError."""
        target = Path(at_home(path))
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        with storage_errors(f"cannot write {target}"):
            try:
                self._native.write(os.fspath(draft))
                draft.replace(target)
                sync_folder(target.parent)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise

    @classmethod
    def load(
        cls,
        path: StrPath,
        log_n: int | Bootstrapper = 16,
        *,
        slots: int | None = None,
        precise: bool = False,
    ) -> BootstrappingKeys:
        """Read what `save` wrote, for the set of that name (see `Bootstrapper`), or for one in use.

        Raises CorruptData for a file that is truncated or altered, InvalidInput for the keys of
        another set or another number of few slots, UnsupportedVersion, or StorageError.
        """
        if isinstance(log_n, Bootstrapper):
            bootstrapper = log_n
        else:
            bootstrapper = Bootstrapper.of(log_n, slots=slots, precise=precise)
        return cls(bootstrapper, bootstrapper._native.read(at_home(path)))

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys are gigabytes; save() them to a file and load() them there")

    def __repr__(self) -> str:
        return f"<ciphervec.ckks.BootstrappingKeys, {self.bytes / 1e6:,.0f} MB, key {self.key_id}>"


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """A function to report to: the caller's own, or with True a bar on standard error."""
    if progress is True:
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("bootstrapping keys", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield progress or None
