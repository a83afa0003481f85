"""Values of every type that people pass, and what each of them stands for: written down here by hand, and not by the
package's own rules."""

from __future__ import annotations

import array
import collections
import contextlib
import datetime
import decimal
import enum
import fractions
import random
import tempfile
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

pd: Any = None
pa: Any = None
with contextlib.suppress(ImportError):
    import pandas as pd  # type: ignore[no-redef]
with contextlib.suppress(ImportError):
    import pyarrow as pa  # type: ignore[no-redef]

REFUSED = object()
"""In the place of what a value is stored as: it must not be taken."""


class Text(str):
    """A text of one's own, that prints as something else."""

    def __str__(self) -> str:
        return "printed"

    def __repr__(self) -> str:
        return "shown"


class Colour(str, enum.Enum):
    RED = "red"
    DEEP = "deep red"


class Size(enum.IntEnum):
    SMALL = 3
    LARGE = 40


class Whole(int):
    """A number that prints as something else."""

    def __str__(self) -> str:
        return "printed"

    __repr__ = __str__


class Plain(enum.Enum):
    A = "a"


ZONE = datetime.timezone(datetime.timedelta(hours=9))
TEXTS = [
    "a",
    "b",
    "red",
    "",
    " ",
    "7",
    "007",
    "7.0",
    "True",
    "None",
    "null",
    "NaN",
    "caf\u00e9",
    "cafe\u0301",
    "\u65e5\u672c",
    "\U0001f600",
    "a\0b",
    "a\0",
    "line\nend\r\n",
    "tab\t",
    '"',
    "'",
    "\\",
    "$eq",
    "%s{}",
    "\u2028",
    "\ufeffx",
    "x" * 5000,
]
INTEGERS = [
    0,
    1,
    -1,
    7,
    2**31,
    2**53,
    2**53 + 1,
    -(2**53) - 1,
    2**63 - 1,
    -(2**63),
    2**63,
    2**64,
    10**30,
    -(10**30),
]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 7.0, 0.1, 1e300, 5e-324, 2.0**53, 1e22, 123456.789]


def is_nan(one: Any) -> bool:
    if isinstance(one, decimal.Decimal):
        return one.is_nan()
    return isinstance(one, float | np.floating) and bool(np.isnan(one))


def text(chance: random.Random) -> str:
    return chance.choice(TEXTS)


def _numpy(chance: random.Random) -> tuple[Any, Any]:
    kind = chance.choice(
        ["?", "i1", "u1", "i2", ">u2", "i4", ">i4", "u8", "i8", "f2", "f4", ">f4", "f8", ">f8", "U", "O"]
    )
    if kind == "?":
        true = chance.random() < 0.5
        return np.bool_(true), true
    if kind == "U":
        said = text(chance).rstrip("\0")
        return np.str_(said), said
    if kind == "O":
        return np.array({"n": 1}, object)[()], {"n": 1}
    number = chance.choice([0, 1, 3, 100]) if kind[-2] != "f" else chance.choice([0.5, 1.0, 3.25, -0.0, 2.0])
    made = np.array([number], kind)
    given = made[0] if chance.random() < 0.5 else made.reshape(())
    return given, number


