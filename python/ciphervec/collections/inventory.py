"""Inventory: a collection's segments enter; counts, sizes and what protects them leave. Runs on the
key owner's side."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..ingest.network import Network
from . import merging, payloads, query_keys
from .segments import Segments
from .write_batch import ORIGINALS, RECORDS, ROWS, SIDECAR, TAGS, WRAP


def inventory(segments: Segments, network: Network | None = None) -> dict[str, Any]:
    """What `Collection.info` says, of packing for this network. The caller holds the lock."""
    entries = segments.entries()
    sizes = {
        name: sum(s.blobs.get(name, 0) for s in entries)
        for name in (ROWS, SIDECAR, RECORDS, TAGS, WRAP, ORIGINALS)
    }
    owner, description, spec = segments.owner, segments.description, segments.owner.spec
    refused = set(owner.refused())
    staged, table = segments.staged(), segments.routing
    stored = sum(segment.rows for segment in entries if segment.id not in staged)
    padding = 0 if table is None or table.active is None else table.active.padding
    unread = sum(s.rows - len(s.deleted) for s in entries if s.id in refused)
    writers: dict[str, int] = {}
    for segment in entries:
        if (writer := owner.writer_of(segment.id)) is not None:
            writers[writer] = writers.get(writer, 0) + segment.rows - len(segment.deleted)
    rotation = description.rotation
    state, reasons = segments.state, segments.reasons
    network = description.network if network is None else network
    packing = owner.packing(network)
    ignored, tables = owner.aside(), segments.payloads.tables
    return {
        "name": spec.collection,
        "dimension": spec.dimension,
        "metric": spec.metric,
        "mode": spec.mode,
        "precision": spec.precision,
        "scheme": spec.scheme,
        "bits": spec.bits,
        "filterable": list(description.filterable),
        "untagged": sum(segment.id in description.untagged for segment in entries),
        "originals": description.originals,
        "embedding_function": None if description.embedding is None else description.embedding.name,
        "routing": _routing(segments),
        "key_id": description.key_id,
        "epoch": description.epoch,
        "query_key": _query_key(segments),
        "rotation": None if rotation is None else {"from": rotation.previous_id, "to": description.key_id},
        "count": len(owner),
        "deleted": stored - len(owner) - unread - len(ignored) - padding,
        "segments": len(entries),
        "packing": None if packing is None else {**packing._asdict(), "network": network._asdict()},
        "small_segments": merging.small(segments),
        "writers": writers,
        "written_segments": {
            segment.id.hex(): writer
            for segment in entries
            if (writer := owner.writer_of(segment.id)) is not None
        },
        "shadowed": len(owner.shadowed()),
        "refused": [segment.hex() for segment in owner.refused()],
        "old_kind": [segment.hex() for segment in owner.outdated()],
        "unchecked_blocks": owner.unchecked_blocks(),
        "quarantine": [segment.hex() for segment in owner.quarantined()],
        "reasons": {segment.hex(): reason for segment, reason in reasons.items()},
        "authenticated": state is not None,
        "state": None
        if state is None
        else {"sequence": state.sequence, "lineage": state.lineage.hex(), "begun": state.begun},
        "appended": [segment.hex() for segment in segments.appended],
        "ignored": dict(Counter(name for name, _, _ in ignored)),
        "duplicates": list(dict.fromkeys(owner.repeated())),
        "filter_tables": {"segments": len(tables), "bytes": tables.nbytes, "limit": payloads.TABLE_BYTES},
        "bytes": sizes,
        "bytes_total": sum(sizes.values()),
        "bytes_per_vector": (sizes[ROWS] + sizes[SIDECAR] + sizes[ORIGINALS]) / stored if stored else 0.0,
        "security": spec.security(),
    }


def _query_key(segments: Segments) -> dict[str, Any] | None:
    """What queries are asked under; None where they are plain."""
    if segments.description.spec.mode not in ("sealed", "sealed-query"):
        return None
    keys = segments.query_keys
    return {
        "session": keys.epoch,
        "queries": keys.asked_outside if keys.refused else keys.used(),
        "most": query_keys.QUERIES_PER_KEY,
        "refused": keys.refused,
    }


def _routing(segments: Segments) -> dict[str, Any] | None:
    """What is clustered, and what is not; None where nothing is routed."""
    if segments.description.routing is None:
        return None
    table = segments.routing
    active = None if table is None else table.active
    shape: dict[str, Any] = {
        "clusters": 0,
        "rows_each": 0,
        "probes": 0,
        "decoys": 0,
        "recall": None,
        "padding": 0,
    }
    if active is not None:
        shape = {
            "clusters": active.count,
            "rows_each": active.rows,
            "probes": active.probes,
            "decoys": active.named - active.probes,
            "recall": active.recall,
            "padding": active.padding,
        }
    return {
        **shape,
        "unrouted": sum(one.rows - len(one.deleted) for one in segments.fresh()),
        "being_made": len(segments.staged()),
    }
