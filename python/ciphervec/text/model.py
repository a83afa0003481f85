"""Losses of the text model on a batch, and their gradients. Runs where the texts are, before any encryption.

A document is the mean of its tokens' embeddings, a class score is linear in it (Joulin et al. 2017,
fastText). Three forms of embedding, for the three stages of training:

    free       e = v                                                     a vector a token
    relaxed    e = Σ q_j,  q_j = softmax((r_j T_jᵀ − |T_j|²/2) / τ) T_j,      a mixture of each table's rows, the nearer to what
               r_1 = v,  r_{j+1} = r_j − q_j                             is left of the vector the heavier
    coded      e = Σ T_j[c_j]                                            one row of each table; the codes c stay as they are

As τ falls to 0 the relaxed form becomes the coded one, with the codes of residual quantisation.
`counts` is (documents, tokens) and each row sums to one, or to zero for an empty document.
Gradients are written out; a test compares them with finite differences.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .encoder import Documents, Numbers

Values: TypeAlias = npt.NDArray[np.floating]
Parameters: TypeAlias = dict[str, Values]
Gradients: TypeAlias = dict[str, npt.NDArray[np.float32]]


class Mixture(NamedTuple):
    """Embeddings (tokens, d); of each table what is left (tokens, d) and how much each row weighs
    (tokens, rows)."""

    embeddings: Values
    left: list[Values]
    weights: list[Values]


def free_loss(parameters: Parameters, counts: Values, targets: Numbers) -> tuple[float, Gradients]:
    """Mean cross-entropy. Parameters: `vectors` of the tokens in `counts`, `weights` (classes, d),
    `bias`."""
    value, gradients, gradients["vectors"] = _classify(parameters, counts, targets, parameters["vectors"])
    return value, gradients


def relaxed_loss(
    parameters: Parameters, counts: Values, targets: Numbers, temperature: float
) -> tuple[float, Gradients]:
    """As `free_loss`; also `tables` (tables, rows, d). `temperature` is in the unit of a squared
    distance."""
    vectors, tables = parameters["vectors"], parameters["tables"]
    mixture = mix(vectors, tables, temperature)
    value, gradients, d_embeddings = _classify(parameters, counts, targets, mixture.embeddings)
    d_tables, d_left = np.empty_like(tables), np.zeros_like(vectors)
    for j in reversed(range(len(tables))):
        weights, table = mixture.weights[j], tables[j]
        d_part = d_embeddings - d_left
        d_scores = d_part @ table.T
        d_scores -= np.einsum("tr,tr->t", weights, d_scores)[:, None]
        d_scores *= weights
        d_scores /= temperature
        d_tables[j] = (
            weights.T @ d_part + d_scores.T @ mixture.left[j] - d_scores.sum(axis=0)[:, None] * table
        )
        d_left = d_left + d_scores @ table
    gradients["tables"], gradients["vectors"] = d_tables, d_left
    return value, gradients


def coded_loss(parameters: Parameters, counts: Values, targets: Numbers) -> tuple[float, Gradients]:
    """As `free_loss` without vectors; `counts` is (documents, tables · rows), of each row of
    `tables` in the document."""
    tables = parameters["tables"]
    flat = tables.reshape(-1, tables.shape[2])
    value, gradients, d_rows = _classify(parameters, counts, targets, flat)
    gradients["tables"] = d_rows.reshape(tables.shape)
    return value, gradients


def mix(vectors: Values, tables: Values, temperature: float) -> Mixture:
    """Each token's mixture of the tables' rows."""
    left, mixture = vectors, Mixture(np.zeros_like(vectors), [], [])
    for table in tables:
        weights = left @ table.T
        weights -= np.square(table).sum(axis=1) / 2
        weights -= weights.max(axis=1, keepdims=True)
        weights /= temperature
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=1, keepdims=True)
        part = weights @ table
        mixture.left.append(left)
        mixture.weights.append(weights)
        mixture.embeddings[:] += part
        left = left - part
    return mixture


def _classify(
    parameters: Parameters, counts: Values, targets: Numbers, embeddings: Values
) -> tuple[float, Gradients, Values]:
    """The loss, the gradients of the classifier, and that of the embeddings."""
    mean = counts @ embeddings
    scores = mean @ parameters["weights"].T + parameters["bias"]
    scores -= scores.max(axis=1, keepdims=True)
    rows = np.arange(len(targets))
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    value = -float(logs[rows, targets].mean(dtype=np.float64))
    d_scores = np.exp(logs)
    d_scores[rows, targets] -= 1
    d_scores /= len(targets)
    gradients = {"weights": d_scores.T @ mean, "bias": d_scores.sum(axis=0)}
    return value, gradients, counts.T @ (d_scores @ parameters["weights"])


def token_counts(documents: Documents) -> tuple[Numbers, npt.NDArray[np.float32]]:
    """The distinct tokens of a batch, ascending, and what share of each document each is:
    (documents, tokens)."""
    present, columns = np.unique(documents.numbers, return_inverse=True)
    return present, _shares(documents, columns[:, None], len(present))


def code_counts(documents: Documents, codes: npt.NDArray[np.uint16], rows: int) -> npt.NDArray[np.float32]:
    """How often each table row occurs in a document, by its tokens: (documents, tables · rows)."""
    tables = codes.shape[1]
    columns = codes[documents.numbers].astype(np.int64) + np.arange(tables) * rows
    return _shares(documents, columns, tables * rows)


def _shares(documents: Documents, columns: Numbers, width: int) -> npt.NDArray[np.float32]:
    lines = np.repeat(np.arange(len(documents)), documents.lengths)[:, None] * width
    counts = np.bincount((lines + columns).ravel(), minlength=len(documents) * width)
    lengths = np.maximum(documents.lengths, 1)[:, None]
    return (counts.reshape(len(documents), width) / lengths).astype(np.float32)
