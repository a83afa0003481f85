"""What ranks beside vectors, for the key owner: words and sparse vectors, how their order and that of vectors are made one, and
a function of the caller's, such as a cross-encoder. The core ranks by words; here are the checked choices."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput, InvalidRows
from ..ingest import arrays, records
from ..ingest.arrays import count, finite, refuse_unordered, same_length
from .results import QUERY_INCLUDE, QueryResult

_LAST = 2**32 - 1
"""The largest index of a sparse vector."""
SparseRow: TypeAlias = tuple[list[int], list[float]]
"""Indices, ascending, and weights."""


@dataclass(frozen=True)
class BM25:
    """`create_collection(..., sparse=BM25())` ranks rows by the words of their documents too, for `query(fusion=...)`.

    The words of a segment and their counts are sealed beside its rows, and read by the client alone: the server takes no
    part in it. `k1` says how much more a word counts that comes often, `b` how much the length of a document does; the
    defaults and the formula are Lucene's. Words are those of Unicode's annex 29, without regard to case and compatibility
    forms; in scripts without spaces each character is a word, and so are any two that follow one another.
    """

    k1: float = 1.2
    b: float = 0.75

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        for name, most in (("k1", 1000), ("b", 1)):
            value = finite(getattr(self, name), name)
            if not 0 <= value <= most:
                raise InvalidInput(f"{name} must be 0 to {most}, got {value!r}.")
            object.__setattr__(self, name, float(value))


@dataclass(frozen=True)
class SparseVectors:
    """`create_collection(..., sparse=SparseVectors())` ranks rows by sparse vectors too, such as SPLADE's, by inner product:
    `add(..., sparse_embeddings=...)`, `query(..., sparse=..., fusion=...)`. They are sealed beside the rows."""


Sparse: TypeAlias = BM25 | SparseVectors
"""What rows are ranked by beside their vectors."""


@dataclass(frozen=True)
class Rrf:
    """Reciprocal rank fusion: a row's score is the sum of 1 / (k + rank) over the lists that have it, ranks from 1 on. Of each
    list the first `window` are looked at, or `n_results` where that is more. `idf` weighs sparse vectors, see `SparseOnly`."""

    k: float = 60.0
    window: int = 100
    idf: bool = False

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        if finite(self.k, "k") < 0:
            raise InvalidInput(f"k must be at least 0, got {self.k!r}.")
        count(self.window, "window")

    def native(self) -> dict[str, Any]:
        """As the core takes it."""
        return {"k": float(self.k), "alpha": None, "window": self.window, "idf": self.idf}


@dataclass(frozen=True)
class Weighted:
    """A row's score is `alpha` times that of its vector and 1 − `alpha` times that of its words, each of them from 0 to 1: over
    the first `window` by vectors from the lowest score to the highest, 0 beyond them; by words as a share of the highest, over
    all rows. Rows that are among the first `window` of neither list are not found. `idf` weighs sparse vectors, see
    `SparseOnly`."""

    alpha: float = 0.5
    window: int = 100
    idf: bool = False

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        if not 0 <= finite(self.alpha, "alpha") <= 1:
            raise InvalidInput(f"alpha must be 0 to 1, got {self.alpha!r}.")
        count(self.window, "window")

    def native(self) -> dict[str, Any]:
        """As the core takes it."""
        return {"k": None, "alpha": float(self.alpha), "window": self.window, "idf": self.idf}


@dataclass(frozen=True)
class SparseOnly:
    """The order by words or sparse vectors alone: no vector is asked, and the server takes no part. A row's score is BM25's, or
    the inner product; rows with none of the words are not found.

    With `idf` each index of the sparse vectors that are asked weighs more the fewer rows have it: its weight is multiplied by
    ln(1 + (n − f + ½) / (f + ½)), if f of all n rows have it. BM25 does so by itself."""

    idf: bool = False

    def native(self) -> dict[str, Any]:
        """As the core takes it."""
        return {"k": None, "alpha": None, "window": 1, "idf": self.idf}


Fusion: TypeAlias = Rrf | Weighted | SparseOnly | Literal["rrf", "sparse"]
"""How both orders are made one; `"rrf"` is `Rrf()`, `"sparse"` is `SparseOnly()`."""


def check_sparse(given: object) -> Sparse | None:
    """What `sparse=` of a new collection may be. Raises InvalidInput."""
    if given is None or isinstance(given, BM25 | SparseVectors):
        return given
    raise InvalidInput(
        f"sparse must be ciphervec.BM25(), ciphervec.SparseVectors() or None, got {type(given).__name__}."
    )


def to_native(sparse: Sparse | None) -> tuple[tuple[float, float] | None] | None:
    """As the core has it."""
    if sparse is None:
        return None
    return ((sparse.k1, sparse.b) if isinstance(sparse, BM25) else None,)


def from_native(found: tuple[tuple[float, float] | None] | None) -> Sparse | None:
    """What `to_native` made."""
    if found is None:
        return None
    return SparseVectors() if found[0] is None else BM25(*found[0])


def sparse_rows(given: Any, what: str, length: int | None = None) -> list[SparseRow | None] | None:
    """Sparse vectors as a caller passes them: dicts of indices and weights, dicts or objects with `indices` and `values`, a
    sparse matrix of SciPy's, or one of them; None where a row has none. Raises InvalidInput."""
    if given is None:
        return None
    if hasattr(given, "tocsr"):
        matrix = given.tocsr()
        ends = matrix.indptr
        cut = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
        rows: list[Any] = [{"indices": matrix.indices[at], "values": matrix.data[at]} for at in cut]
    elif isinstance(given, Mapping) or hasattr(given, "indices"):
        rows = [given]
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        refuse_unordered(given, what)
        rows = list(given)
    else:
        raise InvalidInput(f"{what} must be a list of sparse vectors, got {type(given).__name__}.")
    if length is not None:
        same_length(length, rows, what)
    found: list[SparseRow | None] = []
    faults: dict[int, str] = {}
    for at, one in enumerate(rows):
        try:
            found.append(None if one is None else _sparse_row(one, f"{what}[{at}]"))
        except InvalidInput as error:
            faults[at] = str(error)
    if faults:
        raise InvalidRows.of(faults)
    return found