def scalar(chance: random.Random) -> tuple[Any, Any]:
    """A value of metadata or of a filter, and what it is stored as."""
    plain: list[Callable[[], Any]] = [
        lambda: None,
        lambda: chance.random() < 0.5,
        lambda: chance.choice(INTEGERS),
        lambda: chance.choice(FLOATS),
        lambda: text(chance),
        lambda: chance.randrange(4),
        lambda: chance.choice(["red", "green", "1"]),
    ]
    if chance.random() < 0.6:
        given = chance.choice(plain)()
        return given, given
    day = datetime.datetime(2024, 3, 1, 12, 30, 0, 1)
    odd: list[Callable[[], tuple[Any, Any]]] = [
        lambda: _numpy(chance),
        lambda: _numpy(chance),
        lambda: (Colour.DEEP, "deep red"),
        lambda: (Size.LARGE, 40),
        lambda: (Text("text"), "text"),
        lambda: (Whole(5), 5),
        lambda: (uuid.UUID(int=7), str(uuid.UUID(int=7))),
        lambda: (decimal.Decimal("1.5"), 1.5),
        lambda: (decimal.Decimal("0.1"), 0.1),
        lambda: (decimal.Decimal("12345678901234567890"), 12345678901234567890),
        lambda: (decimal.Decimal("1234567890123456.789"), REFUSED),
        lambda: (decimal.Decimal(chance.choice(["NaN", "sNaN", "-NaN12"])), REFUSED),
        lambda: (decimal.Decimal("1E+999999"), REFUSED),
        lambda: (day, "2024-03-01T12:30:00.000001"),
        lambda: (day.replace(tzinfo=ZONE), "2024-03-01T03:30:00.000001+00:00"),
        lambda: (day.date(), "2024-03-01"),
        lambda: (day.time(), "12:30:00.000001"),
        lambda: (np.datetime64("2024-03-01"), "2024-03-01T00:00:00"),
        lambda: (np.datetime64("NaT"), None),
        lambda: (np.ma.masked, None),
        lambda: (np.timedelta64(5, "s"), REFUSED),
        lambda: (day - day, REFUSED),
        lambda: (float("nan"), REFUSED),
        lambda: (np.float32("inf"), REFUSED),
        lambda: (b"bytes", REFUSED),
        lambda: (bytearray(b"bytes"), REFUSED),
        lambda: (np.bytes_(b"bytes"), REFUSED),
        lambda: (1j, REFUSED),
        lambda: (fractions.Fraction(1, 3), REFUSED),
        lambda: (Plain.A, REFUSED),
        lambda: (object(), REFUSED),
        lambda: (len, REFUSED),
        lambda: ("\ud800", REFUSED),
        lambda: (10**5000, REFUSED),
        lambda: (np.array((1, 2.5), [("a", "i4"), ("b", "f4")])[()], REFUSED),
        lambda: (np.longdouble(0.5), REFUSED),
        lambda: (np.array(0.5, np.longdouble), REFUSED),
    ]
    if pd is not None:
        odd += [
            lambda: (pd.NA, None),
            lambda: (pd.NaT, None),
            lambda: (pd.Timestamp("2024-03-01", tz="Asia/Tokyo"), "2024-02-29T15:00:00+00:00"),
            lambda: (pd.Timestamp("2024-03-01T12:30:00.000000001"), "2024-03-01T12:30:00.000000001"),
            lambda: (pd.Timedelta(5), REFUSED),
            lambda: (pd.Period("2024-03"), REFUSED),
            lambda: (pd.Interval(0, 1), REFUSED),
            lambda: (pd.Series([3, 4], dtype="Int64")[1], 4),
            lambda: (pd.Series(["red", "x"], dtype="category")[0], "red"),
        ]
    if pa is not None:
        odd += [lambda: (pa.scalar(3), REFUSED), lambda: (pa.scalar("red"), REFUSED)]
    return chance.choice(odd)()


