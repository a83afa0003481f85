"""Words beside vectors, for the key owner: how rows are ranked by the words of their documents, and how that order and the
one of vectors are made one. The core ranks; here are the checked choices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..errors import InvalidInput
from ..ingest.arrays import count, finite


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
class Rrf:
    """Reciprocal rank fusion: a row's score is the sum of 1 / (k + rank) over the lists that have it, ranks from 1 on. Of each
    list the first `window` are looked at, or `n_results` where that is more."""

    k: float = 60.0
    window: int = 100

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        if finite(self.k, "k") < 0:
            raise InvalidInput(f"k must be at least 0, got {self.k!r}.")
        count(self.window, "window")

    def native(self, texts: Sequence[str]) -> dict[str, Any]:
        """As the core takes it, with what is asked."""
        return {"texts": list(texts), "k": float(self.k), "alpha": 0.0, "window": self.window}


@dataclass(frozen=True)
class Weighted:
    """A row's score is `alpha` times that of its vector and 1 − `alpha` times that of its words, each of them from 0 to 1: over
    the first `window` by vectors from the lowest score to the highest, 0 beyond them; by words as a share of the highest, over
    all rows. Rows that are among the first `window` of neither list are not found."""

    alpha: float = 0.5
    window: int = 100

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        if not 0 <= finite(self.alpha, "alpha") <= 1:
            raise InvalidInput(f"alpha must be 0 to 1, got {self.alpha!r}.")
        count(self.window, "window")

    def native(self, texts: Sequence[str]) -> dict[str, Any]:
        """As the core takes it, with what is asked."""
        return {"texts": list(texts), "k": None, "alpha": float(self.alpha), "window": self.window}


Fusion: TypeAlias = Rrf | Weighted | Literal["rrf"]
"""How both orders are made one; `"rrf"` is `Rrf()`."""


def check_sparse(given: object) -> BM25 | None:
    """What `sparse=` may be. Raises InvalidInput."""
    if given is None or isinstance(given, BM25):
        return given
    raise InvalidInput(f"sparse must be ciphervec.BM25() or None, got {type(given).__name__}.")


def check_fusion(given: object, texts: Sequence[str] | None) -> dict[str, Any] | None:
    """What `query(fusion=)` was given, as the core takes it. Raises InvalidInput."""
    if given is None:
        return None
    one = Rrf() if given == "rrf" else given
    if not isinstance(one, Rrf | Weighted):
        raise InvalidInput(
            f"fusion must be 'rrf', ciphervec.Rrf() or ciphervec.Weighted(), got {given!r:.80}."
        )
    if texts is None:
        raise InvalidInput(
            "fusion= ranks by words too: ask with query_texts=[...], beside query_embeddings=... or instead of them."
        )
    return one.native(texts)
