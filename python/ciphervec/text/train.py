"""Trains codes, tables and a linear classifier. Runs where the texts are, before any encryption.

Three stages, each from where the last one ended:

1. *free*: an ordinary fastText model, a vector a token. It is the plaintext model that the compressed one is compared with.
2. *relaxed*: tables, codes and classifier together. The tables start as residual k-means of the vectors; each token is a
   softmax mixture of their rows, under a temperature that falls until a mixture is nearly one row. Then every token takes its
   rows for good.
3. *coded*: with the codes fixed, tables and classifier once more, to repair what the hardening broke.

arXiv 2606.03191, appendix D, trains a relaxed model alone, from random tables and a free
distribution for every token; docs/lookup.md has the comparison. Every stage keeps its start or the
epoch with the lowest loss on validation documents, by hard codes, and ends when that has not fallen
for `patience` epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..codebooks.adamw import AdamW
from ..codebooks.kmeans import Codes, Floats, nearest, residual
from .encoder import Documents, Numbers
from .model import Gradients, code_counts, coded_loss, free_loss, relaxed_loss, token_counts

Step: TypeAlias = Callable[[], None]
Random: TypeAlias = np.random.Generator
Parameters: TypeAlias = dict[str, Floats]

_KMEANS_ROUNDS = 10
_FEWEST_STEPS = 32


@dataclass(frozen=True)
class Settings:
    """Sizes and lengths of training. Optimiser and first learning rate are those of the paper for
    Enron-Spam.

    The later stages start near their goal and take smaller steps. `temperature`, in units of the
    mean squared distance of a vector to its quantised form, goes geometrically from the first value
    to the second. `batch` documents make a step; fewer where there are so few that an epoch would
    have under 32 steps.
    """

    rows: int = 256
    tables: int = 4
    dim: int = 50
    batch: int = 128
    learning_rate: float = 1e-2
    fine_learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    free_epochs: int = 8
    relaxed_epochs: int = 3
    coded_epochs: int = 5
    temperature: tuple[float, float] = (1.0, 0.1)
    held_out: float = 0.1
    patience: int = 2

    @property
    def epochs(self) -> int:
        """Of all stages."""
        return self.free_epochs + self.relaxed_epochs + self.coded_epochs


@dataclass(frozen=True)
class Uncompressed:
    """The plaintext fastText model: `vectors` (tokens, d), `weights` (classes, d), `bias`
    (classes,)."""

    vectors: Floats
    weights: Floats
    bias: Floats


@dataclass(frozen=True)
class Fitted:
    """What training gives.

    `losses` has for each stage the mean cross-entropy of the validation documents before its first
    epoch and after each.
    """

    codes: Codes
    tables: Floats
    weights: Floats
    bias: Floats
    uncompressed: Uncompressed
    losses: dict[str, list[float]]


def fit(
    documents: Documents, targets: Numbers, tokens: int, settings: Settings, random: Random, step: Step
) -> Fitted:
    """Train on documents with token numbers below `tokens`; `step` is called after every epoch."""
    run = _Run(documents, targets, settings, random, step)
    free = run.free(tokens)
    relaxed = run.relaxed(free)
    codes = quantise(relaxed["vectors"], relaxed["tables"])
    coded = run.coded(codes, relaxed)
    uncompressed = Uncompressed(free["vectors"], free["weights"], free["bias"])
    return Fitted(codes, coded["tables"], coded["weights"], coded["bias"], uncompressed, run.losses)


def split(targets: Numbers, share: float, random: Random) -> tuple[Numbers, Numbers]:
    """Documents held out and kept, of every class the same share. A class of one document is in
    both."""
    held, kept = [], []
    for target in np.unique(targets):
        rows = random.permutation(np.flatnonzero(targets == target))
        count = max(1, round(len(rows) * share))
        held.append(rows[:count])
        kept.append(rows[count:] if count < len(rows) else rows)
    return np.sort(np.concatenate(held)), np.sort(np.concatenate(kept))


def quantise(vectors: Floats, tables: Floats) -> Codes:
    """(n, tables): of each table the row nearest to what the tables before it leave of a vector."""
    codes, left = np.empty((len(vectors), len(tables)), np.uint16), vectors.copy()
    for j, table in enumerate(tables):
        codes[:, j], _ = nearest(left, table)
        left -= table[codes[:, j]]
    return codes


class _Run:
    """One training run: its documents, settings, randomness and losses."""

    def __init__(
        self, documents: Documents, targets: Numbers, settings: Settings, random: Random, step: Step
    ) -> None:
        held, kept = split(targets, settings.held_out, random)
        self.training, self.targets = documents.subset(kept), targets[kept]
        self.validation, self.validation_targets = documents.subset(held), targets[held]
        self.classes = int(targets.max()) + 1
        self.batch = max(1, min(settings.batch, len(kept) // _FEWEST_STEPS))
        self.settings, self.random, self.step = settings, random, step
        self.losses: dict[str, list[float]] = {}

    def free(self, tokens: int) -> Parameters:
        dim = self.settings.dim
        parameters = {
            "vectors": self._normal((tokens, dim), dim**-0.5),
            "weights": self._normal((self.classes, dim), dim**-0.5),
            "bias": np.zeros(self.classes, np.float32),
        }

        def loss(batch: Documents, targets: Numbers) -> tuple[float, Gradients, Numbers]:
            present, counts = token_counts(batch)
            local = {**parameters, "vectors": parameters["vectors"][present]}
            return *free_loss(local, counts, targets), present

        return self._best(
            "free",
            parameters,
            self.settings.learning_rate,
            self.settings.free_epochs,
            lambda batch, targets: loss(batch, targets)[1:],
            lambda: self._validate(lambda batch, targets: loss(batch, targets)[0]),
        )

    def relaxed(self, free: Parameters) -> Parameters:
        settings = self.settings
        vectors = free["vectors"]
        codes, tables = residual(
            vectors, settings.rows, settings.tables, _KMEANS_ROUNDS, self.random, lambda: None
        )
        parameters = {**{name: value.copy() for name, value in free.items()}, "tables": tables}
        coarse = np.square(vectors - tables[0][codes[:, 0]]).sum(axis=1, dtype=np.float64).mean()
        first, last = settings.temperature
        total = settings.relaxed_epochs * -(-len(self.training) // self.batch)
        done = 0

        def gradients(batch: Documents, targets: Numbers) -> tuple[Gradients, Numbers | None]:
            nonlocal done
            temperature = max(float(coarse), 1e-12) * first * (last / first) ** (done / max(1, total - 1))
            done += 1
            present, counts = token_counts(batch)
            local = {**parameters, "vectors": parameters["vectors"][present]}
            return relaxed_loss(local, counts, targets, temperature)[1], present

        def validate() -> float:
            return self._coded_validation(parameters, quantise(parameters["vectors"], parameters["tables"]))

        return self._best(
            "relaxed", parameters, settings.fine_learning_rate, settings.relaxed_epochs, gradients, validate
        )

    def coded(self, codes: Codes, relaxed: Parameters) -> Parameters:
        parameters = {name: relaxed[name].copy() for name in ("tables", "weights", "bias")}

        def gradients(batch: Documents, targets: Numbers) -> tuple[Gradients, Numbers | None]:
            counts = code_counts(batch, codes, parameters["tables"].shape[1])
            return coded_loss(parameters, counts, targets)[1], None

        return self._best(
            "coded",
            parameters,
            self.settings.fine_learning_rate,
            self.settings.coded_epochs,
            gradients,
            lambda: self._coded_validation(parameters, codes),
        )

    def _coded_validation(self, parameters: Parameters, codes: Codes) -> float:
        rows = parameters["tables"].shape[1]
        return self._validate(
            lambda b, targets: coded_loss(parameters, code_counts(b, codes, rows), targets)[0]
        )

    def _validate(self, loss: Callable[[Documents, Numbers], float]) -> float:
        """The mean loss of the validation documents, a batch at a time: all their counts at once
        could take gigabytes."""
        total = 0.0
        for start in range(0, len(self.validation), self.settings.batch):
            rows = np.arange(start, min(start + self.settings.batch, len(self.validation)))
            total += len(rows) * loss(self.validation.subset(rows), self.validation_targets[rows])
        return total / len(self.validation)

    def _best(
        self,
        stage: str,
        parameters: Parameters,
        rate: float,
        epochs: int,
        gradients: Callable[[Documents, Numbers], tuple[Gradients, Numbers | None]],
        validate: Callable[[], float],
    ) -> Parameters:
        """Train; the parameters, be they those of the start, with the lowest validation loss."""
        optimizer = AdamW(parameters, rate, self.settings.weight_decay)
        losses = self.losses[stage] = [validate()]
        best, since = {name: value.copy() for name, value in parameters.items()}, 0
        for _ in range(epochs):
            for batch, targets in self._batches():
                found, present = gradients(batch, targets)
                optimizer.step(found, None if present is None else {"vectors": present})
            losses.append(validate())
            since += 1
            if losses[-1] <= min(losses):
                best, since = {name: value.copy() for name, value in parameters.items()}, 0
            self.step()
            if since >= self.settings.patience:
                break
        return best

    def _batches(self) -> Iterator[tuple[Documents, Numbers]]:
        order = self.random.permutation(len(self.training))
        for start in range(0, len(order), self.batch):
            rows = order[start : start + self.batch]
            yield self.training.subset(rows), self.targets[rows]

    def _normal(self, shape: tuple[int, ...], deviation: float) -> Floats:
        drawn: Floats = self.random.standard_normal(shape, dtype=np.float32)
        return np.multiply(drawn, deviation, dtype=np.float32)
