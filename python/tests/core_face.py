"""Collections as the native module's core has them, behind the methods that the shared scripts call."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import ciphervec._native as _native
from ciphervec import Clusters, Keys
from ciphervec.errors import InvalidInput
from ciphervec.http.transport_types import Lost
from ciphervec.ingest import arrays, records
from ciphervec.ingest.records import field_names
from ciphervec.ingest.where import _checked

PARTS = ("metadatas", "documents", "embeddings")


class Answer:
    """One answer, read in pieces."""

    def __init__(self, response: httpx.Response) -> None:
        self._response, self._pieces = response, response.iter_raw()
        self.status = response.status_code
        self.headers = [(name.lower(), value) for name, value in response.headers.items()]

    def read(self) -> bytes | None:
        try:
            return next(self._pieces, None)
        except httpx.TransportError as error:
            raise Lost(str(error), sent=True) from None

    def close(self) -> None:
        self._response.close()


class World:
    """What the core asks of Python."""

    def __init__(self, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(transport=transport, trust_env=False)
        self.told: list[tuple[str, int, int | None]] = []
        self.ends: BaseException | None = None

    def send(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None, seconds: float
    ) -> Answer:
        all_headers = [*headers, ("Accept-Encoding", "identity")]
        request = self._http.build_request(
            method, url, headers=all_headers, content=body, timeout=min(seconds, 60)
        )
        try:
            return Answer(self._http.send(request, stream=True))
        except httpx.TransportError as error:
            raise Lost(str(error), sent=not isinstance(error, httpx.ConnectError)) from None

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def check(self) -> None:
        if self.ends is not None:
            raise self.ends

    def warn(self, text: str) -> None:
        warnings.warn(text, stacklevel=2)

    def progress(self, phase: str, done: int, total: int | None) -> None:
        self.told.append((phase, done, total))


class CoreClient:
    """On a server, in a folder, or in memory."""

    def __init__(
        self,
        keys: Keys | None,
        *,
        url: str | None = None,
        folder: Path | None = None,
        state: Path | None = None,
        transport: httpx.BaseTransport | None = None,
        read_only: bool = False,
    ) -> None:
        native = None if keys is None else keys._native
        if url is not None:
            self.native = _native.Client.on_server(
                url, native, None, insecure=False, timeout=30.0, retries=3, cache_bytes=1 << 28
            )
        elif folder is not None:
            self.native = _native.Client.in_folder(folder, native, read_only)
        else:
            self.native = _native.Client.in_memory(native)
        self.world = World(transport)
        self.host = _native.CallHost(self.world, _native.Storage(state))

    def create_collection(self, name: str, **choices: Any) -> CoreCollection:
        if isinstance(routing := choices.get("routing"), dict):
            choices["routing"] = Clusters(**routing)
        return CoreCollection(self.native.create_collection(self.host, chosen(name, **choices)), self.host)

    def get_collection(
        self, name: str, *, allow_open: bool = False, expect: str | None = None
    ) -> CoreCollection:
        return CoreCollection(self.native.get_collection(self.host, name, allow_open, expect), self.host)


def chosen(
    name: str,
    dimension: int,
    metric: str = "cosine",
    mode: str = "sealed",
    precision: str = "standard",
    filterable: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """What the native client takes."""
    given: dict[str, Any] = {
        "originals": None, "routing": None, "scheme": "lattice", "bits": None, "network": None, "center": [],
        "embedding_function": None, **more,
    }  # fmt: skip
    center = [float(x) for x in given.pop("center")]
    fixed = {"metric": metric, "mode": mode, "precision": precision, "filterable": list(filterable)}
    return {"name": name, "dimension": dimension, **fixed, **given, "center": center}


class CoreCollection:
    """One of them."""

    def __init__(self, native: _native.Collection, host: _native.CallHost) -> None:
        self.native, self.host = native, host

    def _rows(
        self,
        ids: Any = None,
        embeddings: Any = None,
        metadatas: Any = None,
        documents: Any = None,
        *,
        on_zero: str = "refuse",
        optional: bool = False,
    ) -> tuple[dict[str, Any], list[bool] | None]:
        names = [] if ids is None else arrays.ids(ids)
        spec, there = self.native.spec, None
        rows = None
        if optional and embeddings is not None:
            some, found = arrays.some_vectors(embeddings, len(names), spec.dimension, spec.metric)
            rows, there = np.ascontiguousarray(some[found]), found.tolist()
        elif embeddings is not None:
            rows = np.ascontiguousarray(np.atleast_2d(np.asarray(embeddings, np.float32)))
            if rows.shape[-1] != spec.dimension:
                raise InvalidInput(
                    f"the collection has {spec.dimension} dimensions, got rows of {rows.shape}."
                )
        if on_zero not in ("refuse", "skip"):
            raise InvalidInput(f"on_zero must be 'refuse' or 'skip', got {on_zero!r}.")
        count = len(names) if names or rows is None else len(rows)
        beside = records.check([0] * count, metadatas, documents)
        given = {
            "ids": names,
            "embeddings": rows,
            "metadatas": [None if one is None else json.dumps(one, ensure_ascii=False) for one, _ in beside],
            "documents": [document for _, document in beside],
            "skip_zeros": on_zero == "skip",
        }
        return given, there

    def add(self, ids: Any = None, embeddings: Any = None, **more: Any) -> list[Any]:
        return self.native.add(self.host, self._rows(ids, embeddings, **more)[0])

    def upsert(self, ids: Any = None, embeddings: Any = None, **more: Any) -> list[Any]:
        return self.native.upsert(self.host, self._rows(ids, embeddings, **more)[0])

    def update(
        self, ids: Any, embeddings: Any = None, remove_fields: Iterable[str] = (), **more: Any
    ) -> None:
        rows, there = self._rows(ids, embeddings, optional=True, **more)
        self.native.update(self.host, rows, there, field_names(remove_fields, "remove_fields"))

    def merge(
        self, ids: Any, embeddings: Any = None, known: str = "merge", unknown: str = "add", **more: Any
    ) -> int:
        if known not in ("merge", "keep") or unknown not in ("add", "skip"):
            raise InvalidInput(f"known is 'merge' or 'keep', unknown 'add' or 'skip'; got {known}, {unknown}")
        rows, there = self._rows(ids, embeddings, optional=True, **more)
        return self.native.merge(self.host, rows, there, known == "keep", unknown == "skip")

    @staticmethod
    def _which(ids: Any, where: Any, where_document: Any) -> dict[str, Any]:
        filters = {
            "where": _checked(where, "where"),
            "where_document": _checked(where_document, "where_document"),
        }
        return {"ids": None if ids is None else arrays.ids(ids), **filters}

    def delete(
        self, ids: Any = None, where: Any = None, *, where_document: Any = None, missing_ok: bool = False
    ) -> int:
        return self.native.delete(self.host, self._which(ids, where, where_document), missing_ok)

    @staticmethod
    def _parts(include: Iterable[str], known: Sequence[str]) -> tuple[bool, bool]:
        names = list(include)
        for name in names:
            if name not in (*known, "ids"):
                raise InvalidInput(f"include has {name!r}; known parts are {', '.join(known)}.")
        return "metadatas" in names or "documents" in names, "embeddings" in names

    @staticmethod
    def _listed(rows: Any) -> dict[str, Any]:
        ids, metadatas, documents, embeddings = rows
        read = None if metadatas is None else [None if one is None else json.loads(one) for one in metadatas]
        return {"ids": ids, "metadatas": read, "documents": documents, "embeddings": embeddings}

    def get(
        self,
        ids: Any = None,
        where: Any = None,
        include: Iterable[str] = PARTS[:2],
        *,
        limit: int | None = None,
        offset: int = 0,
        where_document: Any = None,
        audience: str | None = None,
    ) -> dict[str, Any]:
        parts = self._parts(include, PARTS)
        offset = arrays.count(offset + 1, "offset + 1") - 1
        limit = None if limit is None else arrays.count(limit + 1, "limit + 1") - 1
        which = self._which(ids, where, where_document)
        rows, _ = self.native.get(self.host, which, parts, offset, limit, audience)
        return self._listed(rows)

    def query(
        self,
        query_embeddings: Any,
        n_results: int | None = None,
        where: Any = None,
        include: Iterable[str] = ("distances", "scores"),
        *,
        ids: Any = None,
        where_document: Any = None,
        within: float | None = None,
        audience: str | None = None,
        flooding: float | None = None,
        skip_quarantined: bool = False,
    ) -> dict[str, Any]:
        spec = self.native.spec
        rows = arrays.vectors(query_embeddings, spec.dimension, spec.metric, what="query_embeddings")
        parts = self._parts(include, ("distances", "scores", *PARTS))
        count = None if n_results is None else arrays.count(n_results, "n_results")
        within = None if within is None else arrays.finite(within, "within")
        found, _, _ = self.native.query(
            self.host, rows, count, within, self._which(ids, where, where_document), parts, audience, flooding,
            skip_quarantined,
        )  # fmt: skip
        listed = [
            {**self._listed(rows), "distances": distances.tolist(), "scores": scores.tolist()}
            for rows, distances, scores in found
        ]
        names = ("ids", *PARTS, "distances", "scores")
        return {name: [one[name] for one in listed] for name in names}

    def count(self) -> int:
        return self.native.count(self.host)

    def optimize(self, *, reseal: bool = False) -> None:
        self.native.optimize(self.host, reseal)

    def prefetch(self, queries: int = 8) -> int:
        return self.native.prefetch(self.host, arrays.count(queries, "queries"))

    def recluster(self) -> dict[str, Any]:
        return self.native.recluster(self.host, None)

    def adopt(self) -> int:
        return self.native.adopt(self.host, False)

    def discard(self, segments: Iterable[str]) -> int:
        if isinstance(segments, str):
            raise InvalidInput(f"segments must be a list of their ids, got {segments!r}.")
        return self.native.discard(self.host, list(segments))

    def rotate_keys(self, keys: Keys, *, overlap: bool = False) -> None:
        self.native.rotate_keys(self.host, keys._native, overlap)

    def rotate_query_key(self) -> None:
        self.native.rotate_query_key(self.host)

    def flooding_plan(self, flooding: float = 2.0**-8) -> tuple[float, int, int, int, int]:
        return self.native.flooding_plan(self.host, flooding)

    def info(self) -> Mapping[str, Any]:
        found = self.native.info(self.host, None)
        segments = found["segments"]
        return {
            **found,
            "count": found["rows"],
            "segments": len(segments),
            "deleted": sum(s[2] for s in segments),
        }
