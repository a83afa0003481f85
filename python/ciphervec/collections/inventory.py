"""What the core knows of a collection, as `Collection.info` gives it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .._native import IndexSpec
from ..ingest.network import Network
from .write_batch import ORIGINALS, RECORDS, ROWS, SIDECAR, TAGS, WRAP


def inventory(spec: IndexSpec, known: Mapping[str, Any]) -> dict[str, Any]:
    """The documented dictionary."""
    segments = known["segments"]
    sizes = {
        name: sum(held.get(name, 0) for _, _, _, held, _ in segments)
        for name in (ROWS, SIDECAR, RECORDS, TAGS, WRAP, ORIGINALS)
    }
    previous, stored = known["rotates_from"], sum(rows for _, rows, *_ in segments)
    function = known["embedding_function"]
    written = {id: writer for id, _, _, _, writer in segments if writer is not None}
    return {
        "name": spec.collection,
        "dimension": spec.dimension,
        "metric": spec.metric,
        "mode": spec.mode,
        "precision": spec.precision,
        "scheme": spec.scheme,
        "bits": spec.bits,
        "filterable": known["filterable"],
        "untagged": known["untagged"],
        "originals": known["originals"],
        "embedding_function": None if function is None else json.loads(function)["name"],
        "routing": _routing(known["routing"]),
        "key_id": known["key_id"],
        "epoch": known["epoch"],
        "query_key": _named(("session", "queries", "most", "refused"), known["query_key"]),
        "rotation": None if previous is None else {"from": previous, "to": known["key_id"]},
        "count": known["rows"],
        "deleted": known["deleted"],
        "segments": len(segments),
        "packing": _packing(known["packing"]),
        "small_segments": known["small_segments"],
        "writers": known["writers"],
        "written_segments": written,
        "shadowed": known["shadowed"],
        "refused": list(known["refused"]),
        "old_kind": known["outdated"],
        "unchecked_blocks": known["unchecked_blocks"],
        "quarantine": list(known["quarantine"]),
        "reasons": {**known["refused"], **known["quarantine"]},
        "authenticated": known["authenticated"],
        "state": _state(known["state"], known["begun"]),
        "appended": known["appended"],
        "ignored": dict(Counter(name for name, _ in known["ignored"])),
        "duplicates": list(dict.fromkeys(known["duplicates"])),
        "filter_tables": _named(("segments", "bytes", "limit"), known["filter_tables"]),
        "bytes": sizes,
        "bytes_total": sum(sizes.values()),
        "bytes_per_vector": (sizes[ROWS] + sizes[SIDECAR] + sizes[ORIGINALS]) / stored if stored else 0.0,
        "security": spec.security(),
    }


def _named(names: tuple[str, ...], values: tuple[Any, ...] | None) -> dict[str, Any] | None:
    return None if values is None else dict(zip(names, values, strict=True))


def _state(state: tuple[int, str] | None, begun: int | None) -> dict[str, Any] | None:
    return None if state is None else {"sequence": state[0], "lineage": state[1], "begun": begun}


def _packing(packing: tuple[Any, Any, Any] | None) -> dict[str, Any] | None:
    if packing is None:
        return None
    (level, size, seconds), levels, (rate, round_trip) = packing
    network = Network(rate / 125e3, 1e3 * round_trip)
    return {
        "level": level,
        "answer_bytes": size,
        "answer_seconds": seconds,
        "rows_by_level": levels,
        "network": network._asdict(),
    }


def _routing(routing: tuple[Mapping[str, Any] | None, int, int] | None) -> dict[str, Any] | None:
    if routing is None:
        return None
    clusters, unrouted, being_made = routing
    nothing = {"clusters": 0, "rows_each": 0, "probes": 0, "decoys": 0, "recall": None, "padding": 0}
    return {**(clusters or nothing), "unrouted": unrouted, "being_made": being_made}
