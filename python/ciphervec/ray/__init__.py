"""Ray: a cluster beside a bucket or a folder, whose workers seal collections and whose scanners answer queries.

Two clusters, never one: `seal_dataset` runs where vectors may be seen, inside the owner's trust;
`ScannerPool` and `serve_front` run where they may not, and hold nothing but what a server holds.
Needs `pip install 'ciphervec[ray]'`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..ingest.extras import needed

if TYPE_CHECKING:
    from .cluster import local_cluster
    from .front import ServeFront, serve_front
    from .pool import PoolAnswer, ScannerPool
    from .scanner import OtherQueryKeys, QueryKeysMissing
    from .seal import Sealed, seal_dataset

_NAMES = {
    "OtherQueryKeys": "scanner",
    "PoolAnswer": "pool",
    "QueryKeysMissing": "scanner",
    "ScannerPool": "pool",
    "Sealed": "seal",
    "ServeFront": "front",
    "local_cluster": "cluster",
    "seal_dataset": "seal",
    "serve_front": "front",
}


def __getattr__(name: str) -> Any:
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f".{module}", __name__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"ray", "pyarrow", "starlette"}:
            raise
        raise needed("ciphervec.ray", str(error.name), "ray") from error


__all__ = [
    "OtherQueryKeys",
    "PoolAnswer",
    "QueryKeysMissing",
    "ScannerPool",
    "Sealed",
    "ServeFront",
    "local_cluster",
    "seal_dataset",
    "serve_front",
]
