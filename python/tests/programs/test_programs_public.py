"""Programs with public inputs, with numbers at the ends of what was declared: encrypted runs are right, public numbers
are encoded and not encrypted, and what that saves."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import InvalidInput, ProgramError, programs, public, secret

Array = np.ndarray[Any, Any]
Given = dict[str, Array]
TABLE = np.array([3, -1, 4, 1, -5, 9, 2, 6])

BYTES = {"x": secret(8, bits=8), "w": public(8, bits=8)}
SIGNED = {"x": secret(8, bits=4, signed=True), "w": public(8, bits=4, signed=True)}
TWO = {**SIGNED, "v": public(8, bits=4, signed=True)}
REAL = {
    "x": secret(8, low=-1, high=1, real=True),
    "w": public(8, low=-1, high=1, real=True),
}
MATRIX = {"x": secret((4, 8), bits=4), "w": public((8, 3), bits=4, signed=True)}

CASES: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "product": (lambda x, w: x * w, BYTES),
    "product with itself": (lambda x, w: x * w * w, SIGNED),
    "sum": (lambda x, w: x + w - 3 * w, BYTES),
    "difference": (lambda x, w: (w - x) ** 2, BYTES),
    "inner product": (lambda x, w: x @ w, MATRIX),
    "products of public arrays": (lambda x, w, v: x * (w * v + w) - v, TWO),
    "moved": (lambda x, w: (x * np.roll(w * w, 3)[::-1]).sum(), SIGNED),
    "moved after": (lambda x, w: np.roll(x * w, 3) * w, SIGNED),
    "joined": (lambda x, w: np.concatenate([x, w]) * 2, SIGNED),
    "stacked": (lambda x, w: np.stack([x * w, w * w]).sum(axis=1), SIGNED),
    "polynomial": (lambda x, w: x * np.exp(w) + w**3, REAL),
    "divided": (lambda x, w: x / (2 + w), REAL),
    "compared": (lambda x, w: np.sum(x < w), BYTES),
    "equal": (lambda x, w: x == w, SIGNED),
    "compared in the clear": (lambda x, w, v: np.where(w < v, x, -x), TWO),
    "equal in the clear": (lambda x, w, v: x * (w == v), TWO),
    "chosen of public numbers": (lambda x, w, v: np.where(x > 0, w, v * w), TWO),
    "truths": (lambda x, w: ((x > 2) & (w > 2)) | (w < -3), SIGNED),
    "either": (lambda x, w: (x > 0) ^ (w > 0), SIGNED),
    "least of public numbers": (lambda x, w: x - w.min(), SIGNED),
    "place of the least": (lambda x, w: x * (np.argmin(w) == np.arange(8)), SIGNED),
    "sorted": (lambda x, w: x * np.sort(w), SIGNED),
    "largest of both": (lambda x, w: np.maximum(x, w), SIGNED),
    "absolute": (lambda x, w: x * np.abs(w) + np.sign(w), SIGNED),
    "means": (lambda x, w: (x - x.mean()) * (w - w.mean()), SIGNED),
    "a public index": (
        lambda x, i: x * programs.take(TABLE, i),
        {"x": secret(5, bits=4), "i": public(5, low=0, high=7)},
    ),
    "a public table": (
        lambda x, w: w[x] * 2,
        {"x": secret(5, low=0, high=7), "w": public(8, bits=5, signed=True)},
    ),
    "a row of a public table": (
        lambda x, w: w[x],
        {"x": secret((), low=0, high=7), "w": public((8, 3), bits=5, signed=True)},
    ),
    "results of public numbers": (lambda x, w: (x * w, w + 1, w.max(), w < 2), SIGNED),
    "one number": (lambda x, w: x * w + w, {"x": secret(3, bits=4), "w": public((), bits=4)}),
    "rows": (lambda x, w: x * w[:, None], {"x": secret((3, 5), bits=4), "w": public(3, bits=4)}),
    "fixed point": (
        lambda x, w: x * w + w,
        {"x": secret(6, low=-2, high=2, step=0.25), "w": public(6, low=-1, high=1, step=0.125)},
    ),
    "booleans": (lambda x, w: x & ~w, {"x": secret(6, boolean=True), "w": public(6, boolean=True)}),
}


def extremes(declared: Mapping[str, Any], seed: int) -> Iterator[Given]:
    """The least, the largest, both in turn, 0 or what is near it, any numbers, and all pairs of ends."""
    random = np.random.default_rng(seed)
    for which in range(7):
        given: Given = {}
        for place, (name, one) in enumerate(declared.items()):
            kind, shape = one.kind, one.shape
            step = float(kind.step or 0)
            low, high = kind.low, kind.high
            places = np.arange(int(np.prod(shape))).reshape(shape)
            drawn = random.uniform(low, high, shape)
            value = (
                np.full(shape, low),
                np.full(shape, high),
                np.where((places + place) % 2, low, high),
                np.full(shape, np.clip(0.0, low, high)),
                drawn,
                np.full(shape, high if place else low),
                random.choice([low, high], shape),
            )[which]
            value = np.clip(np.rint(value / step) * step, low, high) if step else value
            given[name] = value > 0 if kind.boolean else value.astype(np.int64) if step >= 1 else value
        yield given


def halves(plan: programs.Plan) -> tuple[programs.Client, programs.Server]:
    """A client, and a server that has the plan from bytes."""
    client = plan.client()
    return client, programs.Plan.from_bytes(plan.to_bytes()).server(client.evaluation_keys())


def several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("name", CASES)
def test_encrypted_runs_are_right_at_the_ends_of_what_was_declared(name: str) -> None:
    function, declared = CASES[name]
    program = ciphervec.program(function)
    plan = program.compile(**declared, precision=10)
    kinds = plan.results
    assert plan.public == tuple(key for key, one in declared.items() if not one.secret)
    client, server = halves(plan)
    for given in extremes(declared, len(name)):
        expected = several(function(**given))
        answer = server.run(client.encrypt(**given).values())
        for found in (client.decrypt(answer), plan.simulate(7, **given), plan.clear(**given)):
            for one, exact, kind in zip(several(found), expected, kinds, strict=True):
                if kind.exact:
                    np.testing.assert_array_equal(one, exact, err_msg=f"{given}")
                else:
                    most = 2.0**-10 * (kind.high - kind.low)
                    np.testing.assert_allclose(one, exact, rtol=0, atol=most, err_msg=f"{given}")


def cost(function: Callable[..., Any], declared: Mapping[str, Any], **asked: Any) -> programs.Analysis:
    return ciphervec.program(function).compile(**declared, **asked, backend="ckks").analyse()


@pytest.mark.parametrize(
    ("name", "levels", "keys"),
    [
        # Levels with w encoded, and with w encrypted; whether encoded any key is left.
        ("product", (1, 1), False),
        ("product with itself", (1, 2), False),
        ("products of public arrays", (1, 2), False),
        ("polynomial", (1, 4), False),
        ("moved", (1, 3), True),
        ("compared in the clear", (1, 2), False),
        ("place of the least", (1, 8), False),
        ("sum", (0, 0), False),
    ],
)
def test_levels_ciphertexts_and_keys_that_are_saved(name: str, levels: tuple[int, int], keys: bool) -> None:
    function, declared = CASES[name]
    secret_ones = {key: programs.Declared(one.shape, one.kind, secret=True) for key, one in declared.items()}
    before = cost(function, secret_ones)
    after = cost(function, declared)
    assert after.levels == levels[0], after
    assert before.levels >= levels[1], before
    assert after.registers == 1 < before.registers
    assert (after.key_bytes > 100) is keys
    if levels[1]:
        assert after.key_bytes < before.key_bytes
    assert after.query_bytes < before.query_bytes
    assert after.peak <= before.peak


def test_an_analysis_says_who_sees_what() -> None:
    plan = ciphervec.program(lambda x, w: (x * w, w + 1)).compile(**BYTES)
    found = plan.analyse()
    assert found.public == (
        "w: public, the server sees all 8 numbers",
        "result1: of public inputs alone, which the server computes in the clear",
    )
    assert all(line in str(found) and line in found._repr_html_() for line in found.public)
    rows = {one.operation: one for one in found.operations}
    assert rows["public w"].level is None and rows["add"].level is None
    assert rows["multiply"].level == 1 and rows["add"].milliseconds == 0


def test_what_is_sent_is_checked_on_both_sides() -> None:
    plan = ciphervec.program(lambda x, w: x * w).compile(**SIGNED)
    client, server = halves(plan)
    good = client.encrypt(w=np.arange(8) - 4)["w"]
    assert len(good) < 200 and struct.pack("<8d", *range(-4, 4)) in good
    for value, says in (
        (np.full(8, 8), r'"w"|w\[0\]|from -8 to 7'),
        (np.full(8, np.nan), "NaN|nan"),
        (np.full(8, np.inf), "inf"),
        (np.full(8, 0.5), "multiples of 1|integer"),
        (np.zeros(7), "shape"),
    ):
        with pytest.raises(InvalidInput, match=says):
            client.encrypt(w=value)
    # A checksum, not a signature: whoever changes numbers on the way can make it anew, and the ranges hold.
    with pytest.raises(ciphervec.CorruptData):
        server.read(good[:-1] + b"\x7f")
    other = plan.client()
    with pytest.raises(ciphervec.WrongKey):
        server.read(other.encrypt(w=np.zeros(8))["w"])


def test_what_a_program_says_of_public_numbers_is_checked_when_it_runs() -> None:
    plan = ciphervec.program(lambda x, w: x * programs.within(w * w, 0, 9)).compile(**SIGNED)
    client, server = halves(plan)
    x = np.arange(8) - 4
    fine = server.run(client.encrypt(x=x, w=np.full(8, -3)).values())
    assert (client.decrypt(fine) == 9 * x).all()
    with pytest.raises(InvalidInput, match=r"at most .*, as the plan says"):
        server.run(client.encrypt(x=x, w=np.full(8, 7)).values())


def test_nothing_of_a_product_with_zeros_is_lost_or_refused() -> None:
    plan = ciphervec.program(lambda x, w: (x * w).sum() + 3).compile(**BYTES)
    client, server = halves(plan)
    answer = server.run(client.encrypt(x=np.full(8, 255), w=np.zeros(8)).values())
    assert client.decrypt(answer) == 3


def test_a_public_input_is_kept_for_many_runs() -> None:
    plan = ciphervec.program(lambda x, w: x @ w).compile(**MATRIX)
    client, server = halves(plan)
    random = np.random.default_rng(3)
    w = random.integers(-8, 8, (8, 3))
    kept = server.read(client.encrypt(w=w)["w"])
    for _ in range(3):
        x = random.integers(0, 16, (4, 8))
        assert (client.decrypt(server.run([kept, client.encrypt(x=x)["x"]])) == x @ w).all()


def test_numbers_of_public_inputs_near_one_another_are_told_apart() -> None:
    """Under a gap too, which is for what is encrypted."""
    declared = {"x": secret(4, bits=4), "w": public(4, low=0, high=1, real=True)}
    plan = ciphervec.program(lambda x, w: x * (w < 0.5)).compile(**declared, gap=2**-6)
    client, server = halves(plan)
    w = np.array([0.5, 0.5 - 1e-9, 0.5 + 1e-9, 0.25])
    x = np.array([5, 6, 7, 8])
    assert (client.decrypt(server.run(client.encrypt(x=x, w=w).values())) == x * (w < 0.5)).all()


def test_a_public_number_is_no_truth_while_tracing() -> None:
    with pytest.raises(ProgramError, match="given when the program runs"):
        ciphervec.program(lambda x, w: x if w > 3 else -x).compile(secret(3, bits=4), public((), bits=4))
