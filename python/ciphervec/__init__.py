"""Search embeddings that stay encrypted: vectors are sealed by their owner and searched by a
machine that never sees them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _moved, errors
from ._native import (
    EvaluationKeys,
    IndexSpec,
    KeyShare,
    MemberCard,
    Recipient,
    SealedSegment,
    ServerIndex,
    SharedKeys,
    WriterCard,
    __version__,
    available_backends,
    backend,
    get_threads,
    set_threads,
)
from .errors import (
    AuthenticationError,
    BoundExceeded,
    CiphervecError,
    CollectionExists,
    CollectionNotFound,
    CommitUncertain,
    Conflict,
    CorruptData,
    DuplicateId,
    InvalidInput,
    InvalidRows,
    PinMismatch,
    PoolExhausted,
    ProgramError,
    ProgramNotFound,
    RollbackDetected,
    ServerError,
    StorageError,
    StoreLocked,
    TableNotFound,
    UnknownId,
    UnsupportedVersion,
    WrongKey,
)

if TYPE_CHECKING:
    from . import ckks, http, lookup, programs, text
    from .additive import damgard_jurik, elgamal, okamoto_uchiyama, paillier
    from .codebooks.codebook import Codebook
    from .collections.audience import OwnerMatches, OwnerResult
    from .collections.client import Client, PersistentClient
    from .collections.collection import Collection
    from .collections.embedding.encoders import register_embedding_function
    from .collections.embedding.function import EmbeddingFunction
    from .collections.embedding.multi import Muvera
    from .collections.index import EncryptedNearestNeighbors, Index
    from .collections.keys import Identity, KeyRing, Keys
    from .collections.members import Member, Members
    from .collections.owner import Owner, Probe, SealedQuery
    from .collections.private_table import PrivateTable, PrivateTableClient
    from .collections.ranking import BM25, Rerank, Rrf, SparseOnly, SparseVectors, Weighted
    from .collections.results import GetResult, Matches, QueryResult
    from .collections.roc import Roc, Threshold
    from .collections.spec import Clusters
    from .http import AsyncHttpClient, HttpClient
    from .ingest.network import Network
    from .ingest.spans import trace_calls
    from .programs.helpers import fold
    from .programs.kinds import public, secret
    from .programs.program import Program, program
    from .writer.pending_batch import WrittenBatch
    from .writer.writer import Writer

# What is imported when it is first used, so that who serves or asks does not wait for the rest.
_MODULES = {
    "additive": "additive",
    "ckks": "ckks",
    "codebooks": "codebooks",
    "collections": "collections",
    "damgard_jurik": "additive.damgard_jurik",
    "elgamal": "additive.elgamal",
    "http": "http",
    "ingest": "ingest",
    "lookup": "lookup",
    "memory": "memory",
    "okamoto_uchiyama": "additive.okamoto_uchiyama",
    "paillier": "additive.paillier",
    "programs": "programs",
    "text": "text",
    "writer": "writer",
}
_NAMES = {
    "AsyncHttpClient": "http",
    "BM25": "collections.ranking",
    "Muvera": "collections.embedding.multi",
    "Client": "collections.client",
    "Clusters": "collections.spec",
    "Codebook": "codebooks.codebook",
    "Collection": "collections.collection",
    "EmbeddingFunction": "collections.embedding.function",
    "EncryptedNearestNeighbors": "collections.index",
    "GetResult": "collections.results",
    "HttpClient": "http",
    "Identity": "collections.keys",
    "Index": "collections.index",
    "KeyRing": "collections.keys",
    "Keys": "collections.keys",
    "Matches": "collections.results",
    "Member": "collections.members",
    "Members": "collections.members",
    "Network": "ingest.network",
    "Owner": "collections.owner",
    "OwnerMatches": "collections.audience",
    "OwnerResult": "collections.audience",
    "PersistentClient": "collections.client",
    "PrivateTable": "collections.private_table",
    "PrivateTableClient": "collections.private_table",
    "Probe": "collections.owner",
    "Program": "programs.program",
    "QueryResult": "collections.results",
    "Rerank": "collections.ranking",
    "Roc": "collections.roc",
    "Rrf": "collections.ranking",
    "SealedQuery": "collections.owner",
    "SparseOnly": "collections.ranking",
    "SparseVectors": "collections.ranking",
    "Threshold": "collections.roc",
    "Weighted": "collections.ranking",
    "Writer": "writer.writer",
    "WrittenBatch": "writer.pending_batch",
    "fold": "programs.helpers",
    "program": "programs.program",
    "public": "programs.kinds",
    "register_embedding_function": "collections.embedding.encoders",
    "secret": "programs.kinds",
    "trace_calls": "ingest.spans",
}


if not TYPE_CHECKING:  # to whom every name would be there

    def __getattr__(name: str) -> Any:
        found: Any
        if name in _NAMES:
            found = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        elif name in _MODULES:
            found = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        elif name in _moved.MOVED:
            new = f"{__name__}.{_moved.MOVED[name]}"
            _moved.warn(f"{__name__}.{name}", new, 2)
            return importlib.import_module(new)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})


_moved.install()

__all__ = [
    "BM25",
    "AsyncHttpClient",
    "AuthenticationError",
    "BoundExceeded",
    "CiphervecError",
    "Client",
    "Clusters",
    "Codebook",
    "Collection",
    "CollectionExists",
    "CollectionNotFound",
    "CommitUncertain",
    "Conflict",
    "CorruptData",
    "DuplicateId",
    "EmbeddingFunction",
    "EncryptedNearestNeighbors",
    "EvaluationKeys",
    "GetResult",
    "HttpClient",
    "Identity",
    "Index",
    "IndexSpec",
    "InvalidInput",
    "InvalidRows",
    "KeyRing",
    "KeyShare",
    "Keys",
    "Matches",
    "Member",
    "MemberCard",
    "Members",
    "Muvera",
    "Network",
    "Owner",
    "OwnerMatches",
    "OwnerResult",
    "PersistentClient",
    "PinMismatch",
    "PoolExhausted",
    "PrivateTable",
    "PrivateTableClient",
    "Probe",
    "Program",
    "ProgramError",
    "ProgramNotFound",
    "QueryResult",
    "Recipient",
    "Rerank",
    "Roc",
    "RollbackDetected",
    "Rrf",
    "SealedQuery",
    "SealedSegment",
    "ServerError",
    "ServerIndex",
    "SharedKeys",
    "SparseOnly",
    "SparseVectors",
    "StorageError",
    "StoreLocked",
    "TableNotFound",
    "Threshold",
    "UnknownId",
    "UnsupportedVersion",
    "Weighted",
    "Writer",
    "WriterCard",
    "WrittenBatch",
    "WrongKey",
    "__version__",
    "available_backends",
    "backend",
    "ckks",
    "damgard_jurik",
    "elgamal",
    "errors",
    "fold",
    "get_threads",
    "http",
    "lookup",
    "okamoto_uchiyama",
    "paillier",
    "program",
    "programs",
    "public",
    "register_embedding_function",
    "secret",
    "set_threads",
    "text",
    "trace_calls",
]
