"""What a collection says of itself, for the key owner: what it holds, what one query costs and shows the server, and what
clustering made; in figures and in words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .._native import IndexSpec
from ..ingest.network import Network
from .batch import ORIGINALS, RECORDS, ROWS, SIDECAR, TAGS, WRAP


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
        "author": _named(("name", "fingerprint", "members"), known["author"]),
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


@dataclass(frozen=True)
class Explanation:
    """What `Collection.explain` says; `str()` of it is for people."""

    rows: int
    """Rows that count."""
    routed: bool
    clusters: int
    rows_each: int
    """Of a cluster, padding included."""
    probes: int
    decoys: int
    unrouted_rows: int
    """Rows that every query scans: they came, or were changed, since the rows were clustered."""
    padding_rows: int
    """In all clusters; rows that were deleted since are among them."""
    rows_scanned: int
    """For one question: of clusters and decoys, padding included, and the unrouted ones."""
    bytes_up: int | None
    bytes_down: int | None
    """Of the latest question that was asked alone, and its answer; None where there was none."""
    recall: float | None
    """The share of the ten nearest rows that the probes find, measured when the rows were clustered, on questions of the key
    holder's."""
    odds: float | None
    """By which a cluster that is named is a real one, to one, for a server to which all clusters are equally likely."""
    leak: str
    """What a query shows the server beside sizes and times."""
    bytes_ahead: int = 0
    """Of the answer to the latest lone question, what had been fetched ahead of it, see `Collection.prefetch`; `bytes_down`
    came afterwards."""
    tokens: int = 0
    """Questions whose half of the answer is here already."""
    token_bytes: int = 0
    """That these take in memory."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Explanation:
        """From what the core tells."""
        routing, traffic = told["routing"] or {}, told["traffic"] or (None, None, 0)
        probes, decoys = routing.get("probes", 0), routing.get("decoys", 0)
        return cls(
            rows=told["rows"],
            routed=told["routed"],
            clusters=routing.get("clusters", 0),
            rows_each=routing.get("rows_each", 0),
            probes=probes,
            decoys=decoys,
            unrouted_rows=told["unrouted"],
            padding_rows=routing.get("padding", 0),
            rows_scanned=told["rows_scanned"],
            bytes_up=traffic[0],
            bytes_down=traffic[1],
            recall=routing.get("recall"),
            odds=probes / decoys if decoys else None,
            leak=told["leak"],
            bytes_ahead=traffic[2],
            tokens=told["tokens"][0],
            token_bytes=told["tokens"][1],
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        scanned = f"{self.rows_scanned:,} rows scanned for {self.rows:,}"
        lines = []
        if not self.routed:
            lines.append(f"not routed: {scanned}")
        elif not self.clusters:
            lines.append(f"routed, and not clustered yet: {scanned}; call recluster()")
        else:
            share = self.rows / self.rows_scanned if self.rows_scanned else math.inf
            lines += [
                f"{self.clusters:,} clusters of {self.rows_each:,} rows, {self.padding_rows:,} of all of these padding",
                f"one question: {self.probes} clusters, {self.decoys} decoys and {self.unrouted_rows:,} unrouted rows: "
                f"{scanned}" + (f", {share:.1f} times fewer" if share > 1 else ""),
                f"recall@10 when it was clustered: {self.recall:.4f}",
            ]
        if self.bytes_down is not None:
            ahead = f", and {self.bytes_ahead:,} ahead of it by a token" if self.bytes_ahead else ""
            lines.append(f"bytes of a question: {self.bytes_up:,}; of its answer: {self.bytes_down:,}{ahead}")
        if self.tokens:
            lines.append(f"tokens: {self.tokens}, for a question each, of {self.token_bytes:,} bytes")
        return "\n".join([*lines, f"shown to the server: {self.leak}"])


@dataclass(frozen=True)
class Clustered:
    """What `Collection.recluster` made."""

    clusters: int
    """0: there are too few rows for any."""
    rows_each: int
    """Of a cluster, padding included."""
    probes: int
    decoys: int
    recall: float
    """The share of the ten nearest rows that so many probes find, measured on questions of the key holder's."""
    recalls: tuple[float, ...]
    """The same for 1, 2, … probes; empty where the clusters were begun by an earlier call."""
    unrouted: int
    """Rows that stayed so, because their records are too long."""

    def __str__(self) -> str:
        if not self.clusters:
            return "not clustered: there are too few rows"
        curve = "; ".join(f"{n}: {self.recalls[n - 1]:.4f}" for n in _shown(len(self.recalls)))
        return (
            f"{self.clusters:,} clusters of {self.rows_each:,} rows; recall@10 of {self.probes} probes {self.recall:.4f}, "
            f"{self.decoys} decoys" + (f" (recall by probes: {curve})" if curve else "")
        )


def _shown(most: int) -> Iterator[int]:
    number = 1
    while number <= most:
        yield number
        number *= 2
