"""Operations that put numbers in another order or another shape, as steps on registers. Runs at the client, without a
key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .blocks import runs
from .graph import Node
from .moving import moved, places
from .operands import Operands, plus
from .sources import Part
from .values import FIRST, FULL, Arithmetic, Value


def unmoved(its: Operands, node: Node) -> Value:
    """A transposed or broadcast array, or one with other axes of length 1: its numbers stay where they
    are."""
    return its.value(node, 0, its.units[node])


def sliced(its: Operands, node: Node) -> Value:
    """A part without steps: a rotation."""
    arithmetic, a = its.arithmetic(node), its.value(node, 0, its.units[node])
    tracks = its.layout.inward(node, node.inputs[0].shape)
    for axis, (start, length, _) in enumerate(node.attributes["slices"]):
        track = tracks[axis]
        if track is None or track not in a.tracks or length == node.inputs[0].shape[axis]:
            continue
        stride = arithmetic.space.tracks[track].stride
        registers = tuple(its.draft.rotate(one, start * stride) for one in a.registers)
        varying = {**a.tracks, track: length}
        states = dict(a.states)
        if length == 1:
            del varying[track]
            states[track] = FIRST
        a = replace(a, registers=registers, tracks=varying, states=states, pad=None, alone=False)
    return a


def gathered(its: Operands, node: Node) -> Value:
    """An array put together from parts of others, wherever they lie."""
    arithmetic, unit = its.arithmetic(node), its.units[node]
    tracks, parts = its.layout.outward(node), its.layout.parts[node]
    varying = {track: length for track, length in zip(tracks, node.shape, strict=True) if track is not None}
    states = {track: FULL for track in range(len(arithmetic.space.tracks)) if track not in varying}
    total: Value | None = None
    known = np.zeros(node.shape)
    for part in parts:
        if part.source.constant:
            values = part.source.value.astype(np.float64).reshape(-1)
            known = known + np.where(part.elements >= 0, values[part.elements], 0.0)
            continue
        if part.source in its.layout.leaves:
            one = _placed(its, node, part, tracks, unit)
        else:
            source, a = its.arithmetic(part.source), its.values[part.source]
            lying = its.layout.outward(part.source)
            standing = places(a, source.space, part.source.shape, lying)
            one = moved(source, a, standing, arithmetic, part.elements, tracks, unit, node)
            if len(parts) == 1:
                return one
            one = replace(one, tracks=varying, states=states)
        total = one if total is None else _beside(arithmetic, total, one)
    total = total or _nothing(its, node, unit)
    if not known.any():
        return replace(total, pad=0.0)
    low, high = min(total.low, float(known.min())), max(total.high, float(known.max()))
    return replace(plus(arithmetic, total, known, tracks), low=low, high=high, pad=0.0)


def _nothing(its: Operands, node: Node, unit: float) -> Value:
    """Zeros, for an array of nothing but public numbers, as the client would encrypt them."""
    space = its.arithmetic(node).space
    source = next(iter(its.inputs.values()))
    registers = its.draft.view(source, 1, unit, []) * space.registers
    return Value(registers, {}, dict.fromkeys(range(len(space.tracks)), FULL), 0.0, 0.0, unit, 0.0)


def _beside(arithmetic: Arithmetic, a: Value, b: Value) -> Value:
    """Two arrays together of which one is 0 where the other is not."""
    total = arithmetic.add(a, b)
    return arithmetic.bounded(
        replace(total, low=min(a.low, b.low), high=max(a.high, b.high), error=max(a.error, b.error))
    )


def _placed(its: Operands, node: Node, part: Part, tracks: Sequence[int | None], unit: float) -> Value:
    """A part of an input, which the client lays out."""
    space = its.arithmetic(node).space
    leaf = its.layout.leaves[part.source]
    source, kind = its.source(leaf), leaf.source.kind
    varying: dict[int, int] = {}
    to = np.zeros((1,) * part.elements.ndim, dtype=np.int64)
    for axis, track in enumerate(tracks):
        if track is not None:
            varying[track] = part.elements.shape[axis]
            index = np.arange(part.elements.shape[axis]) * space.tracks[track].stride
            to = to + index.reshape([-1 if other == axis else 1 for other in range(part.elements.ndim)])
    others = [track for track in range(len(space.tracks)) if track not in varying]
    outer = [(one.length, 0, one.stride) for one in map(space.tracks.__getitem__, others) if one.length > 1]
    there = part.elements >= 0
    to = np.broadcast_to(to, part.elements.shape)
    placed = runs(part.elements[there], to[there], outer)
    registers = its.draft.view(source, space.registers, unit, placed, leaf.reading)
    low, high, states = min(kind.low, 0.0), max(kind.high, 0.0), dict.fromkeys(others, FULL)
    return Value(registers, varying, states, low, high, unit, 0.0, tracked=kind.largest / unit)
