"""Vectors that are read one by one, for readers of text: eight bytes a number, where a list of Python's takes four
times that."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput


class Growing:
    """The rows of one file, all of one length."""

    def __init__(self, path: object) -> None:
        self._path = path
        self._numbers = array("d")
        self._first: tuple[int, int] | None = None
        self._count = 0
        self._truths = True

    def __len__(self) -> int:
        return self._count

    def add(self, row: Any, line: int) -> None:
        """One more row, which stands at `line`. Raises InvalidInput unless it is a list of numbers as long as the first."""
        if not isinstance(row, list) or not all(isinstance(one, int | float) for one in row):
            raise InvalidInput(f"{self._path}, line {line}: a vector is a list of numbers, got {row!r:.60}.")
        self._truths = self._truths and all(isinstance(one, bool) for one in row)
        self.add_numbers(row, line)

    def add_numbers(self, row: Sequence[float], line: int) -> None:
        """The same where they are known to be numbers."""
        self._truths = self._truths and isinstance(row[0] if row else 0, bool)
        if self._first is None:
            self._first = line, len(row)
        if len(row) != self._first[1]:
            raise InvalidInput(
                f"{self._path}: rows differ in length: line {line} has {len(row):,} numbers, and line {self._first[0]} "
                f"{self._first[1]:,}."
            )
        try:
            self._numbers.extend(row)
        except OverflowError as error:
            raise InvalidInput(
                f"{self._path}, line {line}, holds a number beyond float32's range ({error})."
            ) from error
        self._count += 1

    def matrix(self) -> npt.NDArray[Any]:
        """All of them, (n, d), of float64, or of bool where all are true or false."""
        rows = np.frombuffer(self._numbers, np.float64).reshape(self._count, -1 if self._numbers else 0)
        return rows.astype(np.bool_) if self._truths and rows.size else rows
