"""A program: called with arrays it is its ordinary function of NumPy arrays; declared arrays give its graph. Runs at
the client, without a key."""

from __future__ import annotations

import functools
import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..errors import ProgramError
from . import loops, networks
from .builder import Builder
from .fitting import FAILURE
from .graph import Graph, Node
from .kinds import BOOLEAN, LARGEST, Declared, Kind, constant_array, constant_kind
from .plan import Plan
from .reference import observe
from .revealing import checked, local_variables
from .selections import selected
from .source import Line, caller, failure, failure_at, noticing
from .trace import Traced, taking_lists

P = ParamSpec("P")
R = TypeVar("R")


class Program(Generic[P, R]):
    """A function of NumPy arrays that can be traced."""

    def __init__(self, function: Callable[P, R]) -> None:
        """`function`: takes arrays by named parameters, returns an array or a tuple of them."""
        functools.update_wrapper(self, function)
        self.function = function
        self.signature = inspect.signature(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, in plain NumPy."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<program {self.name}{self.signature}>"

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def where(self) -> Line | None:
        """Where the function is written; None if that is not known."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return Line(code.co_filename, code.co_firstlineno) if code else None

    def trace(self, *declared: Any, **named: Any) -> Graph:
        """The graph of the function for arguments declared by `secret` and `public`.

        Arguments that are numbers, strings, booleans or None are handed to the function as they are.

        Raises ProgramError, with the line of the function, where it does what needs values, what no
        operation is there for, or what may leave the range of exact numbers.
        """
        return self._traced(self._bound(declared, named))

    def _traced(self, bound: inspect.BoundArguments, reveal: Sequence[str] = ()) -> Graph:
        builder = Builder()
        inputs: list[Node] = []
        for name, value in bound.arguments.items():
            if isinstance(value, Declared):
                with builder.at(self.where or caller()):
                    node = builder.input(name, value)
                bound.arguments[name] = Traced(builder, node)
                if not node.constant:
                    inputs.append(node)
            elif value is not None and not isinstance(value, int | float | str | bool | np.number | np.bool_):
                raise failure(
                    f"the argument {name!r} of {self.name} is {type(value).__name__}: say secret(shape, bits=8) or "
                    "public(array), so that it is clear who may see it."
                )
        with noticing() as made:
            returned, found = self._returned(bound, reveal)
        if made:
            raise failure_at(
                Line(made[0].file, made[0].line),
                f"{self.name} catches an error of tracing and goes on, which it does not do with arrays: "
                f"{str(made[0]).removeprefix(f'{made[0].file}:{made[0].line}: ')} Leave the try around it out.",
            )
        single = not isinstance(returned, tuple | list)
        values = [returned] if single else list(returned)
        if not values or any(one is None or isinstance(one, str | tuple | list | dict) for one in values):
            raise failure(
                f"{self.name} must return an array or a tuple of arrays, it returned {returned!r:.80}.",
                self.where,
            )
        outputs = [builder.known(one.node if isinstance(one, Traced) else one) for one in values]
        arrays = {name: one.node for name, one in found.items() if isinstance(one, Traced)}
        shown = [checked(name, arrays.get(name), [*arrays], outputs) for name in reveal]
        final = loops.at_once(builder, networks.at_once(builder, outputs, shown))
        final = selected(builder, final[: len(outputs)], final[len(outputs) :])
        revealed = dict(zip(reveal, final[len(outputs) :], strict=True))
        return Graph.of(self.name, inputs, final[: len(outputs)], single=single, revealed=revealed)

    def trace_samples(self, *samples: Any, **named: Any) -> Graph:
        """The graph for arguments like these examples, with what they lead to noted in `observed`.

        An array of integers stands for secret integers of the narrowest declared width, 1, 2, 3 …
        bits and a sign where one is negative, that holds the least and the largest of them; one of
        floats for secret reals between them; one of booleans for secret booleans. Arguments that are
        declared already, and numbers that are no arrays, stay as `trace` takes them.

        Later inputs outside of these ranges are refused, so give examples of the extremes.
        """
        return self._sampled(self._bound(samples, named))

    def _sampled(self, bound: inspect.BoundArguments, reveal: Sequence[str] = ()) -> Graph:
        arrays = {name: np.asarray(value) for name, value in bound.arguments.items() if _is_array(value)}
        declared = {
            name: like(arrays[name]) if name in arrays else value for name, value in bound.arguments.items()
        }
        bound.arguments.update(declared)
        graph = self._traced(bound, reveal)
        if {node.attributes["name"] for node in graph.inputs} == set(arrays):
            return observe(graph, arrays)
        return graph

    def _returned(self, bound: inspect.BoundArguments, reveal: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """What the function returns, and its local variables if any of them are asked for."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        try:
            with taking_lists():
                if not reveal or code is None:
                    return self.function(*bound.args, **bound.kwargs), {}
                with local_variables(code) as found:
                    return self.function(*bound.args, **bound.kwargs), found
        except ProgramError:
            raise
        except Exception as error:
            # NumPy hides what it got from an array behind an error of its own.
            if isinstance(error.__cause__, ProgramError):
                raise error.__cause__ from None
            raise

    def compile(
        self,
        *arguments: Any,
        precision: float = 12,
        gap: float | None = None,
        failure: int = FAILURE,
        quantum: bool = False,
        reveal: str | Sequence[str] = (),
        backend: str | None = None,
        **named: Any,
    ) -> Plan:
        """A plan to run the function on encrypted arrays, for arguments declared by `secret` and
        `public`, or for arrays like these examples, as `trace_samples` takes them.

        Args:
            precision: bits; real results are off by less than 2^-precision of their range.
            gap: reals, and integers too wide to be told apart, that are closer than this part of their
                range may compare either way.
            failure: bits; an answer is wrong or refused with a chance below 2^-failure. What others see
                results of, or refusals, takes 128.
            quantum: take the parameter table for quantum computers.
            reveal: names of the function's own variables, as they stand when it returns, that the client
                may decrypt: it sees all their numbers and does what comes of them itself, in the clear.
            backend: "ckks" or "linear" where the one that is predicted to be faster is not wanted.

        Raises ProgramError for what cannot be computed on encrypted arrays, with the line that asks for
        it, and if no parameters serve.
        """
        names = (reveal,) if isinstance(reveal, str) else tuple(dict.fromkeys(reveal))
        bound = self._bound(arguments, named)
        given = {
            name: one.value if isinstance(one, Declared) else one for name, one in bound.arguments.items()
        }
        graph = self._sampled(bound, names)
        return Plan.of(
            graph,
            precision=precision,
            gap=gap,
            failure=failure,
            quantum=quantum,
            backend=backend,
            function=lambda **inputs: self._plainly({**given, **inputs}),
        )

    def _plainly(self, arguments: dict[str, Any]) -> Any:
        """The function itself, for all arguments by name."""
        bound = inspect.BoundArguments(self.signature, OrderedDict(arguments))
        return self.function(*bound.args, **bound.kwargs)

    def _bound(self, args: Any, named: dict[str, Any]) -> inspect.BoundArguments:
        for parameter in self.signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise failure(
                    f"{self.name} takes {parameter}; a program names every argument. Pass one array with an axis "
                    "for what may be many.",
                    self.where,
                )
        try:
            bound = self.signature.bind(*args, **named)
        except TypeError as error:
            raise failure(f"{self.name}{self.signature}: {error}. Declare every argument.") from None
        bound.apply_defaults()
        return bound


def program(function: Callable[P, R]) -> Program[P, R]:
    """Make a function of NumPy arrays a program: `@ciphervec.program` above it."""
    return Program(function)


def like(sample: Any) -> Declared:
    """The secret array that a sample stands for, as `Program.trace_samples` says."""
    value = constant_array(sample)
    kind = constant_kind(value)
    if value.dtype.kind == "b":
        kind = BOOLEAN
    elif value.dtype.kind == "i":
        signed = kind.low < 0
        width = max(1, math.ceil(math.log2(max(kind.high, -kind.low - 1, 0) + 1)))
        low, high = (
            (-float(1 << width), float((1 << width) - 1)) if signed else (0.0, float((1 << width) - 1))
        )
        kind = Kind(kind.step, max(low, -LARGEST), min(high, LARGEST))
    else:
        kind = Kind(None, kind.low, kind.high)
    return Declared(value.shape, kind, secret=True)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | list)
