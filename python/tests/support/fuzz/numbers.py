"""Encrypted arrays beside NumPy: random expressions of the additive schemes and of CKKS, with operands of every type.
Integers are exact, floats within the array's own `error`; what can't be right is refused."""

from __future__ import annotations

import functools
import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ciphervec import ckks, damgard_jurik, elgamal, okamoto_uchiyama, paillier
from ciphervec.errors import CiphervecError

from . import values
from .model import attempt
from .runner import Scene

PAIRS: dict[str, Callable[[], Any]] = {
    "paillier": functools.cache(lambda: paillier.generate(512, insecure=True)),
    "damgard-jurik": functools.cache(lambda: damgard_jurik.generate(512, insecure=True)),
    "okamoto-uchiyama": functools.cache(lambda: okamoto_uchiyama.generate(1024, insecure=True)),
    "elgamal": functools.cache(elgamal.generate),
}
CONTEXTS: dict[str, Callable[[], Any]] = {
    "real": functools.cache(lambda: ckks.Context.for_depth(3, sums=4, rotations=[1, 2])),
    "standard": functools.cache(lambda: ckks.Context.for_depth(2, ring="standard", sums=4)),
}
SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (4,), (1, 1), (2, 3), (3, 2), (4, 1), (1, 3)]


def exact(value: Any) -> Any:
    """Numbers as fractions, in an array of objects: what Python itself would compute, without rounding."""
    array = np.asarray(value, object)
    made = np.empty(array.shape, object)
    for at in np.ndindex(array.shape):
        one = array[at]
        made[at] = (
            Fraction(int(one)) if isinstance(one, int | np.integer | np.bool_) else Fraction(float(one))
        )
    return made


def plain(chance: random.Random, shape: tuple[int, ...], floats: bool, size: int = 100) -> tuple[Any, Any]:
    """Plain numbers in some form, and what they are exactly."""
    if floats:
        numbers = [
            chance.choice([0.5, -1.25, 0.1, 3.0, -0.0, 1e-3, float(chance.randrange(-size, size)) / 7])
            for _ in range(int(np.prod(shape)))
        ]
        kinds = ["f8", ">f8", "f4", "f2", "list", "fortran", "strides", "O"]
    else:
        numbers = [chance.randrange(-size, size + 1) for _ in range(int(np.prod(shape)))]
        kinds = ["i8", ">i4", "i2", "list", "fortran", "strides", "O", "large", "bool", "u8"]
    kind = chance.choice(kinds)
    if kind == "large":
        numbers = [one + chance.choice([0, 0, 2**63, -(2**63), 2**70 + 1]) for one in numbers]
        made: Any = np.array(numbers, object).reshape(shape)
        listed = made.tolist() if shape else numbers[0]
        return chance.choice([made if shape else numbers[0], listed]), exact(made if shape else numbers[0])
    if kind == "bool":
        made = np.array([one > 0 for one in numbers]).reshape(shape)
        return made if shape else bool(made), exact(made.astype(int))
    if kind == "u8":
        numbers = [abs(one) for one in numbers]
    array = np.array(
        numbers, {"list": None, "fortran": None, "strides": None, "O": None, "u8": "u8"}.get(kind, kind)
    ).reshape(shape)
    held = exact(array)
    if kind == "list":
        return array.tolist(), held
    if kind == "fortran" and shape:
        return np.asfortranarray(array), held
    if kind == "strides" and shape:
        return np.ascontiguousarray(array[::-1])[::-1], held
    if kind == "O":
        return array.astype(object), held
    if not shape:
        return chance.choice([array, array[()]]), held
    return array, held


ODD: list[Callable[[], Any]] = [
    lambda: "3",
    lambda: b"3",
    lambda: None,
    lambda: 1j,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: ["1", "2", "3"],
    lambda: [[1, 2], [3]],
    lambda: np.ma.array([1, 2, 3], mask=[0, 1, 0]),
    lambda: [np.ma.array([1, 2, 3], mask=[0, 1, 0])],
    lambda: np.array(["2020-01-01"] * 3, "M8[D]"),
    lambda: np.array([1, 2, 3], "m8[s]"),
    lambda: np.array(["1", "2", "3"]),
    lambda: np.zeros((2, 2, 2)),
    lambda: np.empty(0),
    list,
    dict,
    lambda: {1, 2, 3},
    lambda: object(),
    lambda: (one for one in [1, 2, 3]),
    lambda: np.array([1 + 2j, 1, 1]),
    lambda: np.array([np.complex128(1 + 2j), 2**70, 1], object),
    lambda: [1, None, 3],
    lambda: len,
]
if values.pd is not None:
    ODD += [
        lambda: values.pd.NA,
        lambda: values.pd.NaT,
        lambda: values.pd.Series(["a"] * 3),
        lambda: values.pd.Series([1, None, 3], dtype="Int64"),
    ]


