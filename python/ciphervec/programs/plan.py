"""Plans: a graph with parameters chosen for it, whose halves encrypt and compute, with bytes between them. Client and
server."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from ..errors import InvalidInput, UnclearOutput
from ..ingest.files import StrPath, at_home
from .analysis import Analysis, analyse
from .costs import LONG_SECONDS, duration, size
from .fitting import BACKENDS, FAILURE, FAILURE_FOR_OTHERS, Fitted, fit
from .graph import Graph, Node
from .kinds import Array, Kind
from .reference import check_inputs, evaluate, parted, typed, unknown_input
from .undecided import NAME, NAMED, NOTHING, noise_decides

_WRITE_MS = 1.5e-6
"""Milliseconds that a byte of an answer takes to write: 1.3 to 1.8 ns were measured, on AVX-512."""


class Plan:
    """A program with everything that both halves must agree on."""

    def __init__(
        self,
        native: _native.ProgramPlan,
        fitted: Fitted | None = None,
        function: Callable[..., Any] | None = None,
    ) -> None:
        """Not for callers: use `Program.compile`, or `Plan.from_bytes`."""
        self._native = native
        self._function = function
        self.fitted = fitted
        """The graph that it was made of; None for a plan that was read from bytes."""

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        precision: float = 12,
        gap: float | None = None,
        failure: int = FAILURE,
        quantum: bool = False,
        backend: str | None = None,
        function: Callable[..., Any] | None = None,
    ) -> Plan:
        """The plan that is predicted to be fastest. It is chosen by a table of times that comes with the
        package, so that the same graph gives the same plan everywhere.

        Args:
            graph: what is computed.
            precision: bits; real results are off by less than 2^-precision of their range.
            gap: reals, and integers too wide to be told apart, that are closer than this part of their
                range may compare either way.
            failure: bits; an answer is wrong or refused with a chance below 2^-failure. What others see
                results of, or refusals, takes 128.
            quantum: take the parameter table for quantum computers.
            backend: "ckks" or "linear" where the faster one is not wanted.
            function: what was traced, of arrays by the names of the inputs, for `evaluate`.

        Raises ProgramError for what cannot be computed on encrypted arrays, with the line that asks for
        it, and if no ring serves.
        """
        if not 1 <= precision <= 30:
            raise InvalidInput(f"precision must be 1 to 30 bits, got {precision}")
        if gap is not None and not 0 < gap < 0.5:
            raise InvalidInput(f"gap must be a part of the range, above 0 and below 0.5, got {gap}")
        if type(failure) is not int or not 1 <= failure <= 255:
            raise InvalidInput(f"failure must be a whole number of bits, 1 to 255, got {failure!r}")
        if backend is not None and backend not in BACKENDS:
            raise InvalidInput(f"backend must be one of {', '.join(BACKENDS)}, or None, got {backend!r}")
        fitted = fit(
            graph, precision=float(precision), gap=gap, failure=failure, quantum=quantum, backend=backend
        )
        native = _native.ProgramPlan(
            fitted.circuit, fitted.chosen, undecided=noise_decides(fitted.lowered, gap)
        )
        return cls(native, fitted, function)

    @classmethod
    def from_bytes(cls, data: bytes) -> Plan:
        """Read what `to_bytes` wrote, from anybody. Raises CorruptData or InvalidInput."""
        return cls(_native.ProgramPlan.from_bytes(data))

    def to_bytes(self) -> bytes:
        """The plan for the other half. Nothing in it is secret."""
        return self._native.to_bytes()

    def __reduce__(self) -> tuple[Any, ...]:
        # As it goes to the other half: without the graph, which holds what the caller's function does.
        return type(self).from_bytes, (self.to_bytes(),)

    @property
    def id(self) -> str:
        """A hash of the plan, which keys, inputs and answers name."""
        return self._native.id

    @property
    def failure(self) -> int:
        """Bits of the chance that an answer is wrong or refused: below 2^-failure, by the word of whoever
        compiled the plan; 0 of a plan that says nothing."""
        return self._native.failure

    def check_for_others(self, what: str) -> None:
        """Raise InvalidInput if others who see `what`, results or whether there are any, could learn of the
        key from it."""
        if self.failure < FAILURE_FOR_OTHERS:
            said = f"2^-{self.failure}" if self.failure else "one that the plan does not state"
            raise InvalidInput(
                f"others see {what} of this plan, and an answer is wrong or refused with a chance of {said}, which the key "
                f"decides. Compile it with failure={FAILURE_FOR_OTHERS}."
            )
        if self._native.undecided > (NAMED if what == "refusals" else NOTHING):
            raise InvalidInput(
                f"others see {what} of this plan, and numbers closer than its gap come out either way or are refused, as the "
                "noise of the key has it. Compile it without gap=, of numbers on a grid: bits=, or step= of reals."
            )
        real = [name for name, _, step, decoding in self._results() if decoding == "numbers" and not step]
        if real and what == "results":
            raise InvalidInput(
                f"{real[0]} holds real numbers, and their last bits hold noise that depends on the key. Declare fixed "
                "point, step=, or return what is compared or looked up; or have `publish` of ciphervec.ckks add noise."
            )

    @property
    def key_bytes(self) -> int:
        """Bytes of the evaluation keys that a server needs."""
        return self._native.key_bytes

    @property
    def outputs(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of what the server's answer holds; those of a plan with `reveal` are what the
        client sees."""
        return {name: tuple(shape) for name, shape, _, _ in self._results()}

    def _results(self) -> list[tuple[str, list[int], float, str]]:
        """The arrays of an answer but those that say whether numbers closer than a gap were compared."""
        return [one for one in self._native.outputs if not one[0].startswith(NAME)]

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the inputs."""
        return {name: tuple(shape) for name, shape in self._native.inputs}

    @property
    def public(self) -> tuple[str, ...]:
        """Names of the inputs that are no secret: clients send them as they are, and servers read them."""
        return tuple(self._native.public)

    @property
    def results(self) -> tuple[Kind, ...]:
        """Which numbers the function's results may be."""
        return tuple(node.kind for node in self._fitted().graph.outputs)

    @property
    def milliseconds(self) -> float:
        """What a run is predicted to take on one thread of this machine, with writing its answer."""
        fitted = self._fitted()
        return fitted.milliseconds + _WRITE_MS * self._native.answer_bytes(fitted.chosen.levels_sent)

    def analyse(self) -> Analysis:
        """What the plan takes and how exact it is, without a key; print it, or show it in a notebook."""
        return analyse(self._fitted(), self._native, self.milliseconds)

    def explain(self) -> str:
        """Where levels come from: how many refreshes of registers, or bootstrappings, a run has and where,
        what they take, and why; or that none are needed."""
        return self.analyse().explain()

    def __str__(self) -> str:
        return f"plan {self.id[:12]}, read from bytes" if self.fitted is None else str(self.analyse())

    def _repr_html_(self) -> str | None:
        """The analysis, for a notebook."""
        return None if self.fitted is None else self.analyse()._repr_html_()

    def client(self) -> Client:
        """A key holder with a fresh key."""
        return Client(self, _native.ProgramClient.generate(self._native))

    def server(self, keys: bytes) -> Server:
        """Who computes, with a client's `evaluation_keys()`. Raises InvalidInput for keys of another
        plan."""
        return Server(self, _native.ProgramServer(self._native, keys))

    def clear(self, **inputs: npt.ArrayLike) -> Array | tuple[Array, ...]:
        """The plan's steps on plain numbers: what encryption computes but for noise."""
        flat = self._flat(inputs)
        return self._decoded(lambda: self._native.clear(flat))

    def simulate(self, seed: int | None = None, /, **inputs: npt.ArrayLike) -> Array | tuple[Array, ...]:
        """`clear` with the noise that encryption is forecast to add, step by step, without a key: what
        `decrypt` would give, in milliseconds. The same seed draws the same noise, none draws anew.

        Raises InvalidInput for arrays other than were declared, and where noise makes a result that is
        refused.
        """
        drawn = np.random.default_rng(seed).bytes(32)
        flat = self._flat(inputs)
        return self._decoded(lambda: self._native.simulate(flat, drawn))

    def _flat(self, inputs: Mapping[str, npt.ArrayLike]) -> list[npt.NDArray[np.float64]]:
        """The numbers of every input, in the plan's order."""
        given = check_inputs(self._fitted().graph, inputs)
        return [np.ascontiguousarray(given[name], dtype=np.float64).reshape(-1) for name in self.inputs]

    def evaluate(self, **inputs: npt.ArrayLike) -> Evaluation:
        """Run the function plainly, and the program encrypted, with a key made for the purpose, and compare.
        Where the graph that was traced gives something else than the function does, the result says so.

        Args: an array for every input. Raises InvalidInput for arrays other than were declared.
        """
        fitted = self._fitted()
        self._warn_if_long()
        start = time.perf_counter()
        expected = traced = evaluate(fitted.graph, inputs)
        if self._function is not None:
            given = check_inputs(fitted.graph, inputs)
            nodes = {node.attributes["name"]: node for node in fitted.graph.inputs}
            expected = self._function(**{name: typed(given[name], nodes[name].kind)[()] for name in nodes})
        plain = time.perf_counter()
        client = self.client()
        keys = client.evaluation_keys()
        made = time.perf_counter()
        server = self.server(keys)
        ready = time.perf_counter()
        sealed = client.encrypt(**inputs)
        encrypted = time.perf_counter()
        answer, steps = server.run_timed(sealed.values())
        ran = time.perf_counter()
        found = client.decrypt(answer)
        end = time.perf_counter()
        times = {
            "plain": plain - start,
            "keygen": made - plain,
            "load": ready - made,
            "encrypt": encrypted - ready,
            "run": ran - encrypted,
            "decrypt": end - ran,
        }
        sizes = {
            "keys": len(keys),
            "query": sum(len(one) for one in sealed.values()),
            "answer": len(answer),
        }
        milliseconds = {name: 1e3 * value for name, value in times.items()}
        differences = parted(fitted.graph, _several(expected), _several(traced))
        return Evaluation(self, expected, found, milliseconds, sizes, _by_node(fitted, steps), differences)

    def _warn_if_long(self) -> None:
        """Say it before hours have passed."""
        found = self.analyse()
        seconds = found.milliseconds / 1e3 + found.keygen_seconds + found.load_seconds
        if seconds > LONG_SECONDS:
            warnings.warn(
                f"{found.program} is predicted to run for {duration(found.milliseconds)} on one thread; keys of "
                f"{size(found.key_bytes)} take some {duration(1e3 * (found.keygen_seconds + found.load_seconds))} before, and "
                f"the server {size(found.run_bytes)} of memory. simulate() shows what would come out.",
                UserWarning,
                stacklevel=3,
            )

    def _fitted(self) -> Fitted:
        if self.fitted is None:
            raise InvalidInput(
                "this plan was read from bytes: it has steps, and no program to compare them with. "
                "Use client() and server()."
            )
        return self.fitted

    def _decoded(
        self, answers: Callable[[], Iterable[tuple[str, list[int], str, Array]]]
    ) -> Array | tuple[Array, ...]:
        try:
            named = {name: (shape, decoding, values) for name, shape, decoding, values in answers()}
        except UnclearOutput as error:
            if error.output.startswith(NAME):
                raise self._too_close(error.output) from None
            message = f"{self._asked_for(error.output)}{error.output!r}: {error.detail}"
            raise UnclearOutput(message, error.output, error.detail) from None
        for name, (*_, values) in named.items():
            if name.startswith(NAME) and (values != np.rint(values)).any():
                raise self._too_close(name)
        found: list[Array] = []
        for name, _, step, _ in self._results():
            shape, decoding, values = named[name]
            value = values.reshape(shape)
            if decoding in ("booleans", "most"):
                value = value.astype(np.bool_)
            elif decoding in ("one_hot", "largest") or (step >= 1 and float(step).is_integer()):
                value = np.rint(value).astype(np.int64)
            else:
                # No negative zero.
                value = value + 0.0
            found.append(value)
        if self.fitted is not None and self.fitted.cut is not None:
            results = self.fitted.cut.finish(found)
            return results[0] if self.fitted.graph.single else results
        single = len(found) == 1 and self._native.outputs[0][0] == "result"
        return found[0] if single else tuple(found)

    def _too_close(self, name: str) -> InvalidInput:
        """The error for truths that are neither 0 nor 1."""
        return InvalidInput(
            f"{self._asked_for(name)}Numbers closer than the gap= that was asked for were compared, and what is made of "
            "them would be no result of either outcome, so that the answer is not used; or the server computed something "
            "else. Ask for a narrower gap, or return the numbers, or the comparison alone, and choose at the client."
        )

    def _asked_for(self, name: str) -> str:
        """The line and the operation that an array of an answer is of; nothing of a plan that was read."""
        if self.fitted is None:
            return ""
        lowered = self.fitted.lowered
        node = lowered.outputs[lowered.names.index(name)]
        return f"{node.where}: {node.spoken}: "