def value(chance: random.Random, depth: int = 0) -> tuple[Any, Any]:
    """As `scalar`, or lists and objects of such."""
    if depth > 3 or chance.random() < 0.75:
        return scalar(chance)
    if chance.random() < 0.08:
        return chance.choice(
            [
                ({1, 2}, REFUSED),
                (np.arange(2), REFUSED),
                (np.zeros((1, 1)), REFUSED),
                ({1: 2}, REFUSED),
                ({"a": {None: 1}}, REFUSED),
                (frozenset("a"), REFUSED),
                (range(3), REFUSED),
                ((one for one in "ab"), REFUSED),
                (collections.deque([1]), REFUSED),
                (array.array("d", [1.0]), REFUSED),
            ]
        )
    inner = [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    bad = any(stored is REFUSED for _, stored in inner)
    if chance.random() < 0.5:
        kind = chance.choice([list, tuple])
        return kind(given for given, _ in inner), REFUSED if bad else [stored for _, stored in inner]
    names = [f"{text(chance)}{at}" for at in range(len(inner))]
    pairs = list(zip(names, inner, strict=True))
    made = chance.choice([dict, collections.OrderedDict])((name, given) for name, (given, _) in pairs)
    return made, REFUSED if bad else {name: stored for name, (_, stored) in pairs}


def metadata(chance: random.Random, odd: bool = True) -> tuple[Any, Any]:
    """A row's metadata, and what is stored of it."""
    if chance.random() < 0.15:
        return None, None
    given: dict[Any, Any] = {}
    stored: Any = {}
    for name in chance.sample(
        ["f", "n", "x", "caf\u00e9", "a b", "id", "document", "metadata.x"], chance.randrange(5)
    ):
        if name == "f":
            one = chance.choice(["red", "green", 1, 1.0, True, None, "1"])
            pair = (one, one)
        elif odd:
            pair = value(chance)
        else:
            one = chance.choice(
                [chance.randrange(5), chance.choice(TEXTS), chance.choice(FLOATS), None, True, ["red", 1]]
            )
            pair = (one, one)
        given[name] = pair[0]
        if pair[1] is REFUSED:
            stored = REFUSED
        elif stored is not REFUSED:
            stored[name] = pair[1]
    if odd and chance.random() < 0.03:
        bad = chance.choice(["", "$x", 3, None, ("a",), "\ud800", b"f"])
        given[bad], stored = 1, REFUSED
    if odd and chance.random() < 0.1:
        return types.MappingProxyType(given), stored
    if odd and chance.random() < 0.02:
        return chance.choice([[("f", 1)], "text", 5, {"f"}]), REFUSED
    return given, stored


def document(chance: random.Random, odd: bool = True) -> tuple[Any, Any]:
    if chance.random() < 0.2:
        return None, None
    said = text(chance)
    if not odd or chance.random() < 0.8:
        return said, said
    return chance.choice(
        [
            (np.str_("np"), "np"),
            (Colour.RED, "red"),
            (Text("mine"), "mine"),
            (5, REFUSED),
            (b"b", REFUSED),
            ("\udfff", REFUSED),
            (float("nan"), REFUSED),
            ([said], REFUSED),
            ({"a": 1}, REFUSED),
        ]
    )


NAMES = [
    "a",
    "b",
    "c",
    " a",
    "a ",
    "7",
    "007",
    "7.0",
    "1_0",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f600",
    "a\0",
    "line\nend",
    "../x",
    "$eq",
    "\u0667",
    "red",
    "x" * 65_535,
    "True",
    "-7",
]
ODD_IDS: list[tuple[Any, Any]] = [
    (np.int8(7), 7),
    (np.uint64(9), 9),
    (np.array([11], ">i4")[0], 11),
    (np.str_("b"), "b"),
    (Colour.RED, "red"),
    (Size.SMALL, 3),
    (Text("mine"), "mine"),
    (Whole(5), 5),
    (uuid.UUID(int=9), str(uuid.UUID(int=9))),
    (2**63 - 1, 2**63 - 1),
    (-(2**63), -(2**63)),
    (0, 0),
    (2**63, REFUSED),
    (np.uint64(2**63), REFUSED),
    (True, REFUSED),
    (np.bool_(False), REFUSED),
    (7.0, REFUSED),
    (np.float32(7), REFUSED),
    (float("nan"), REFUSED),
    (None, REFUSED),
    ("", REFUSED),
    ("x" * 65_536, REFUSED),
    ("\ud83d", REFUSED),
    (b"a", REFUSED),
    (("a",), REFUSED),
    (["a"], REFUSED),
    (decimal.Decimal(7), REFUSED),
    (Plain.A, REFUSED),
    (datetime.date(2024, 1, 1), REFUSED),
    (np.datetime64("2024-01-01"), REFUSED),
    (np.timedelta64(7, "s"), REFUSED),
    (object(), REFUSED),
]


def name(chance: random.Random, odd: bool = True) -> tuple[Any, Any]:
    """An id and what it is stored as."""
    if odd and chance.random() < 0.1:
        return chance.choice(ODD_IDS)
    if chance.random() < 0.5:
        number = chance.randrange(12)
        return number, number
    said = chance.choice(NAMES)
    return said, said


def several(chance: random.Random, values: list[Any], *, ids: bool = False) -> tuple[Any, bool]:
    """The same values in another container, and whether that has an order of its own, or none."""
    kinds: list[Callable[[], tuple[Any, bool]]] = [
        lambda: (list(values), False),
        lambda: (list(values), False),
        lambda: (list(values), False),
        lambda: (tuple(values), False),
        lambda: ((one for one in values), False),
        lambda: (iter(values), False),
        lambda: (collections.deque(values), False),
        lambda: (_objects(values), False),
    ]
    if pd is not None:
        kinds += [
            lambda: (pd.Series(values, index=range(5, 5 + len(values)), dtype=object), False),
            lambda: (pd.Index(values, dtype=object), False),
        ]
    if ids:
        kinds += [lambda: (dict.fromkeys(values), True), lambda: (set(values), True)]
        if all(type(one) is int and abs(one) < 100 for one in values):
            kinds += [
                lambda: (np.array(values, chance.choice(["i1", ">i4", "i8"])), False),
                lambda: (array.array("q", values), False),
            ]
    try:
        return chance.choice(kinds)()
    except TypeError:  # what can't be hashed
        return list(values), False


def _objects(values: list[Any]) -> Any:
    made = np.empty(len(values), object)
    for at, one in enumerate(values):
        made[at] = one
    return made


def vectors(chance: random.Random, rows: np.ndarray) -> tuple[Any, bool]:
    """The same numbers, eighths of whole ones, in another form; and whether that form must be taken. One that need not
    be is refused, or is the same."""
    forms: list[Callable[[], tuple[Any, bool]]] = [
        lambda: (rows, True),
        lambda: (rows, True),
        lambda: (rows.astype(np.float64), True),
        lambda: (rows.astype(np.float16), True),
        lambda: (rows.astype(chance.choice([">f4", ">f8", "<f8"])), True),
        lambda: (np.asfortranarray(rows), True),
        lambda: (np.repeat(rows, 2, axis=0)[::2], True),
        lambda: (np.repeat(rows, 3, axis=1)[:, ::3], True),
        lambda: (rows[::-1].copy()[::-1], True),
        lambda: (rows[:, ::-1].copy()[:, ::-1], True),
        lambda: (rows.T.copy().T, True),
        lambda: (rows.tolist(), True),
        lambda: (tuple(map(tuple, rows.tolist())), True),
        lambda: (list(rows), True),
        lambda: ([row.tolist() for row in rows], True),
        lambda: ([tuple(row) for row in rows], True),
        lambda: (_mapped(rows), True),
        lambda: (_frozen(rows), True),
        lambda: (np.asmatrix(rows), True),
        lambda: (memoryview(rows), True),
        lambda: (np.ma.array(rows), False),
        lambda: (rows.astype(object), False),
        lambda: (rows.astype(str), False),
        lambda: (rows.astype(complex), False),
        lambda: (rows.astype(np.longdouble), False),
        lambda: ([array.array("d", row) for row in rows.tolist()], False),
        lambda: ((row for row in rows), False),
        lambda: (collections.deque(rows.tolist()), False),
        lambda: ([[decimal.Decimal(one) for one in row] for row in rows.tolist()], False),
        lambda: (dict(enumerate(rows)), False),
        lambda: (np.rec.fromarrays([rows[:, 0], rows[:, -1]]), False),
        lambda: (rows[None], False),
        lambda: (rows.tobytes(), False),
    ]
    if len(rows) == 1:
        forms += [
            lambda: (rows[0], True),
            lambda: (rows[0].tolist(), True),
            lambda: (np.broadcast_to(rows[0], (1, rows.shape[1])), True),
        ]
    if np.array_equal(rows, np.rint(rows)):
        forms += [
            lambda: (rows.astype(np.int64), True),
            lambda: (rows.astype(">i2"), True),
            lambda: (rows.astype(int).tolist(), True),
        ]
    if pd is not None:
        forms += [
            lambda: (pd.DataFrame(rows), True),
            lambda: (
                pd.DataFrame(
                    rows, index=range(9, 9 + len(rows)), columns=[f"c{i}" for i in range(rows.shape[1])]
                ),
                True,
            ),
            lambda: (pd.DataFrame(rows, dtype="Float32"), False),
            lambda: (pd.Series(list(rows)), False),
            lambda: ([pd.Series(row) for row in rows], False),
        ]
    if pa is not None:
        forms += [
            lambda: (pa.array(rows.tolist()), False),
            lambda: (pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(rows)), False),
        ]
    return chance.choice(forms)()


