"""A numbered list of the tokens of training texts. The client's side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..errors import InvalidInput

UNKNOWN = 0
"""The number of every token that is not in the list. It has an embedding of its own, learned from
the rare tokens left out."""

MAX_TOKENS = (1 << 24) - 1
_TOKEN = re.compile("[a-z]+(?: [a-z]+)?")


class Vocabulary:
    """Distinct tokens, numbered from 1; 0 is every other token."""

    def __init__(self, tokens: Sequence[str]) -> None:
        """Raises InvalidInput for a token that `tokenize` doesn't make, or one that occurs
        twice."""
        strange = next((one for one in tokens if not _TOKEN.fullmatch(one)), None)
        if strange is not None:
            raise InvalidInput(f"a token is one or two words of the letters a to z, got {strange!r}.")
        if len(tokens) > MAX_TOKENS:
            raise InvalidInput(f"a vocabulary has at most {MAX_TOKENS:,} tokens, got {len(tokens):,}.")
        self._tokens = tuple(tokens)
        self._numbers = {token: number for number, token in enumerate(tokens, 1)}
        if len(self._numbers) != len(tokens):
            raise InvalidInput("a token occurs twice in this vocabulary.")

    @classmethod
    def build(cls, documents: Iterable[Sequence[str]], size: int, min_count: int) -> Vocabulary:
        """The `size` most frequent tokens of those seen `min_count` times; equals in alphabetical
        order."""
        counts = Counter(token for document in documents for token in document)
        kept = [token for token, count in counts.items() if count >= min_count]
        return cls(sorted(kept, key=lambda token: (-counts[token], token))[:size])

    @property
    def tokens(self) -> tuple[str, ...]:
        """In order: the first has number 1."""
        return self._tokens

    def numbers(self, tokens: Iterable[str]) -> list[int]:
        """The number of each token."""
        return [self._numbers.get(token, UNKNOWN) for token in tokens]

    def to_bytes(self) -> bytes:
        """A token a line."""
        return "\n".join(self._tokens).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Vocabulary:
        """Raises InvalidInput for what `to_bytes` doesn't write."""
        return cls(data.decode("latin-1").split("\n") if data else ())

    def __len__(self) -> int:
        """How many numbers there are: one more than tokens."""
        return len(self._tokens) + 1
