"""Reranking of fetched hits by a function of the caller's, such as a cross-encoder, on the key owner's side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from ..ingest import arrays, records
from .results import QUERY_INCLUDE, QueryResult


@runtime_checkable
class PairModel(Protocol):
    """What scores pairs of a query and a document, as CrossEncoder of sentence-transformers does."""

    def predict(self, pairs: list[tuple[str, str]], /) -> Any:
        """A number for each pair; higher is closer."""


RerankFunction: TypeAlias = Callable[[str, list[str]], Sequence[float] | npt.NDArray[Any]] | PairModel
"""A query and documents enter; a number for each document leaves, and higher is closer."""


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
