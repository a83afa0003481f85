"""Lowering: a graph of operations on whole arrays enters; steps on registers of slots leave. Runs at
the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .comparisons import Pairs, Precision, Ranked, interpolated, margin, positive, threshold, truth
from .draft import Draft, DraftInput, DraftOutput
from .graph import Graph, Node
from .kinds import Kind
from .layout import Layout, Leaf, Space, Track, blocks, reading_shape, reshaped_axes
from .source import failure, failure_at
from .values import FIRST, Arithmetic, Value

_RANKED = ("argmin", "min", "topk_mask")
_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
}


def lower(graph: Graph, most_slots: int, precision: Precision, function_bits: float = 12.0) -> Draft:
    """A circuit for a graph.

    Args:
        most_slots: slots of a register, at most.
        precision: of comparisons.
        function_bits: exp, log and the like are off by 2^-this of their range.

    Raises ProgramError for what cannot be computed on encrypted arrays, with the line that asks for it.
    """
    return _Lowering(graph, most_slots, precision, function_bits).draft


class _Lowering:
    def __init__(self, graph: Graph, most_slots: int, precision: Precision, function_bits: float) -> None:
        self.graph = graph
        self.precision = precision
        self.function_bits = function_bits
        needed = {node: _pair_slots(node) for node in graph.nodes if node.op in _RANKED}
        for node, slots in needed.items():
            if slots > most_slots:
                raise failure_at(
                    node.where,
                    f"{node.op} of {_count(node)} encrypted numbers compares all pairs, which takes "
                    f"{slots} slots of {most_slots}. Compare with a threshold, which takes one comparison for all, "
                    "or rank fewer numbers.",
                )
        self.layout = Layout(graph, most_slots, needed)
        spaces = [self.layout.space(node) for node in graph.nodes if node not in self.layout.leaves]
        lone = max((1 << (node.size - 1).bit_length() for node in graph.outputs), default=1)
        self.draft = Draft(max([one.slots for one in spaces], default=min(lone, most_slots)))
        self.inputs = {
            node: DraftInput(node.attributes["name"], node.shape, node.kind) for node in graph.inputs
        }
        self.draft.inputs = list(self.inputs.values())
        self.units = self._units()
        self.values: dict[Node, Value] = {}
        self.ranked: dict[Node, Ranked] = {}
        for node in graph.nodes:
            if node in self.layout.leaves:
                continue
            self.draft.owner = node
            if node.op in _RANKED:
                self.ranked[node] = self._rank(node)
            elif node.op == "negative" and node.inputs[0].op == "min":
                ranked = self.ranked[node.inputs[0]]
                registers = (self.draft.step("negate", ranked.registers[0]),)
                self.ranked[node] = replace(ranked, registers=registers)
            else:
                self.values[node] = self._emit(node)
        for number, node in enumerate(graph.outputs):
            self.draft.owner = node
            self.draft.outputs.append(self._output(number, node))

    # -- units -------------------------------------------------------------------------------------

    def _units(self) -> dict[Node, float]:
        """The unit in which each computed array is wanted: comparisons want differences within ±1,
        which costs nothing if the client encrypts its inputs so."""
        wanted: dict[Node, set[float]] = {}
        found: dict[Node, float] = {}
        for node in reversed(self.graph.nodes):
            if node in self.layout.leaves:
                continue
            asked = wanted.get(node, set())
            unit = found[node] = next(iter(asked)) if len(asked) == 1 else 1.0
            for source, one in self._demands(node, unit):
                wanted.setdefault(source, set()).add(one)
        return found

    def _demands(self, node: Node, unit: float) -> list[tuple[Node, float]]:
        computed = [one for one in node.inputs if one not in self.layout.leaves]
        if node.op in ("less", "equal", "sign", "absolute"):
            return [(one, self._compared(node)) for one in computed]
        if node.op in _RANKED:
            return [(one, self._ranking(node)) for one in computed]
        if node.op == "function":
            return []
        if node.op == "where":
            return [(one, unit) for one in node.inputs[1:] if one in computed and unit != 1.0]
        if node.op == "multiply":
            if node.inputs[0] is node.inputs[1]:
                return [(one, math.sqrt(unit)) for one in computed[:1] if unit != 1.0]
            return []
        if node.op.startswith("logical") or unit == 1.0:
            return []
        return [(one, unit) for one in computed if not one.kind.boolean]

    def _compared(self, node: Node) -> float:
        """What the differences of a comparison are divided by."""
        kinds = [one.kind.number() for one in node.inputs]
        if len(kinds) == 1:
            reach = kinds[0].largest
        else:
            low, high = (min(0.0, *(one.low for one in kinds)), max(0.0, *(one.high for one in kinds)))
            reach = high - low
        kind = _difference(node)
        half, gap = margin(kind, reach, self.precision, node.where)
        return float(reach + max(half, gap))

    def _ranking(self, node: Node) -> float:
        kind = node.inputs[0].kind.number()
        reach = max(kind.high - kind.low, abs(kind.low), abs(kind.high))
        half, gap = margin(kind, reach, self.precision, node.where)
        return float(reach + (half or gap))

    # -- operands ----------------------------------------------------------------------------------

    def _arithmetic(self, node: Node) -> Arithmetic:
        space = self.layout.space(node)
        if space.slots < self.draft.slots:
            # Registers are of one length: a family with fewer places repeats.
            stride = space.slots
            extra = Track(self.draft.slots // stride, stride, self.draft.slots // stride)
            space = Space((*space.tracks, extra), self.draft.slots, space.registers)
        return Arithmetic(self.draft, space)

    def _operand(self, node: Node, place: int, unit: float) -> Value:
        """An input of an operation that is no constant."""
        source = node.inputs[place]
        if source in self.ranked and source not in self.values:
            self.values[source] = self._unranked(source)
        if source not in self.layout.leaves:
            return self.values[source]
        shape = reading_shape(node)
        tracks = self.layout.inward(node, shape)
        leaf = self.layout.leaves[source]
        return self._arithmetic(node).place(self._source(leaf, node), leaf, shape, tracks, unit)

    def _source(self, leaf: Leaf, node: Node) -> DraftInput:
        if not leaf.source.secret:
            raise failure_at(
                node.where,
                f"{leaf.source.attributes['name']!r} is public and given with every run, which plans "
                "do not have yet. Give its values now, public(array), or declare it secret.",
            )
        return self.inputs[leaf.source]

    def _constant(self, node: Node, place: int) -> np.ndarray | None:
        """The values of an input that is a constant, with as many axes as the operation reads."""
        leaf = self.layout.leaves.get(node.inputs[place])
        if leaf is None or not leaf.source.constant:
            return None
        values = leaf.source.value.astype(np.float64).reshape(-1)[leaf.elements]
        shape = reading_shape(node)
        return np.asarray(values.reshape((1,) * (len(shape) - values.ndim) + values.shape))

    # -- operations --------------------------------------------------------------------------------

    def _emit(self, node: Node) -> Value:
        rule = getattr(self, f"_emit_{node.op}", None)
        if rule is None:
            raise failure_at(
                node.where,
                f"{node.op} of encrypted numbers is not available on this back-end. "
                + _IDIOMS.get(node.op, "Compute it at the client, before encrypting or after decrypting."),
            )
        found: Value = rule(node)
        return found

    def _emit_add(self, node: Node, *, subtract: bool = False) -> Value:
        arithmetic, unit = self._arithmetic(node), self.units[node]
        tracks = self.layout.inward(node, reading_shape(node))
        for place in (0, 1):
            values = self._constant(node, place)
            if values is None:
                continue
            a = self._operand(node, 1 - place, unit)
            if subtract and place == 1:
                values = -values
            elif subtract:
                a = arithmetic.negate(a)
            if values.size == 1:
                return arithmetic.add_number(a, float(values.flat[0]))
            return arithmetic.add_vector(a, values, tracks)
        a, b = self._operand(node, 0, unit), self._operand(node, 1, unit)
        return arithmetic.add(a, b, subtract=subtract)

    def _emit_subtract(self, node: Node) -> Value:
        return self._emit_add(node, subtract=True)

    def _emit_negative(self, node: Node) -> Value:
        return self._arithmetic(node).negate(self._operand(node, 0, self.units[node]))

    def _emit_multiply(self, node: Node) -> Value:
        arithmetic, unit = self._arithmetic(node), self.units[node]
        for place in (0, 1):
            values = self._constant(node, place)
            if values is None:
                continue
            a = self._operand(node, 1 - place, unit)
            if values.size == 1:
                return arithmetic.multiply_number(a, float(values.flat[0]))
            tracks = self.layout.inward(node, reading_shape(node))
            return arithmetic.multiply_vector(a, values, tracks, unit)
        first, second = node.inputs
        if first is second:
            a = self._operand(node, 0, math.sqrt(unit))
            return arithmetic.multiply(a, a)
        computed = [one not in self.layout.leaves for one in node.inputs]
        if computed[0] == computed[1]:
            a, b = self._operand(node, 0, math.sqrt(unit)), self._operand(node, 1, math.sqrt(unit))
        elif computed[0]:
            a = self._operand(node, 0, unit)
            b = self._operand(node, 1, unit / a.unit)
        else:
            b = self._operand(node, 1, unit)
            a = self._operand(node, 0, unit / b.unit)
        return arithmetic.multiply(a, b)

    def _emit_sum(self, node: Node) -> Value:
        arithmetic = self._arithmetic(node)
        a = self._operand(node, 0, self.units[node])
        tracks = self.layout.inward(node, node.inputs[0].shape)
        summed = [tracks[axis] for axis in node.attributes["axes"]]
        varying = set(a.tracks)
        # Outermost first: what has come around lets what is within it come around.
        for track in sorted((one for one in summed if one in varying and one is not None), reverse=True):
            a = arithmetic.sum(a, track)
        for axis, track in zip(node.attributes["axes"], summed, strict=True):
            if track is not None and track not in varying:
                a = arithmetic.multiply_number(a, float(node.inputs[0].shape[axis]))
        return a

    def _emit_where(self, node: Node) -> Value:
        arithmetic, unit = self._arithmetic(node), self.units[node]
        chosen = self._operand(node, 0, 1.0)
        x, y = (self._constant(node, place) for place in (1, 2))
        tracks = self.layout.inward(node, reading_shape(node))
        if x is not None and y is not None:
            picked = _scaled(arithmetic, chosen, x - y, tracks, unit)
            return _shifted(arithmetic, picked, y, tracks)
        if x is not None:
            b = self._operand(node, 2, unit)
            difference = _shifted(arithmetic, arithmetic.negate(b), x, tracks)
            return arithmetic.add(arithmetic.multiply(chosen, difference), b)
        if y is not None:
            a = self._operand(node, 1, unit)
            difference = _shifted(arithmetic, a, -y, tracks)
            return _shifted(arithmetic, arithmetic.multiply(chosen, difference), y, tracks)
        a, b = self._operand(node, 1, unit), self._operand(node, 2, unit)
        return arithmetic.add(arithmetic.multiply(chosen, arithmetic.add(a, b, subtract=True)), b)

    def _emit_logical_not(self, node: Node) -> Value:
        arithmetic = self._arithmetic(node)
        return arithmetic.add_number(arithmetic.negate(self._operand(node, 0, 1.0)), 1.0)

    def _emit_logical_and(self, node: Node) -> Value:
        return self._pair(node, both=1.0, each=0.0)

    def _emit_logical_or(self, node: Node) -> Value:
        return self._pair(node, both=-1.0, each=1.0)

    def _emit_logical_xor(self, node: Node) -> Value:
        return self._pair(node, both=-2.0, each=1.0)

    def _pair(self, node: Node, *, both: float, each: float) -> Value:
        """each (x + y) + both x y."""
        arithmetic = self._arithmetic(node)
        tracks = self.layout.inward(node, reading_shape(node))
        for place in (0, 1):
            values = self._constant(node, place)
            if values is not None:
                x = self._operand(node, 1 - place, 1.0)
                picked = _scaled(arithmetic, x, each + both * values, tracks, x.unit)
                return _shifted(arithmetic, picked, each * values, tracks)
        x, y = self._operand(node, 0, 1.0), self._operand(node, 1, 1.0)
        product = arithmetic.multiply_number(arithmetic.multiply(x, y), both)
        if not each:
            return product
        return arithmetic.add(product, arithmetic.add(x, y))

    # -- comparisons -------------------------------------------------------------------------------

    def _emit_less(self, node: Node) -> Value:
        half, gap = self._margin(node)
        arithmetic = self._arithmetic(node)
        shifted = arithmetic.add_number(self._subtracted(node), -half)
        return positive(arithmetic, shifted, gap, self.precision.bits)

    def _emit_equal(self, node: Node) -> Value:
        half, gap = self._margin(node)
        if half == 0:
            raise failure_at(node.where, "reals are never known to be equal. Compare abs(a - b) < tolerance.")
        arithmetic = self._arithmetic(node)
        difference = self._subtracted(node)
        above, below = (
            truth(arithmetic, arithmetic.add_number(difference, shift), gap, self.precision.bits)
            for shift in (half, -half)
        )
        return replace(arithmetic.add(above, below, subtract=True), low=-0.5, high=1.5)

    def _emit_sign(self, node: Node) -> Value:
        half, gap = self._margin(node)
        arithmetic = self._arithmetic(node)
        a = self._operand(node, 0, self._compared(node))
        if half == 0:
            return arithmetic.multiply_number(truth(arithmetic, a, gap, self.precision.bits), 2.0)
        above, below = (
            truth(arithmetic, arithmetic.add_number(a, shift), gap, self.precision.bits)
            for shift in (half, -half)
        )
        return arithmetic.add(above, below)

    def _emit_absolute(self, node: Node) -> Value:
        _, gap = self._margin(node)
        arithmetic = self._arithmetic(node)
        a = self._operand(node, 0, self._compared(node))
        half = self._margin(node)[0]
        # At 0 either sign will do.
        signs = truth(arithmetic, arithmetic.add_number(a, half), gap, self.precision.bits)
        return arithmetic.multiply_number(arithmetic.multiply(a, signs), 2.0)

    def _margin(self, node: Node) -> tuple[float, float]:
        kinds = [one.kind.number() for one in node.inputs]
        reach = max(one.largest for one in kinds)
        return margin(_difference(node), reach, self.precision, node.where)

    def _subtracted(self, node: Node) -> Value:
        """The second input less the first."""
        arithmetic, unit = self._arithmetic(node), self._compared(node)
        tracks = self.layout.inward(node, reading_shape(node))
        first, second = self._constant(node, 0), self._constant(node, 1)
        if first is not None:
            return _shifted(arithmetic, self._operand(node, 1, unit), -first, tracks)
        if second is not None:
            return _shifted(arithmetic, arithmetic.negate(self._operand(node, 0, unit)), second, tracks)
        a, b = self._operand(node, 0, unit), self._operand(node, 1, unit)
        return arithmetic.add(b, a, subtract=True)

    def _rank(self, node: Node) -> Ranked:
        count, arithmetic = _count(node), self._arithmetic(node)
        source, kind = node.inputs[0], node.inputs[0].kind.number()
        if sum(length > 1 for length in source.shape) > 1:
            raise failure_at(
                node.where,
                f"{node.op} along one of several axes, shape {source.shape}: encrypted programs rank "
                "one list at a time. Write a program for one of them and run it for each.",
            )
        length = 1 << (count - 1).bit_length()
        pairs = Pairs(arithmetic, count, length)
        unit = self._ranking(node)
        # The largest is the least of the negatives, and an input need not be computed on for that.
        falling = source.op == "negative" and source.inputs[0] in self.layout.leaves
        if falling:
            source, kind = source.inputs[0], source.inputs[0].kind.number()
        if source in self.layout.leaves:
            rows, around = self._paired(source, node, pairs, unit)
        else:
            around = arithmetic.in_unit(self._operand(node, 0, unit), unit)
            for track in list(around.states):
                if around.states[track] == FIRST:
                    around = arithmetic.repeat(around, track)
            rows = pairs.rows(around)
        ranks = pairs.ranks(rows, around, kind, self.precision, node, falling=falling)
        limit, above = threshold(count, length, node)
        span = (kind.high - kind.low) / float(kind.step or 2.0**-self.precision.bits * (kind.high - kind.low))
        further = any(node in one.inputs for one in self.graph.nodes) or node.op == "min"
        # A sum of all numbers, each times a truth, is off by a quarter of a step; a truth alone by an
        # eighth.
        bits = math.log2(count * max(span, count)) + 2.0 if further else 3.0
        mask = pairs.mask(ranks, limit, above=above, bits=bits)
        if node.op != "min":
            return mask
        chosen = self.draft.step("add_number", mask.registers[0], 0, 1.0)
        register = self.draft.step("multiply", rows.registers[0], chosen)
        bit = length // 2
        while bit:
            register = self.draft.step("add", register, self.draft.rotate(register, bit))
            bit //= 2
        if falling:
            register = self.draft.step("negate", register)
        reach = max(abs(kind.low), abs(kind.high))
        return Ranked((register,), mask.place, 0.5 * unit, 0.0, count * reach * mask.error)

    def _unranked(self, node: Node) -> Value:
        """What a ranking found, at the first index, to be computed on."""
        ranked, arithmetic, draft = self.ranked[node], self._arithmetic(node), self.draft
        if node.op == "topk_mask":
            raise failure_at(
                node.where,
                "a top-k mask is computed on further, which encrypted programs cannot do yet. Return it, and go on "
                "with it at the client.",
            )
        if node.op == "argmin":
            return self._chosen(node, np.arange(_count(node), dtype=np.float64))
        chosen = np.zeros(arithmetic.space.slots)
        chosen[ranked.place] = 1.0
        register = draft.step("multiply_vector", ranked.registers[0], draft.vector(chosen))
        return self._first(node, register, ranked.unit, node.kind, ranked.error)

    def _chosen(self, node: Node, table: np.ndarray) -> Value:
        """The entry of a table, at the first index, that an arg-min names."""
        ranked, draft = self.ranked[node], self.draft
        register = draft.step("add_number", ranked.registers[0], 0, ranked.offset / ranked.unit)
        entries = np.zeros(self._arithmetic(node).space.slots)
        entries[ranked.place : ranked.place + len(table)] = table
        # Slots hold twice a truth; what is chosen is divided by the largest entry.
        largest = max(float(np.abs(table).max()), 1e-300)
        register = draft.step("multiply_vector", register, draft.vector(entries / largest))
        bit = (1 << (len(table) - 1).bit_length()) // 2
        while bit:
            register = draft.step("add", register, draft.rotate(register, bit))
            bit //= 2
        kind = Kind(None, float(table.min()), float(table.max()))
        return self._first(
            node, register, ranked.unit * largest, kind, ranked.error * float(np.abs(table).sum())
        )

    def _first(self, node: Node, register: int, unit: float, kind: Kind, error: float) -> Value:
        """A number that stands in the last row of pairs, at the first index, as bounded as it is."""
        ranked, arithmetic, draft = self.ranked[node], self._arithmetic(node), self.draft
        register = draft.rotate(register, ranked.place)
        states = dict.fromkeys(range(len(arithmetic.space.tracks)), FIRST)
        low, high = min(kind.low, 0.0) - error, max(kind.high, 0.0) + error
        registers = (register,) * arithmetic.space.registers
        value = Value(registers, {}, states, low, high, unit, 0.0, error)
        return arithmetic.bound(value, value.reach)

    def _paired(self, shown: Node, node: Node, pairs: Pairs, unit: float) -> tuple[Value, Value]:
        """An input that the client lays out in both ways itself."""
        leaf = self.layout.leaves[shown]
        source, elements = self._source(leaf, node), leaf.elements.reshape(-1)
        found = []
        for times, stride in ((pairs.length, pairs.row), (self.draft.slots // pairs.length, pairs.length)):
            index = np.broadcast_to(elements, (times, pairs.count))
            placed = blocks(index, [stride, 1], 0)
            registers = self.draft.view(source, 1, unit, placed)
            low, high = min(source.kind.low, 0.0), max(source.kind.high, 0.0)
            found.append(Value(registers, {}, {}, low, high, unit, 0.0))
        return found[0], found[1]

    # -- functions and shapes ----------------------------------------------------------------------

    def _emit_function(self, node: Node) -> Value:
        arithmetic, name = self._arithmetic(node), node.attributes["name"]
        kind = node.inputs[0].kind.number()
        centre, half = 0.5 * (kind.low + kind.high), max(0.5 * (kind.high - kind.low), 1e-9)
        a = self._centred(node, self._operand(node, 0, half), kind, centre)
        reach = half + a.error
        a = replace(a, low=-reach, high=reach)
        a = arithmetic.bound(arithmetic.in_unit(a, reach), reach)
        off = 2.0**-self.function_bits * (node.kind.high - node.kind.low)
        with np.errstate(all="ignore"):
            coefficients = interpolated(_FUNCTIONS[name], centre, reach, off)
        if coefficients is None:
            raise failure_at(
                node.where,
                f"no polynomial up to degree 255 is close to {name} on {kind.low:g} … {kind.high:g}. "
                "Declare a narrower range, further from where it grows without bound.",
            )
        unit = max(1.0, node.kind.largest)
        low, high = node.kind.low - off, node.kind.high + off
        return arithmetic.polynomial(a, coefficients, low, high, unit, off)

    def _centred(self, node: Node, a: Value, kind: Kind, centre: float) -> Value:
        """`a` less the centre of what it may hold, and 0 where nothing stands: a polynomial grows fast
        outside of its interval."""
        arithmetic = self._arithmetic(node)
        if a.low >= kind.low - a.error and a.high <= kind.high + a.error:
            return arithmetic.add_number(a, -centre)
        for track in [one for one, state in a.states.items() if state == FIRST]:
            a = arithmetic.repeat(a, track)
        ones, everywhere = np.ones([1] * len(arithmetic.space.tracks)), range(len(arithmetic.space.tracks))
        if a.pad != 0:
            a = arithmetic.multiply_vector(a, ones, everywhere, a.unit)
        return arithmetic.add_vector(a, -centre * ones, everywhere) if centre else a

    def _emit_take(self, node: Node) -> Value:
        table, index = node.inputs
        if index.op != "argmin" or not table.constant or len(table.shape) != 1:
            raise failure_at(
                node.where,
                "indexing by a secret number is private lookup, which encrypted programs do only for the result of an "
                "arg-min in a public list. ciphervec.lookup does the rest.",
            )
        values = table.value.astype(np.float64)[: _count(index)]
        return self._chosen(index, values)

    def _emit_reshape(self, node: Node) -> Value:
        reshaped_axes(node)
        return self._operand(node, 0, self.units[node])

    def _emit_transpose(self, node: Node) -> Value:
        return self._operand(node, 0, self.units[node])

    def _emit_broadcast_to(self, node: Node) -> Value:
        return self._operand(node, 0, self.units[node])

    def _emit_slice(self, node: Node) -> Value:
        arithmetic, a = self._arithmetic(node), self._operand(node, 0, self.units[node])
        tracks = self.layout.inward(node, node.inputs[0].shape)
        for axis, (start, length, step) in enumerate(node.attributes["slices"]):
            track = tracks[axis]
            if track is None or (step == 1 and length == node.inputs[0].shape[axis]):
                continue
            lying = arithmetic.space.tracks[track]
            if step != 1 or (start and lying.stride * lying.length > arithmetic.space.slots):
                raise failure_at(
                    node.where,
                    f"a computed array of {node.inputs[0].size} numbers is sliced with a step, or across "
                    "registers, which encrypted programs cannot do yet. Slice the inputs instead.",
                )
            registers = tuple(self.draft.rotate(one, start * lying.stride) for one in a.registers)
            varying = {**a.tracks, track: length}
            states = dict(a.states)
            if length == 1:
                del varying[track]
                states[track] = FIRST
            a = replace(a, registers=registers, tracks=varying, states=states, pad=None)
        return a

    # -- outputs -----------------------------------------------------------------------------------

    def _output(self, number: int, node: Node) -> DraftOutput:
        name = "result" if self.graph.single else f"result{number}"
        if node in self.ranked:
            return self._ranked_output(name, node)
        if node in self.layout.leaves:
            raise failure(
                f"{self.graph.name} returns {node.op} that is not computed from encrypted arrays; the client has "
                "it already. Leave it out."
            )
        value, arithmetic = self.values[node], self._arithmetic(node)
        tracks = self.layout.outward(node)
        for axis, track in enumerate(tracks):
            if track is not None and node.shape[axis] > 1 and value.states.get(track) == FIRST:
                value = arithmetic.repeat(value, track)
        strides = [0 if track is None else arithmetic.space.tracks[track].stride for track in tracks]
        elements = np.arange(node.size, dtype=np.int64).reshape(node.shape)
        placed = blocks(elements, strides, 0)
        if value.reach < 1e30:
            value = arithmetic.bound(value, max(value.reach, node.kind.largest, 1e-9))
        decoding = "booleans" if node.kind.boolean else "numbers"
        registers = value.registers[: arithmetic.space.registers]
        return DraftOutput(name, node.shape, node.kind, value.unit, registers, placed, decoding, value.error)

    def _ranked_output(self, name: str, node: Node) -> DraftOutput:
        ranked = self.ranked[node]
        register = ranked.registers[0]
        if node.op in ("min", "negative"):
            placed: list[tuple[int, int, list[tuple[int, int, int]]]] = [(0, ranked.place, [])]
            # Rows before the last have sums of what they hold in them.
            most = 2.0 * (1 << (_count(_ranking_of(node)) - 1).bit_length())
            register = self.draft.step("bound", register, 0, most)
            return DraftOutput(
                name, node.shape, node.kind, ranked.unit, (register,), placed, "numbers", ranked.error
            )
        count = _count(node)
        register = self.draft.step("add_number", register, 0, ranked.offset / ranked.unit)
        placed = [(0, ranked.place, [(count, 1, 1)])]
        if node.op == "argmin":
            shape, decoding = (*node.shape, count), "one_hot"
        else:
            shape, decoding = node.shape, "booleans"
        return DraftOutput(name, shape, node.kind, ranked.unit, (register,), placed, decoding, ranked.error)


_IDIOMS = {
    "sort": "Return the numbers and sort them at the client, or rank them with topk_mask.",
    "argsort": "Return the numbers and sort them at the client, or rank them with topk_mask.",
    "roll": "Roll the inputs, before anything is computed of them.",
    "concatenate": "Concatenate the inputs, or return several arrays.",
}


def _shifted(arithmetic: Arithmetic, a: Value, values: np.ndarray, tracks: Sequence[int | None]) -> Value:
    if values.size == 1:
        return arithmetic.add_number(a, float(values.flat[0]))
    return arithmetic.add_vector(a, values, tracks)


def _scaled(
    arithmetic: Arithmetic, a: Value, values: np.ndarray, tracks: Sequence[int | None], unit: float
) -> Value:
    if values.size == 1:
        return arithmetic.multiply_number(a, float(values.flat[0]))
    return arithmetic.multiply_vector(a, values, tracks, unit)


def _difference(node: Node) -> Kind:
    """The kind of the numbers that a comparison looks at."""
    kinds = [one.kind.number() for one in node.inputs]
    if len(kinds) == 1:
        return kinds[0]
    steps = [one.step for one in kinds]
    low, high = min(one.low for one in kinds), max(one.high for one in kinds)
    if any(step is None for step in steps):
        return Kind(None, low, high)
    a, b = (step for step in steps if step is not None)
    common = type(a)(
        math.gcd(a.numerator * b.denominator, b.numerator * a.denominator), a.denominator * b.denominator
    )
    return Kind(common, low, high)


def _ranking_of(node: Node) -> Node:
    """The ranking that a minimum, or the negative of one, comes of."""
    return node.inputs[0] if node.op == "negative" else node


def _count(node: Node) -> int:
    return node.inputs[0].shape[node.attributes["axis"]]


def _pair_slots(node: Node) -> int:
    count = _count(node)
    if count < 2:
        raise failure_at(node.where, f"{node.op} of one number.")
    return Pairs.slots(count)
