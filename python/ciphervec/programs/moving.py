"""Steps that take an array's numbers to other slots, at the cost of a level and of one rotation or two for each
distance. Runs at the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .blocks import Indices
from .graph import Node
from .layout import Space
from .source import failure_at
from .values import FIRST, FULL, Arithmetic, Value

_MOST_NUMBERS = 1 << 22
"""Most slots of all masks of a move together: they are part of the plan."""
_MOST_BABIES = 256


def places(a: Value, space: Space, shape: Sequence[int], tracks: Sequence[int | None]) -> Indices:
    """Where each number of an array stands whose axes lie along tracks."""
    found = np.zeros(tuple(shape), dtype=np.int64)
    for axis, track in enumerate(tracks):
        if track is not None and track in a.tracks:
            index = np.arange(shape[axis]) * space.tracks[track].stride
            found += index.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return found


def moved(
    source: Arithmetic,
    a: Value,
    standing: Indices,
    target: Arithmetic,
    elements: Indices,
    tracks: Sequence[int | None],
    unit: float,
    node: Node,
) -> Value:
    """Numbers of an array as an array of another shape, in another space.

    Args:
        standing: the places of its numbers, in their order.
        elements: which of them is wanted at each index, -1 for none, which is 0 then.
        tracks: those of `target` along which the axes of `elements` lie.
        unit: that of what comes out, if something has to be masked.
        node: what asks for it.

    Raises ProgramError if the plan would get too long.
    """
    draft, space = target.draft, target.space
    varying: dict[int, int] = {}
    to = np.zeros((1,) * elements.ndim, dtype=np.int64)
    whole = bool((elements >= 0).all())
    for axis, track in enumerate(tracks):
        if track is None or elements.shape[axis] == 1:
            continue
        first = np.take(elements, [0], axis)
        if whole and (elements == first).all():
            elements = first
            continue
        varying[track] = elements.shape[axis]
        index = np.arange(elements.shape[axis]) * space.tracks[track].stride
        to = to + index.reshape([-1 if other == axis else 1 for other in range(elements.ndim)])
    there = elements >= 0
    to, found = np.broadcast_to(to, elements.shape)[there], standing.reshape(-1)[elements[there]]
    period = _period(a, source.space)
    register, slot = np.divmod(to, space.slots)
    held, own = np.divmod(found, space.slots) if period > space.slots else (np.zeros_like(found), found)
    distances = (own - slot) % min(period, space.slots)
    moves = np.unique(np.stack([register, held, distances]), axis=1).T.tolist()
    others = [track for track in range(len(space.tracks)) if track not in varying]
    result: dict[int, int] = {}
    if whole and len({one[0] for one in moves}) == len(moves):
        # All numbers of a register go the same way: where they arrive nothing else counts.
        for one, other, distance in moves:
            result[one] = draft.rotate(a.registers[other], distance)
        registers = _everywhere(space, result, others, a.registers[0])
        around = [track for track in others if space.tracks[track].stride % period == 0]
        states = {
            track: FULL if track in around or space.tracks[track].length == 1 else FIRST for track in others
        }
        return replace(a, registers=registers, tracks=varying, states=states, pad=None, alone=False)
    if len(moves) * space.slots > _MOST_NUMBERS:
        raise failure_at(
            node.where,
            f"{node.spoken} moves {there.sum()} computed numbers over {len(moves)} distances between slots, which makes the "
            "plan too long. Rearrange the inputs instead, before anything is computed of them, or return what is "
            "computed: results are rearranged for nothing.",
        )
    giants: dict[tuple[int, int], list[int]] = {}
    split = _split(sorted({distance for _, _, distance in moves}), space.slots)
    for other, distance in sorted({(one[1], one[2]) for one in moves}):
        # Rotations of one register that stand together share half of their work.
        draft.rotate(a.registers[other], split[distance][1])
    for one, other, distance in moves:
        giant, baby = split[distance]
        mask = np.zeros(space.slots)
        mask[slot[(register == one) & (held == other) & (distances == distance)]] = a.unit / unit
        rotated = draft.rotate(a.registers[other], baby)
        term = draft.step("multiply_vector", rotated, draft.vector(np.roll(mask, giant)))
        giants.setdefault((one, giant), []).append(term)
    for (one, giant), terms in giants.items():
        total = terms[0]
        for term in terms[1:]:
            total = draft.step("add", total, term)
        total = draft.rotate(total, giant)
        result[one] = draft.step("add", result[one], total) if one in result else total
    for track in others:
        lying = space.tracks[track]
        bit = 1
        while bit < min(lying.length, space.slots // lying.stride):
            for one, total in result.items():
                result[one] = draft.step("add", total, draft.rotate(total, -bit * lying.stride))
            bit *= 2
    zero = draft.step("multiply_integer", a.registers[0], 0, 0.0)
    registers = _everywhere(space, result, others, zero)
    tracked = a.tracked * max(1.0, a.unit / unit) * len(moves)
    low, high = min(a.low, 0.0), max(a.high, 0.0)
    states = dict.fromkeys(others, FULL)
    return target.bounded(
        Value(registers, varying, states, low, high, unit, 0.0, a.error, tracked, near=a.near)
    )


def _period(a: Value, space: Space) -> int:
    """Places after which an array stands there again, as often as there is room."""
    period = 1
    for number, lying in enumerate(space.tracks):
        if a.states.get(number) != FULL:
            period = lying.stride * lying.length
    return period


def _everywhere(space: Space, made: dict[int, int], others: Sequence[int], nothing: int) -> tuple[int, ...]:
    """Registers of a whole space: made ones also at the other indices of tracks along which nothing
    varies, and where no number stands one of `nothing`."""
    found = []
    for register in range(space.registers):
        place = register * space.slots
        for track in others:
            lying = space.tracks[track]
            if lying.stride * lying.length > space.slots:
                place -= place // lying.stride % lying.length * lying.stride
        found.append(made.get(place // space.slots, nothing))
    return tuple(found)


def _split(distances: Sequence[int], slots: int) -> dict[int, tuple[int, int]]:
    """Every distance as that of a giant step, which sums take, and of a baby step, which numbers take
    before: so that there are few of both."""
    gaps = np.diff([*distances, distances[0] + slots])
    start = distances[(int(np.argmax(gaps)) + 1) % len(distances)]
    ahead = np.array([(one - start) % slots for one in distances])
    step = math.gcd(*ahead.tolist()) or 1
    turns = ahead // step
    furthest = int(turns.max()) + 1
    tried = {
        *range(1, min(furthest, _MOST_BABIES) + 1),
        *(1 << bit for bit in range(furthest.bit_length() + 1)),
    }

    def rotations(babies: int) -> int:
        baby, giant = (start + turns % babies * step) % slots, turns // babies
        return len(np.unique(baby[baby != 0])) + len(np.unique(giant[giant != 0]))

    babies = min(sorted(tried), key=rotations)
    return {
        one: (int(turn // babies * babies * step % slots), int((start + turn % babies * step) % slots))
        for one, turn in zip(distances, turns.tolist(), strict=True)
    }
