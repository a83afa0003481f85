"""How often each threshold errs on pairs that are known to be the same or not, and the threshold for an error that is
wanted. Key owner's side, before anything is encrypted.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from ..ingest import arrays
from ..ingest.arrays import ScoreArray, Vectors
from ..ingest.metrics import METRICS, MetricName
from ..ingest.remarks import remark

_PAIRS = 1_000_000
_DRAWS = 64  # rounds of drawing pairs, of which few may differ
_CERTAIN = 3.0  # errors that were not seen in n pairs are rarer than 3/n, 19 times in 20


class Threshold(NamedTuple):
    """A place to decide at, and what it costs."""

    score: float
    """Pairs at least this close are taken to be the same."""
    within: float
    """The same as a distance, for `query(within=...)` and the decrypt service."""
    false_accept_rate: float
    """Share of the pairs of different things that were accepted."""
    false_reject_rate: float
    """Share of the pairs of the same thing that were rejected."""


class Roc:
    """The receiver operating characteristic of a comparison.

    `same` (n,) and `different` (m,) are scores as queries return them, higher is closer, of pairs
    whose truth is known: two pictures of one face, and of two.
    """

    def __init__(self, same: npt.ArrayLike, different: npt.ArrayLike, metric: MetricName = "cosine") -> None:
        """Raises InvalidInput for scores that are none, or no pairs of one kind."""
        if metric not in METRICS:
            raise InvalidInput(f"metric must be one of {', '.join(METRICS)}; got {metric!r}.")
        self.metric = metric
        self.same = _scores(same, "same")
        self.different = _scores(different, "different")

    @classmethod
    def of_vectors(
        cls, vectors: Vectors, labels: npt.ArrayLike, metric: MetricName = "cosine", *, pairs: int = _PAIRS,
        seed: int = 0,
    ) -> Roc:  # fmt: skip
        """From rows (n, d) and whose they are: every pair with equal labels, and of those with
        different ones as many as there are, or `pairs` drawn at random. Raises InvalidInput."""
        array = arrays.numbers(vectors, "vectors")
        names = np.asarray(labels)
        if array.ndim != 2 or names.shape != array.shape[:1]:
            raise InvalidInput(f"rows (n, d) and n labels are needed, got {array.shape} and {names.shape}.")
        rows = arrays.vectors(array, array.shape[1], metric, what="vectors").astype(np.float64)
        kinds = np.unique(names, return_inverse=True)[1]
        draw = np.random.default_rng(seed)
        groups = [np.flatnonzero(kinds == one) for one in range(kinds.max() + 1)] if len(kinds) else []
        equal = [np.column_stack(np.triu_indices(len(group), 1)) for group in groups]
        same = np.concatenate(
            [group[at] for group, at in zip(groups, equal, strict=True)] or [np.empty((0, 2), int)]
        )
        if len(same) > pairs:
            same = same[draw.choice(len(same), pairs, replace=False)]
        if len(rows) * (len(rows) - 1) // 2 <= 4 * pairs:
            others = np.column_stack(np.triu_indices(len(rows), 1))
            others = others[kinds[others[:, 0]] != kinds[others[:, 1]]]
        else:
            others = np.empty((0, 2), np.int64)
            for _ in range(_DRAWS if kinds.max() else 0):
                drawn = draw.integers(0, len(rows), (2 * pairs, 2))
                others = np.concatenate([others, drawn[kinds[drawn[:, 0]] != kinds[drawn[:, 1]]]])
                if len(others) >= pairs:
                    break
        if len(others) > pairs:
            others = others[draw.choice(len(others), pairs, replace=False)]
        return cls(_compared(rows, same, metric), _compared(rows, others, metric), metric)

    def rates(self, score: float) -> tuple[float, float]:
        """False accepts and false rejects where pairs at least this close are taken to be the same."""
        accepted = len(self.different) - np.searchsorted(self.different, score, side="left")
        rejected = np.searchsorted(self.same, score, side="left")
        return float(accepted / len(self.different)), float(rejected / len(self.same))

    def threshold(self, false_accept_rate: float = 1e-3) -> Threshold:
        """The lowest threshold whose false accepts are at most this share.

        Of m pairs of different things the rarest rate that can be told is about 3/m: below it a
        UserWarning says how many pairs it takes. Raises InvalidInput.
        """
        rate = arrays.finite(false_accept_rate, "false_accept_rate")
        if not 0 < rate < 1:
            raise InvalidInput(f"false_accept_rate must be between 0 and 1, got {false_accept_rate!r}.")
        count = len(self.different)
        if count * rate < _CERTAIN:
            remark(
                f"{count:,} pairs of different things can't tell a false-accept rate of {rate:g}, only that it is below about "
                f"{min(1.0, _CERTAIN / count):.1g}; it takes {math.ceil(_CERTAIN / rate):,} pairs."
            )
        allowed = int(rate * count * (1 + 1e-12))
        # Just above the closest pair that must not be accepted.
        return self._at(math.nextafter(float(self.different[count - allowed - 1]), math.inf))

    @property
    def equal_error(self) -> Threshold:
        """Where false accepts and false rejects are as close to each other as they come."""
        candidates = np.concatenate([self.same, self.different, np.nextafter(self.different, np.inf)])
        accepted, rejected = self._both(candidates)
        return self._at(float(candidates[np.argmin(np.abs(accepted - rejected))]))

    @property
    def auc(self) -> float:
        """How often a pair of the same thing is closer than one of different things; ties count half."""
        below = np.searchsorted(self.different, self.same, side="left")
        upto = np.searchsorted(self.different, self.same, side="right")
        return float((below + upto).sum() / 2 / len(self.same) / len(self.different))

    def points(self, most: int = 1_000) -> tuple[ScoreArray, ScoreArray, ScoreArray]:
        """The curve for a plot: false-accept rates, shares of the same things accepted, and scores, from
        the strictest threshold on."""
        scores = np.unique(np.concatenate([self.same, self.different, [np.inf]]))[::-1]
        if len(scores) > most:
            scores = scores[np.linspace(0, len(scores) - 1, most).astype(int)]
        accepted, rejected = self._both(scores)
        return accepted, 1 - rejected, scores

    def _both(self, scores: ScoreArray) -> tuple[ScoreArray, ScoreArray]:
        accepted = 1 - np.searchsorted(self.different, scores, side="left") / len(self.different)
        return accepted, np.searchsorted(self.same, scores, side="left") / len(self.same)

    def _at(self, score: float) -> Threshold:
        distance = 1 - score if METRICS[self.metric].similar else -score
        return Threshold(score, distance, *self.rates(score))

    def __repr__(self) -> str:
        return (
            f"<ciphervec.Roc of {len(self.same):,} pairs of the same and {len(self.different):,} of different things, "
            f"AUC {self.auc:.4f}>"
        )


def _scores(value: npt.ArrayLike, what: str) -> ScoreArray:
    scores = np.sort(
        np.asarray(arrays.numbers(value, f"the scores {what!r}", objects=True), np.float64).ravel()
    )
    if len(scores) == 0 or not np.isfinite(scores).all():
        raise InvalidInput(f"{what} must be at least one finite score, got {len(scores)}.")
    return scores


def _compared(rows: npt.NDArray[np.float64], pairs: npt.NDArray[np.int64], metric: str) -> ScoreArray:
    """The score of each pair (n, 2), a block at a time."""
    if METRICS[metric].directed:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), 65_536):
        left, right = rows[pairs[start : start + 65_536]].swapaxes(0, 1)
        if METRICS[metric].similar:
            part = np.einsum("ij,ij->i", left, right)
        elif METRICS[metric].bits:
            part = -(left != right).sum(axis=1).astype(np.float64)
        else:
            part = -((left - right) ** 2).sum(axis=1)
        scores[start : start + 65_536] = part
    return scores
