"""Every error that the Python API states, over inputs that are chosen against it: the least numbers, the largest,
alternating, equal, correlated. CIPHERVEC_BOUNDS says how many of each kind; `make nightly` takes many."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciphervec import Index, Keys, ckks, lookup, paillier

Doubles = npt.NDArray[np.float64]
EXAMPLES = int(os.environ.get("CIPHERVEC_BOUNDS", "12"))
KINDS = ("least", "largest", "alternating", "equal", "correlated", "single", "random")
SIGMAS = 6
COSINE_ERROR = {"standard": 1.5e-5, "small": 1.9e-4, "wide": 6e-8}
"""Of a cosine, by precision, as docs/sealed.md derives it."""
ROUNDED = 2.0**-17
"""Half of the step that scores of the modes sealed and sealed-query are rounded to."""
hostile = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def numbers(kind: str, seed: int, rows: int, width: int, most: float = 1.0) -> Doubles:
    """(rows, width), none beyond `most`."""
    random = np.random.default_rng(seed)
    signs = random.choice([-1.0, 1.0], (rows, width))
    least = float(np.finfo(np.float32).tiny)
    found: dict[str, Doubles] = {
        "least": signs * least * random.integers(1, 4, (rows, width)),
        "largest": signs * most,
        "alternating": most * np.where((np.arange(width) + np.arange(rows)[:, None]) % 2, 1.0, -1.0),
        "equal": np.full((rows, width), most * random.uniform(0.1, 1)),
        "correlated": most * 0.7 * (random.uniform(-1, 1, width) + 1e-4 * random.normal(size=(rows, width))).clip(-1, 1),
        "single": most * np.eye(rows, width, seed % width),
        "random": most * random.uniform(-1, 1, (rows, width)),
    }  # fmt: skip
    found["single"][:, 0] += np.where(found["single"].any(axis=1), 0.0, most)
    return found[kind].astype(np.float32).astype(np.float64)


@cache
def keys() -> Keys:
    return Keys.generate()


HOWS = [("sealed", "standard"), ("sealed-query", "standard"), ("sealed-index", "standard"), ("sealed-index", "small"),
        ("sealed-index", "wide")]  # fmt: skip


@pytest.mark.parametrize(("mode", "precision"), HOWS, ids="-".join)
@hostile
@given(kind=st.sampled_from(KINDS), other=st.sampled_from([None, *KINDS]), seed=st.integers(0, 2**32 - 1),
       metric=st.sampled_from(["cosine", "ip", "l2"]), width=st.sampled_from([1, 2, 3, 16, 65]),
       log=st.integers(-12, 12), rows=st.sampled_from([1, 2, 9]))  # fmt: skip
def test_scores(
    mode: str,
    precision: str,
    kind: str,
    other: str | None,
    seed: int,
    metric: str,
    width: int,
    log: int,
    rows: int,
) -> None:
    """As docs/sealed.md says: a cosine within its error, an inner product within |x||q| times it, a squared distance within
    twice |x − c||q − c| times it. Without another kind, rows are asked for themselves."""
    x = numbers(kind, seed, rows, width, 10.0**log)
    q = x if other is None else numbers(other, seed + 1, 2, width, 10.0**log)
    index = Index(width, metric, mode, precision, secret_keys=keys())
    index.add(range(rows), x)
    center = index.owner.center if index.owner.center.size else np.zeros(width)
    error = SIGMAS * COSINE_ERROR[precision] + (ROUNDED if mode != "sealed-index" else 0)
    for query, matches in zip(q, index.search_batch(q.astype(np.float32), None), strict=True):
        found = np.empty(rows)
        found[matches.ids] = matches.distances
        dots = x @ query
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(query)
        if metric == "cosine":
            right, bound = 1 - dots / lengths, np.full(rows, error)
        elif metric == "ip":
            right, bound = 1 - dots, lengths * error
        else:
            right = ((x - query) ** 2).sum(axis=1)
            bound = 2 * np.linalg.norm(x - center, axis=1) * np.linalg.norm(query - center) * error
        slack = 2.0**-21 * (np.linalg.norm(x - center, axis=1) ** 2 + np.linalg.norm(query - center) ** 2)
        slack = slack if metric == "l2" else 2.0**-22 * np.maximum(lengths, 0) if metric == "ip" else 2.0**-22
        assert (np.abs(found - right) <= bound + slack + 1e-12 * (metric != "l2")).all()


@cache
def planned(operation: str, layout: str, magnitude: float) -> ckks.Context:
    return ckks.Context.for_similarity(operation, dimension=24, layout=layout, magnitude=magnitude)


@pytest.mark.parametrize("layout", ["slots", "coefficients"])
@pytest.mark.parametrize("operation", ["dot", "cosine", "squared_distance", "distance"])
@hostile
@given(kind=st.sampled_from(KINDS), other=st.sampled_from([None, *KINDS]), seed=st.integers(0, 2**32 - 1),
       rows=st.sampled_from([1, 5]), magnitude=st.sampled_from([1.0, 300.0]))  # fmt: skip
def test_similarities(
    operation: str, layout: str, kind: str, other: str | None, seed: int, rows: int, magnitude: float
) -> None:
    """Within `error_bound`; a root within that over the root, and near zero within the root of it."""
    magnitude = 1.0 if operation == "cosine" else magnitude
    ctx = planned(operation, layout, magnitude)
    x = numbers(kind, seed, rows, 24, magnitude)
    y = x if other is None else numbers(other, seed + 1, rows, 24, magnitude)
    found = ctx.decrypt(getattr(ctx.encrypt(x), operation)(ctx.encrypt(y)))
    bound = ctx.error_bound
    assert bound is not None
    dots = (x * y).sum(axis=1)
    if operation in ("dot", "cosine"):
        lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
        right = dots if operation == "dot" else dots / lengths
        assert (np.abs(found - right) <= bound).all()
        return
    squared = ((x - y) ** 2).sum(axis=1)
    if operation == "squared_distance":
        assert (np.abs(found - squared) <= bound).all()
    else:
        assert (np.abs(found**2 - squared) <= bound * (1 + 1e-9)).all() or (squared <= bound).all()
        assert (np.abs(found - np.sqrt(squared)) <= np.sqrt(bound)).all()


@cache
def general() -> ckks.Context:
    return ckks.Context.for_depth(2, sums=16, magnitude=1e6)


@hostile
@given(kind=st.sampled_from(KINDS), other=st.sampled_from(KINDS), seed=st.integers(0, 2**32 - 1),
       most=st.sampled_from([1e-3, 1.0, 50.0]), factor=st.floats(-4, 4))  # fmt: skip
def test_arrays(kind: str, other: str, seed: int, most: float, factor: float) -> None:
    """Six of the standard deviations that each array states."""
    ctx = general()
    x, y = numbers(kind, seed, 3, 16, most), numbers(other, seed + 1, 3, 16, most)
    a, b = ctx.encrypt(x), ctx.encrypt(y)
    for array, right in (
        (a, x),
        (a + b, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (a * factor, x * factor),
        (a * b * b, x * y * y),
        ((a - b) * (a + b), x * x - y * y),
        (a @ b, (x * y).sum(axis=1)),
        (a.squared_distance(b), ((x - y) ** 2).sum(axis=1)),
    ):
        found = ctx.decrypt(array)
        assert (np.abs(found - right) <= SIGMAS * array.error + 1e-12 * np.abs(right)).all()


@cache
def pair() -> Any:
    return paillier.generate(512, insecure=True)


@hostile
@given(kind=st.sampled_from(KINDS), other=st.sampled_from(KINDS), seed=st.integers(0, 2**32 - 1),
       log=st.integers(-6, 6), factor=st.floats(-1e3, 1e3))  # fmt: skip
def test_additive_arrays(kind: str, other: str, seed: int, log: int, factor: float) -> None:
    x, y = numbers(kind, seed, 2, 3, 10.0**log), numbers(other, seed + 1, 2, 3, 10.0**log)
    a = pair().encrypt(x)
    for array, right in (
        (a, x),
        (a + y, x + y),
        (a - pair().encrypt(y), x - y),
        (a * factor, x * factor),
        (a @ y[0], x @ y[0]),
    ):
        found = pair().decrypt(array)
        ulps = (
            8
            * np.finfo(np.float64).eps
            * (np.abs(x).max() + np.abs(y).max())
            * max(1.0, abs(factor), np.abs(y).max())
        )
        assert (np.abs(found - right) <= array.error + ulps).all()


@hostile
@given(kind=st.sampled_from(KINDS), other=st.sampled_from([None, *KINDS]), seed=st.integers(0, 2**32 - 1),
       precision=st.sampled_from(["small", "standard", "high"]), log=st.integers(-12, 12))  # fmt: skip
def test_additive_cosines(kind: str, other: str | None, seed: int, precision: str, log: int) -> None:
    x = numbers(kind, seed, 3, 5, 10.0**log)
    q = x[:1] if other is None else numbers(other, seed + 1, 1, 5, 10.0**log)
    sealed = pair().encrypt_vectors(x, precision=precision)
    right = q @ x.T / np.linalg.norm(q, axis=1)[:, None] / np.linalg.norm(x, axis=1)
    assert np.abs(pair().decrypt(sealed.scores(q)) - right).max() <= sealed.error_bound + 1e-15


@settings(parent=hostile, max_examples=max(3, EXAMPLES // 4))
@given(kind=st.sampled_from([kind for kind in KINDS if kind != "least"]), seed=st.integers(0, 2**32 - 1),
       log=st.integers(-3, 3), rows=st.sampled_from([1, 2, 3, 16]), pooling=st.sampled_from(["none", "mean"]))  # fmt: skip
def test_lookups(kind: str, seed: int, log: int, rows: int, pooling: str) -> None:
    """Tiny tables among them."""
    table = numbers(kind, seed, rows, 3, 10.0**log)
    random = np.random.default_rng(seed)
    if pooling == "none":
        server = lookup.setup(table, strategy="one_hot")
        asked = random.integers(0, rows, 4)
        right = table[asked]
        client = lookup.Client.generate(server.description())
        found = client.decode(server.embed(client.query(asked.tolist())))
    else:
        server = lookup.setup(table[None], pooling="mean", limit=16)
        texts = [random.integers(0, rows, (n, 1)) for n in (1, 16)]
        right = np.stack([table[text[:, 0]].mean(axis=0) for text in texts])
        client = lookup.Client.generate(server.description())
        found = client.decode(server.embed(client.query(texts)))
    assert np.abs(found - right).max() <= server.error_bound
