"""The parallel lists that Chroma's clients read, with distances computed from the vectors themselves where that is
asked for. Key owner's side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ingest.arrays import FloatArray, ScoreArray
from .message import URI

Found = Mapping[str, Any]
"""Lists by part, as `Collection.get` and `Collection.query` return them; a part may be missing or None."""


def opened(parts: list[str]) -> list[str]:
    """What to open for these parts; addresses are among the metadata."""
    names = ("metadatas", "documents", "embeddings")
    return [name for name in names if name in parts or (name == "metadatas" and "uris" in parts)]


def told(parts: list[str], found: Found) -> dict[str, Any]:
    """The answer to `get`: an entry a row."""
    ids = found["ids"]
    fields = found.get("metadatas") or [None] * len(ids)
    return {
        "ids": ids,
        "embeddings": (found["embeddings"] if len(ids) else []) if "embeddings" in parts else None,
        "documents": found.get("documents") or [] if "documents" in parts else None,
        "uris": [_uri(one) for one in fields] if "uris" in parts else None,
        "metadatas": [_shown(one) for one in fields] if "metadatas" in parts else None,
        "include": parts,
    }


def ranked(parts: list[str], found: Found) -> dict[str, Any]:
    """The answer to `query`: a list a question, with an entry a row."""
    empty: list[list[Any]] = [[] for _ in found["ids"]]
    fields = found.get("metadatas") or empty
    return {
        "ids": found["ids"],
        "embeddings": (found.get("embeddings") or empty) if "embeddings" in parts else None,
        "documents": (found.get("documents") or empty) if "documents" in parts else None,
        "uris": [[_uri(one) for one in row] for row in fields] if "uris" in parts else None,
        "metadatas": [[_shown(one) for one in row] for row in fields] if "metadatas" in parts else None,
        "distances": (found.get("distances") or empty) if "distances" in parts else None,
        "include": parts,
    }


def exactly(metric: str, queries: FloatArray, found: Found, count: int) -> dict[str, Any]:
    """The `count` closest of an answer's rows by the distances of the vectors in it, with those. `queries`
    are (n, d)."""
    pairs = zip(queries, found["embeddings"], strict=True)
    distances = [_distances(metric, query, rows) for query, rows in pairs]
    turns = [np.argsort(one, kind="stable")[:count].tolist() for one in distances]
    sorted_parts = {
        name: [[one[i] for i in turn] for one, turn in zip(found[name], turns, strict=True)]
        for name in ("ids", "metadatas", "documents", "embeddings")
        if found[name] is not None
    }
    sorted_parts["distances"] = [one[turn] for one, turn in zip(distances, turns, strict=True)]
    return sorted_parts


def _distances(metric: str, query: FloatArray, rows: FloatArray) -> ScoreArray:
    """Distances of rows (n, d) as Chroma defines them, in double precision, (n,)."""
    q, x = query.astype(np.float64), rows.astype(np.float64)
    if len(x) == 0:
        return np.empty(0)
    if metric == "l2":
        difference = x - q
        return np.asarray(np.einsum("ij,ij->i", difference, difference), np.float64)
    if metric == "cosine":
        lengths = np.linalg.norm(q) * np.linalg.norm(x, axis=1)
        cosines = np.divide(x @ q, lengths, out=np.zeros(len(x)), where=lengths > 0)
        return np.asarray(np.clip(1.0 - cosines, 0.0, 2.0), np.float64)
    return np.asarray(1.0 - x @ q, np.float64)


def _uri(fields: dict[str, Any] | None) -> Any:
    return None if fields is None else fields.get(URI)


def _shown(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Metadata without the address."""
    if fields is None or URI not in fields:
        return fields
    return {name: value for name, value in fields.items() if name != URI} or None
