"""Imports modules by their paths of release 0.1, with a DeprecationWarning.

The old paths keep importing for one minor version. The names that `ciphervec` itself exports have
not moved.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "adamw": "codebooks.adamw",
    "archive": "ingest.archive",
    "arrays": "ingest.arrays",
    "batch": "collections.batch",
    "changes": "collections.batch",
    "ckks_array": "ckks.array",
    "client": "collections.client",
    "codebook": "codebooks.codebook",
    "codebooks.compare": "cli.codebook_table",
    "collection": "collections.collection",
    "damgard_jurik": "additive.damgard_jurik",
    "elgamal": "additive.elgamal",
    "encrypted_array": "additive.encrypted_array",
    "encrypted_vectors": "additive.encrypted_vectors",
    "fixed_point": "additive.fixed_point",
    "http.exchange": "http.transport_types",
    "http.link": "http.session",
    "index": "collections.index",
    "keys": "collections.keys",
    "matches": "collections.results",
    "neighbors": "collections.index",
    "noise_pool": "additive.noise_pool",
    "okamoto_uchiyama": "additive.okamoto_uchiyama",
    "owner": "collections.owner",
    "paillier": "additive.paillier",
    "probe": "collections.owner",
    "records": "ingest.records",
    "results": "collections.results",
    "spec": "collections.spec",
    "where": "ingest.where",
    "written": "writer.pending_batch",
}
"""Old path to new, both under `ciphervec`."""

_ROOT = "ciphervec."


def new_path(old: str) -> str | None:
    """Where the module of this full name lies now; None if it has not moved."""
    new = MOVED.get(old.removeprefix(_ROOT)) if old.startswith(_ROOT) else None
    return None if new is None else _ROOT + new


def warn(old: str, new: str, stacklevel: int) -> None:
    """Say where a module has moved to."""
    warnings.warn(
        f"{old} has moved to {new}; the old path goes with the next minor version.",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


class _Finder(MetaPathFinder, Loader):
    """Imports a module by its old path: the same object, so that its classes are one class."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = new_path(fullname)
        if new is None:
            return None
        warn(fullname, new, 2)  # the import system's own frames don't count
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(new_path(spec.name) or spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has put the old path's spec in its place.
        spec = module.__spec__
        if spec is not None and spec.loader is self:
            module.__spec__ = spec.loader_state


def install() -> None:
    """Let old paths be imported."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