class NumbersScene(Scene):
    """Arrays under one pair of keys, each beside what it is exactly."""

    weights: ClassVar = {
        "encrypt": 8,
        "add": 6,
        "multiply": 6,
        "dot": 5,
        "cut": 3,
        "same": 3,
        "odd": 5,
        "total": 2,
    }

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.name = random.Random(seed).choice([*PAIRS])
        self.pair = PAIRS[self.name]()
        self.held: list[tuple[Any, Any]] = []
        self.note(self.name)

    def _pick(self, chance: random.Random) -> tuple[Any, Any]:
        if not self.held:
            self.encrypt(chance)
        return chance.choice(self.held) if self.held else (self.pair.encrypt(3), exact(3))

    def _keep(self, made: Any, right: Any) -> None:
        right = np.asarray(right, object)
        self._check(made, right)
        self.held = [*self.held[-8:], (made, right)]

    def _check(self, made: Any, right: Any) -> None:
        try:
            found = self.pair.decrypt(made)
        except CiphervecError as error:
            # ElGamal finds what it decrypts by search, and floats have an end.
            assert self.name == "elgamal" or "float64" in str(error), f"not decrypted: {error}"
            return
        assert np.shape(found) == right.shape == made.shape, (np.shape(found), right.shape, made.shape)
        if not right.shape:
            assert type(found) in (int, float), type(found)
        if made.fraction_bits == 0 and made.error == 0 and np.asarray(found).dtype.kind in "iuO":
            assert np.array_equal(exact(found), right), (found, right)
            return
        for one, wanted in zip(np.ravel(np.asarray(found, object)), right.ravel(), strict=True):
            room = Fraction(made.error) + abs(wanted) * Fraction(1, 2**50) + Fraction(1, 2**1000)
            assert abs(Fraction(float(one)) - wanted) <= room, (one, float(wanted), made.error)

    def encrypt(self, chance: random.Random) -> None:
        shape, floats = chance.choice(SHAPES), chance.random() < 0.4
        given, right = plain(chance, shape, floats, 20 if self.name == "elgamal" else 1000)
        by = chance.choice([self.pair, self.pair.public])
        more: dict[str, Any] = {}
        if self.name == "elgamal":
            more = {"bits": 20, **({"fraction_bits": 6} if floats else {})}
        elif chance.random() < 0.3:
            more = (
                {"bits": chance.choice([80, 100, np.int64(90)])}
                if not floats
                else {"bits": 100, "fraction_bits": chance.choice([20, np.int8(30)])}
            )
        self.note("encrypt", given, more)
        # What is too large for the bits is refused.
        fits = all(
            abs(one)
            < 2 ** (int(more.get("bits", 100)) - int(more.get("fraction_bits", 0 if not floats else 64)) - 1)
            for one in right.ravel()
        )
        taken, made = attempt(
            lambda: by.encrypt(given, **more),
            right=True if fits and more and self.name != "elgamal" else None,
        )
        if taken:
            self._keep(made, right)

    def add(self, chance: random.Random) -> None:
        left, a = self._pick(chance)
        if chance.random() < 0.5:
            right, b = self._pick(chance)
        else:
            right, b = plain(chance, chance.choice([left.shape, ()]), chance.random() < 0.4, 50)
        way = chance.choice(["add", "sub", "radd", "rsub", "neg"])
        self.note(way, left, right)
        call: dict[str, Callable[[], Any]] = {
            "add": lambda: left + right,
            "sub": lambda: left - right,
            "radd": lambda: right + left,
            "rsub": lambda: right - left,
            "neg": lambda: -left,
        }
        taken, made = attempt(call[way], right=None)
        if taken:
            self._keep(
                made,
                {
                    "add": lambda: a + b,
                    "radd": lambda: a + b,
                    "sub": lambda: a - b,
                    "rsub": lambda: b - a,
                    "neg": lambda: -a,
                }[way](),
            )

    def multiply(self, chance: random.Random) -> None:
        left, a = self._pick(chance)
        right, b = plain(chance, chance.choice([left.shape, ()]), chance.random() < 0.4, 9)
        self.note("multiply", left, right)
        taken, made = attempt(
            (lambda: left * right) if chance.random() < 0.5 else (lambda: right * left), right=None
        )
        if taken:
            self._keep(made, np.asarray(a * b, object))

    def dot(self, chance: random.Random) -> None:
        left, a = self._pick(chance)
        if not left.shape:
            return
        shape = chance.choice([(left.shape[-1],), (left.shape[-1], 2), (left.shape[-1], 1)])
        right, b = plain(chance, shape, chance.random() < 0.4, 9)
        if len(left.shape) == 1 and chance.random() < 0.4:
            self.note("rdot", right, left)
            flipped = (
                np.asarray(right).T if not isinstance(right, list) else np.array(right, object).T.tolist()
            )
            taken, made = attempt(
                lambda: np.asarray(flipped, object if isinstance(flipped, list) else None) @ left, right=None
            )
            wanted = b.T @ a
        else:
            self.note("dot", left, right)
            taken, made = attempt(lambda: left @ right, right=None)
            wanted = a @ b
        if taken:
            self._keep(made, np.asarray(wanted, object))

    def total(self, chance: random.Random) -> None:
        made, right = self._pick(chance)
        if not made.shape:
            return
        for call in (lambda: made.sum(), lambda: np.sum(made, axis=-1)):
            taken, found = attempt(call, right=None)
            if taken:
                self._check(found, np.asarray(right.sum(axis=-1), object))
        attempt(lambda: np.sum(made, axis=0), right=None if len(made.shape) == 1 else False)

    def cut(self, chance: random.Random) -> None:
        made, right = self._pick(chance)
        if not made.shape:
            return
        index = chance.choice([0, -1, np.int64(0), slice(0, 1), slice(None), slice(-1, None), slice(0, 5)])
        self._keep(made[index], np.asarray(right[index], object))
        for bad in (1.0, "0", None, (0, 0), [0], True, slice(None, None, 2), slice(3, 1), np.array([0]), ...):
            attempt(functools.partial(made.__getitem__, bad), right=False)
        try:
            made[len(made)]
        except IndexError:
            return
        raise AssertionError("an index beyond the end was taken")

    def same(self, chance: random.Random) -> None:
        """Bytes, pickles, other ciphertexts: the same numbers."""
        made, right = self._pick(chance)
        self._check(made.rerandomise(), right)
        self._check(self.pair.public.array_from_bytes(made.to_bytes()), right)
        self._check(pickle.loads(pickle.dumps(made)), right)
        data = bytearray(made.to_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        attempt(lambda: self.pair.public.array_from_bytes(bytes(data)), right=False)

    def odd(self, chance: random.Random) -> None:
        """What is no number is refused wherever it stands."""
        bad, (made, _) = chance.choice(ODD)(), self._pick(chance)
        self.note("odd", bad)
        attempt(lambda: self.pair.encrypt(bad), right=False)
        for call in (
            lambda: made + bad,
            lambda: made - bad,
            lambda: made * bad,
            lambda: made @ bad,
            lambda: made.__rmatmul__(bad),
        ):
            attempt(call, right=False)
        for bits in ("8", 8.0, 0, -1, None, True, 10**6):
            attempt(functools.partial(self.pair.encrypt, 1, bits=bits), right=None if bits is None else False)
            attempt(
                functools.partial(self.pair.encrypt, 1, fraction_bits=bits),
                right=None if bits in (None, 0) and bits is not False else False,
            )


class CkksScene(Scene):
    """The same for CKKS, within a few times the error that an array states."""

    weights: ClassVar = {"encrypt": 8, "add": 5, "multiply": 6, "dot": 4, "total": 2, "same": 2, "odd": 4}

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.name = random.Random(seed).choice([*CONTEXTS])
        self.context = CONTEXTS[self.name]()
        self.held: list[tuple[Any, np.ndarray]] = []
        self.note(self.name)

    def _pick(self, chance: random.Random) -> tuple[Any, np.ndarray]:
        if not self.held:
            self.encrypt(chance)
        return chance.choice(self.held) if self.held else (self.context.encrypt([1.0]), np.ones(1))

    def _keep(self, made: Any, right: np.ndarray) -> None:
        taken, found = attempt(lambda: self.context.decrypt(made), right=None)
        if not taken:  # it may have no room for what it holds, which it cannot see
            return
        assert np.shape(found) == right.shape == made.shape, (np.shape(found), right.shape, made.shape)
        # `error` estimates a standard deviation.
        assert np.all(np.abs(found - right) <= 10 * made.error + 1e-12 * np.abs(right)), (
            found,
            right,
            made.error,
        )
        self.held = [*self.held[-8:], (made, right)]

    def encrypt(self, chance: random.Random) -> None:
        shape = chance.choice([(4,), (4,), (2, 4), (3, 4), (1, 4), (3,), (1,)])
        given, right = plain(chance, shape, chance.random() < 0.7, 3)
        layout = chance.choice([None, "slots", "single", "coefficients"])
        self.note("encrypt", given, layout)
        taken, made = attempt(lambda: self.context.encrypt(given, layout=layout), right=None)
        if taken:
            self._keep(made, right.astype(float))

    def _other(
        self, chance: random.Random, left: Any, shapes: list[tuple[int, ...]]
    ) -> tuple[Any, np.ndarray]:
        if chance.random() < 0.5:
            same = [one for one in self.held if one[0].shape == left.shape]
            return chance.choice(same) if same else self._pick(chance)
        given, right = plain(chance, chance.choice(shapes), chance.random() < 0.7, 3)
        return given, right.astype(float)

    def _done(
        self, name: str, left: Any, right: Any, call: Callable[[], Any], wanted: Callable[[], Any]
    ) -> None:
        self.note(name, left, right)
        taken, made = attempt(call, right=None)
        if taken:
            self._keep(made, np.asarray(wanted(), float))

    def add(self, chance: random.Random) -> None:
        left, a = self._pick(chance)
        right, b = self._other(chance, left, [left.shape, ()])
        if chance.random() < 0.5:
            self._done("add", left, right, lambda: left + right, lambda: a + b)
        else:
            self._done("rsub", left, right, lambda: right - left, lambda: b - a)

    def multiply(self, chance: random.Random) -> None:
        left, a = self._pick(chance)
        right, b = self._other(chance, left, [left.shape, ()])
        self._done("multiply", left, right, lambda: left * right, lambda: a * b)

    def dot(self, chance: random.Random) -> None:
        left, a = self._pick(chance)
        if not left.shape:
            return
        right, b = self._other(chance, left, [left.shape, left.shape[-1:]])
        name = chance.choice(["dot", "squared_distance"])
        if np.ndim(b) == 0:
            return
        if name == "dot":
            self._done(name, left, right, lambda: left @ right, lambda: (a * b).sum(axis=-1))
        else:
            self._done(
                name, left, right, lambda: left.squared_distance(right), lambda: ((a - b) ** 2).sum(axis=-1)
            )

    def total(self, chance: random.Random) -> None:
        made, right = self._pick(chance)
        if made.shape:
            self._done("sum", made, None, made.sum, lambda: right.sum(axis=-1))
        if len(made.shape) == 1 and made.shape[0] == 4:
            self._done("rotate", made, 1, lambda: made.rotate(np.int64(1)), lambda: np.roll(right, -1))
        for bad in (1.5, "1", None, True, float("nan")):
            attempt(functools.partial(made.rotate, bad), right=False)
            attempt(functools.partial(made.bounded, bad), right=None if bad in (1.5, "1", True) else False)

    def same(self, chance: random.Random) -> None:
        made, right = self._pick(chance)
        self._keep(self.context.array_from_bytes(made.to_bytes()), right)
        data = bytearray(made.to_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        attempt(lambda: self.context.array_from_bytes(bytes(data)), right=False)

    def odd(self, chance: random.Random) -> None:
        bad, (made, _) = chance.choice(ODD)(), self._pick(chance)
        self.note("odd", bad)
        for call in (
            lambda: self.context.encrypt(bad),
            lambda: made + bad,
            lambda: made - bad,
            lambda: made * bad,
            lambda: made @ bad,
            lambda: made.squared_distance(bad),
            lambda: self.context.decrypt(bad),
        ):
            attempt(call, right=False)
        assert attempt(lambda: self.context.encrypt([Decimal("0.5"), 2]), right=True)[0]
