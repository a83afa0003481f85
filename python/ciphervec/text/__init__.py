"""Texts enter, classes leave: a fastText-style classifier whose embeddings are sums of table rows. Both sides, in the clear."""

from __future__ import annotations

from .classifier import Classifier, DocumentCodes, Folded
from .encoder import Documents, Encoder
from .metrics import Metrics
from .train import Settings
from .vocabulary import Vocabulary

__all__ = [
    "Classifier",
    "DocumentCodes",
    "Documents",
    "Encoder",
    "Folded",
    "Metrics",
    "Settings",
    "Vocabulary",
]
