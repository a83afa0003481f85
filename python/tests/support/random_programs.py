"""Random programs: a seed draws a function of a few arrays and what they are declared to hold. For tests of programs.

Operations are drawn over shapes that broadcast, of integers, reals and booleans; few comparisons and
functions in a row, as each takes levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ciphervec import programs, secret

SHAPES = [(), (3,), (5,), (6,), (3, 5), (3, 1), (1, 5), (2, 3, 5), (2, 1, 1), (2, 3, 1)]
_MOST, _DEEPEST = 10_000, 2


class UnfitError(Exception):
    """An operation that does not fit what was drawn for it."""


class _Drawing:
    def __init__(self, seed: int, held: list[Any]) -> None:
        self.random = np.random.default_rng(seed)
        self.held = held
        self.deep = 0
        self.operations = (
            self.sum_of,
            self.difference,
            self.product,
            self.total,
            self.multiple,
            self.shifted,
            self.compared,
            self.chosen,
            self.truth,
            self.function,
            self.shaped,
            self.extreme,
            self.moved,
            self.joined,
            self.ordered,
        )

    def draw(self) -> None:
        operation = self.operations[self.random.integers(len(self.operations))]
        new = operation(self.any())
        if not hasattr(new, "kind") or new.ndim > 3 or new.kind.largest > 100 * _MOST:
            raise UnfitError
        self.held.append(new)

    def any(self) -> Any:
        return self.held[self.random.integers(len(self.held))]

    def other(self, a: Any) -> Any:
        b = self.any()
        try:
            np.broadcast_shapes(a.shape, b.shape)
        except ValueError:
            raise UnfitError from None
        return b

    def number(self) -> int:
        return int(self.random.integers(-3, 4))

    def constant(self, a: Any) -> np.ndarray:
        shape = [length if self.random.integers(2) else 1 for length in a.shape]
        return self.random.integers(-3, 4, shape)

    def deeper(self, *arrays: Any, most: float) -> None:
        if self.deep == _DEEPEST or any(one.kind.step is None or one.kind.largest > most for one in arrays):
            raise UnfitError
        self.deep += 1

    def sum_of(self, a: Any) -> Any:
        return a + self.other(a)

    def difference(self, a: Any) -> Any:
        b = self.other(a)
        return a ^ b if a.kind.boolean and b.kind.boolean else a - b

    def product(self, a: Any) -> Any:
        b = self.other(a)
        if a.kind.largest * b.kind.largest > _MOST:
            raise UnfitError
        return a * b

    def total(self, a: Any) -> Any:
        if a.ndim == 0 or a.kind.largest > _MOST:
            raise UnfitError
        axes = self.random.integers(a.ndim, size=self.random.integers(1, a.ndim + 1))
        return a.sum(tuple({int(axis) for axis in axes}), keepdims=bool(self.random.integers(2)))

    def multiple(self, a: Any) -> Any:
        if a.kind.largest > _MOST:
            raise UnfitError
        return a * (self.constant(a) if self.random.integers(2) else self.number())

    def shifted(self, a: Any) -> Any:
        if not a.kind.boolean and a.kind.largest < 50 and self.random.integers(3) == 0:
            return a * 0.25 + 0.5
        return a + self.constant(a)

    def compared(self, a: Any) -> Any:
        b = self.number() if self.random.integers(2) else self.other(a)
        self.deeper(a, *([b] if hasattr(b, "kind") else []), most=500)
        return (a < b, a <= b, a == b)[self.random.integers(3)]

    def chosen(self, a: Any) -> Any:
        if not a.kind.boolean:
            raise UnfitError
        b = self.other(a)
        c = self.other(a + b) if self.random.integers(2) else self.number()
        if b.kind.boolean:
            raise UnfitError
        return np.where(a, b, c) if self.random.integers(2) else np.where(a, c, b)

    def truth(self, a: Any) -> Any:
        b = self.other(a)
        if not (a.kind.boolean and b.kind.boolean):
            raise UnfitError
        return (a & b, a | b, a ^ b, ~a)[self.random.integers(4)]

    def function(self, a: Any) -> Any:
        if a.kind.boolean or self.deep == _DEEPEST or a.kind.largest > 5:
            raise UnfitError
        self.deep += 1
        if a.kind.low > 0.2:
            return 1 / a
        return np.exp(a) if a.kind.largest < 3 and self.random.integers(2) else np.tanh(a)

    def shaped(self, a: Any) -> Any:
        which = self.random.integers(4)
        if which == 0 and a.ndim > 1:
            return a.T
        if which == 1:
            return a[..., None]
        if a.ndim == 0 or a.shape[0] == 1:
            raise UnfitError
        if which == 2:
            return a[::-1]
        start = int(self.random.integers(a.shape[0]))
        return a[start : start + int(self.random.integers(1, 3))]

    def extreme(self, a: Any) -> Any:
        if not a.kind.boolean and self.random.integers(2):
            self.deeper(a, most=500)
            return abs(a) if self.random.integers(2) else np.sign(a)
        axis = self.axis(a)
        self.deeper(a, most=200)
        return (a.min(axis), a.max(axis), a.argmin(axis), a.argmax(axis))[self.random.integers(4)]

    def axis(self, a: Any) -> int:
        longer = [axis for axis, length in enumerate(a.shape) if length > 1]
        if not longer or a.kind.boolean:
            raise UnfitError
        return int(self.random.choice(longer))

    def ordered(self, a: Any) -> Any:
        axis = self.axis(a)
        self.deeper(a, most=100)
        which = self.random.integers(3)
        if which == 2:
            return programs.topk_mask(a, int(self.random.integers(1, a.shape[axis])), axis)
        return np.argsort(a, axis, kind="stable") if which else np.sort(a, axis)

    def moved(self, a: Any) -> Any:
        if a.ndim == 0:
            raise UnfitError
        axis = int(self.random.integers(a.ndim))
        length = a.shape[axis]
        which = self.random.integers(6)
        if which == 0:
            return np.roll(a, int(self.random.integers(4)), axis)
        if which == 1:
            return a.reshape(-1, a.shape[0])
        if which == 2:
            return np.take(a, self.random.integers(length, size=self.random.integers(1, 6)), axis)
        if which == 3:
            return np.flip(a, axis)
        if which == 4:
            return np.swapaxes(a, axis, 0)
        return np.tile(a, 2) if a.size < 20 else np.ravel(a)[::2]

    def joined(self, a: Any) -> Any:
        same = [one for one in self.held if one.shape == a.shape]
        b = same[self.random.integers(len(same))]
        if a.size > 60 or a.ndim > 2 or a.kind.boolean != b.kind.boolean:
            raise UnfitError
        if a.ndim and self.random.integers(2):
            constant = [] if a.kind.boolean else [np.broadcast_to(self.constant(a), a.shape)]
            return np.concatenate([a, b, *constant], int(self.random.integers(a.ndim)))
        return np.stack([a, b], int(self.random.integers(a.ndim + 1)))


def random_program(seed: int, operations: int = 10) -> tuple[Callable[..., Any], list[programs.Declared]]:
    """A function, the same for a seed, and its arguments."""
    random = np.random.default_rng(seed)
    declared = []
    for _ in range(random.integers(1, 4)):
        shape = SHAPES[random.integers(len(SHAPES))]
        kinds = (
            secret(shape, bits=int(random.integers(1, 6))),
            secret(shape, bits=3, signed=True),
            secret(shape, boolean=True),
            secret(shape, low=-2, high=3, real=True),
        )
        declared.append(kinds[random.integers(len(kinds))])

    def function(*arrays: Any) -> Any:
        drawing = _Drawing(seed + 1, list(arrays))
        for _ in range(8 * operations):
            if len(drawing.held) == len(arrays) + operations:
                break
            try:
                drawing.draw()
            except UnfitError:
                continue
        return tuple(drawing.held[len(arrays) :][-2:])

    return function, declared
