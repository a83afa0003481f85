"""Tokens: halves of answers that were fetched ahead enter, and leave with one question each. Key owner's side, in the memory of
one process.

Two questions under one mask give away their difference. A file can be copied or restored, and so tokens are never written down:
they can't be pickled or copied, a fork has none, and a question takes its own out before it is made. What is lost with a
process cost a fetch and nothing else.
"""

from __future__ import annotations

from typing import NoReturn

import ciphervec._native as _native

from ..ingest.forks import fresh_in_child


class Tokens:
    """Those of one collection. Threads may share it."""

    def __init__(self) -> None:
        self._pool = _native.TokenPool()
        self.used = 0
        """Questions that were asked with tokens."""
        self.ahead = 0
        """Bytes of the answer to the latest question that had been fetched ahead."""
        fresh_in_child(self, _pool=_native.TokenPool)

    @property
    def pool(self) -> _native.TokenPool:
        """What a question takes them out of."""
        return self._pool

    @property
    def nbytes(self) -> int:
        """Bytes of the halves of answers that are held."""
        return self._pool.nbytes

    def __len__(self) -> int:
        return len(self._pool)

    def drop(self) -> None:
        """Throw all away."""
        self._pool = _native.TokenPool()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "tokens serve once and can't be copied or pickled. Call prefetch() where they are needed."
        )
