"""FAISS: an index in a file, with files of ids and of metadata beside it. The key owner's side; needs faiss."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import InvalidInput
from ...ingest import packed
from ...ingest.extras import needed
from ...ingest.files import at_home, text_lines
from ...ingest.metrics import MetricName
from ..ids import typed_ids
from ..readers import OF_TEXTS, READERS
from ..row_table import Columns, Table
from .source import PAGE, Column, Hits, Questions, Schema, Source, in_parts, metric_of, troubles


class Faiss(Source):
    """The vectors of an index, numbered by position or by the index itself, unless a file names them."""

    def open(self, metric: MetricName | None) -> None:
        address, columns = self.address, self.columns
        address.only("ids", "metadata")
        file = address.place()
        try:
            import faiss
        except ImportError as error:
            raise needed(f"{address.text}", "faiss", "faiss") from error
        self._faiss = faiss
        with troubles(address, RuntimeError):
            index = faiss.read_index(str(file))
            self._numbers = None
            if isinstance(index, faiss.IndexIDMap):  # IndexIDMap2 is one
                self._numbers, self._outer = (
                    faiss.vector_to_array(index.id_map),
                    index,
                )  # it frees what is inside
                index = faiss.downcast_index(index.index)
            inverted = faiss.try_extract_index_ivf(index)
            if inverted is not None:
                inverted.make_direct_map()
            self._index = index
            if not index.ntotal:
                raise InvalidInput(f"{file} has no vectors.")
            index.reconstruct(0)  # which some kinds of index refuse
        said = {faiss.METRIC_L2: "l2", faiss.METRIC_INNER_PRODUCT: "ip"}.get(
            index.metric_type, f"metric {index.metric_type}"
        )
        self.vector({"embedding": index.d}, {})
        self._beside = self._read_beside()
        fields = self.fields((self._beside.metadatas or [])[:PAGE]) if self._beside else []
        has_texts = self._beside is not None and self._beside.documents is not None
        listed: dict[str, MetricName] = {"l2": "l2", "ip": "ip"}
        self.schema = Schema(
            f"FAISS, {type(index).__name__}", index.ntotal, index.d, metric_of(said, listed, "FAISS", metric),
            said,
            [Column("id", type(self._names(0, 1)[0]).__name__, "id"), Column("embedding", f"vector, {index.d}", "vector"),
             *([Column(columns.document, "str", "document")] if has_texts else []), *fields],
            () if "Flat" in type(index).__name__ else
            ("The index keeps its vectors rounded: what is imported are those, and not what was put in.",),
        )  # fmt: skip

    def _read_beside(self) -> Table | None:
        """What `?metadata=` and `?ids=` name, a row for each vector."""
        found: Table | None = None
        given = self.address.choices.get("metadata")
        if given is not None:
            path = Path(at_home(given))
            reader = READERS.get(packed.kind(path)) if packed.kind(path) in OF_TEXTS else None
            if reader is None:
                raise InvalidInput(
                    f"{path} holds no metadata that is read; it ends in {', '.join(OF_TEXTS)}."
                )
            columns = Columns(
                id=self.columns.id,
                document=self.columns.document,
                texts=True,
                leave_out=self.columns.leave_out,
            )
            found = reader(path, columns, None)
        words = self.address.choices.get("ids")
        if words is not None:
            names = typed_ids(text_lines(Path(at_home(words))), None, None, words)
            known = found or Table(None)
            found = Table(None, [*names], known.metadatas, known.documents)
        for what in ("ids", "metadatas", "documents"):
            part = getattr(found, what, None)
            if part is not None and len(part) != self._index.ntotal:
                raise InvalidInput(
                    f"{self.address.text} has {self._index.ntotal:,} vectors, and {len(part):,} {what} beside."
                )
        return found

    def _names(self, start: int, stop: int) -> list[Any]:
        if self._beside is not None and self._beside.ids is not None:
            return self._beside.ids[start:stop]
        return [*range(start, stop)] if self._numbers is None else self._numbers[start:stop].tolist()

    def pages(self) -> Iterator[Table]:
        beside = self._beside or Table(None)
        for start in range(0, self._index.ntotal, PAGE):
            stop = min(start + PAGE, self._index.ntotal)
            with troubles(self.address, RuntimeError):
                rows = self._index.reconstruct_n(start, stop - start)
            yield Table(
                rows,
                self._names(start, stop),
                beside.metadatas and beside.metadatas[start:stop],
                beside.documents and beside.documents[start:stop],
            )

    def nearest(self, queries: Questions, count: int) -> Iterator[Hits]:
        """FAISS's exact search over the vectors of the index, whatever its kind."""
        whole = np.ascontiguousarray(self._index.reconstruct_n(0, self._index.ntotal))
        names = self._names(0, self._index.ntotal)
        by = self._index.metric_type
        for part in in_parts(queries, 256):
            found, rows = self._faiss.knn(part, whole, min(count, len(whole)), by)
            if by == self._faiss.METRIC_INNER_PRODUCT:
                found = 1 - found
            for distances, places in zip(found.tolist(), rows.tolist(), strict=True):
                yield [names[place] for place in places], distances
