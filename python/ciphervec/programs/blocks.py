"""Where each element of an array stands, as loops over elements and places at once, as few as regular distances allow.
Runs at the client, without a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Loop = tuple[int, int, int]
"""How often, how far the element moves, how far the place."""
Block = tuple[int, int, list[Loop]]
"""The first element, its place, and loops from there, the outermost first."""
Reading = tuple[int, int, int] | tuple[int, int, int, int, bool]
"""Of what counts are: how many integers there are, how many are counted together, how far apart. Of what
digits are: how many steps a step of the input is, the number that is 0 in those, bits of a digit, how many
there are, and whether all values below one are meant."""


def blocks(elements: Indices, strides: Sequence[int], place: int) -> list[Block]:
    """Where elements stand: index i at `place` + Σ i · strides. As few blocks as regular distances
    allow."""
    base = int(elements.flat[0])
    steps = [
        int(np.take(elements, 1, axis).flat[0]) - base if length > 1 else 0
        for axis, length in enumerate(elements.shape)
    ]
    regular = np.full(elements.shape, base, dtype=np.int64)
    for axis, step in enumerate(steps):
        shape = [-1 if other == axis else 1 for other in range(elements.ndim)]
        regular += (np.arange(elements.shape[axis]) * step).reshape(shape)
    if (regular == elements).all():
        loops = zip(elements.shape, steps, strides, strict=True)
        return [(base, place, [loop for loop in loops if loop[0] > 1])]
    found: list[Block] = []
    axis = next(axis for axis, length in enumerate(elements.shape) if length > 1)
    rest = [stride for other, stride in enumerate(strides) if other != axis]
    start, length = 0, elements.shape[axis]
    while start < length:
        end = _run(elements, axis, start)
        part = np.take(elements, np.arange(start, end), axis)
        if end - start == length:
            # Irregular further in: index by index.
            for index in range(length):
                inner = np.take(elements, index, axis)
                found += blocks(inner, rest, place + index * strides[axis])
            return found
        found += blocks(part, strides, place + start * strides[axis])
        start = end
    return found


def _run(elements: Indices, axis: int, start: int) -> int:
    """The end of the indices from `start` on along which elements go on by one step."""
    lines = np.moveaxis(elements, axis, 0)
    if start + 1 >= len(lines):
        return len(lines)
    steps = np.diff(lines[start:], axis=0).reshape(len(lines) - start - 1, -1)
    same = (steps == steps[:1]).all(axis=1)
    return start + (int(np.argmin(same)) if not same.all() else len(same)) + 1


def runs(elements: Indices, places: Indices, outer: Sequence[Loop] = ()) -> list[Block]:
    """Where elements stand, each at the place beside it: a block for each run of both at one distance,
    within the loops `outer`."""
    found: list[Block] = []
    start = 0
    bends = np.flatnonzero((np.diff(elements, n=2) != 0) | (np.diff(places, n=2) != 0)) + 1
    for bend in [*bends.tolist(), len(elements) - 1]:
        # Behind a bend the step from the element before is of neither run.
        if bend < start or (bend == start and bend + 1 < len(elements)):
            continue
        element, place = int(elements[start]), int(places[start])
        loops = list(outer)
        if bend > start:
            steps = (int(elements[start + 1]) - element, int(places[start + 1]) - place)
            loops.append((bend + 1 - start, *steps))
        found.append((element, place, loops))
        start = bend + 1
    return found