def _by_node(fitted: Fitted, measured: list[float]) -> dict[Node, tuple[float, float]]:
    """Predicted and measured milliseconds of every operation."""
    totals: dict[Node, tuple[float, float]] = {}
    predicted = [step[2] for step in fitted.chosen.steps]
    owners = [fitted.draft.owners[register] for register in fitted.draft.needed()]
    gathered = fitted.chosen.gathered(measured)
    for owner, first, second in zip(owners, predicted, gathered, strict=True):
        if owner is not None:
            before = totals.get(owner, (0.0, 0.0))
            totals[owner] = (before[0] + first, before[1] + second)
    return totals


class Client:
    """The half of a program that holds the key."""

    def __init__(self, plan: Plan, native: _native.ProgramClient) -> None:
        """Not for callers: use `Plan.client` or `Client.from_secret_bytes`."""
        self._plan, self._native = plan, native

    @classmethod
    def from_secret_bytes(cls, plan: Plan, data: bytes) -> Client:
        """The key that `to_secret_bytes` wrote. Raises CorruptData, or InvalidInput for another plan's."""
        return cls(plan, _native.ProgramClient.from_secret_bytes(plan._native, data))

    def to_secret_bytes(self) -> bytes:
        """The secret key, not encrypted: whoever reads it reads everything."""
        return self._native.to_secret_bytes()

    def save(self, path: StrPath, passphrase: str | None = None, *, allow_plaintext: bool = False) -> None:
        """Write the key to a new file, readable by its owner only, encrypted under `passphrase`
        (scrypt, then AEAD).

        Without a passphrase the key lies in the file in clear; that must be asked for with
        `allow_plaintext=True`. An existing file is never overwritten. Raises InvalidInput or
        StorageError.
        """
        self._native.save(at_home(path), passphrase, allow_plaintext=allow_plaintext)

    @classmethod
    def load(cls, plan: Plan, path: StrPath, passphrase: str | None = None) -> Client:
        """The key that `save` wrote.

        Raises WrongKey when the passphrase does not open it, InvalidInput when it has one and none is
        given, CorruptData when the file was altered or holds no key of such a plan, StorageError when
        it cannot be read.
        """
        return cls(plan, _native.ProgramClient.load(plan._native, at_home(path), passphrase))

    @property
    def plan(self) -> Plan:
        """The plan that the key is for."""
        return self._plan

    @property
    def key_id(self) -> str:
        """The public name of the key, which inputs and answers carry."""
        return self._native.key_id

    def evaluation_keys(self) -> bytes:
        """What the server computes with, and can read nothing with."""
        return self._native.evaluation_keys()

    def encrypt(self, **inputs: npt.ArrayLike) -> dict[str, bytes]:
        """Encrypt inputs by name; some now and some later if that suits. Public ones are checked, and sent as they
        are.

        Raises InvalidInput for a name, a shape or a number that was not declared: which, and what was.
        """
        return {name: self._encrypt(name, given) for name, given in inputs.items()}

    def _encrypt(self, name: str, given: npt.ArrayLike) -> bytes:
        shapes = self._plan.inputs
        if name not in shapes:
            raise unknown_input("the plan", name, shapes)
        try:
            value = np.ascontiguousarray(given, dtype=np.float64)
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"{name} must be a rectangular array of numbers ({error}).") from error
        value = value.reshape(np.shape(given))
        if value.shape != shapes[name]:
            raise InvalidInput(
                f"{name} must have shape {shapes[name]}, as it was declared, got {value.shape}."
            )
        return self._native.encrypt(name, value.reshape(-1))

    def decrypt(
        self, answer: bytes, *, audience: Literal["owner", "others"] = "owner"
    ) -> Array | tuple[Array, ...]:
        """The results, as the function returns them. Of a plan that was read from bytes, the arrays in the
        answer: what a client sees by `reveal`, it goes on with itself.

        Args:
            audience: "owner" if results stay with the owner of the key, "others" if somebody else sees
                them, or whether there are any. Those say nothing of the key if the answer holds integers
                and booleans alone, and the plan was compiled with failure=128.

        Raises CorruptData, WrongKey for an answer under another key, InvalidInput for one of another
        plan, for numbers that no result can have, and for an audience that the plan is not for.
        """
        if audience not in ("owner", "others"):
            raise InvalidInput(f"audience must be 'owner' or 'others', got {audience!r}")
        if audience == "others":
            self._plan.check_for_others("results")
        return self._plan._decoded(lambda: self._native.decrypt(answer))


