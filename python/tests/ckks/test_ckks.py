"""Similarities and arithmetic of encrypted vectors against NumPy, in every layout, and all that is
refused."""

from __future__ import annotations

import copy
import functools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import CorruptData, InvalidInput, StorageError, UnsupportedVersion, WrongKey, _native, ckks

pytestmark = pytest.mark.core

LAYOUTS = ("slots", "coefficients", "single")
OPERATIONS = ("dot", "cosine", "squared_distance", "distance")
SECRET = "correct horse"


def exact(operation: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The similarity of rows, in float64."""
    dot = (x * y).sum(-1)
    if operation == "dot":
        return dot
    if operation == "cosine":
        return dot / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)
    squared = ((x - y) ** 2).sum(-1)
    return squared if operation == "squared_distance" else np.sqrt(squared)


def tolerance(ctx: ckks.Context, expected: np.ndarray) -> np.ndarray:
    """What the context says an error stays within; a root's error is that of its square over the
    root."""
    bound = ctx.error_bound
    assert bound is not None
    return bound / expected if ctx.operation == "distance" else np.full_like(expected, bound)


@pytest.fixture(scope="module", params=[(o, la) for la in LAYOUTS for o in OPERATIONS], ids="-".join)
def planned(request: pytest.FixtureRequest) -> Any:
    operation, layout = request.param
    return ckks.Context.for_similarity(operation, dimension=40, layout=layout)


@pytest.fixture(scope="module")
def general() -> Any:
    """Two products deep, with every key that the tests below need."""
    sizes = {"log_degree": 13, "base_bits": 50, "scale_bits": 40, "levels": 2, "special_primes": 1}
    return ckks.Context.from_sizes(**sizes, rotations=[3, -1], sums=16)


@pytest.fixture(scope="module")
def keyless() -> Any:
    return ckks.Context.for_similarity("dot", dimension=32, layout="coefficients")


@pytest.mark.parametrize("shape", [(40,), (1, 40), (9, 40)])
def test_similarities_follow_numpy(planned: ckks.Context, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    x, y = random.uniform(-1, 1, shape), random.uniform(-1, 1, shape)
    operation = planned.operation
    assert operation is not None
    a, b = planned.encrypt(x), planned.encrypt(y)
    assert a.shape == shape and a.layout == planned.layout
    expected = exact(operation, x, y)
    for other in (b, y):
        answer = getattr(a, operation)(other)
        assert answer.shape == shape[:-1]
        found = planned.decrypt(answer)
        assert type(found) is float if not expected.shape else found.shape == expected.shape
        assert (np.abs(found - expected) <= tolerance(planned, np.asarray(expected))).all()


def test_one_vector_meets_many(planned: ckks.Context) -> None:
    operation = planned.operation
    assert operation is not None
    random = np.random.default_rng(2)
    x, y = random.uniform(-1, 1, 40), random.uniform(-1, 1, (60, 40))
    one, many = planned.encrypt(x), planned.encrypt(y)
    expected = exact(operation, x, y)
    pairs: list[tuple[Any, Any]] = [(one, many), (many, one), (many, x), (one, y)]
    if planned.layout == "coefficients" and "distance" in operation:
        # Differences are taken coefficient by coefficient there.
        with pytest.raises(InvalidInput, match="one shape and layout"):
            getattr(one, operation)(many)
        pairs = []
    for a, b in pairs:
        if a is one and b is y and "distance" in operation:
            continue  # a plain operand has the encrypted one's rows
        answer = getattr(a, operation)(b)
        assert answer.shape == (60,)
        assert (np.abs(planned.decrypt(answer) - expected) <= tolerance(planned, expected)).all()


def test_precision_asked_for_is_reached() -> None:
    """Random vectors as long as the plan allows: a sharper test than typical ones."""
    random = np.random.default_rng(3)
    for layout in ("slots", "coefficients"):
        for bits in (10, 24):
            ctx = ckks.Context.for_similarity("dot", dimension=256, layout=layout, precision_bits=bits)
            x, y = random.choice([-1.0, 1.0], (2, 20, 256))
            found = ctx.decrypt(ctx.encrypt(x) @ ctx.encrypt(y))
            error = np.abs(found - (x * y).sum(1)).max()
            assert ctx.error_bound is not None
            assert error <= ctx.error_bound <= 256 * 2.0**-bits


def test_wide_vectors_in_coefficients_take_one_small_ring_and_no_key() -> None:
    random = np.random.default_rng(4)
    ctx = ckks.Context.for_similarity("dot", dimension=2048, layout="coefficients")
    assert (ctx.degree, ctx.key_sizes()["total"]) == (4096, 0)
    x, y = random.uniform(0, 1, (2, 2048))
    answer = ctx.encrypt(x, role="left") @ ctx.encrypt(y, role="right")
    assert abs(ctx.decrypt(answer) - x @ y) < 1e-9 * (x @ y)


def test_wide_vectors_in_slots_take_small_keys() -> None:
    random = np.random.default_rng(5)
    ctx = ckks.Context.for_similarity("dot", dimension=2048)
    sizes = ctx.key_sizes()
    assert sizes["total"] == sizes["relinearise"] + sizes["rotations"] <= 5_000_000
    x, y = random.uniform(0, 1, (2, 2048))
    assert abs(ctx.decrypt(ctx.encrypt(x) @ ctx.encrypt(y)) - x @ y) < 1e-6 * (x @ y)


def test_a_gallery_packs_more_rows(keyless: ckks.Context) -> None:
    random = np.random.default_rng(6)
    x, y = random.uniform(-1, 1, 32), random.uniform(-1, 1, (200, 32))
    gallery = keyless.encrypt(y, role="right", spread="gallery")
    assert gallery.ciphertexts == 2 < keyless.encrypt(y, role="right").ciphertexts
    found = keyless.decrypt(keyless.encrypt(x, role="left") @ gallery)
    assert np.abs(found - y @ x).max() <= (keyless.error_bound or 0)
    with pytest.raises(InvalidInput, match="spread pairs"):
        keyless.encrypt(y, role="left", spread="gallery").dot(gallery)


def test_scores_are_computed_on(keyless: ckks.Context) -> None:
    """1 − cosine, and a mean over two answers: what people do with scores."""
    random = np.random.default_rng(7)
    x, y = random.uniform(-1, 1, (2, 6, 32))
    scores = keyless.encrypt(x) @ keyless.encrypt(y)
    expected = (x * y).sum(1)
    bound = 4 * (keyless.error_bound or 0)
    assert np.abs(keyless.decrypt(1 - scores) - (1 - expected)).max() <= bound
    assert np.abs(keyless.decrypt(scores + scores) - 2 * expected).max() <= bound
    assert np.abs(keyless.decrypt(3 * scores) - 3 * expected).max() <= bound
    weights = np.arange(6.0)
    assert np.abs(keyless.decrypt(scores - weights) - (expected - weights)).max() <= bound
    with pytest.raises(InvalidInput, match="shape"):
        scores + np.ones((6, 2))


def test_numbers_beyond_the_room_of_their_level_are_refused() -> None:
    """They came back as others, with an error of 1e-9 beside them. A level more has room for them."""
    one = ckks.Context.for_depth(1, sums=64)
    computed: dict[str, Any] = {
        "a square": lambda x: x * x,
        "a product with a number": lambda x: x * 39.5,
        "a sum of products": lambda x: x @ x,
        "a distance": lambda x: x.squared_distance(-10 * np.ones(64)),
        "doubled": lambda x: functools.reduce(lambda y, _: y + y, range(7), x * 0.5),
    }
    x = np.linspace(-20.4, 25.5, 64)
    for what, compute in computed.items():
        with pytest.raises(InvalidInput, match="has room for"):
            one.decrypt(compute(one.encrypt(x)))
        two = ckks.Context.for_depth(2, sums=64)
        right = ((x + 10) ** 2).sum() if what == "a distance" else compute(x)
        np.testing.assert_allclose(two.decrypt(compute(two.encrypt(x))), right, rtol=1e-6, atol=1e-6)
    # What may have wrapped around stays so, whatever it is multiplied with.
    square = one.encrypt(x) * one.encrypt(x)
    with pytest.raises(InvalidInput, match="has room for"):
        square - 1000
    # Of smaller ones their owner can say so.
    small = one.encrypt(np.full(64, 2.5))
    answer = small @ small
    assert answer.magnitude == 1024
    with pytest.raises(InvalidInput, match="has room for"):
        one.decrypt(answer)
    assert abs(one.decrypt(answer.bounded(401)) - 400) < 1e-4


@pytest.mark.parametrize("layout", ["slots", "single"])
@pytest.mark.parametrize("shape", [(16,), (5, 16)])
def test_arithmetic_follows_numpy(general: ckks.Context, layout: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(8)
    x, y = random.uniform(-1, 1, shape), random.uniform(-1, 1, shape)
    a, b = general.encrypt(x, layout=layout), general.encrypt(y, layout=layout)
    for found, expected in [
        (a + b, x + y),
        (a - b, x - y),
        (-a, -x),
        (a + y, x + y),
        (y + a, x + y),
        (y - a, y - x),
        (a - 0.25, x - 0.25),
        (0.25 - a, 0.25 - x),
        (a * b, x * y),
        (a * y, x * y),
        (y * a, x * y),
        (a * 0.5, x * 0.5),
        (2 * a, 2 * x),
        (a * b + a, x * y + x),
        (a * b * a, x * y * x),
        (a.sum(), x.sum(-1)),
        (a @ y, (x * y).sum(-1)),
        ((a * b).sum() + 1, (x * y).sum(-1) + 1),
    ]:
        assert np.abs(general.decrypt(found) - expected).max() < 1e-6
    assert (2 * a).level == 2 and (a * 0.5).level == 1 and (a * b * a).level == 0


def test_rotation_turns_left(general: ckks.Context) -> None:
    x = np.arange(16) / 16
    a = general.encrypt(x)
    for k in (3, -1):
        assert np.abs(general.decrypt(a.rotate(k)) - np.roll(x, -k)).max() < 1e-7
    with pytest.raises(InvalidInput, match=r"rotation by 5.*rotations="):
        a.rotate(5)


def test_the_standard_ring_has_every_layout() -> None:
    random = np.random.default_rng(9)
    ctx = ckks.Context.for_depth(1, precision_bits=16, ring="standard", sums=8)
    x, y = random.uniform(-1, 1, (2, 8))
    for layout in LAYOUTS:
        found = ctx.decrypt(ctx.encrypt(x, layout=layout) @ ctx.encrypt(y, layout=layout))
        assert abs(found - x @ y) < 2.0**-12
    assert ctx.operation is None and ctx.error_bound is None and ctx.depth == 1
    assert "levels" in ctx.explain()


def test_error_estimates_are_of_the_right_size(general: ckks.Context) -> None:
    random = np.random.default_rng(10)
    x, y = random.uniform(-1, 1, (2, 400, 16))
    a, b = general.encrypt(x), general.encrypt(y)
    for array, expected in [(a, x), (a + b, x + y), (a * b, x * y)]:
        seen = float(np.std(general.decrypt(array) - expected))
        assert seen / 4 <= array.error <= seen * 16


def test_lengths_of_a_known_interval_need_no_normalising() -> None:
    interval = {"lengths": (0.5, 2.0), "precision_bits": 12}
    depth = ckks.depth_for("cosine", batch=True, **interval)  # type: ignore[arg-type]
    assert depth == 1 + ckks.depth_for("cosine", **interval)  # type: ignore[arg-type]
    assert depth == 1 + ckks.depth_for("distance", batch=True, **interval)  # type: ignore[arg-type]
    ctx = ckks.Context.for_depth(depth, precision_bits=16, sums=8)
    random = np.random.default_rng(14)
    x, y = random.uniform(-0.6, 0.6, (2, 5, 8))
    x[:, 0], y[:, 0] = 0.6, -0.6
    for shape in (slice(None), 0):
        u, v = x[shape], y[shape]
        a, b = ctx.encrypt(u), ctx.encrypt(v)
        for other in (b, v):
            cosines = ctx.decrypt(a.cosine(other, lengths=(0.5, 2), precision_bits=12))
            assert np.abs(cosines - exact("cosine", u, v)).max() < 2e-3
            distances = a.distance(other, within=(0.5, 3), precision_bits=12) - 1
            assert np.abs(ctx.decrypt(distances) - exact("distance", u, v) + 1).max() < 2e-3
    with pytest.raises(InvalidInput, match="normalise=True"):
        a.cosine(b)
    for bad in ((2, 1), (0, 1), (1, np.inf), (1,), "ab", None):
        with pytest.raises(InvalidInput):
            ckks.depth_for("cosine", lengths=bad)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="cosine"):
        ckks.depth_for("dot", lengths=(1, 2))
    with pytest.raises(InvalidInput, match="level"):
        a.cosine(b, lengths=(0.2, 5), precision_bits=24)


def test_owner_and_server_meet_through_bytes(planned: ckks.Context) -> None:
    operation = planned.operation
    assert operation is not None
    random = np.random.default_rng(11)
    x, y = random.uniform(-1, 1, (2, 3, 40))
    server = ckks.PublicContext.from_bytes(planned.public().to_bytes())
    assert (server.key_id, server.degree, server.explain()) == (
        planned.key_id,
        planned.degree,
        planned.explain(),
    )
    a = server.array_from_bytes(planned.encrypt(x).to_bytes())
    b = server.array_from_bytes(planned.encrypt(y).to_bytes())
    answer = getattr(a, operation)(b).to_bytes()
    found = planned.decrypt(planned.array_from_bytes(answer))
    expected = exact(operation, x, y)
    assert (np.abs(found - expected) <= tolerance(planned, expected)).all()
    assert not hasattr(server, "decrypt")
    with pytest.raises(InvalidInput, match="encryption=True"):
        server.encrypt(x)


def test_whoever_has_the_public_key_encrypts(keyless: ckks.Context) -> None:
    random = np.random.default_rng(12)
    x, y = random.uniform(-1, 1, (2, 32))
    station = ckks.PublicContext.from_bytes(keyless.public(encryption=True).to_bytes())
    answer = station.encrypt(x, role="left") @ station.encrypt(y, role="right")
    # Public-key encryption has √(4N/3) times the noise.
    assert abs(keyless.decrypt(answer) - x @ y) <= 80 * (keyless.error_bound or 0)
    assert pickle.loads(pickle.dumps(station)).key_id == keyless.key_id


def test_fresh_arrays_take_half_the_bytes(keyless: ckks.Context) -> None:
    x = np.linspace(-1, 1, 32)
    both, left = keyless.encrypt(x), keyless.encrypt(x, role="left")
    assert 0.45 < len(left.to_bytes()) / len(both.to_bytes()) < 0.55
    again = keyless.array_from_bytes(left.to_bytes())
    assert len(left.to_bytes()) < 0.55 * len(again.to_bytes())
    assert np.abs(keyless.decrypt(again) - x).max() < 1e-6
    right = keyless.encrypt(x, role="right")
    assert np.abs(keyless.decrypt(right) - x).max() < 1e-6


def test_explain_and_security_say_what_was_chosen(planned: ckks.Context) -> None:
    text = planned.explain()
    assert planned.layout in text and f"2^{planned.degree.bit_length() - 1}" in text and "128-bit" in text
    says = planned.security()
    assert says["bits"] == 128 and says["post_quantum"] and not says["insecure"]
    assert "learning with errors" in says["assumption"]


def test_a_context_comes_back_from_its_file(planned: ckks.Context, tmp_path: Path) -> None:
    path = tmp_path / "owner.key"
    planned.save(path, passphrase=SECRET)
    again = ckks.load(path, passphrase=SECRET)
    x = np.linspace(-1, 1, 40)
    assert (again.key_id, again.operation, again.explain()) == (
        planned.key_id,
        planned.operation,
        planned.explain(),
    )
    array = again.array_from_bytes(planned.encrypt(x, normalise=False).to_bytes())
    assert np.abs(again.decrypt(array) - x).max() < 1e-5
    # Its evaluation keys are new, and serve arrays of before.
    assert again.key_sizes() == planned.key_sizes()
    with pytest.raises(WrongKey, match="passphrase"):
        ckks.load(path, passphrase="wrong")
    with pytest.raises(StorageError, match="exists"):
        planned.save(path, passphrase=SECRET)
    with pytest.raises(StorageError):
        ckks.load(tmp_path / "none.key", passphrase=SECRET)
    with pytest.raises(InvalidInput, match="passphrase"):
        planned.save(tmp_path / "clear.key")


def test_the_secret_is_neither_pickled_nor_shown(keyless: ckks.Context) -> None:
    for move in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="pickled"):
            move(keyless)
    shown = repr(keyless)
    assert keyless.key_id in shown and "secret not shown" in shown
    clear = keyless.to_bytes(allow_plaintext=True)
    assert ckks.Context.from_bytes(clear).key_id == keyless.key_id
    seed = clear[-64:-32]
    assert seed not in keyless.public(encryption=True).to_bytes()
    with pytest.raises(TypeError, match="to_bytes"):
        pickle.dumps(keyless.encrypt(np.ones(32)))


@pytest.mark.slow
def test_published_numbers_are_flooded_and_counted(general: ckks.Context) -> None:
    ctx = ckks.Context.from_bytes(general.to_bytes(SECRET), SECRET)
    x = np.linspace(-1, 1, 16)
    shifted = ctx.encrypt(x) + 1.0
    seen = [ctx.publish(shifted, uses=3, statistical_bits=2) for _ in range(3)]
    # One number falls on a step of the published grid twice in a hundred runs; sixteen don't.
    assert len({one.tobytes() for one in seen}) == 3, "noise is drawn anew"
    assert max(np.abs(one - x - 1).max() for one in seen) < 1e-2
    with pytest.raises(ValueError, match="may publish 3 results"):
        ctx.publish(shifted, uses=3, statistical_bits=2)
    # The count is saved with the key.
    again = ckks.Context.from_bytes(ctx.to_bytes(SECRET), SECRET)
    with pytest.raises(ValueError, match="may publish 3 results"):
        again.publish(again.encrypt(x) + 1.0, uses=3, statistical_bits=2)


def test_no_publishing_where_the_flood_does_not_reach(keyless: ckks.Context) -> None:
    with pytest.raises(InvalidInput, match="layout slots or single"):
        keyless.publish(keyless.encrypt(np.ones(32)))


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (np.array([1.0, np.nan]), "finite"),
        (np.array([1.0, np.inf]), "finite"),
        (np.ones((2, 2, 2)), "shape"),
        (np.zeros(0), "shape"),
        ("text", "numbers"),
        (np.array([1 + 2j]), "real"),
        (np.ones(5000), "1 to 4096"),
        (np.full(4, 1.5), "magnitude"),
    ],
)
def test_bad_vectors(keyless: ckks.Context, value: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        keyless.encrypt(value)


def test_zero_vectors_have_no_cosine() -> None:
    ctx = ckks.Context.for_similarity("cosine", dimension=8, layout="coefficients")
    with pytest.raises(InvalidInput, match="zero vector"):
        ctx.encrypt(np.zeros(8))
    with pytest.raises(InvalidInput, match="zero vector"):
        ctx.encrypt(np.ones(8)).cosine(np.zeros(8))


def test_another_contexts_arrays(keyless: ckks.Context, general: ckks.Context) -> None:
    twin = ckks.Context.for_similarity("dot", dimension=32, layout="coefficients")
    mine, other = keyless.encrypt(np.ones(32)), twin.encrypt(np.ones(32))
    with pytest.raises(WrongKey):
        mine @ other
    with pytest.raises(WrongKey):
        keyless.decrypt(other)
    with pytest.raises(WrongKey):
        keyless.array_from_bytes(other.to_bytes())
    with pytest.raises(WrongKey):
        general.array_from_bytes(mine.to_bytes())
    with pytest.raises(InvalidInput, match="encrypted array"):
        keyless.decrypt(np.ones(3))  # type: ignore[arg-type]


def test_levels_run_out_by_name(general: ckks.Context) -> None:
    a = general.encrypt(np.ones(16))
    with pytest.raises(InvalidInput, match="level"):
        a * a * a * a


def test_missing_keys_are_named(keyless: ckks.Context) -> None:
    a = ckks.Context.for_similarity("dot", dimension=8, plain=True).encrypt(np.ones(8))
    assert abs(a.context.decrypt(a @ np.ones(8)) - 8) < 1e-4  # type: ignore[union-attr]
    with pytest.raises(InvalidInput, match="relinearisation"):
        a * a
    with pytest.raises(InvalidInput, match="rotation by 1"):
        a.sum()


def test_operands_that_do_not_go_together(keyless: ckks.Context, general: ckks.Context) -> None:
    left = keyless.encrypt(np.ones(32), role="left")
    both = keyless.encrypt(np.ones(32))
    for wrong, word in [
        (lambda: left @ left, "role both"),
        (lambda: both * both, "take dot"),
        (lambda: both.cosine(both), "normalise=True"),
        (lambda: both @ keyless.encrypt(np.ones(31)), "dimension"),
        (lambda: both @ np.ones(31), "shape"),
        (lambda: both + np.ones(31), "shape"),
        (lambda: both @ 3, "vector"),
        (lambda: -both.distance(both), "squared_distance"),
        (lambda: both.rotate(1), "layout slots"),
        (lambda: both + np.array([np.nan] * 32), "finite"),
    ]:
        with pytest.raises(InvalidInput, match=word):
            wrong()
    slots, single = general.encrypt(np.ones(16)), general.encrypt(np.ones(16), layout="single")
    with pytest.raises(InvalidInput, match="layout"):
        slots + single
    rows = general.encrypt(np.ones((3, 16)))
    with pytest.raises(InvalidInput, match="shape"):
        rows + general.encrypt(np.ones((4, 16)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"operation": "angle", "dimension": 8},
        {"dimension": 0},
        {"dimension": 8.5},
        {"dimension": 8, "layout": "rows"},
        {"dimension": 8, "precision_bits": 99},
        {"operation": "dot", "dimension": 8, "magnitude": float("nan")},
        {"operation": "dot", "dimension": 2048, "precision_bits": 40},
    ],
)
def test_bad_plans(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        ckks.Context.for_similarity(**arguments)


def test_parameters_over_the_limit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the limit for 128-bit classical security is 106"):
        ckks.Context.from_sizes(log_degree=12, base_bits=50, scale_bits=40, levels=1, special_primes=1)
    with pytest.raises(InvalidInput, match="depth"):
        ckks.Context.for_depth(60, precision_bits=40)
    for bad in ({"ring": "complex"}, {"precision_bits": 60}):
        with pytest.raises(InvalidInput):
            ckks.Context.for_depth(1, **bad)  # type: ignore[arg-type]


def test_damaged_bytes_are_refused(keyless: ckks.Context) -> None:
    public, array = keyless.public(encryption=True).to_bytes(), keyless.encrypt(np.ones(32)).to_bytes()
    readers = [(ckks.PublicContext.from_bytes, public), (keyless.array_from_bytes, array)]
    for read, good in readers:
        read(good)
        for length in (0, 7, 40, len(good) - 1):
            with pytest.raises((CorruptData, InvalidInput)):
                read(good[:length])
        for at in range(0, len(good), len(good) // 40):
            bad = bytearray(good)
            bad[at] ^= 16
            with pytest.raises((CorruptData, InvalidInput, WrongKey)):
                read(bytes(bad))
        with pytest.raises(InvalidInput):
            read("text")  # type: ignore[arg-type]
    newer = public[:4] + (2).to_bytes(4, "little") + public[8:]
    with pytest.raises(UnsupportedVersion):
        ckks.PublicContext.from_bytes(newer)
    with pytest.raises(CorruptData):
        ckks.PublicContext.from_bytes(array)


def test_constructors_are_not_for_callers() -> None:
    for kind in (ckks.Context, ckks.PublicContext):
        with pytest.raises(InvalidInput, match="use "):
            kind(b"key")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _native.CkksOwner()


def test_results_agree_with_tenseal() -> None:
    tenseal = pytest.importorskip("tenseal")
    random = np.random.default_rng(13)
    x, y = random.uniform(0, 1, (2, 512))
    theirs = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS, poly_modulus_degree=8192, coeff_mod_bit_sizes=[60, 40, 40, 60]
    )
    theirs.global_scale = 2**40
    theirs.generate_galois_keys()
    a, b = tenseal.ckks_vector(theirs, x.tolist()), tenseal.ckks_vector(theirs, y.tolist())
    for operation, answer in [("dot", a.dot(b)), ("squared_distance", (a - b).dot(a - b))]:
        for layout in LAYOUTS:
            ctx = ckks.Context.for_similarity(operation, dimension=512, layout=layout)
            ours = ctx.decrypt(getattr(ctx.encrypt(x), operation)(ctx.encrypt(y)))
            assert abs(ours - answer.decrypt()[0]) < 1e-3


def test_a_ring_without_dot_products_in_coefficients_refuses_them() -> None:
    context = ckks.Context.for_depth(1)
    with pytest.raises(InvalidInput, match="ring standard"):
        context.encrypt([1.0, 2.0], layout="coefficients")
    standard = ckks.Context.for_depth(1, ring="standard")
    left, right = np.arange(8.0).reshape(2, 4), np.ones((2, 4)) / 2
    a, b = (standard.encrypt(one, layout="coefficients") for one in (left, right))
    assert np.abs(standard.decrypt(a @ b) - (left * right).sum(axis=1)).max() < 1e-5
    assert np.abs(standard.decrypt(a.sum()) - left.sum(axis=1)).max() < 1e-5


def test_scores_are_no_vector_and_texts_no_numbers() -> None:
    context = ckks.Context.for_depth(2, sums=2)
    x = context.encrypt([[1.0, 2.0], [3.0, 4.0]])
    scores = x @ x
    for call in (scores.sum, lambda: scores @ [1.0, 2.0], lambda: scores.squared_distance(scores)):
        with pytest.raises(InvalidInput, match="no vector"):
            call()
    for bad in (
        "2",
        ["1", "2"],
        np.ma.array([1.0, 2.0], mask=[0, 1]),
        [[1.0], [1.0, 2.0]],
        np.array([1, 2], "m8[s]"),
    ):
        for refused in (lambda bad=bad: x * bad, lambda bad=bad: context.encrypt(bad)):
            with pytest.raises(InvalidInput):
                refused()
    for step in (1.5, "1", True, None):
        with pytest.raises(InvalidInput, match="whole number"):
            context.encrypt([1.0, 2.0]).rotate(step)
    large = context.encrypt([1e21, -2.0])
    assert np.abs(context.decrypt(large) - [1e21, -2.0]).max() < 10 * large.error