def _sparse_row(one: Any, what: str) -> SparseRow:
    """Raises InvalidInput."""
    indices: Any = getattr(one, "indices", None)
    values: Any = getattr(one, "values", None)
    if isinstance(one, tuple) and len(one) == 2:
        indices, values = one
    elif isinstance(one, Mapping):
        named = set(one) == {"indices", "values"}
        indices, values = (one["indices"], one["values"]) if named else (one.keys(), one.values())
    if not isinstance(indices, Iterable) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"{what} must be a dict of indices and weights, or have `indices` and `values`; got {type(one).__name__}."
        )
    indices, values = list(indices), list(values)
    if len(indices) != len(values):
        raise InvalidInput(f"{what} has {len(indices)} indices and {len(values)} values.")
    weights: dict[int, float] = {}
    for index, value in zip(indices, values, strict=True):
        try:
            number = operator.index(index)
        except TypeError:
            raise InvalidInput(f"{what} has the index {index!r:.60}; indices are whole numbers.") from None
        weight = float(np.float32(finite(value, f"{what}[{number}]")))
        if not 0 <= number <= _LAST or weight < 0 or number in weights:
            raise InvalidInput(
                f"{what} has the weight {weight:g} at {number}; indices are 0 to {_LAST:,}, each once, weights at least 0."
            )
        weights[number] = weight
    kept = sorted(index for index, weight in weights.items() if weight > 0)
    return kept, [weights[index] for index in kept]


def check_fusion(given: object, texts: Sequence[str] | None, sparse: Any) -> dict[str, Any] | None:
    """What `query(fusion=, sparse=)` was given, as the core takes it. Raises InvalidInput."""
    if given is None:
        if sparse is not None:
            raise InvalidInput("sparse= goes with fusion=, such as fusion='rrf'.")
        return None
    one = {"rrf": Rrf(), "sparse": SparseOnly()}.get(given, given) if isinstance(given, str) else given
    if not isinstance(one, Rrf | Weighted | SparseOnly):
        raise InvalidInput(
            "fusion must be 'rrf', 'sparse', ciphervec.Rrf(), ciphervec.Weighted() or ciphervec.SparseOnly(), got "
            f"{given!r:.80}."
        )
    if texts is None and sparse is None:
        raise InvalidInput(
            "fusion= ranks by words or sparse vectors too: ask with query_texts=[...] or sparse=[...], beside "
            "query_embeddings=... or instead of them."
        )
    if not isinstance(one.idf, bool):
        raise InvalidInput(f"idf must be True or False, got {one.idf!r:.40}.")
    if one.idf and sparse is None:
        raise InvalidInput("idf weighs the sparse vectors of sparse=[...]; BM25 weighs rare words by itself.")
    vectors = sparse_rows(sparse, "sparse")
    if vectors is not None and None in vectors:
        raise InvalidInput("sparse= takes a sparse vector for each query, got None among them.")
    return {"texts": None if texts is None else list(texts), "vectors": vectors, **one.native()}


