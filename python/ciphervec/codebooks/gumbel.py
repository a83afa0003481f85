"""Codes and tables learned by gradient descent through a Gumbel-softmax. Runs where the matrix is, before anything is
encrypted.

The code learning of Shu & Nakayama 2018 (section 4): an encoder of one hidden layer proposes a
distribution over each table's rows, a Gumbel-softmax sample of it stands in for the one-hot choice,
and the decoder adds the tables' rows. Gradients are written out; a test compares them with finite
differences.

    h = tanh(x A + a)    α = softplus(h C + c)    y = softmax((log α + g) / τ) a table    x̂ = Σ y T    loss = ½ |x̂ − x|²
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .adamw import AdamW
from .kmeans import SAMPLE_ROWS, Codes, Floats, sample
from .refine import reconstruct

Values: TypeAlias = npt.NDArray[np.floating]
Parameters: TypeAlias = dict[str, Values]

_BLOCK = 2048
_WIDEST = 1024
# Below it softplus is its argument's exponential to float32's precision, and log α the argument
# itself.
_LEAST = -60.0


@dataclass(frozen=True)
class Settings:
    """How long and how fast. `temperature` goes geometrically from the first value to the second.

    Shu & Nakayama train with Adam at a rate of 1e-4 and batches of 128, at temperature 1; ours is
    faster and cools down, which brings the samples nearer to the hard choice that is kept.
    """

    epochs: int = 60
    batch: int = 128
    learning_rate: float = 5e-3
    temperature: tuple[float, float] = (1.0, 0.4)
    held_out: float = 0.1
    patience: int = 10


def learn(
    rows: Floats,
    size: int,
    tables: int,
    settings: Settings,
    random: np.random.Generator,
    step: Callable[[], None],
) -> tuple[Codes, Floats, list[float]]:
    """Codes (n, tables), tables (tables, size, d), and after each epoch the relative error of
    held-out rows with hard codes.

    Of all epochs that with the lowest held-out error is kept; training ends when it has not fallen
    for `patience` of them.
    """
    scale = float(np.sqrt(np.square(rows, dtype=np.float64).mean())) or 1.0
    scaled = (rows / np.float32(scale)).astype(np.float32)
    seen = sample(scaled, SAMPLE_ROWS * size, random)
    order = random.permutation(len(seen))
    held = max(1, int(len(seen) * settings.held_out))
    validation, training = seen[order[:held]], seen[order[held:]]
    if not len(training):
        training = validation
    parameters = initial(rows.shape[1], size, tables, random)
    optimizer = AdamW(parameters, settings.learning_rate)
    best, since = {name: value.copy() for name, value in parameters.items()}, 0
    history: list[float] = []
    first, last = settings.temperature
    for epoch in range(settings.epochs):
        temperature = first * (last / first) ** (epoch / max(1, settings.epochs - 1))
        shuffled = random.permutation(len(training))
        for start in range(0, len(training), settings.batch):
            batch = training[shuffled[start : start + settings.batch]]
            drawn = random.standard_exponential((len(batch), tables, size), dtype=np.float32)
            noise = -np.log(np.maximum(drawn, np.finfo(np.float32).tiny))
            _, gradients = loss(parameters, batch, noise, temperature)
            optimizer.step(gradients)
        error = _relative(validation, parameters)
        if not history or error < min(history):
            best, since = {name: value.copy() for name, value in parameters.items()}, 0
        else:
            since += 1
        history.append(error)
        step()
        if since >= settings.patience:
            break
    return encode(scaled, best), (best["tables"] * np.float32(scale)).astype(np.float32), history


def initial(dimension: int, size: int, tables: int, random: np.random.Generator) -> dict[str, Floats]:
    """Random parameters for rows whose entries are around 1. Half as many hidden units as all
    tables have rows."""
    hidden = max(1, min(_WIDEST, tables * size // 2))

    def normal(*shape: int, deviation: float) -> Floats:
        drawn: Floats = random.standard_normal(shape, dtype=np.float32)
        return np.multiply(drawn, deviation, dtype=np.float32)

    return {
        "inner": normal(dimension, hidden, deviation=dimension**-0.5),
        "inner_bias": np.zeros(hidden, np.float32),
        "outer": normal(hidden, tables * size, deviation=hidden**-0.5),
        "outer_bias": np.zeros(tables * size, np.float32),
        "tables": normal(tables, size, dimension, deviation=tables**-0.5),
    }


def loss(
    parameters: Parameters, rows: Values, noise: Values, temperature: float
) -> tuple[float, dict[str, Floats]]:
    """Half the squared error, a mean over `rows`, and its gradients. `noise`: (n, tables, size),
    Gumbel distributed."""
    tables = parameters["tables"]
    count, size, dimension = tables.shape
    flat = tables.reshape(count * size, dimension)
    hidden, before = _encoder(parameters, rows)
    small = np.exp(-np.abs(before))
    alpha = np.maximum(before, 0) + np.log1p(small)  # softplus
    scores = (np.log(alpha).reshape(noise.shape) + noise) / temperature
    scores -= scores.max(axis=2, keepdims=True)
    chosen = np.exp(scores)
    chosen /= chosen.sum(axis=2, keepdims=True)
    mixed = chosen.reshape(len(rows), count * size)
    left = mixed @ flat - rows
    value = 0.5 * float(np.square(left).sum(dtype=np.float64)) / len(rows)

    d_output = left / len(rows)
    d_chosen = (d_output @ flat.T).reshape(noise.shape)
    d_scores = chosen * (d_chosen - (chosen * d_chosen).sum(axis=2, keepdims=True)) / temperature
    sigmoid = np.where(before >= 0, 1, small) / (1 + small)
    d_before = d_scores.reshape(before.shape) * sigmoid / alpha
    d_hidden = (d_before @ parameters["outer"].T) * (1 - hidden * hidden)
    gradients = {
        "inner": rows.T @ d_hidden,
        "inner_bias": d_hidden.sum(axis=0),
        "outer": hidden.T @ d_before,
        "outer_bias": d_before.sum(axis=0),
        "tables": (mixed.T @ d_output).reshape(tables.shape),
    }
    return value, gradients


def encode(rows: Values, parameters: Parameters) -> Codes:
    """(n, tables): the most probable row of each table."""
    count, size, _ = parameters["tables"].shape
    codes = np.empty((len(rows), count), np.uint16)
    for start in range(0, len(rows), _BLOCK):
        _, before = _encoder(parameters, rows[start : start + _BLOCK])
        codes[start : start + _BLOCK] = before.reshape(-1, count, size).argmax(axis=2)
    return codes


def _encoder(parameters: Parameters, rows: Values) -> tuple[Values, Values]:
    hidden = np.tanh(rows @ parameters["inner"] + parameters["inner_bias"])
    return hidden, np.maximum(hidden @ parameters["outer"] + parameters["outer_bias"], _LEAST)


def _relative(rows: Floats, parameters: dict[str, Floats]) -> float:
    left = reconstruct(encode(rows, parameters), parameters["tables"]) - rows
    return float(np.linalg.norm(left) / max(float(np.linalg.norm(rows)), 1e-30))
