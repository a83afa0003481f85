"""Search embeddings that stay encrypted: vectors are sealed by their owner and searched by a machine that
never sees them."""

from __future__ import annotations

from . import ckks, damgard_jurik, elgamal, errors, http, lookup, okamoto_uchiyama, paillier, text
from ._native import (
    EvaluationKeys,
    IndexSpec,
    SealedSegment,
    ServerIndex,
    WriterCard,
    __version__,
    available_backends,
    backend,
    get_threads,
    set_threads,
)
from .client import Client, PersistentClient
from .codebook import Codebook
from .collection import Collection
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
    PinMismatch,
    PoolExhausted,
    RollbackDetected,
    ServerError,
    StorageError,
    StoreLocked,
    UnknownId,
    UnsupportedVersion,
    WrongKey,
)
from .http import AsyncHttpClient, HttpClient
from .index import Index
from .keys import Keys
from .matches import Matches
from .neighbors import EncryptedNearestNeighbors
from .owner import Owner, SealedQuery
from .probe import Probe
from .results import GetResult, QueryResult
from .writer import Writer
from .written import WrittenBatch

__all__ = [
    "AsyncHttpClient",
    "AuthenticationError",
    "BoundExceeded",
    "CiphervecError",
    "Client",
    "Codebook",
    "Collection",
    "CollectionExists",
    "CollectionNotFound",
    "CommitUncertain",
    "Conflict",
    "CorruptData",
    "DuplicateId",
    "EncryptedNearestNeighbors",
    "EvaluationKeys",
    "GetResult",
    "HttpClient",
    "Index",
    "IndexSpec",
    "InvalidInput",
    "Keys",
    "Matches",
    "Owner",
    "PersistentClient",
    "PinMismatch",
    "PoolExhausted",
    "Probe",
    "QueryResult",
    "RollbackDetected",
    "SealedQuery",
    "SealedSegment",
    "ServerError",
    "ServerIndex",
    "StorageError",
    "StoreLocked",
    "UnknownId",
    "UnsupportedVersion",
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
    "get_threads",
    "http",
    "lookup",
    "okamoto_uchiyama",
    "paillier",
    "set_threads",
    "text",
]
