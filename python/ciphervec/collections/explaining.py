"""What one query of a collection costs and shows the server, and what clustering made: in figures and in words, for the key
owner."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any


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
                f"{scanned}, {share:.1f} times fewer",
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