def without_vectors(hybrid: Mapping[str, Any] | None) -> int | None:
    """How many questions ask for the order by words or sparse vectors alone; None where vectors are asked."""
    if hybrid is None or hybrid["k"] is not None or hybrid["alpha"] is not None:
        return None
    return len(hybrid["texts"] if hybrid["vectors"] is None else hybrid["vectors"])


@runtime_checkable
class PairModel(Protocol):
    """What scores pairs of a query and a document, as CrossEncoder of sentence-transformers does."""

    def predict(self, pairs: list[tuple[str, str]], /) -> Any:
        """A number for each pair; higher is closer."""


RerankFunction: TypeAlias = Callable[[str, list[str]], Sequence[float] | npt.NDArray[Any]] | PairModel
"""From a query and documents, a number for each document: higher is closer."""


@dataclass(frozen=True)
class Rerank:
    """How hits are put in order again: by `function`, of the closest `first` of each query. `texts` are what it is given as
    queries, one for each; those of `query_texts` unless given."""

    function: RerankFunction
    first: int = 50
    texts: Iterable[str] | None = None

    @classmethod
    def of(cls, given: Rerank | RerankFunction | None, asked: Iterable[str] | None) -> Rerank | None:
        """What `query(rerank=)` was given, with the texts that were asked. Raises InvalidInput."""
        if given is None:
            return None
        one = given if isinstance(given, Rerank) else cls(given)
        if not isinstance(one.function, PairModel) and not callable(one.function):
            raise InvalidInput(
                "rerank= is a function of a query and its documents, a model with predict(pairs), or a Rerank of one; got "
                f"{type(one.function).__name__}."
            )
        texts = asked if one.texts is None else one.texts
        if texts is None:
            raise InvalidInput(
                "rerank= compares texts: ask with query_texts=..., or name them beside vectors: rerank=Rerank(function, "
                "texts=[...])."
            )
        listed = records.listed(texts, str, "texts of rerank=") or []
        checked = [text for text in listed if isinstance(text, str)]
        if len(checked) < len(listed):
            strange = next(text for text in listed if not isinstance(text, str))
            raise InvalidInput(f"texts of rerank= must be strings, got {type(strange).__name__}.")
        return cls(one.function, arrays.count(one.first, "first of rerank="), checked)

    def check_queries(self, count: int) -> None:
        """Raises InvalidInput unless there is a text for each query."""
        arrays.same_length(count, list(self.texts or ()), "texts of rerank=")

    def apply(self, found: QueryResult, limit: int | None, parts: list[str]) -> QueryResult:
        """The hits in their new order, `limit` of a query at most, with `rerank_scores`. Hits without a document stay
        behind the others, as they were, with None. Raises InvalidInput for what is no number for each document."""
        orders, scores = [], []
        for text, documents in zip(self.texts or (), found["documents"], strict=True):
            order, numbers = self._order(text, documents)
            orders.append(order[:limit])
            scores.append(numbers[:limit])
        result = QueryResult(dict.fromkeys((*QUERY_INCLUDE, "rerank_scores")))
        for name in ("ids", *parts):
            result[name] = [_taken(part, order) for part, order in zip(found[name], orders, strict=True)]
        result["rerank_scores"], result["include"] = scores, [*parts, "rerank_scores"]
        result.checked, result.flooding, result.hint = found.checked, found.flooding, found.hint
        result.bounds = found.bounds
        return result

    def _order(self, text: str, documents: list[str | None]) -> tuple[list[int], list[float | None]]:
        there = [at for at, one in enumerate(documents) if one is not None]
        numbers = self._numbers(text, [documents[at] for at in there]) if there else np.empty(0)  # type: ignore[misc]
        ranked = np.argsort(-numbers, kind="stable").tolist()
        without = [at for at, one in enumerate(documents) if one is None]
        return (
            [*(there[at] for at in ranked), *without],
            [*(float(numbers[at]) for at in ranked), *([None] * len(without))],
        )

    def _numbers(self, text: str, documents: list[str]) -> npt.NDArray[np.float64]:
        if isinstance(self.function, PairModel):
            given = self.function.predict([(text, one) for one in documents])
        else:
            given = self.function(text, documents)
        try:
            found = np.asarray(given, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"rerank= must return a number for each document ({error}).") from error
        if found.shape != (len(documents),) or not np.isfinite(found).all():
            raise InvalidInput(
                f"rerank= must return a finite number for each of {len(documents)} documents, got "
                f"{'an array of shape ' + str(found.shape) if found.shape != (len(documents),) else 'others among them'}."
            )
        return found


def _taken(part: Any, order: list[int]) -> Any:
    return part[order] if isinstance(part, np.ndarray) else [part[at] for at in order]
