"""A small neural network reads an encrypted handwritten digit; one of the programs by which a study of
compilers for encrypted computation compares them.

    python examples/programs/neural_network.py

Two layers, with squares between them as in CryptoNets. The weights are the server's and part of the
program; ten scores come back encrypted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from report import FULL, analysed, evaluated
from sklearn.datasets import load_digits

import ciphervec
from ciphervec import public, secret

HIDDEN = 30
READ = 20 if FULL else 5

Floats = npt.NDArray[np.float64]


@ciphervec.program
def scores(x: Any, first: Any, bias: Any, second: Any) -> Any:
    hidden = x @ first + bias
    return (hidden * hidden) @ second


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    images = images / 16
    weights = trained(images[:1500], labels[:1500])
    held = images[1500:]
    accuracy = float(np.mean(scores(held, *weights).argmax(axis=1) == labels[1500:]))
    print(f"a network of {HIDDEN} squares reads {accuracy:.1%} of {len(held)} digits right, in the clear")

    first, bias, second = (public(one) for one in weights)
    pixels = secret(64, low=0, high=1, real=True)
    plan = analysed(scores.compile(x=pixels, first=first, bias=bias, second=second, precision=10))
    evaluated(plan, x=held[0])

    client = plan.client()
    server = plan.server(client.evaluation_keys())
    read = [np.argmax(client.decrypt(server.run(client.encrypt(x=one).values()))) for one in held[:READ]]
    plain = scores(held[:READ], *weights).argmax(axis=1)
    print(f"encrypted, the first are {' '.join(map(str, read))}")
    print(f"same digit as in the clear: {int(np.sum(read == plain))} of {READ}")


def trained(images: Floats, labels: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """A squared error, descended with momentum; enough for an example."""
    random = np.random.default_rng(4)
    weights = [
        random.standard_normal((64, HIDDEN)) / 8,
        random.standard_normal(HIDDEN) / 8,
        random.standard_normal((HIDDEN, 10)) / 8,
    ]
    speed = [np.zeros_like(one) for one in weights]
    wanted = np.eye(10)[labels]
    for _ in range(120):
        first, bias, second = weights
        hidden = images @ first + bias
        off = 2 * ((hidden * hidden) @ second - wanted) / len(images)
        back = off @ second.T * 2 * hidden
        slopes = [images.T @ back, back.sum(axis=0), (hidden * hidden).T @ off]
        speed = [0.9 * one + slope for one, slope in zip(speed, slopes, strict=True)]
        weights = [one - 0.1 * step for one, step in zip(weights, speed, strict=True)]
    return weights[0], weights[1], weights[2]


if __name__ == "__main__":
    main()
