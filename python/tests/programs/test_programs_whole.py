"""Programs: whole ones, as people write them, are what they are in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import ciphervec
from ciphervec import programs, public, secret
from ciphervec.programs import evaluate, relu
from tracing import agrees, booleans, signed


def test_hamming_as_a_loop_and_at_once() -> None:
    def loop(x: Any, y: Any) -> Any:
        distance = 0
        for one, other in zip(x, y, strict=True):
            distance += one != other
        return distance

    random = np.random.default_rng(1)
    for make in (booleans, signed):
        x, y = make(random, (64,)), make(random, (64,))
        agrees(loop, x, y)
        batched = agrees(lambda x, y: np.sum(x != y), x, y)
        agrees(lambda x, y: np.count_nonzero(x != y), x, y)
        assert len(batched) <= 5


def test_nearest_advertisement() -> None:
    random = np.random.default_rng(2)
    places, radius = random.integers(0, 64, (128, 2)), random.integers(1, 9, 128)

    def nearest(x: Any, y: Any) -> Any:
        dx, dy = places[:, 0] - x, places[:, 1] - y
        return np.argmin(1 / radius * (dx**2 + dy**2))

    agrees(nearest, np.array(17), np.array(40), declared=[secret(bits=6), secret(bits=6)])


def test_faces() -> None:
    random = np.random.default_rng(3)
    probe, gallery = random.integers(0, 256, 128), random.integers(0, 256, (20, 128))

    def identify(probe: Any, gallery: Any) -> Any:
        distances = ((gallery - probe) ** 2).sum(axis=1)
        return np.argmin(distances), distances.min() < 1_400_000

    graph = agrees(identify, probe, gallery, declared=[secret(128, bits=8), secret((20, 128), bits=8)])
    distances = next(node for node in graph.nodes if node.op == "sum")
    assert (distances.kind.low, distances.kind.high) == (0, 128 * 255**2)


def test_who_or_nobody() -> None:
    random = np.random.default_rng(4)
    gallery = random.standard_normal((30, 16))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)

    def which(probe: Any, gallery: Any) -> Any:
        scores = gallery @ probe
        return np.where(scores.max() > 0.9, np.argmax(scores), -1)

    for probe in (gallery[7], -gallery[7]):
        agrees(which, probe, gallery, declared=[secret(16, low=-1, high=1, real=True),
                                                secret((30, 16), low=-1, high=1, real=True)])  # fmt: skip


def test_text_classifier() -> None:
    random = np.random.default_rng(5)
    table, weights, codes = (
        random.standard_normal((32, 10)),
        random.standard_normal((10, 2)),
        random.integers(0, 32, 9),
    )

    def classify(table: Any, codes: Any, w: Any) -> Any:
        return table[codes].mean(0) @ w

    graph = ciphervec.program(classify).trace(public(table), secret(9, low=0, high=31), public(weights))
    assert np.allclose(
        evaluate(graph, {"codes": codes}), classify(table, codes, weights), rtol=1e-12, atol=1e-12
    )


def test_cardiac_risk() -> None:
    def risk(flags: Any, age: Any, hdl: Any, height: Any, weight: Any, exercise: Any, glasses: Any) -> Any:
        male, smokes, diabetic, pressure = flags
        score = 0
        score = score + (male & (age > 50))
        score = score + (~male & (age > 60))
        score = score + smokes + diabetic + pressure
        score = score + (hdl < 40)
        score = score + (weight > height - 90)
        score = score + (exercise < 30)
        return score + ((male & (glasses > 3)) | (~male & (glasses > 2)))

    random = np.random.default_rng(6)
    for _ in range(3):
        numbers = [np.array(random.integers(low, high)) for low, high in
                   [(20, 90), (20, 80), (150, 200), (50, 120), (0, 90), (0, 6)]]  # fmt: skip
        agrees(
            risk, booleans(random, (4,)), *numbers, declared=[secret(4, boolean=True), *[secret(bits=8)] * 6]
        )


def test_chi_squared() -> None:
    def chi_squared(n0: Any, n1: Any, n2: Any) -> Any:
        alpha = (4 * n0 * n2 - n1**2) ** 2
        b1, b2, b3 = 2 * (2 * n0 + n1) ** 2, (2 * n0 + n1) * (2 * n2 + n1), 2 * (2 * n2 + n1) ** 2
        return alpha, b1, b2, b3

    agrees(chi_squared, np.array(2), np.array(7), np.array(9), declared=[secret(bits=7)] * 3)


def test_kernel() -> None:
    weights = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]])

    def sharpen(image: Any) -> Any:
        total = 0
        for i in range(3):
            for j in range(3):
                total = total + weights[i, j] * np.roll(image, (1 - i, 1 - j), axis=(0, 1))
        return 2 * image - total

    graph = agrees(
        sharpen, np.random.default_rng(8).integers(0, 256, (8, 8)), declared=[secret((8, 8), bits=8)]
    )
    assert graph.count()["roll"] == 8


def test_neural_network() -> None:
    random = np.random.default_rng(9)
    w1, b1, w2, b2 = (random.standard_normal(shape) / 4 for shape in [(64, 16), (16,), (16, 10), (10,)])

    def infer(x: Any) -> Any:
        hidden = relu(x @ w1 + b1)
        squared = (hidden @ w2 + b2) ** 2
        return np.argmax(squared, axis=-1), np.tanh(hidden).sum()

    agrees(infer, random.integers(0, 16, (3, 64)) / 16, declared=[secret((3, 64), bits=4, step=1 / 16)])


def test_samples_declare() -> None:
    @ciphervec.program
    def f(x: Any, y: Any, m: Any, scale: int = 3) -> Any:
        return np.where(m, x * scale, y)

    x, y, m = np.array([-3, 100]), np.array([0.25, 1.5]), np.array([True, False])
    graph = f.trace_samples(x, y, m=m)
    kinds = {node.attributes["name"]: node.kind for node in graph.inputs}
    assert (kinds["x"].low, kinds["x"].high, kinds["x"].integer) == (-128, 127, True)
    assert (kinds["y"].low, kinds["y"].high, kinds["y"].step) == (0.25, 1.5, None)
    assert kinds["m"].boolean
    assert graph.observed[graph.input("x")] == (-3, 100)
    assert np.array_equal(f(x, y, m), evaluate(graph, {"x": x, "y": y, "m": m}))
    wider = programs.observe(graph, {"x": [-128, 1], "y": y, "m": m})
    assert wider.observed[wider.input("x")] == (-128, 100)
    assert repr(f).startswith("<program f(x: ") and f.__name__ == "f"
