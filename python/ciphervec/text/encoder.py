"""Numbers of texts' tokens, and what was cut off or unknown. The client's side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from .tokenize import tokenize
from .vocabulary import UNKNOWN, Vocabulary

Numbers: TypeAlias = npt.NDArray[np.int64]
Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Documents:
    """Token numbers of documents end to end: document i is `numbers[offsets[i] : offsets[i + 1]]`.

    `found` are the tokens each document had before it was cut at `limit`.
    """

    numbers: Numbers
    offsets: Numbers
    found: Numbers
    limit: int

    def __len__(self) -> int:
        return len(self.found)

    @property
    def lengths(self) -> Numbers:
        """Tokens of each document that are left."""
        return np.diff(self.offsets)

    @property
    def truncated(self) -> npt.NDArray[np.bool_]:
        """Which documents lost tokens to the limit."""
        return np.asarray(self.found > self.limit)

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Which documents have no token at all."""
        return np.asarray(self.found == 0)

    @property
    def unknown(self) -> Numbers:
        """How many tokens of each document, of those left, are not in the vocabulary."""
        return segment_sums((self.numbers == UNKNOWN).astype(np.int64)[:, None], self.offsets)[:, 0]

    def subset(self, rows: npt.NDArray[np.integer]) -> Documents:
        """These documents, in this order."""
        parts = [self.numbers[self.offsets[row] : self.offsets[row + 1]] for row in rows]
        numbers = np.concatenate(parts) if parts else self.numbers[:0]
        return Documents(numbers, _offsets([len(part) for part in parts]), self.found[rows], self.limit)

    @classmethod
    def of(cls, numbers: Iterable[Sequence[int]], limit: int) -> Documents:
        """From each document's numbers, cut at `limit`."""
        parts, found = [np.empty(0, np.int64)], list[int]()
        for one in numbers:
            parts.append(np.array(one[:limit], np.int64))
            found.append(len(one))
        offsets = _offsets([len(part) for part in parts[1:]])
        return cls(np.concatenate(parts), offsets, np.array(found, np.int64), limit)


@dataclass(frozen=True)
class Encoder:
    """How a classifier reads: its vocabulary, single words or pairs too, and how many tokens of a
    document."""

    vocabulary: Vocabulary
    ngrams: int
    limit: int

    def encode(self, texts: Iterable[str]) -> Documents:
        """Raises InvalidInput for anything but texts."""
        documents = (tokenize(text, self.ngrams) for text in checked(texts))
        return Documents.of((self.vocabulary.numbers(one) for one in documents), self.limit)


def checked(texts: Iterable[str]) -> list[str]:
    """A list of texts; one text alone is a mistake that would be read letter by letter."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InvalidInput(
            f"texts must be a list of texts, got {type(texts).__name__}. Put a single one in a list."
        )
    listed = list(texts)
    for position, text in enumerate(listed):
        if not isinstance(text, str):
            raise InvalidInput(f"texts[{position}] must be a text, got {type(text).__name__}.")
    return listed


def segment_sums(rows: npt.NDArray[Scalar], offsets: Numbers) -> npt.NDArray[Scalar]:
    """(n, d): the sum of `rows[offsets[i] : offsets[i + 1]]` for each i; zero for an empty
    stretch."""
    sums = np.zeros((len(offsets) - 1, *rows.shape[1:]), rows.dtype)
    filled = np.diff(offsets) > 0
    if filled.any():
        sums[filled] = np.add.reduceat(rows, offsets[:-1][filled], axis=0)
    return sums


def _offsets(lengths: Sequence[int]) -> Numbers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
