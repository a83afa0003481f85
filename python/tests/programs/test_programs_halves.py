"""Programs: the halves of a plan, with bytes between them; what belongs to another plan or key, is missing,
damaged or made up is refused, and no tampered answer becomes a number that a result cannot be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from attacks import forged
from ciphervec import CorruptData, InvalidInput, WrongKey, programs, secret
from ciphervec.programs import Client, Plan

VECTORS = Path(__file__).parents[3] / "vectors" / "v1" / "program"


@ciphervec.program
def distance(x: Any, y: Any) -> Any:
    return np.sum((x - y) ** 2), x * 2


X, Y = np.array([1, 7, 0, 5]), np.array([7, 7, 2, 0])
EXPECTED = int(((X - Y) ** 2).sum())


@pytest.fixture(scope="module")
def plan() -> Plan:
    return distance.compile(x=secret(4, bits=3), y=secret(4, bits=3))


@pytest.fixture(scope="module")
def client(plan: Plan) -> Client:
    return plan.client()


@pytest.fixture(scope="module")
def keys(client: Client) -> bytes:
    return client.evaluation_keys()


def other_plan(name: str = "other") -> Plan:
    def f(x: Any, y: Any) -> Any:
        return np.sum((x - y) ** 2), x * 3

    f.__name__ = name
    return ciphervec.program(f).compile(x=secret(4, bits=3), y=secret(4, bits=3))


def test_bytes_are_all_that_goes_between(plan: Plan, client: Client, keys: bytes) -> None:
    """The client of one process is read back in another, and so is the plan at the server."""
    elsewhere = Plan.from_bytes(plan.to_bytes())
    assert (elsewhere.id, elsewhere.inputs, elsewhere.key_bytes) == (plan.id, plan.inputs, plan.key_bytes)
    assert elsewhere.to_bytes() == plan.to_bytes()
    server = elsewhere.server(keys)
    assert server.key_id == client.key_id
    sealed = client.encrypt(x=X, y=Y)
    assert sealed["x"] != client.encrypt(x=X)["x"]
    answer = server.run([sealed["y"], sealed["x"]])
    again = Client.from_secret_bytes(elsewhere, client.to_secret_bytes())
    for holder in (client, again):
        total, doubled = holder.decrypt(answer)
        assert total == EXPECTED and total.dtype == np.int64
        np.testing.assert_array_equal(doubled, X * 2)
    # What stays is read once.
    gallery = server.read(sealed["y"])
    for x in (X, Y):
        assert client.decrypt(server.run([gallery, client.encrypt(x=x)["x"]]))[0] == ((x - Y) ** 2).sum()


def test_a_plan_from_bytes_has_no_program_to_compare_with(plan: Plan) -> None:
    elsewhere = Plan.from_bytes(plan.to_bytes())
    for asked in (elsewhere.analyse, lambda: elsewhere.evaluate(x=X, y=Y), lambda: elsewhere.clear(x=X, y=Y)):
        with pytest.raises(InvalidInput, match="read from bytes"):
            asked()


def test_what_belongs_elsewhere_is_refused(plan: Plan, client: Client, keys: bytes) -> None:
    server, other = plan.server(keys), other_plan()
    stranger, foreign = plan.client(), other.client()
    sealed = client.encrypt(x=X, y=Y)
    answer = server.run(sealed.values())
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: plan.server(foreign.evaluation_keys()), "take the plan that it was made for"),
        (lambda: other.server(keys), "take the plan that it was made for"),
        (lambda: server.read(foreign.encrypt(x=X)["x"]), "take the plan that it was made for"),
        (lambda: server.run(stranger.encrypt(x=X, y=Y).values()), "key"),
        (lambda: stranger.decrypt(answer), "key"),
        (lambda: foreign.decrypt(answer), "take the plan that it was made for"),
        (lambda: server.run([sealed["x"]]), '"y" is missing'),
        (lambda: server.run([sealed["x"], sealed["y"], sealed["x"]]), "came twice"),
        (lambda: server.run([answer]), "kind|expected"),
        (lambda: client.decrypt(sealed["x"]), "kind|expected"),
        (lambda: plan.server(plan.to_bytes()), "kind|expected"),
        (lambda: Plan.from_bytes(keys), "kind|expected"),
        (lambda: Client.from_secret_bytes(plan, keys), "kind|expected"),
    ]
    for attempt, says in cases:
        with pytest.raises((InvalidInput, CorruptData, WrongKey), match=says):
            attempt()


def test_what_was_not_declared_never_leaves_the_client(client: Client) -> None:
    for given, says in [
        ({"z": X}, "no input 'z'; it has x, y"),
        ({"x": X[:3]}, r"shape \(4,\)"),
        ({"x": X[None]}, r"shape \(4,\)"),
        ({"x": X + 3}, "element 1 is 10"),
        ({"x": X - 1}, "element 2 is -1"),
        ({"x": X + 0.5}, "multiples of 1"),
        ({"x": [1, 2, float("nan"), 0]}, "element 2 is NaN"),
        ({"x": ["1", "a", "2", "3"]}, "numbers"),
        ({"x": [[1], [1, 2], 3, 4]}, "rectangular"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            client.encrypt(**given)  # type: ignore[arg-type]


def test_damaged_bytes_are_refused(plan: Plan, client: Client, keys: bytes) -> None:
    server = plan.server(keys)
    sealed = client.encrypt(x=X, y=Y)
    answer = server.run(sealed.values())
    readers: list[tuple[bytes, Callable[[bytes], Any]]] = [
        (plan.to_bytes(), Plan.from_bytes),
        (keys, plan.server),
        (sealed["x"], server.read),
        (answer, client.decrypt),
        (client.to_secret_bytes(), lambda data: Client.from_secret_bytes(plan, data)),
    ]
    for data, read in readers:
        for place in (0, 9, 20, 40, len(data) // 2, len(data) - 1):
            damaged = bytearray(data)
            damaged[place] ^= 1
            with pytest.raises((InvalidInput, CorruptData)):
                read(bytes(damaged))
        for length in (0, 10, 63, 64, 90, len(data) - 1):
            with pytest.raises((InvalidInput, CorruptData)):
                read(data[:length])
        with pytest.raises((InvalidInput, CorruptData)):
            read(data + b"\0")


def test_tampered_answers_are_refused_or_numbers_that_results_can_be(
    plan: Plan, client: Client, keys: bytes
) -> None:
    """A server can compute something else: what comes of it is an integer of the result's kind or none."""
    answer = plan.server(keys).run(client.encrypt(x=X, y=Y).values())
    random = np.random.default_rng(1)
    refused = 0
    for place in random.integers(64, len(answer), 60):
        flipped = bytes([answer[place] ^ 1 << int(random.integers(8))])
        try:
            total, doubled = client.decrypt(forged(answer, int(place), flipped))
        except (InvalidInput, CorruptData):
            refused += 1
            continue
        assert total.dtype == doubled.dtype == np.int64
        assert 0 <= total <= 4 * 49
        assert ((doubled >= 0) & (doubled <= 14)).all()
    assert refused > 40


@pytest.mark.core
def test_plans_of_one_release_load_in_the_next() -> None:
    """`vectors/v1/program`: x² + 3 of eight numbers (`crates/owner/tests/suite/vectors_programs.rs`)."""
    plan = Plan.from_bytes((VECTORS / "plan").read_bytes())
    assert plan.inputs == {"x": (8,)}
    client = Client.from_secret_bytes(plan, (VECTORS / "secret-key").read_bytes())
    server = plan.server((VECTORS / "keys").read_bytes())
    answer = server.run([(VECTORS / "input").read_bytes()])
    assert hashlib.sha256(answer).digest() == hashlib.sha256((VECTORS / "answer").read_bytes()).digest()
    np.testing.assert_array_equal(client.decrypt(answer), [3, 4, 7, 12, 28, 67, 172, 228])
    every = Plan.from_bytes((VECTORS / "every-step").read_bytes())
    assert every.to_bytes() == (VECTORS / "every-step").read_bytes()
    assert every.id != plan.id
    assert programs.Plan is Plan
