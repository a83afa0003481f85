"""Unit vectors of texts, by TF-IDF or a model of sentences. The key owner's side: the server never sees a text or an
embedding model's input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..collections.embedding import encoders
from ..errors import InvalidInput
from ..ingest.extras import needed

DIMENSION = 256
_BATCH = 512  # texts between two steps of a progress bar

Vectors = npt.NDArray[np.float32]
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class Embedder:
    """A fitted model: what it is called, the corpus it was fitted on, how it embeds a question, and
    what collections are given of it."""

    name: str
    vectors: Vectors
    embed: Callable[[Sequence[str]], Vectors]
    function: Any = None


def fit(texts: Sequence[str], model: str | None, step: Step = lambda done, total: None) -> Embedder:
    """The model of sentences that is named, else TF-IDF reduced by a truncated SVD."""
    return tfidf(texts) if model is None else sentences(texts, model, step)


def sentences(texts: Sequence[str], model: str, step: Step) -> Embedder:
    """By a model of sentences, as a collection names one. Raises InvalidInput where it is not there."""
    encoder = encoders.named(model)
    ask = getattr(encoder, "embed_query", encoder)
    step(0, len(texts))
    parts = []
    for start in range(0, len(texts), _BATCH):
        parts.append(encoder(list(texts[start : start + _BATCH])))
        step(min(start + _BATCH, len(texts)), len(texts))

    def embed(batch: Sequence[str]) -> Vectors:
        return unit(np.asarray(ask(list(batch))))

    return Embedder(encoder.name(), unit(np.concatenate(parts)), embed, encoder)


@dataclass(frozen=True)
class TfidfSvd:
    """A fitted TF-IDF with its SVD, as plain arrays: what embeds a text anywhere.

    `words` in the order of their columns, `idf` of `[words]` and `directions` of `[words, dimension]`
    in float32. A text's vector is the sum of its words' directions, each weighted by
    (1 + ln count) · idf, those weights at length one, and the sum again.
    """

    words: list[str]
    idf: Vectors
    directions: Vectors
    vectors: Vectors
    embed: Callable[[Sequence[str]], Vectors]


def tfidf(texts: Sequence[str], dimension: int = DIMENSION) -> Embedder:
    """Word weights, reduced to `dimension` by an SVD with a fixed seed: the same every time."""
    model = fit_tfidf(texts, dimension)
    return Embedder(f"TF-IDF, truncated SVD to {dimension}", model.vectors, model.embed)


def fit_tfidf(texts: Sequence[str], dimension: int = DIMENSION) -> TfidfSvd:
    """The same with its parts. Raises InvalidInput for too few words, or without scikit-learn."""
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise needed("the demo's embedding", "scikit-learn", "demo") from error
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

    return TfidfSvd(
        words=[str(word) for word in weigh.get_feature_names_out()],
        idf=weigh.idf_.astype(np.float32),
        directions=np.ascontiguousarray(reduce.components_.T, dtype=np.float32),
        vectors=vectors,
        embed=embed,
    )


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