class Server:
    """The half of a program that computes, and can read nothing."""

    def __init__(self, plan: Plan, native: _native.ProgramServer) -> None:
        """Not for callers: use `Plan.server`."""
        self._plan, self._native = plan, native

    @property
    def key_id(self) -> str:
        """The key that inputs must be encrypted under."""
        return self._native.key_id

    def read(self, data: bytes) -> _native.ProgramInput:
        """An input, read once for however many runs: a gallery that stays.

        Raises CorruptData, InvalidInput for one of another plan and for public numbers that were not
        declared, WrongKey for one of another key.
        """
        return self._native.read(data)

    def run(self, inputs: Iterable[bytes | _native.ProgramInput]) -> bytes:
        """The encrypted answer to one input of each name. Raises InvalidInput if one is missing."""
        return self.run_timed(inputs)[0]

    def run_timed(self, inputs: Iterable[bytes | _native.ProgramInput]) -> tuple[bytes, list[float]]:
        """`run`, with the milliseconds of every step."""
        read = [self.read(one) if isinstance(one, bytes) else one for one in inputs]
        return self._native.run(read)


@dataclass(frozen=True)
class Evaluation:
    """A program, run plainly and encrypted."""

    plan: Plan
    plain: Array | tuple[Array, ...]
    """What the function itself returns; of a plan that was made of a graph, what that gives in NumPy."""
    encrypted: Array | tuple[Array, ...]
    milliseconds: Mapping[str, float]
    """Of plain, keygen, load, encrypt, run and decrypt."""
    sizes: Mapping[str, int]
    """Bytes of keys, query and answer."""
    operations: Mapping[Node, tuple[float, float]]
    """Predicted and measured milliseconds of every operation of the graph."""
    differences: tuple[str, ...] = ()
    """Where the graph that was traced gives something else than the function, in words."""

    @property
    def largest_error(self) -> float:
        """The largest difference between any two numbers of the results."""
        pairs = zip(_several(self.plain), _several(self.encrypted), strict=True)
        return max(
            float(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).max()) for a, b in pairs
        )

    @property
    def predicted_ms(self) -> float:
        """What the run was predicted to take."""
        return self.plan.milliseconds


def _several(value: Any) -> tuple[Array, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
