"""Bootstrapping of CKKS: arrays whose levels are spent enter with keys, the same numbers with levels
leave. Server side; the owner makes the keys.

A refreshed array is as good as a new one, but for an error that `plan()` states, so that programs of
any length can be computed. `docs/bootstrapping.md` says when that pays.
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
from ..ingest.files import StrPath, storage_errors, sync_folder

Progress = Callable[[int, int], None]
"""Called with how many keys are made, and of how many."""


@dataclasses.dataclass(frozen=True)
class BootstrapPlan:
    """What a refreshing takes and gives.

    `log_n`: log2 of the ring degree. `slots`: numbers of a ciphertext. `level`: of a refreshed array,
    and of one that is encrypted. `lowest_level`: the lowest that can still be refreshed.
    `levels_left`: products in a row between two refreshings. `precision_bits`: −log2 of the standard
    deviation of the error that a refreshing adds, for numbers spread evenly over [−1, 1];
    `bound_bits`: −log2 of what it stays within in every slot. `failure_log2`: log2 of the chance that
    a slot is lost. `key_bytes`: of the keys as they are sent; `diagonal_bytes`: of the tables in
    memory. `rotations`: keys for rotations and the conjugation. `relinearisations`: of each of two
    reductions. `levels`: of the whole chain; `log_modulus`: bits of its modulus, special primes
    included. `scale_bits`: of the levels to compute with.
    """

    log_n: int
    slots: int
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
    levels: int
    log_modulus: int
    scale_bits: int

    def explain(self) -> str:
        """The figures as a table, in words."""
        rows = (
            ("ring degree", f"2^{self.log_n}, with {self.slots:,} slots"),
            ("modulus", f"2^{self.log_modulus}, special primes included; {self.levels} levels in all"),
            ("between two refreshings", f"{self.levels_left} products in a row, at a scale of 2^{self.scale_bits}"),
            ("levels", f"a refreshed array has {self.level}; refresh it while it has {self.lowest_level} or more"),
            ("numbers", "within ±1"),
            ("error added", f"2^-{self.precision_bits:.1f} (standard deviation); below 2^-{self.bound_bits:.1f} in every slot"),
            ("chance that a slot is lost", f"below 2^{math.ceil(self.failure_log2)}"),
            ("keys as sent", f"{self.key_bytes / 1e6:,.0f} MB, {self.rotations} of them for rotations"),
            ("tables in memory", f"{self.diagonal_bytes / 1e6:,.0f} MB"),
        )  # fmt: skip
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {words}" for name, words in rows)


class Bootstrapper:
    """The public half: a parameter set by the name of its degree, and what is computed from it.

    Both sides make it from the same number. It takes a second or two and is shared by all that ask
    for it while anybody uses it.
    """

    __slots__ = ("__weakref__", "_native", "_plan")

    _made: ClassVar[WeakValueDictionary[int, Bootstrapper]] = WeakValueDictionary()

    def __init__(self, log_n: int = 16) -> None:
        """`log_n`: 16 for 32,768 slots and the most precision and levels, 15 for half the slots in a
        quarter of the time. Raises InvalidInput."""
        if isinstance(log_n, bool) or not isinstance(log_n, int):
            raise InvalidInput(f"log_n must be 15 or 16, got {log_n!r}.")
        self._native = _native.CkksBootstrapper(log_n)
        self._plan = BootstrapPlan(**self._native.plan())
        self._made[log_n] = self

    @classmethod
    def of(cls, log_n: int) -> Bootstrapper:
        """One that is in use, or a new one. Raises InvalidInput."""
        return cls._made.get(log_n) or cls(log_n)

    def plan(self) -> BootstrapPlan:
        """What a refreshing takes and gives."""
        return self._plan

    def explain(self) -> str:
        """The plan as a table."""
        return self._plan.explain()

    def __reduce__(self) -> tuple[type[Bootstrapper], tuple[int]]:
        return Bootstrapper, (self._plan.log_n,)

    def __repr__(self) -> str:
        plan = self._plan
        return f"<ciphervec.ckks.Bootstrapper, degree 2^{plan.log_n}, {plan.levels_left} levels>"


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
        target = Path(path)
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
    def load(cls, path: StrPath, log_n: int | Bootstrapper = 16) -> BootstrappingKeys:
        """Read what `save` wrote, for the set of `log_n`.

        Raises CorruptData for a file that is truncated or altered, InvalidInput for the keys of
        another set, UnsupportedVersion, or StorageError.
        """
        bootstrapper = log_n if isinstance(log_n, Bootstrapper) else Bootstrapper.of(log_n)
        return cls(bootstrapper, bootstrapper._native.read(os.fspath(path)))

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
