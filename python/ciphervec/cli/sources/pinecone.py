"""Pinecone: vectors as its API has them, a JSON object a line. The key owner's side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...errors import InvalidInput
from ...ingest.files import open_text
from ...ingest.metrics import MetricName
from ..column_types import whole_object
from ..row_table import Table
from .source import LOOKED_AT, PAGE, Column, Schema, Source, matrix

FIELDS = ("id", "values", "metadata", "sparse_values", "sparseValues")
_SPARSE = "sparse_values"


class Pinecone(Source):
    """A file of `{"id": …, "values": […], "metadata": {…}}`, which names no metric."""

    def open(self, metric: MetricName | None) -> None:
        address = self.address
        address.only()
        self.own_ids()
        self._file = address.place()
        first = [record for _, record in islice(self._lines(), LOOKED_AT)]
        if not first:
            raise InvalidInput(f"{self._file} has no rows.")
        if metric is None:
            raise InvalidInput(
                f"{self._file} doesn't name the metric of its vectors. Pass --metric cosine, ip (Pinecone's dotproduct) "
                "or l2 (its euclidean), as the index has it."
            )
        rows, sparse = 0, False
        with open_text(self._file) as file:
            for text in file:
                rows += bool(text.strip())
                sparse = sparse or '"sparse' in text
        dimension = len(first[0]["values"])
        self.vectors({"values": dimension}, {}, sparse=[_SPARSE] if sparse else [])
        self.schema = Schema(
            "Pinecone's vectors, in a file", rows, dimension, None, "not said",
            [Column("id", "str", "id"), *self.vector_columns(),
             *self.fields([record.get("metadata") for record in first])],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        lines = self._lines()
        while part := [record for _, record in islice(lines, PAGE)]:
            yield self.table(
                matrix([one["values"] for one in part]),
                [
                    self.record(
                        one["id"], one.get("metadata"), sparse=one.get(_SPARSE) or one.get("sparseValues")
                    )
                    for one in part
                ],
            )

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with open_text(self._file) as file:
            for line, text in enumerate(file, 1):
                if not text.strip():
                    continue
                try:
                    record = json.loads(text, object_pairs_hook=whole_object)
                    strange = sorted({*record} - {*FIELDS})
                    sound = isinstance(record["values"], list) and isinstance(
                        record.get("metadata"), dict | None
                    )
                    if strange or not sound or "id" not in record:
                        raise ValueError(
                            f"unknown: {strange[0]!r}" if strange else "a field is of another kind"
                        )
                except (ValueError, KeyError, TypeError, RecursionError) as error:
                    raise InvalidInput(
                        f"{self._file}, line {line}: a JSON object with 'id', 'values' and perhaps 'metadata' belongs there "
                        f"({error!r:.200})."
                    ) from error
                yield line, record
