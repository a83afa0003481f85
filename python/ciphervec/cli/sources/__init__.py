"""Other vector stores as sources of rows, by address. The key owner's side.

A reader's module, and the engine's client with it, is imported when its address is.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from ...errors import InvalidInput
from ...ingest import packed
from ...ingest.files import read_text
from ...ingest.metrics import MetricName
from ..row_table import Columns
from .source import Address, Source

_READERS = {
    "chroma": ("chroma", "Chroma"),
    "qdrant": ("qdrant", "Qdrant"),
    "postgres": ("postgres", "Postgres"),
    "postgresql": ("postgres", "Postgres"),
    "weaviate": ("weaviate", "Weaviate"),
    "milvus": ("milvus", "Milvus"),
    "lance": ("lance", "Lance"),
    "faiss": ("faiss", "Faiss"),
    "pinecone": ("pinecone", "Pinecone"),
    "elasticsearch": ("elasticsearch", "Elasticsearch"),
}
PINECONE = "pinecone.jsonl"


def is_source(text: str) -> bool:
    """Whether this is the address of a source, and not the path of a file. Raises InvalidInput for one of an unknown
    kind."""
    scheme, colon, rest = text.partition(":")
    if scheme.partition("+")[0].lower() in _READERS and colon:
        return True
    if rest.startswith("//"):
        raise InvalidInput(f"{scheme}:// is no source that is known; known are {', '.join(_READERS)}.")
    name = text.removesuffix(packed.ending(Path(text)))
    return name.endswith(PINECONE)


def token(file: Path | None) -> str | None:
    """What a store asks of its users, from the first line of a file, or from the environment. Raises InvalidInput."""
    if file is None:
        return os.environ.get("CIPHERVEC_SOURCE_TOKEN")
    lines = read_text(file).splitlines()
    if not lines or not lines[0].strip():
        raise InvalidInput(f"{file} holds no token; it should be the first line.")
    return lines[0].strip()


def opened(text: str, columns: Columns, metric: MetricName | None, token: str | None) -> Source:
    """The source at an address. Raises InvalidInput, ServerError."""
    scheme, colon, _ = text.partition(":")
    kind = scheme.partition("+")[0].lower()
    if not colon or kind not in _READERS:
        kind, text = "pinecone", f"pinecone:{text}"
    module, name = _READERS[kind]
    reader = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    found: Source = reader(Address.of(text, token), columns)
    try:
        found.open(metric)
    except BaseException:
        found.close()
        raise
    return found
