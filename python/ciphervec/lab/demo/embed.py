"""Embedding: texts enter, unit vectors leave. The key owner's side: the server never sees a text or
an embedding model's input."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import InvalidInput

DIMENSION = 256
LOCAL_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embedder:
    """A fitted model: what it is called, the corpus it was fitted on, and how it embeds a
    question."""

    name: str
    vectors: Vectors
    embed: Callable[[Sequence[str]], Vectors]


def fit(texts: Sequence[str], dimension: int = DIMENSION) -> Embedder:
    """A sentence-transformers model when one is on this machine, else TF-IDF reduced by a truncated
    SVD."""
    return sentence_transformer(texts) or tfidf(texts, dimension)


def sentence_transformer(texts: Sequence[str], model: str = LOCAL_MODEL) -> Embedder | None:
    """None unless the package and the model are both already here: the demo downloads nothing."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        from sentence_transformers import SentenceTransformer

        encoder = SentenceTransformer(model, local_files_only=True)
    except (ImportError, OSError, ValueError):
        return None

    def embed(batch: Sequence[str]) -> Vectors:
        return unit(np.asarray(encoder.encode(list(batch), show_progress_bar=False), dtype=np.float32))

    return Embedder(f"sentence-transformers {model}", embed(texts), embed)


def tfidf(texts: Sequence[str], dimension: int = DIMENSION) -> Embedder:
    """Word and word-pair weights, reduced to `dimension` by an SVD with a fixed seed: the same
    every time."""
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise InvalidInput(
            "the demo embeds text with scikit-learn, which is not installed; pip install 'ciphervec[demo]'"
        ) from error
    weigh = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=2, max_df=0.2, dtype=np.float32)
    try:
        weights = weigh.fit_transform(texts)
        words = weights.shape[1]
    except ValueError:  # nothing is left without the words that are everywhere or in one text only
        words = 0
    if words <= dimension:
        raise InvalidInput(
            f"{len(texts)} texts share {words} words, too few for {dimension} dimensions; embed more of them"
        )
    reduce = TruncatedSVD(dimension, n_iter=4, random_state=0)
    vectors = unit(reduce.fit_transform(weights))

    def embed(batch: Sequence[str]) -> Vectors:
        return unit(reduce.transform(weigh.transform(batch)))

    return Embedder(f"TF-IDF, truncated SVD to {dimension}", vectors, embed)


def unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Rows of length one. A text without a known word points along the first axis instead of
    nowhere."""
    rows = np.array(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    empty = lengths < 1e-6
    rows[empty] = 0
    rows[empty, 0] = 1
    lengths[empty] = 1
    return np.ascontiguousarray(rows / lengths[:, None])
