"""Programs: what puts computed numbers in another order, and lists in their order, is on plain numbers what
it is in NumPy; and encrypted, where a plan moves numbers between slots or sorts them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ciphervec import fold, programs
from lowering import Lowered, graph_of, lowers, truths, whole

Case = tuple[Callable[..., Any], list[programs.Declared]]

CASES: dict[str, Case] = {
    "sort": (lambda a: np.sort(a), [whole(4)]),
    "sort5": (lambda a: np.sort(a), [whole(5, signed=True)]),
    "sort2": (lambda a: np.sort(a), [whole(2)]),
    "argsort": (lambda a: np.argsort(a), [whole(5, bits=2)]),
    "argsortneg": (lambda a: np.argsort(-a), [whole(5, bits=2)]),
    "sort rows": (lambda a: np.sort(a), [whole(3, 5)]),
    "sort cols": (lambda a: np.sort(a, axis=0), [whole(3, 5)]),
    "argsort cols": (lambda a: np.argsort(a, axis=0), [whole(3, 5, bits=2)]),
    "sort computed": (lambda a: np.sort(a * a - 3), [whole(5, signed=True)]),
    "sort computed rows": (lambda a: np.sort(a * a - 3), [whole(3, 5, signed=True)]),
    "sort sums": (lambda a: np.sort((a * a).sum(1)), [whole(6, 3, signed=True)]),
    "median": (lambda a: np.sort(a)[2], [whole(5)]),
    "median even": (lambda a: np.sort(a)[1:3].mean(), [whole(4)]),
    "sorted computed on": (lambda a: (np.sort(a) * np.arange(5)).sum(), [whole(5)]),
    "sorted with another": (lambda a, b: np.sort(a) * b, [whole(5), whole(3, 5)]),
    "sorted backwards": (lambda a: np.sort(a)[::-1] * np.arange(5), [whole(5)]),
    "sort all": (lambda a: np.sort(a, axis=None), [whole(2, 3)]),
    "sort bools": (lambda a: np.sort(a), [truths(5)]),
    "topk mask used": (lambda a: (programs.topk_mask(a, 2) * a).sum(), [whole(5)]),
    "topk mask rows": (lambda a: programs.topk_mask(a, 2), [whole(3, 5)]),
    "topk mask rows used": (lambda a: np.where(programs.topk_mask(a, 2), a, 0), [whole(3, 5)]),
    "min rows": (lambda a: a.min(1), [whole(3, 5)]),
    "max cols": (lambda a: a.max(0), [whole(3, 5)]),
    "argmin rows": (lambda a: a.argmin(1), [whole(3, 5)]),
    "argmax cols": (lambda a: a.argmax(0), [whole(3, 5)]),
    "argmin used rows": (lambda a: a.argmin(1) * 2 + 1, [whole(3, 5)]),
    "min of rows used": (lambda a: a - a.min(1, keepdims=True), [whole(3, 5)]),
    "max of max": (lambda a: a.max(1).min(), [whole(3, 5)]),
    "max flat": (lambda a: a.max(), [whole(3, 5)]),
    "min computed rows": (
        lambda a, b: ((a[:, None, :] - b) ** 2).sum(-1).argmin(1),
        [whole(3, 4), whole(5, 4)],
    ),
    "min computed rows2": (
        lambda a, b: ((a[:, None, :] - b) ** 2).sum(-1).min(1),
        [whole(3, 4), whole(5, 4)],
    ),
    "min along one of three axes": (lambda a: a.min(1), [whole(2, 3, 2)]),
    "min two axes": (lambda a: a.min((0, 2)), [whole(2, 3, 2)]),
    "roll": (lambda a: np.roll(a * a, 1), [whole(4)]),
    "roll used": (lambda a: np.roll(a * a, 1) - a, [whole(5)]),
    "roll used 8": (lambda a: np.roll(a * a, 1) - a, [whole(8)]),
    "roll 2d": (lambda a: np.roll(a * a, (1, 1), axis=(0, 1)) - a, [whole(4, 5)]),
    "roll 2d flat": (lambda a: np.roll(a * a, 2) - a, [whole(4, 5)]),
    "concat": (lambda a: np.concatenate([a * a, a]), [whole(4)]),
    "concat used": (lambda a: np.concatenate([a * a, a]) * np.arange(8), [whole(4)]),
    "concat free": (lambda a: np.concatenate([a * a, a + 1]), [whole(4)]),
    "stack used": (lambda a: np.stack([a * a, a + 1]) + a, [whole(4)]),
    "stack two": (lambda a, b: np.stack([a, b]).sum(0), [whole(4), whole(4)]),
    "stack inputs": (
        lambda a, b: np.stack([a, b], axis=1) * np.arange(8).reshape(4, 2),
        [whole(4), whole(4)],
    ),
    "reshape": (lambda a: (a * a).reshape(2, 2), [whole(4)]),
    "reshape used": (lambda a: (a * a).reshape(2, 3) + np.arange(3), [whole(6)]),
    "ravel used": (lambda a: (a * a).ravel() * np.arange(15), [whole(3, 5)]),
    "strided": (lambda a: (a * a)[:, ::2] + 1, [whole(3, 5)]),
    "strided used": (lambda a: (a * a)[:, ::2] * np.arange(3), [whole(3, 5)]),
    "backward": (lambda a: (a * a)[::-1] - a, [whole(5)]),
    "index": (lambda a: (a * a)[np.array([2, 0, 0, 3])] - a, [whole(4)]),
    "mask index": (lambda a: (a * a)[np.array([True, False, True, True])].sum(), [whole(4)]),
    "two arrays index": (lambda a: (a * a)[np.array([0, 1]), np.array([2, 0])] * 2, [whole(3, 3)]),
    "flip": (lambda a: np.flip(a * a) - a, [whole(3, 2)]),
    "pad": (lambda a: np.pad(a * a, (1, 2), constant_values=7) * np.arange(7), [whole(4)]),
    "pad input": (lambda a: np.pad(a, 1) * np.arange(6), [whole(4)]),
    "repeat": (lambda a: np.repeat(a * a, 3) * np.arange(12), [whole(4)]),
    "tile": (lambda a: np.tile(a * a, 3) * np.arange(12), [whole(4)]),
    "diff": (lambda a: np.diff(a * a), [whole(5)]),
    "diff2": (lambda a: np.diff(a * a, n=2) * 2, [whole(5)]),
    "cumsum": (lambda a: np.cumsum(a * a), [whole(5)]),
    "cumsum used": (lambda a: np.cumsum(a * a) * a, [whole(5)]),
    "cumsum 2d": (lambda a: np.cumsum(a * a, axis=1) + a, [whole(3, 5)]),
    "prod": (lambda a: np.prod(a), [whole(5, bits=2)]),
    "prod 7": (lambda a: np.prod(a + 1), [whole(7, bits=1)]),
    "tril": (lambda a: np.tril(a * a).sum(), [whole(3, 3)]),
    "diagonal": (lambda a: np.diagonal(a * a) * 2, [whole(3, 3)]),
    "trace": (lambda a: np.trace(a @ a), [whole(3, 3, bits=2)]),
    "x+x.T": (lambda a: a * 2 + (a * 2).T, [whole(3, 3)]),
    "gram computed": (lambda a: (a + 1) @ (a + 1).T, [whole(3, 4)]),
    "row+col": (lambda a: (a * a)[0] + (a * a)[:, 0], [whole(3, 3)]),
    "min both": (lambda a: ((a * a).sum(0).min(), (a * a).sum(1).min()), [whole(3, 3)]),
    "part min": (lambda a: (a * a)[0, :2].min(), [whole(3, 3)]),
    "a+a[0] rev": (lambda a: (a + a[0])[::-1], [whole(3, 3)]),
    "matrix power": (lambda a: a @ a @ a, [whole(3, 3, bits=2)]),
    "fold": (lambda a: fold(lambda x, y: x * y, a), [whole(5, bits=2)]),
    "compose": (
        lambda s: fold(
            lambda f, g: np.stack([f[..., 0] * g[..., 0], f[..., 1] * g[..., 0] + g[..., 1]], axis=-1),
            s,
            length=2,
        ),
        [whole(6, bits=2, signed=True)],
    ),
    "split": (lambda a: np.split(a * a, 2)[0] * np.split(a * a, 2)[1], [whole(6)]),
    "stack of args": (lambda a: np.stack([a.argmin(), a.argmax()]), [whole(5)]),
    "keepdims argmin": (lambda a: a.argmin(0, keepdims=True), [whole(5)]),
    "hstack": (lambda a: np.hstack([a * a, a[:2] + 1]).sum(), [whole(5)]),
    "outer sorted": (lambda a: np.sort(a)[:, None] - np.sort(a)[None, :], [whole(4)]),
    "sorted outer other": (lambda a, b: np.sort(a)[:, None] * np.sort(b), [whole(4), whole(3)]),
    "rank then rank": (lambda a: np.argsort(np.argsort(a)), [whole(4, bits=2)]),
    "broadcast rank": (lambda a: np.broadcast_to(a.sum(), (3,)).argmin() + 1, [whole(4)]),
    "column stack": (lambda a, b: np.column_stack([a * b, b]) @ np.array([1, 2]), [whole(4), whole(4)]),
}

RANKED = ("sort", "min", "max", "topk", "median", "rank", "argm", "arg")


@pytest.mark.parametrize("name", CASES)
def test_moves(name: str) -> None:
    f, declared = CASES[name]
    lowers(f, *declared)
    # In as few slots as all pairs of eight numbers take, several registers long.
    lowers(f, *declared, slots=512 if name == "max flat" else 128)


@pytest.mark.parametrize("name", [name for name in CASES if not any(word in name for word in RANKED)])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_moves_between_registers_of_few_slots(name: str, slots: int) -> None:
    f, declared = CASES[name]
    lowers(f, *declared, slots=slots)


@pytest.mark.parametrize("signed", [False, True])
def test_all_lists_of_three_are_sorted(signed: bool) -> None:
    """Ties too: equal numbers stay in their order."""
    functions = (
        lambda a: (np.sort(a), np.argsort(a, kind="stable"), np.argsort(-a, kind="stable"), -np.sort(-a)),
        lambda a: (np.sort(a * 3), np.argsort(a * 3)),
    )
    declared = whole(3, bits=2, signed=signed)
    values = range(-2, 2) if signed else range(4)
    for f in functions:
        lowered = Lowered(graph_of(f, declared))
        for numbers in itertools.product(values, repeat=3):
            lowered.agrees(np.array(numbers))


@pytest.mark.parametrize("count", [2, 3, 4, 7, 8, 9, 31, 64])
def test_lists_of_many_lengths_are_sorted(count: int) -> None:
    lowers(lambda a: (np.sort(a), np.argsort(a)), whole(count))


def test_lists_in_registers_as_long_as_all_pairs_of_one() -> None:
    def f(a: Any) -> Any:
        total = np.sort(a * 2, axis=0).sum((0, 1))
        return total, np.where(a, a * 2, total)

    lowers(f, truths(2, 3, 1), slots=8)


def test_what_repeats_or_is_not_shown_is_not_sent() -> None:
    lowered = lowers(lambda a: ((a * a)[:3], np.tile(a * a, 4)), whole(64), slots=8)
    assert [len(one.registers) for one in lowered.draft.outputs] == [1, 8]
