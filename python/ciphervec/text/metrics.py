"""Accuracy, F1, ROC AUC and the confusion matrix of predicted classes. The side that has the labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Metrics:
    """`confusion[i, j]`: documents of class i that were called j. `f1` is of the second class of
    two, else the classes' mean.

    `roc_auc` is None unless there are two classes and documents of both.
    """

    confusion: npt.NDArray[np.int64]
    f1: float
    roc_auc: float | None

    @property
    def documents(self) -> int:
        return int(self.confusion.sum())

    @property
    def accuracy(self) -> float:
        """The share of documents that were called what they are."""
        return float(np.trace(self.confusion)) / max(1, self.documents)


def measure(true: Integers, called: Integers, margins: Floats, classes: int) -> Metrics:
    """`true` and `called` are class numbers (n,), `margins` (n,) for two classes, higher for the
    second."""
    confusion = np.bincount(true * classes + called, minlength=classes * classes).reshape(classes, classes)
    f1s = f1_scores(confusion)
    two = classes == 2 and 0 < true.sum() < len(true)
    return Metrics(
        confusion,
        float(f1s[1]) if classes == 2 else float(f1s.mean()),
        roc_auc(true == 1, margins) if two else None,
    )


def f1_scores(confusion: Integers) -> Floats:
    """Of each class, 2·hits / (members + calls); zero for a class that is neither there nor
    called."""
    hits, either = np.diag(confusion), confusion.sum(axis=0) + confusion.sum(axis=1)
    return np.asarray(2 * hits / np.maximum(either, 1))


def roc_auc(positive: npt.NDArray[np.bool_], scores: Floats) -> float:
    """The chance that a positive scores higher than a negative, ties counting half (Mann & Whitney
    1947)."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]
    members, others = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - members * (members + 1) / 2) / (members * others))
