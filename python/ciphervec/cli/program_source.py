"""Programs by name, for the side that writes them: FILE:FUNCTION and NAME=WHAT of a command line, as a program and its
arguments."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from ..errors import CiphervecError, InvalidInput, ProgramError
from ..programs import Plan, Program, program, public, secret
from ..programs.fitting import FAILURE as FAILURE
from .terminal import existing

Source = Annotated[
    str, typer.Argument(metavar="FILE:FUNCTION", help="A Python file of yours and a function in it.")
]
Samples = Annotated[
    list[str] | None,
    typer.Option(
        "--sample",
        "-s",
        metavar="NAME=WHAT",
        help="An argument of the function: FILE.npy, secret arrays like this one; secret(128, bits=8), declared; "
        "public(FILE.npy), part of the program; or a number. Once for each.",
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="NAME=FILE.npy", help="An array to compute on. Once for each."),
]
Precision = Annotated[
    float, typer.Option(help="Bits: real results are off by less than 2^-this of their range.")
]
Gap = Annotated[
    float | None,
    typer.Option(help="Numbers closer than this part of their range may compare either way, e.g. 0.001."),
]
Failure = Annotated[
    int,
    typer.Option(
        help="Bits: an answer is wrong or refused with a chance below 2^-this. A server's program takes 128, and so do "
        "results that others see.",
    ),
]
Quantum = Annotated[bool, typer.Option("--quantum", help="Take the parameter table for quantum computers.")]

Reveal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A variable of the function that its client may see: what comes of it is then done in the clear, after "
        "decrypting. Once for each.",
    ),
]

Backend = Annotated[
    str | None,
    typer.Option(help="ckks or linear, where the one that is predicted to be faster is not wanted."),
]

_KINDS = {"secret": secret, "public": public}
_EXAMPLE = "--sample probe=secret(128, bits=8) or --sample probe=probe.npy"


def find(source: str) -> Program[Any, Any]:
    """The function of a file, imported as Python would run it. Raises InvalidInput and
    FileNotFoundError."""
    name, colon, attribute = source.rpartition(":")
    if not (name and colon and attribute):
        raise InvalidInput(
            f"{source!r} names no function; write FILE:FUNCTION, e.g. {source.rstrip(':')}:nearest."
        )
    module = _module(existing(Path(name), "file"))
    functions = [key for key, value in vars(module).items() if isinstance(value, Program)]
    said = f"; its programs are {', '.join(functions)}" if functions else ", and no program at all"
    if not hasattr(module, attribute):
        raise InvalidInput(f"{name} has no {attribute!r}{said}.")
    found = getattr(module, attribute)
    if isinstance(found, Program):
        return found
    if not callable(found) or isinstance(found, type):
        raise InvalidInput(
            f"{attribute} of {name} is {type(found).__name__}, not a program{said}. A program is a function of NumPy "
            "arrays, with @ciphervec.program above it."
        )
    return program(found)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_program_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} is no Python file; its name must end with .py.")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    # Where dataclasses and pickles of that file look for it.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        lines = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == spec.origin]
        line = f", line {lines[-1].lineno}" if lines else ""
        raise InvalidInput(f"{path}{line}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(folder)
    return module


def arguments(samples: Sequence[str] | None) -> dict[str, Any]:
    """What `Program.compile` takes. Raises InvalidInput and FileNotFoundError."""
    return {name: _argument(name, what) for name, what in _named(samples, "--sample", _EXAMPLE).items()}


def arrays(inputs: Sequence[str] | None) -> dict[str, npt.NDArray[Any]]:
    """Arrays by name. Raises InvalidInput and FileNotFoundError."""
    given = _named(inputs, "--input", "--input probe=probe.npy")
    return {name: load(what) for name, what in given.items()}


def load(path: str) -> npt.NDArray[Any]:
    """The array of a .npy file."""
    try:
        return np.asarray(np.load(existing(Path(path), "file"), allow_pickle=False))
    except ValueError as error:
        raise InvalidInput(f"{path} is no .npy file of numbers: {error}") from error


def compiled(
    found: Program[Any, Any],
    given: Mapping[str, Any],
    *,
    precision: float,
    gap: float | None,
    failure: int,
    quantum: bool,
    reveal: Sequence[str] | None = None,
    backend: str | None = None,
) -> Plan:
    """The plan for a program. Raises InvalidInput, which names arguments that are not those of the
    function."""
    known = list(found.signature.parameters)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidInput(
            f"{found.name}{found.signature} has no argument {unknown[0]!r}; it has {', '.join(known) or 'none'}."
        )
    missing = [
        name
        for name, one in found.signature.parameters.items()
        if one.default is one.empty and name not in given
    ]
    if missing:
        raise InvalidInput(
            f"{found.name}{found.signature} needs {', '.join(missing)}; declare each, e.g. "
            f'--sample "{missing[0]}=secret(128, bits=8)" or --sample {missing[0]}={missing[0]}.npy.'
        )
    try:
        return found.compile(
            **given,
            precision=precision,
            gap=gap,
            failure=failure,
            quantum=quantum,
            reveal=reveal or (),
            backend=backend,
        )
    except CiphervecError:
        raise
    except Exception as error:
        # The function's own mistakes are for its author; ours are not to be hidden.
        frames = traceback.extract_tb(error.__traceback__)
        own = [one for one in frames if found.where is not None and one.filename == found.where.file]
        if not own or Path(__file__).parents[1] in Path(frames[-1].filename).parents:
            raise
        raise ProgramError(f"{own[-1].filename}:{own[-1].lineno}: {type(error).__name__}: {error}") from error


def _named(words: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words or ():
        name, equals, what = word.partition("=")
        if not (equals and name.strip().isidentifier() and what.strip()):
            raise InvalidInput(f"{option} takes NAME=WHAT, e.g. {example}, got {word!r}.")
        if name.strip() in found:
            raise InvalidInput(f"{option} {name.strip()} is given twice.")
        found[name.strip()] = what.strip()
    return found


def _argument(name: str, what: str) -> Any:
    if what.endswith(".npy"):
        return load(what)
    if what.startswith("public(") and what.endswith(".npy)"):
        return public(load(what[len("public(") : -1].strip()))
    try:
        tree = ast.parse(what, mode="eval").body
        if isinstance(tree, ast.Call):
            return _declared(tree)
        return _literal(tree)
    except ProgramError as error:
        # The line that it names is one of this file.
        said = str(error).removeprefix(f"{error.file}:{error.line}: ")
        raise InvalidInput(f"--sample {name}={what}: {said}") from error
    except (SyntaxError, ValueError) as error:
        raise InvalidInput(
            f"--sample {name}={what}: {error}. Write a .npy file, secret(SHAPE, bits=8), public(FILE.npy), or a number; "
            "in quotes where there are brackets."
        ) from error


def _declared(call: ast.Call) -> Any:
    if not isinstance(call.func, ast.Name) or call.func.id not in _KINDS:
        raise ValueError("only secret(…) and public(…) declare an argument")
    named = {one.arg: _literal(one.value) for one in call.keywords if one.arg is not None}
    try:
        return _KINDS[call.func.id](*map(_literal, call.args), **named)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _literal(tree: ast.expr) -> Any:
    # A fraction is no literal to Python, and the natural way to write a step.
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div | ast.Pow):
        left, right = _literal(tree.left), _literal(tree.right)
        if not all(isinstance(one, int | float) for one in (left, right)) or abs(right) > 1e6 or right == 0:
            raise ValueError("a fraction or a power is of two numbers")
        return left / right if isinstance(tree.op, ast.Div) else float(left) ** right
    try:
        return ast.literal_eval(tree)
    except ValueError:
        raise ValueError("not a number, and not secret(…) or public(…)") from None