def spoilt(chance: random.Random, rows: np.ndarray, cosine: bool) -> Any:
    """Rows that can't be used."""
    broken = rows.astype(np.float64).copy()
    at = (chance.randrange(len(rows)), chance.randrange(rows.shape[1]))
    ways: list[Callable[[], Any]] = [
        lambda: _set(broken, at, np.nan),
        lambda: _set(broken, at, -np.inf),
        lambda: _set(broken, at, 1e39),
        lambda: rows[:, :-1],
        lambda: [*rows.tolist()[:-1], rows.tolist()[-1][:-1]] if len(rows) > 1 else rows[:, 1:],
        lambda: np.ma.array(rows, mask=rows == rows[at]),
        lambda: [None] * len(rows),
        lambda: "text",
        lambda: rows > 0,
        lambda: rows[:, :, None],
        lambda: _set(broken.astype(object), at, None),
        lambda: np.zeros((len(rows), rows.shape[1]), "M8[s]"),
    ]
    if cosine:
        ways.append(lambda: _set(broken, at[0], 0.0))
    return chance.choice(ways)()


def _set(rows: Any, at: Any, number: Any) -> Any:
    rows[at] = number
    return rows


def _mapped(rows: np.ndarray) -> Any:
    with tempfile.NamedTemporaryFile() as file:
        made = np.memmap(file.name, rows.dtype, "w+", shape=rows.shape)
        made[:] = rows
        return made


def _frozen(rows: np.ndarray) -> np.ndarray:
    made = rows.copy()
    made.setflags(write=False)
    return made


def identical(a: Any, b: Any) -> bool:
    """Equal, and of one type all the way down: 1, 1.0 and True differ, as do 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(identical(a[name], b[name]) for name in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(identical, a, b))
    return bool(a == b) and repr(a) == repr(b)
