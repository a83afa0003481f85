"""Traces a function: arrays that have a shape and a kind but no values turn its calls of NumPy into nodes. Whatever
cannot be done without values raises at once, with the line of the user's file. Runs wherever a program is traced."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from . import counting, elementwise, indexing, products, reductions, shaping, tabulating
from .builder import Builder
from .composed_numbers import ACCUMULATE, NUMBERS, parity
from .composed_parts import PARTS
from .gathering import gathered, together
from .graph import Node
from .idioms import idiom
from .kinds import Array, Kind, Shape
from .narrow import check_float, check_operands, wraps
from .source import failure

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **shaping.FUNCTIONS,
    **reductions.FUNCTIONS,
    **products.FUNCTIONS,
    **counting.COUNTS,
    np.where: elementwise.where,
    np.take: indexing.take,
    np.round: elementwise.rounding("round"),
    np.around: elementwise.rounding("round"),
    np.sinc: elementwise.smooth("sinc"),
}
_LISTS = (
    shaping.concatenate,
    shaping.stack,
    shaping.hstack,
    shaping.vstack,
    shaping.column_stack,
    indexing.take,
    shaping.broadcast_arrays,
)
"""Handlers that take lists of arrays, or indices, as they are."""
_COMPOSED: dict[Any, Callable[..., Any]] = {**PARTS, **NUMBERS}
"""Functions that take traced arrays and are written in others."""
_BITWISE: dict[np.ufunc, np.ufunc] = {
    np.bitwise_and: np.logical_and,
    np.bitwise_or: np.logical_or,
    np.bitwise_xor: np.logical_xor,
}
"""What they are of booleans."""
_UFUNCS: dict[np.ufunc, Callable[..., Any]] = {**elementwise.UFUNCS, **products.UFUNCS}


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without values: what a traced function is called with, and what it computes.

    It takes NumPy's functions and operators as an array does. Public arrays that are part of the
    program have values, and everything may be done with those.
    """

    __slots__ = ("builder", "node")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: Builder, node: Node) -> None:
        self.builder = builder
        self.node = node

    # What an array is.

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """An array, to a function that asks by isinstance: it goes the way that it goes with arrays."""
        return np.ndarray

    @property
    def shape(self) -> Shape:
        return self.node.shape

    @property
    def ndim(self) -> int:
        return len(self.node.shape)

    @property
    def size(self) -> int:
        return self.node.size

    @property
    def kind(self) -> Kind:
        """The numbers it may hold."""
        return self.node.kind

    @property
    def dtype(self) -> np.dtype[Any]:
        """bool, int64 or float64, by its kind; programs have no narrower types."""
        kind = self.node.kind
        return np.dtype(np.bool_ if kind.boolean else np.int64 if kind.integer else np.float64)

    @property
    def T(self) -> Any:  # noqa: N802
        return np.transpose(self)

    def __len__(self) -> int:
        if not self.shape:
            raise failure("len() of a single number.")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    def __repr__(self) -> str:
        return f"<{'secret' if self.node.secret else 'public'} {self.shape} {self.kind}>"

    # NumPy's two protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, **options: Any) -> Any:
        inputs = tuple(together(one, is_traced) for one in given)
        out = options.pop("out", (None,))[0]
        # `x += y` is `x = x + y` for a single number, which nothing else can be a view of.
        if out is not None and not (out is inputs[0] is self and not self.shape):
            raise failure(f"np.{ufunc.__name__} into an array that is there. {idiom('setitem')}")
        if _values_known(inputs):
            return self._wrapped(getattr(ufunc, method)(*map(_value, inputs), **options))
        check_operands(f"np.{ufunc.__name__}", ufunc, inputs)
        if method == "__call__" and ufunc in _UFUNCS:
            if options:
                raise failure(f"np.{ufunc.__name__} with {_listed(options)}. {idiom('option')}")
            with self.builder.calling(f"np.{ufunc.__name__}"):
                return self._wrapped(_UFUNCS[ufunc](self.builder, *map(self._unwrapped, inputs)))
        if method == "reduce" and ufunc in reductions.REDUCE:
            options.setdefault("axis", 0)
            return self._called(f"np.{ufunc.__name__}.reduce", reductions.REDUCE[ufunc], inputs, options)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if method == "__call__" and not options:
            with self.builder.calling(f"np.{name}"):
                found = tabulating.applied(self.builder, ufunc, [self._unwrapped(one) for one in inputs])
            if found is not None:
                return self._wrapped(found)
        if method == "outer" and not options:
            one, other = inputs
            return ufunc(np.reshape(one, np.shape(one) + (1,) * np.ndim(other)), other)
        if method == "accumulate" and ufunc in ACCUMULATE:
            return self._composed(f"np.{name}", ACCUMULATE[ufunc], inputs, {"axis": 0, **options})
        truths = _BITWISE.get(ufunc)
        if method == "reduce" and truths is not None and self.kind.boolean:
            return truths.reduce(self, **options)
        if method == "reduce" and ufunc is np.logical_xor:
            return self._composed(f"np.{name}", parity, inputs, {"axis": 0, **options})
        if method == "__call__":
            kinds = ", ".join(str(one.kind) for one in inputs if is_traced(one))
            many = all(one.kind.exact for one in inputs if is_traced(one))
            raise failure(f"np.{name} of {kinds} is not supported. {idiom('table' if many else 'reals')}")
        raise failure(f"np.{name} of secret arrays is not supported. {idiom(name)}")

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        name = _name(func)
        if kwargs.pop("out", None) is not None:
            raise failure(f"{name} into an array that is there. {idiom('setitem')}")
        if _values_known((args, kwargs)):
            return self._wrapped(func(*_value(args), **_value(kwargs)))
        check_operands(name, func, (*args, *kwargs.values()))
        if func in _COMPOSED:
            return self._composed(name, _COMPOSED[func], args, kwargs)
        if func not in _FUNCTIONS:
            raise failure(f"{name} of secret arrays is not supported. {idiom(func.__name__)}")
        return self._called(name, _FUNCTIONS[func], args, kwargs)

    def _composed(self, name: str, composed: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
        _bound(name, composed, args, options)
        with self.builder.calling(name):
            return composed(*args, **options)

    def _called(self, name: str, handler: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
        if handler not in _LISTS:
            args = [together(one, is_traced) if _holds_traced(one) else one for one in args]
        args = [self._unwrapped(one) for one in args]
        options = {key: self._unwrapped(one) for key, one in options.items()}
        _bound(name, handler, (self.builder, *args), options)
        with self.builder.calling(name):
            return self._wrapped(handler(self.builder, *args, **options))

    def _unwrapped(self, value: Any) -> Any:
        """Nodes for traced arrays, also inside of tuples, lists and slices."""
        if isinstance(value, Traced):
            if value.builder is not self.builder:
                raise failure(
                    "arrays of two traces meet. Let a program return what another needs as an argument."
                )
            return value.node
        if isinstance(value, tuple | list):
            return type(value)(self._unwrapped(one) for one in value)
        if isinstance(value, slice):
            return slice(*(self._unwrapped(one) for one in (value.start, value.stop, value.step)))
        return value

    def _wrapped(self, value: Any) -> Any:
        if isinstance(value, Node):
            return Traced(self.builder, value)
        if isinstance(value, Traced):
            return value
        if isinstance(value, np.ndarray | np.number | np.bool_):
            if wraps(value.dtype):
                # As NumPy goes on with it, until it meets what is wide.
                return value
            return Traced(self.builder, self.builder.constant(value)) if np.size(value) else value
        if type(value) in (tuple, list):
            return type(value)(self._wrapped(one) for one in value)
        return value

    # Indexing.

    def __getitem__(self, key: Any) -> Any:
        with self.builder.calling("indexing"):
            return self._wrapped(indexing.getitem(self.builder, self.node, self._unwrapped(key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise failure(f"arrays of a program are not changed in place. {idiom('setitem')}")

    # What only values can answer.

    def _known(self, what: str) -> Array:
        if not self.node.constant:
            which = "a secret array" if self.node.secret else "an array that is given when the program runs"
            raise failure(f"{_VALUES[what]} of {which}. {idiom(what)}")
        return self.node.value

    def __bool__(self) -> bool:
        return bool(self._known("bool"))

    def __int__(self) -> int:
        return int(self._known("int"))

    def __float__(self) -> float:
        return float(self._known("float"))

    def __index__(self) -> int:
        return self._known("index").__index__()

    def __format__(self, spec: str) -> str:
        """Without a format it is told what it is; with one its values are."""
        return format(self._known("format")[()], spec) if spec else repr(self)

    def __round__(self, digits: int | None = None) -> Any:
        return np.round(self)

    def __contains__(self, item: Any) -> bool:
        return bool(item in self._known("in"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._known("array"), dtype=dtype)

    def item(self, *place: Any) -> Any:
        return self._known("item").item(*place)

    def tolist(self) -> Any:
        return self._known("tolist").tolist()

    # Methods of arrays.

    def astype(self, dtype: Any, **_: Any) -> Any:
        """The same values: programs have no types but booleans and numbers."""
        wanted = np.dtype(dtype)
        if wanted.kind == "b":
            return self._wrapped(self.builder.boolean(self.node))
        if wanted.kind not in "iuf":
            raise failure(f"astype({wanted}) of {self.kind}. bool, int and float work.")
        if wanted.kind != "f" and not self.kind.number().integer:
            return np.trunc(self).astype(dtype)
        if wanted.kind == "f":
            check_float(wanted, self.kind.number())
        outside = (
            wanted.kind != "f"
            and not np.iinfo(wanted).min <= self.kind.low <= self.kind.high <= np.iinfo(wanted).max
        )
        # What is computed of integers of 8 or 16 bits wraps around in NumPy, and is soon beyond them.
        if outside or (wanted.kind in "iu" and wanted.itemsize < 4):
            raise failure(
                f"astype({wanted}) of {self.kind}, or what is computed of it, wraps around. Leave it out: programs have "
                "no narrow types."
            )
        return self._wrapped(self.builder.number(self.node))

    def copy(self, order: str = "C") -> Any:
        return self

    def flatten(self, order: Any = "C") -> Any:
        return np.ravel(self, order)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return self._wrapped(shaping.reshape(self.builder, self.node, given, order))

    def transpose(self, *axes: Any) -> Any:
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return self._wrapped(shaping.transpose(self.builder, self.node, given))

    def __getattr__(self, name: str) -> Any:
        if name in _METHODS:
            function = getattr(np, name)
            return lambda *args, **options: function(self, *args, **options)
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"arrays of a program have no attribute {name!r}")
        raise failure(f"the attribute {name!r} of a secret array is not supported. {idiom(name)}")


_VALUES = {
    "bool": "the truth",
    "int": "int()",
    "float": "float()",
    "index": "the value, as an index or a length,",
    "in": "`in`",
    "array": "the values",
    "item": ".item()",
    "format": "a format",
    "tolist": ".tolist()",
}
"""What values are asked for, as errors say it."""
_METHODS = frozenset(
    (
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "clip",
        "choose",
        "conj",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "max",
        "mean",
        "min",
        "prod",
        "ravel",
        "repeat",
        "round",
        "searchsorted",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "trace",
        "var",
    )
)
"""Methods of arrays that are the functions of NumPy by that name."""


def is_traced(value: Any) -> bool:
    """Whether it is an array without values."""
    return isinstance(value, Traced) and not value.node.constant


def _holds_traced(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(is_traced(one) or _holds_traced(one) for one in value)


def taking_lists() -> AbstractContextManager[None]:
    """Meanwhile NumPy takes lists of traced arrays for arrays, where it takes lists of numbers."""
    functions = [one for one in _FUNCTIONS if _FUNCTIONS[one] not in _LISTS]
    return gathered([*functions, *NUMBERS], is_traced, _tabulated)


def _tabulated(f: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """A function of numbers, which NumPy has been told to call for each, of arrays of few values."""
    first: Traced = next(one for one in arrays if is_traced(one))
    with first.builder.calling("np.vectorize"):
        found = tabulating.applied(first.builder, f, [first._unwrapped(one) for one in arrays])
    if found is None:
        kinds = ", ".join(str(one.kind) for one in arrays if is_traced(one))
        raise failure(
            f"np.vectorize of {kinds}: a table of so many values is too long. Declare fewer, or write the function in "
            "NumPy's."
        )
    return first._wrapped(found)


def _bound(name: str, handler: Callable[..., Any], args: Any, options: dict[str, Any]) -> None:
    try:
        inspect.signature(handler).bind(*args, **options)
    except TypeError as error:
        raise failure(f"{name} with these arguments is not supported: {error}. {idiom('option')}") from None


def _values_known(value: Any) -> bool:
    """Whether all traced arrays inside are constants."""
    if isinstance(value, Traced):
        return value.node.constant
    if isinstance(value, tuple | list):
        return all(map(_values_known, value))
    return all(map(_values_known, value.values())) if isinstance(value, dict) else True


def _value(value: Any) -> Any:
    if isinstance(value, Traced):
        return value.node.value
    if isinstance(value, tuple | list):
        return type(value)(_value(one) for one in value)
    return {key: _value(one) for key, one in value.items()} if isinstance(value, dict) else value


def _listed(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}=" for name in options)


def _name(func: Callable[..., Any]) -> str:
    module = getattr(func, "__module__", "numpy") or "numpy"
    inner = module.removeprefix("numpy").removeprefix(".")
    return f"np.{inner}.{func.__name__}" if inner in ("linalg", "fft") else f"np.{func.__name__}"
