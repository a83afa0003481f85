"""Texts: documents and questions without vectors enter; they leave with those of the collection's embedding
function. Runs on the key owner's side, the function too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from ..errors import InvalidInput
from ..ingest import arrays, records
from ..ingest.arrays import Id, Vectors
from .embedding.function import Embedder, SavedFunction, texts_of
from .upkeep import Upkeep


class Texts(Upkeep):
    """A collection that embeds texts, if it has a function that does."""

    def _embedding(self, *, write: bool = False) -> tuple[SavedFunction | None, int | None]:
        """What is saved of the function, and the dimension of what it returns, if that is fixed."""
        with self._open(write=write):
            return self._saved(), self.dimension

    def _give(self, embedder: Embedder | None) -> None:
        """Embed texts by this function, if it is one."""
        if embedder is not None:
            self._texts.give(embedder, self._embedding()[0], self.name)

    def _embedder(self, saved: SavedFunction | None) -> Embedder:
        return self._texts.embedder(saved, self.name, self.mode)

    def _embedded(
        self, ids: Id | Iterable[Id] | None, embeddings: Vectors | None, documents: object | None
    ) -> tuple[Id | Iterable[Id] | None, Vectors | None, object | None]:
        """New rows as they were given; documents without vectors have those of the function."""
        if embeddings is not None or documents is None:
            return ids, embeddings, documents
        saved, dimension = self._embedding(write=True)
        embedder = self._embedder(saved)
        texts = texts_of(documents, "documents")
        if ids is not None:
            ids = arrays.ids(ids, paired=True)
            arrays.distinct(ids)
            arrays.same_length(len(ids), texts, "documents")
        # Not under the lock: this may take its time, or ask another service.
        return ids, embedder.documents(texts, dimension, self.metric), texts

    def _filled(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | Sequence[Vectors | None] | None,
        documents: object | None,
    ) -> tuple[list[Id], Vectors | Sequence[Vectors | None] | None, object | None]:
        """Changes of rows as they were given; where a document has no vector it has that of the function,
        if the collection has one. Vectors that stay are None."""
        names = arrays.ids(ids, paired=True)
        some = embeddings is None or (isinstance(embeddings, list) and any(one is None for one in embeddings))
        if documents is None or not some:
            return names, embeddings, documents
        saved, dimension = self._embedding(write=True)
        if not self._texts.known(saved):
            return names, embeddings, documents
        texts = records.listed(documents, str, "documents") or []
        vectors = [None] * len(names) if embeddings is None else list(embeddings)  # type: ignore[arg-type]
        arrays.same_length(len(names), texts, "documents")
        arrays.same_length(len(names), vectors, "embeddings")
        new = {i: text for i, text in enumerate(texts) if isinstance(text, str) and vectors[i] is None}
        if new:
            found = self._embedder(saved).documents(list(new.values()), dimension, self.metric)
            for i, vector in zip(new, found, strict=True):
                vectors[i] = vector
        return names, vectors, texts

    def _asked(self, query_embeddings: Vectors | None, query_texts: str | Iterable[str] | None) -> Vectors:
        """The vectors of a query, however it was given. Raises InvalidInput."""
        if (query_embeddings is None) == (query_texts is None):
            raise InvalidInput("query() takes either query_embeddings=... or query_texts=...")
        if query_texts is None:
            if isinstance(query_embeddings, str):
                raise InvalidInput(
                    f"query_embeddings are vectors, got a text; texts are query_texts=[{query_embeddings!r:.40}]."
                )
            return cast(Vectors, query_embeddings)
        saved, dimension = self._embedding()
        return self._embedder(saved).questions(texts_of(query_texts, "query_texts"), dimension, self.metric)
