"""Runs random operations of a scene, and says of a failure how to repeat it with as few of them as deletion leaves.

An operation is a name and a number that seeds all it draws, so that a list of them without some is a list as well.
"""

from __future__ import annotations

import contextlib
import os
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

SEED = int(os.environ.get("CIPHERVEC_FUZZ_SEED", "1"))
STEPS = float(os.environ.get("CIPHERVEC_FUZZ", "1"))
"""How many times as many operations as `make test` takes."""
ONLY = os.environ.get("CIPHERVEC_FUZZ_ONLY", "")
"""The operations of one case, as a failure prints them."""
_TRIES = 150
"""Runs that are spent on making a failing case smaller."""

Operation = tuple[str, int]


class Scene:
    """What operations are done to, and what says whether they did right. A scene is made for each case."""

    weights: ClassVar[dict[str, int]]
    """How often an operation comes: the method of that name, which takes a `random.Random`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.seen: Counter[str] = Counter()
        self.log: list[str] = []

    def note(self, *said: Any) -> None:
        """What was drawn, for whoever reads of a failure."""
        self.log.append(" ".join(one if isinstance(one, str) else _shown(one) for one in said))

    def settle(self) -> None:
        """After each operation: compare everything."""

    def close(self) -> None:
        """Let go of everything."""


def outcome(scene: Scene, operations: Sequence[Operation]) -> str | None:
    """Do them all; what went wrong, or None. Anything but an error that the scene expects is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, seed in operations:
                scene.note(f"{name}:{seed}")
                getattr(scene, name)(random.Random(seed))
                scene.seen[name] += 1
                scene.settle()
    except Exception:
        return traceback.format_exc()
    finally:
        with contextlib.suppress(Exception):
            scene.close()
    return None


def run(make: Callable[[Path, int], Scene], folder: Path, *, steps: int, cases: int = 1) -> Counter[str]:
    """Run `cases` cases of `steps` operations each, at `STEPS` times as many cases. Raises AssertionError with the
    smallest failing list of operations that was found."""
    seen: Counter[str] = Counter()
    for case in range(max(1, round(cases * STEPS))):
        seed = SEED * 1_000 + case if not ONLY else SEED
        scene = make(_place(folder), seed)
        operations = _read(ONLY) if ONLY else drawn(scene, seed, steps)
        failed = outcome(scene, operations)
        seen += scene.seen
        if failed is not None:
            if not ONLY:
                operations = smaller(make, folder, seed, operations, failed)
            scene = make(_place(folder), seed)
            failed = outcome(scene, operations) or failed
            test = os.environ.get("PYTEST_CURRENT_TEST", "").split()[0]
            words = " ".join(f"{name}:{number}" for name, number in operations)
            log = "\n".join(scene.log[-60:])
            raise AssertionError(
                f"{log}\n\n{failed}\nseed {seed}, {len(operations)} operations; again, this one alone:\n"
                f"CIPHERVEC_FUZZ_SEED={seed} CIPHERVEC_FUZZ_ONLY='{words}' pytest '{test}'"
            )
    return seen


def drawn(scene: Scene, seed: int, steps: int) -> list[Operation]:
    chance = random.Random(seed)
    names = [name for name, weight in scene.weights.items() for _ in range(weight)]
    return [(chance.choice(names), chance.randrange(1 << 30)) for _ in range(steps)]


def smaller(
    make: Callable[[Path, int], Scene], folder: Path, seed: int, operations: Sequence[Operation], failed: str
) -> list[Operation]:
    """As many of them left out as can be, so that it still fails in the same way: halves first, single ones last."""
    tries, left, size = 0, list(operations), max(1, len(operations) // 2)
    while tries < _TRIES:
        at = 0
        before = len(left)
        while at < len(left) and tries < _TRIES:
            shorter = left[:at] + left[at + size :]
            tries += 1
            said = outcome(make(_place(folder), seed), shorter)
            if said is not None and _kind(said) == _kind(failed):
                left = shorter
            else:
                at += size
        if size == 1 and len(left) == before:
            break
        size = max(1, size // 2)
    return left


def _kind(failed: str) -> tuple[str, str]:
    """What two tracebacks of one fault have in common: where it was raised, and the class."""
    lines = failed.strip().splitlines()
    files = [line.strip() for line in lines if line.strip().startswith("File ")]
    last = next((line for line in lines[::-1] if line[:1].isalpha()), "")
    return files[-1] if files else "", last.split(":")[0]


def _shown(one: Any) -> str:
    try:
        return f"{one!r:.600}"
    except Exception:
        return f"a {type(one).__name__} that can't be shown"


def _read(words: str) -> list[Operation]:
    return [(name, int(number)) for name, _, number in (word.partition(":") for word in words.split())]


def _place(folder: Path) -> Path:
    for number in range(1_000_000):
        place = folder / f"case{number}"
        with contextlib.suppress(FileExistsError):
            place.mkdir()
            return place
    raise AssertionError("a million cases")
