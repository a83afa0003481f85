"""The tables of Jang et al. 2026 as printed: private embedding lookup by independent vectors and by
indicators.

Private Embedding Lookup with Encrypted Compact Queries under Fully Homomorphic Encryption
(IVE-PEL), arXiv 2606.03191, sections 6 and E. Times are of one thread of an Intel Xeon Gold 6542Y.
Their methods are `ive` and `indicator` here.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Jang et al. 2026 (IVE-PEL), Tables 3, 5 and 6"

CODEBOOKS = 4
ROWS = (64, 256, 1024)
METHODS = ("ive", "indicator")


@dataclass(frozen=True)
class Lookup:
    """A line of Table 3: milliseconds a token, and levels."""

    functions: float
    product: float
    total: float
    depth: int


@dataclass(frozen=True)
class SmallBatch:
    """A line of Table 6: seconds for 128 tokens, the vectors, the matrix-vector products and
    both."""

    functions: float
    product: float
    total: float


@dataclass(frozen=True)
class Inference:
    """A line of Table 5: seconds a document, and the accuracy of the plain model."""

    functions: float
    linear: float
    total: float
    accuracy: float


# Dimensions of the embeddings, by name.
SHAPES = {"GloVe 50-d": 50, "GloVe 300-d": 300, "GPT-2 768-d": 768}

# Table 3, by shape, rows of a table and method.
LOOKUP = {
    ("GloVe 50-d", 64, "ive"): Lookup(0.1953, 0.1526, 0.3480, 6),
    ("GloVe 50-d", 64, "indicator"): Lookup(11.7711, 0.1729, 11.9440, 20),
    ("GloVe 50-d", 256, "ive"): Lookup(0.7895, 0.5583, 1.3478, 8),
    ("GloVe 50-d", 256, "indicator"): Lookup(69.4889, 0.6201, 70.1090, 24),
    ("GloVe 50-d", 1024, "ive"): Lookup(3.1543, 2.2918, 5.4461, 10),
    ("GloVe 50-d", 1024, "indicator"): Lookup(424.7096, 2.3099, 427.0195, 29),
    ("GloVe 300-d", 64, "ive"): Lookup(0.1942, 0.6723, 0.8666, 6),
    ("GloVe 300-d", 64, "indicator"): Lookup(11.6995, 0.6948, 12.3943, 20),
    ("GloVe 300-d", 256, "ive"): Lookup(0.8032, 2.2757, 3.078, 8),
    ("GloVe 300-d", 256, "indicator"): Lookup(70.6454, 2.4227, 73.0681, 24),
    ("GloVe 300-d", 1024, "ive"): Lookup(3.1488, 8.7470, 11.8958, 10),
    ("GloVe 300-d", 1024, "indicator"): Lookup(423.5058, 9.5222, 433.0280, 29),
    ("GPT-2 768-d", 64, "ive"): Lookup(0.1932, 1.6957, 1.8889, 6),
    ("GPT-2 768-d", 64, "indicator"): Lookup(12.3247, 1.7110, 14.0357, 20),
    ("GPT-2 768-d", 256, "ive"): Lookup(0.7974, 5.5967, 6.3942, 8),
    ("GPT-2 768-d", 256, "indicator"): Lookup(70.9080, 5.6021, 76.5101, 24),
    ("GPT-2 768-d", 1024, "ive"): Lookup(3.1385, 20.8469, 23.9855, 10),
    ("GPT-2 768-d", 1024, "indicator"): Lookup(423.9253, 20.8978, 444.8231, 29),
}  # fmt: skip

# Table 5, by method: Enron-Spam, e-mails of 128 tokens, p = 256.
SPAM = {
    "ive": Inference(0.0552, 0.0280, 0.0832, 0.9887),
    "indicator": Inference(9.063, 0.0386, 9.1017, 0.9887),
}

SMALL_BATCH_SHAPE = "GloVe 300-d"
SMALL_BATCH_TOKENS = 128

# Table 6, by rows of a table and method: GloVe 300-d, 128 tokens.
SMALL_BATCH = {
    (64, "ive"): SmallBatch(6.2334, 2.8236, 9.0572),
    (64, "indicator"): SmallBatch(20.7202, 3.0494, 23.7695),
    (256, "ive"): SmallBatch(9.2418, 5.5929, 14.8345),
    (256, "indicator"): SmallBatch(28.6495, 5.4167, 34.0663),
    (1024, "ive"): SmallBatch(13.5587, 14.6284, 28.1873),
    (1024, "indicator"): SmallBatch(64.8553, 14.9204, 79.7758),
}
