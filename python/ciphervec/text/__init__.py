"""Text classification: a fastText-style classifier on sums of table rows, in the clear or encrypted."""

from __future__ import annotations

from .classifier import Classifier, DocumentCodes, Folded
from .encoder import Documents, Encoder
from .encrypted import Answers, Client, Reader, Server
from .metrics import Metrics
from .train import Settings
from .vocabulary import Vocabulary

__all__ = [
    "Answers",
    "Classifier",
    "Client",
    "DocumentCodes",
    "Documents",
    "Encoder",
    "Folded",
    "Metrics",
    "Reader",
    "Server",
    "Settings",
    "Vocabulary",
]
