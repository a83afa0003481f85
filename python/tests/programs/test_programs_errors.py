"""Programs: what cannot be traced raises at once, names the line of this file that asked for it, and
says what works instead. What cannot be run is refused by name, place and value."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import ProgramError, programs, public, secret
from ciphervec.errors import InvalidInput
from ciphervec.programs import Declared, evaluate, fold, topk_mask

TABLE = np.arange(20).reshape(10, 2)


def _filled(x: Any) -> Any:
    z = np.zeros(4)
    z[0] = x[0]  # here
    return z


def _filled_parts(x: Any) -> Any:
    z = np.zeros((2, 4))
    z[:, :] = x  # here
    return z


def _added_in_place(x: Any) -> Any:
    z = np.zeros(4)
    z += x  # here
    return z


def _branch(x: Any) -> Any:
    if x[0] > 3:  # here
        return x
    return -x


def _loop(x: Any) -> Any:
    while x[0] > 3:  # here
        x = x - 1
    return x


def _set(x: Any) -> Any:
    x[0] = 1  # here
    return x


def _accumulated(x: Any) -> Any:
    x += 1  # here
    return x


BYTES = secret(4, bits=8)
# Function, what it is given, a part of what the error says.
REFUSED: dict[str, tuple[Callable[..., Any], Declared, str]] = {
    "if": (_branch, BYTES, r"the truth of a secret array.*np\.where\(condition, x, y\)"),
    "while": (_loop, BYTES, "a loop over a fixed range"),
    "bool": (lambda x: bool(x[0]), BYTES, "np.where"),
    "and": (lambda x: x[0] and x[1], BYTES, "& | ~"),
    "not": (lambda x: not x[0], BYTES, "& | ~"),
    "chained comparison": (lambda x: 1 < x[0] < 3, BYTES, "& | ~"),
    "min of Python": (lambda x: min(x), BYTES, "np.min"),
    "sorted": (lambda x: sorted(x), BYTES, "np.sort"),
    "comprehension with if": (lambda x: [one for one in x if one > 2], BYTES, "np.where"),
    "in": (lambda x: 3 in x, BYTES, r"np\.any\(x == value\)"),
    "int": (lambda x: int(x[0]), BYTES, r"int\(\) of a secret"),
    "float": (lambda x: float(x[0]), BYTES, "compute with them as they are"),
    "math": (lambda x: math.sqrt(x[0]), BYTES, "use np where math was used"),
    "range": (lambda x: list(range(x[0])), BYTES, "range"),
    "item": (lambda x: x[0].item(), BYTES, "array of one number"),
    "tolist": (lambda x: x.tolist(), BYTES, "Loop over the array"),
    "method of a plain array": (lambda x: np.ones((2, 4)).dot(x), BYTES, "PLAIN @ x"),
    "table from outside": (lambda x: TABLE[x], secret(4, low=0, high=9), r"programs\.take\(TABLE, index\)"),
    "np.take": (lambda x: np.take(TABLE, x, axis=0), secret(4, low=0, high=9), r"take\(TABLE, index\)"),
    "setitem": (_set, BYTES, r"np\.where\(mask, value, x\)"),
    "setitem of a plain array": (_filled, BYTES, "np.stack"),
    "slice of a plain array": (_filled_parts, BYTES, "np.where or np.concatenate"),
    "+= on a plain array": (_added_in_place, BYTES, r"total = total \+ x"),
    "+= on an array": (_accumulated, BYTES, r"total = total \+ x"),
    "out": (lambda x: np.add(x, x, out=np.zeros(4)), BYTES, "np.add into an array that is there"),
    "out of a function": (lambda x: np.sum(x, out=np.zeros(())), BYTES, "np.sum into an array"),
    "mask": (lambda x: x[x > 3], BYTES, r"np\.where\(mask, x, 0\)"),
    "where alone": (lambda x: np.where(x > 3), BYTES, r"np\.where\(mask, x, 0\)"),
    "nonzero": (lambda x: np.nonzero(x), BYTES, "np.nonzero of secret arrays.*shape that depends"),
    "unique": (lambda x: np.unique(x), BYTES, "shape that depends"),
    "secret slice": (lambda x: x[: x[0]], BYTES, r"np\.arange\(len\(x\)\) < end"),
    "a mask made of numbers": (lambda x: x[np.array([0.5])], BYTES, "an index must be integers"),
    "sum with where": (lambda x: np.sum(x, where=x > 3), BYTES, "np.sum with these arguments.*where"),
    "ufunc with where": (lambda x: np.add(x, 1, where=np.ones(4, bool)), BYTES, "np.add with where="),
    "sum of a type": (lambda x: np.sum(x, dtype=np.uint8), BYTES, "no narrow types"),
    "astype that wraps": (lambda x: x.astype(np.int8), BYTES, "wraps around"),
    "astype that cuts reals": (lambda x: x.astype(int), secret(4, low=0, high=1, real=True), "np.trunc of real"),
    "round": (lambda x: np.round(x), secret(4, low=0, high=1, real=True), "thresholds"),
    "round in many places": (lambda x: np.round(x / 3), secret(4, bits=16), "changes in too many places"),
    "remainder of many": (lambda x: x % 3, secret(4, bits=24), "table of so many values is too long"),
    "divided by many": (lambda x: x // 3, secret(4, bits=24), "np.floor_divide of integer 0 … 1.67772e.07 //"),
    "bits of many": (lambda x: x ^ 5, secret(4, bits=16), "integers from 0 on that have few values"),
    "bits of reals": (lambda x: x & 1, secret(4, low=0, high=1, real=True), "& is for booleans"),
    "a function of many": (lambda x: np.gcd(x, 6), secret(4, bits=16), "np.gcd of integer.*by a table"),
    "a function of reals": (lambda x: np.arctan2(x, 1), secret(4, low=0, high=1, real=True), "No polynomial"),
    "a function that is not defined": (lambda x: np.arctanh(x), BYTES, "not defined everywhere: of 1 it is inf"),
    "arcsin": (lambda x: np.arcsin(x * 1.5), secret(4, low=0, high=1, real=True), "not defined everywhere"),
    "vectorize of many": (lambda x: np.vectorize(abs)(x), secret(4, bits=16), "np.vectorize of.*too long"),
    "maximum.reduce of a list": (lambda x: np.maximum.reduce([x, x]), BYTES, r"np\.max\(\[a, b\]\)"),
    "bincount": (lambda x: np.bincount(x), BYTES, "minlength=256"),
    "histogram": (lambda x: np.histogram(x)[0], BYTES, "range=.low, high."),
    "select": (lambda x: np.select([x > 1], [x, x]), BYTES, "one for each"),
    "piecewise of integers": (lambda x: np.piecewise(x, [x > 1], [0.5, 1]), BYTES, "np.select"),
    "delete several": (lambda x: np.delete(x, x[:2]), BYTES, "several secret places"),
    "take_along_axis": (lambda x: np.take_along_axis(x, x, 0), BYTES, "low=0, high=3"),
    "secret bins": (lambda x: np.digitize(x, x), BYTES, "must be public"),
    "searchsorted": (lambda x: np.searchsorted([3, 1], x), BYTES, "not sorted"),
    "astype of another sort": (lambda x: x.astype(complex), BYTES, "bool, int and float"),
    "sort in place": (lambda x: x.sort(), BYTES, "np.sort"),
    "fft": (lambda x: np.fft.fft(x), BYTES, "np.fft.fft.*before encrypting"),
    "inverse": (lambda x: np.linalg.inv(x.reshape(2, 2)), BYTES, "np.linalg.inv"),
    "at": (lambda x: np.add.at(x, [0], 1), BYTES, "np.where"),
    "unknown to us": (lambda x: np.i0(x), BYTES, r"docs/programs\.md"),
    "an attribute": (lambda x: x.imag, BYTES, "attribute 'imag'"),
    "secret exponent": (lambda x: x**x, BYTES, r"np\.exp\(y \* np\.log\(x\)\)"),
    "broken exponent": (lambda x: x**0.3, BYTES, r"np\.exp\(0\.3 \* np\.log\(x\)\)"),
    "infinity": (lambda x: np.where(x > 3, x, np.inf), BYTES, "larger than the range allows"),
    "text": (lambda x: x == "x", BYTES, "must hold numbers"),
    "None": (lambda x: x == None, BYTES, "must hold numbers"),  # noqa: E711
    "complex": (lambda x: x * 1j, BYTES, "must hold numbers"),
    "shapes": (lambda x: x + np.arange(3), BYTES, r"\(4,\) and \(3,\) do not broadcast"),
    "matmul": (lambda x: x @ np.ones((3, 2)), BYTES, "4 numbers meet 3"),
    "matmul of a number": (lambda x: np.matmul(x[0], x), BYTES, "single number"),
    "einsum of lengths": (lambda x: np.einsum("i,i", x, np.ones(3)), BYTES, "lengths 4 and 3|lengths"),
    "einsum of axes": (lambda x: np.einsum("ij->i", x), BYTES, "does not name the axes"),
    "einsum of results": (lambda x: np.einsum("i->j", x), BYTES, "not axes of the arrays"),
    "einsum with dots": (lambda x: np.einsum("...i", x), BYTES, "without dots"),
    "axis": (lambda x: x.sum(axis=2), BYTES, "axis 2 of an array of 1 dimensions"),
    "axis twice": (lambda x: x.sum(axis=(0, 0)), BYTES, "twice"),
    "index": (lambda x: x[4], BYTES, "out of bounds"),
    "too many indices": (lambda x: x[0, 0], BYTES, "2 indices"),
    "nothing left": (lambda x: x[2:2], BYTES, "empty"),
    "reshape": (lambda x: x.reshape(3, 2), BYTES, "cannot be reshaped"),
    "reshape by columns": (lambda x: x.reshape(2, 2).reshape(4, order="F"), BYTES, "order|unexpected"),
    "broadcast": (lambda x: np.broadcast_to(x, (3, 3)), BYTES, "does not broadcast"),
    "transpose": (lambda x: x.transpose(0, 0), BYTES, "no order"),
    "squeeze": (lambda x: np.squeeze(x, axis=0), BYTES, "cannot be squeezed"),
    "concatenate": (lambda x: np.concatenate([x, x.reshape(2, 2)]), BYTES, "equal but for that axis"),
    "concatenate numbers": (lambda x: np.concatenate([x[0], x[1]]), BYTES, "np.stack"),
    "stack": (lambda x: np.stack([x, x[:2]]), BYTES, "different shapes"),
    "split": (lambda x: np.split(x, 3), BYTES, "equal parts"),
    "pad": (lambda x: np.pad(x, 1, mode="edge"), BYTES, "mode='edge'"),
    "arrays apart": (lambda x: x.reshape(2, 1, 2)[[0, 1], :, [0, 1]], BYTES, "two steps"),
    "norm": (lambda x: np.linalg.norm(x, ord=3, axis=0), BYTES, "ord=3"),
    "length of a number": (lambda x: len(x[0]), BYTES, "single number"),
    "fold": (lambda x: fold(np.add, x, length=3), BYTES, "whole number of values"),
    "fold that reduces": (lambda x: fold(lambda a, b: (a + b).sum(), x), BYTES, "returned shape"),
    "top k": (lambda x: topk_mask(x, 5), BYTES, "1 <= k <= length"),
    "difference of booleans": (lambda x: (x > 1) - (x > 2), BYTES, r"Use \^"),
    "negative boolean": (lambda x: -(x > 1), BYTES, "Use ~"),
    "division": (lambda x: 1 / x, BYTES, "may be zero"),
    "division by a public zero": (lambda x: x / np.array([1, 2, 0, 3]), BYTES, "public zero"),
    "logarithm": (lambda x: np.log(x), BYTES, "not defined everywhere"),
    "root": (lambda x: np.sqrt(x - 3), BYTES, "np.maximum"),
    "overflow": (lambda x: x**7, BYTES, r"2\^53"),
    "exp": (lambda x: np.exp(x), BYTES, r"result of exp.*2\^53"),
    "public overflow": (lambda x: x * 10**18, BYTES, r"beyond 2\^53"),
    "lookup beyond the table": (lambda x: programs.take(TABLE, x), BYTES, "high=9"),
    "lookup by a fraction": (lambda x: programs.take(TABLE, x / 256), BYTES, "must be an integer"),
    "a kind in the middle": (lambda x: secret(3), BYTES, "bits=8 for integers"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_line_and_idiom(name: str) -> None:
    function, declared, says = REFUSED[name]
    with pytest.raises(ProgramError, match=f"(?s){says}") as raised:
        ciphervec.program(function).trace(declared)
    code = function.__code__
    line = code.co_firstlineno
    if function.__name__ != "<lambda>":
        text = Path(__file__).read_text(encoding="utf-8").splitlines()
        line = next(place for place in range(line, len(text)) if text[place - 1].endswith("# here"))
    assert (raised.value.file, raised.value.line) == (code.co_filename, line)
    assert str(raised.value).startswith(f"{code.co_filename}:{line}: ")
    assert isinstance(raised.value, InvalidInput)


def test_the_line_is_that_of_the_innermost_function() -> None:
    def inner(x: Any) -> Any:
        return np.i0(x)

    with pytest.raises(ProgramError) as raised:
        ciphervec.program(lambda x: fold(lambda a, b: inner(a), x)).trace(BYTES)
    assert raised.value.line == inner.__code__.co_firstlineno + 1


def test_arrays_that_come_with_the_run_are_not_known_either() -> None:
    with pytest.raises(ProgramError, match="the truth of an array that is given when the program runs"):
        ciphervec.program(lambda n: -n if n > 1 else n).trace(public((), bits=4))


def test_other_errors_of_a_function_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        ciphervec.program(lambda x: x * (1 // 0)).trace(BYTES)
    with pytest.raises(AttributeError, match="foo"):
        ciphervec.program(lambda x: x.foo).trace(BYTES)
    with pytest.raises(TypeError, match="unhashable"):
        ciphervec.program(lambda x: {x: 1}).trace(BYTES)


def test_traces_do_not_meet() -> None:
    kept: list[Any] = []
    ciphervec.program(lambda x: kept.append(x) or x).trace(BYTES)
    with pytest.raises(ProgramError, match="two traces"):
        ciphervec.program(lambda x: x + kept[0]).trace(BYTES)


DECLARATIONS: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: secret(4), "bits=8 for integers.*step=.*real=True.*boolean=True"),
    "width and range": (lambda: secret(4, bits=8, low=0, high=3), "say which numbers"),
    "boolean with a width": (lambda: secret(4, boolean=True, bits=1), "boolean=True takes no bits"),
    "real with a width": (lambda: secret(4, bits=8, real=True), "real=True goes with low="),
    "real with a step": (lambda: secret(4, low=0, high=1, step=0.5, real=True), "real=True goes with"),
    "signed range": (lambda: secret(4, low=0, high=1, signed=True), "signed=True goes with bits"),
    "one end": (lambda: secret(4, low=0), "both ends"),
    "turned round": (lambda: secret(4, low=1, high=0), "low <= high"),
    "not a number": (lambda: secret(4, low=0, high=math.nan), "finite"),
    "fractions for integers": (lambda: secret(4, low=0.0, high=0.5), "For reals say real=True"),
    "off the grid": (lambda: secret(4, low=0, high=0.3, step=0.25), "Round it"),
    "no step": (lambda: secret(4, bits=8, step=0), "larger than zero"),
    "a step of text": (lambda: secret(4, bits=8, step="1/256"), "must be a number"),  # type: ignore[arg-type]
    "too wide": (lambda: secret(4, bits=54), "1 to 53"),
    "no width": (lambda: secret(4, bits=0), "1 to 53"),
    "a broken width": (lambda: secret(4, bits=7.5), "1 to 53"),  # type: ignore[arg-type]
    "too far": (lambda: secret(4, low=0, high=2.0**54), r"2\^53"),
    "too fine": (lambda: secret(4, low=0, high=1, step=2.0**-60), r"2\^53"),
    "an empty shape": (lambda: secret((4, 0), bits=8), "lengths of 1 or more"),
    "a broken shape": (lambda: secret((4, 1.5), bits=8), "tuple of them"),  # type: ignore[arg-type]
    "an array for a shape": (lambda: public(np.ones((2, 2)), bits=8), "public.array. alone"),
    "a shape for an array": (lambda: public((4, 2)), "may be a shape or an array"),
    "an empty array": (lambda: public([]), "empty"),
    "not a number in an array": (lambda: public([1.0, math.nan]), "NaN or infinity"),
    "numbers too large": (lambda: public([1 << 60]), r"beyond 2\^53"),
    "text in an array": (lambda: public(["a"]), "dtype"),
    "rows of two lengths": (lambda: public([[1], [2, 3]]), "rectangular"),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_declarations_refused(name: str) -> None:
    declare, says = DECLARATIONS[name]
    with pytest.raises(ProgramError, match=f"(?s){says}") as raised:
        declare()
    assert (raised.value.file, raised.value.line) == (__file__, declare.__code__.co_firstlineno)


@pytest.mark.parametrize(
    ("function", "given", "says"),
    [
        (lambda x, y: x, (BYTES,), "missing a required argument: 'y'"),
        (lambda x: x, (np.ones(4),), r"say secret\(shape, bits=8\) or public\(array\)"),
        (lambda *x: x, (BYTES,), "names every argument"),
        (lambda x: None, (BYTES,), "must return an array"),
        (lambda x: (), (BYTES,), "must return an array"),
        (lambda x: [[x]], (BYTES,), "must return an array"),
        (lambda x: "x", (BYTES,), "must return an array"),
    ],
)
def test_functions_that_are_no_programs(function: Callable[..., Any], given: Any, says: str) -> None:
    with pytest.raises(ProgramError, match=says):
        ciphervec.program(function).trace(*given)


INPUTS: dict[str, tuple[Declared, Any, str]] = {
    "too large": (
        secret((2, 2), bits=4),
        [[0, 1], [16, 3]],
        r"x\[1, 0\] = 16 is outside of .*integer 0 … 15",
    ),
    "too small": (secret(2, bits=4), [-1, 3], r"x\[0\] = -1 is outside"),
    "one number": (secret(bits=4), 99, "x = 99 is outside"),
    "not an integer": (
        secret(2, bits=4),
        [1, 1.5],
        r"x\[1\] = 1\.5 is not a multiple of the declared step 1",
    ),
    "off the grid": (secret(2, bits=4, step=0.25), [0.25, 0.3], r"x\[1\] = 0\.3 is not a multiple"),
    "beyond a real range": (secret(2, low=0, high=1, real=True), [0.5, 1.5], r"x\[1\] = 1\.5 is outside"),
    "not a number": (secret(2, low=0, high=1, real=True), [0.5, math.nan], r"x\[1\] = nan is not finite"),
    "no boolean": (secret(2, boolean=True), [0, 2], r"x\[1\] = 2 is no boolean"),
    "of another shape": (secret(2, bits=4), [1, 2, 3], r"shape \(2,\).*got \(3,\)"),
    "text": (secret(2, bits=4), ["a", "b"], "dtype"),
    "rows of two lengths": (secret((2, 2), bits=4), [[1], [2, 3]], "rectangular"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_refused(name: str) -> None:
    declared, value, says = INPUTS[name]
    graph = ciphervec.program(lambda x: x).trace(declared)
    with pytest.raises(InvalidInput, match=says):
        evaluate(graph, {"x": value})


def test_inputs_by_name() -> None:
    graph = ciphervec.program(lambda x, unused: x).trace(BYTES, BYTES)
    with pytest.raises(InvalidInput, match="needs an array for its input 'unused'"):
        evaluate(graph, {"x": np.zeros(4)})
    with pytest.raises(
        InvalidInput, match=r"no input 'z'; it has x, unused\. What was declared by public\(array\)"
    ):
        evaluate(graph, {"x": np.zeros(4), "unused": np.zeros(4), "z": 1})
    assert evaluate(graph, {"x": np.zeros(4, np.uint8), "unused": [1, 2, 3, 255]}).dtype == np.int64  # type: ignore[union-attr]
    with pytest.raises(KeyError):
        graph.input("z")


def test_the_page_lists_every_function() -> None:
    page = (Path(__file__).parents[3] / "docs" / "programs.md").read_text(encoding="utf-8")
    traced = importlib.import_module("ciphervec.programs.trace")
    names = [f"`np.{ufunc.__name__}`" for ufunc in traced._UFUNCS]
    names += [f"`{traced._name(function)}" for function in (*traced._FUNCTIONS, *traced._COMPOSED)]
    assert len(names) > 100
    assert [name for name in names if name not in page] == []
