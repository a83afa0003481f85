"""A search backend of MTEB's over a collection: a benchmark's corpus stays encrypted while it is searched. Key owner's
side.

    encoder = mteb.get_model("sentence-transformers/all-MiniLM-L6-v2")
    backend = CiphervecSearchIndex(encoder, mode="sealed-index")
    model = mteb.models.SearchEncoderWrapper(encoder, index_backend=backend)
    mteb.evaluate(model, mteb.get_task("NFCorpus"))

It is an `IndexEncoderSearchProtocol`, of which MTEB asks for nothing but these methods: this module
needs no package beside ciphervec's own.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..collections.audience import Audience, check_audience
from ..collections.client import Client
from ..collections.collection import Collection
from ..errors import InvalidInput
from ..ingest.arrays import FloatArray
from ..ingest.metrics import MetricName

SIMILARITIES: dict[str, MetricName] = {"cosine": "cosine", "dot": "ip", "euclidean": "l2"}
"""MTEB's names, and the metrics that give them."""

_NUMBERS = itertools.count()


class CiphervecSearchIndex:
    """A search backend for MTEB's encoders. Scores are what its FAISS backend gives, to within the
    error of the seal: cosines, inner products, minus Euclidean distances."""

    def __init__(
        self,
        similarity: object = "cosine",
        *,
        client: Client | None = None,
        audience: Audience = "owner",
        **choices: Any,
    ) -> None:
        """`similarity`: cosine, dot or euclidean, or a model, which says. Documents go into a
        collection of `client`, made with `choices` as of `create_collection`; without a client into
        memory. `audience`: who reads the scores, as of `Collection.query`. Raises InvalidInput."""
        meta = getattr(similarity, "mteb_model_meta", None)
        asked = similarity if meta is None else meta.similarity_fn_name
        name = str(getattr(asked, "value", asked))
        if name not in SIMILARITIES:
            raise InvalidInput(f"similarity must be one of {', '.join(SIMILARITIES)}, got {name!r}.")
        self._metric = SIMILARITIES[name]
        self._client = Client() if client is None else client
        self._choices, self._audience = choices, check_audience(audience) or "owner"
        self._name = f"mteb-{next(_NUMBERS)}"
        self._places: dict[str, int] = {}
        self._count = 0
        self._collection: Collection | None = None

    def add_documents(self, embeddings: Any, idxs: Sequence[str]) -> None:
        """Add documents, (n, d), with the benchmark's ids. Raises InvalidInput."""
        rows = _rows(embeddings)
        if len(rows) != len(idxs):
            raise InvalidInput(f"there are {len(rows)} embeddings and {len(idxs)} ids.")
        if not len(rows):
            return
        if self._collection is None:
            self._collection = self._client.create_collection(
                self._name, rows.shape[1], self._metric, **self._choices
            )
        self._collection.add(range(self._count, self._count + len(rows)), rows)
        self._places.update({str(one): self._count + i for i, one in enumerate(idxs)})
        self._count += len(rows)

    def search(
        self,
        embeddings: Any,
        top_k: int,
        similarity_fn: Callable[[Any, Any], Any] | None = None,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        query_idx_to_id: Mapping[int, str] | None = None,
    ) -> tuple[list[list[float]], list[list[int]]]:
        """Of every query, (n, d), the similarities of the `top_k` closest documents and their places:
        in the corpus, or among those that `top_ranked` names for the query. `similarity_fn` is not
        called: it would need the documents. Raises InvalidInput."""
        if self._collection is None:
            raise InvalidInput("no documents were added yet; call add_documents first.")
        rows = _rows(embeddings)
        if top_ranked is None:
            return self._ask(self._collection, rows, top_k, None)
        if query_idx_to_id is None:
            raise InvalidInput("top_ranked names documents by query, so query_idx_to_id must be given too.")
        scores: list[list[float]] = []
        places: list[list[int]] = []
        for i, row in enumerate(rows):
            ranked = top_ranked.get(query_idx_to_id[i]) or []
            if not ranked:
                warnings.warn(f"no documents are named for query {query_idx_to_id[i]}", stacklevel=2)
            among = {self._places[str(one)]: place for place, one in enumerate(ranked)}
            found = self._ask(self._collection, row[None], top_k, list(among)) if among else ([[]], [[]])
            scores.append(found[0][0])
            places.append([among[place] for place in found[1][0]])
        return scores, places

    def clear(self) -> None:
        """Drop the documents."""
        if self._collection is not None:
            self._client.delete_collection(self._name)
        self._collection, self._count = None, 0
        self._places.clear()

    def _ask(
        self, collection: Collection, rows: FloatArray, top_k: int, among: list[int] | None
    ) -> tuple[list[list[float]], list[list[int]]]:
        found = collection.query(rows, top_k, include=["scores"], ids=among, audience=self._audience)
        scores = found["scores"] or []
        if self._metric == "l2":
            scores = [[-float(np.sqrt(max(-one, 0.0))) for one in line] for line in scores]
        return scores, [[int(place) for place in line] for line in found["ids"]]


def _rows(embeddings: Any) -> FloatArray:
    """Arrays, and tensors wherever they are."""
    detach = getattr(embeddings, "detach", None)
    given = embeddings if detach is None else detach().cpu().float().numpy()
    return np.asarray(given, np.float32)
