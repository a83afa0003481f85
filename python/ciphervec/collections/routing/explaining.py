"""Explaining: an opened collection enters; what a query of it costs and shows the server leaves, in figures and in
words. Runs on the key owner's side."""

from __future__ import annotations

import math
import secrets
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..segments import Segments
from .search import answers_of, named


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
    """Of one question and its answer; None where the server is across a network and none was asked yet."""
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


def explain(segments: Segments) -> Explanation:
    """What one question costs and shows now. Where the server is in this process it is asked one, about nothing."""
    table, choice = segments.routing, segments.description.routing
    active = None if table is None else table.active
    passed_over = segments.reasons
    fresh = [one for one in segments.fresh() if one.id not in passed_over]
    waiting = sum(one.rows for one in fresh)
    count = 0 if active is None else active.named
    up, down = _traffic(segments)
    return Explanation(
        rows=len(segments.owner),
        routed=choice is not None,
        clusters=0 if active is None else active.count,
        rows_each=0 if active is None else active.rows,
        probes=0 if active is None else active.probes,
        decoys=0 if active is None else count - active.probes,
        unrouted_rows=waiting,
        padding_rows=0
        if active is None or table is None
        else active.padding + sum(map(len, table.dead.values())),
        rows_scanned=waiting + (0 if active is None else count * active.rows),
        bytes_up=up,
        bytes_down=down,
        recall=None if active is None else active.recall,
        odds=None if active is None or count == active.probes else active.probes / (count - active.probes),
        leak=_leak(segments, count),
        bytes_ahead=segments.tokens.ahead,
        tokens=len(segments.tokens),
        token_bytes=segments.tokens.nbytes,
    )


def _leak(segments: Segments, count: int) -> str:
    active = None if segments.routing is None else segments.routing.active
    mode = segments.description.spec.mode
    if active is None:
        shown = "nothing of the question" if mode in ("sealed", "sealed-query") else "the question"
        return f"{shown}; every segment is touched"
    decoys = count - active.probes
    hides = (
        f"one question hides its {active.probes} clusters among the {count} of {active.count:,} that it names, in fixed secret "
        f"groups of {active.size}, always whole: a server to which all clusters are equally likely takes one of these for real "
        f"with odds {active.probes} to {decoys}, one to which a cluster is w times as likely as another with w times the odds, "
        "and no number of related questions tells which of a group is the real one"
        if decoys
        else f"the {active.probes} clusters of a question, of {active.count:,}: there are no decoys"
    )
    beside = (
        "; the server can compute the centroids from its rows, and so learns where each question lies, to the precision of "
        "a cluster"
        if mode == "sealed-query"
        else ""
    )
    return (
        f"{hides}. The real clusters are always among them: repeated and related questions share groups, and so show that they "
        f"are related. There is no ε that bounds this{beside}. Reading documents, metadata or vectors "
        "of hits from a server shows their clusters, unless they are held here"
    )


def _traffic(segments: Segments) -> tuple[int | None, int | None]:
    """Bytes of one question and its answer."""
    server = segments.server
    if len(segments.owner) == 0:
        return None, None
    if server.remote:
        return segments.traffic if all(segments.traffic) else (None, None)
    rng = np.random.Generator(np.random.PCG64(secrets.randbits(64)))
    spec = segments.owner.spec
    question = np.where(rng.random((1, spec.dimension)) < 0.5, -1, 1).astype(np.float32)
    asked = None if segments.description.routing is None else named(segments, question)
    centers = segments.owner.centers()
    center = centers[0] if centers else None
    query = segments.owner.query(question, segments=asked, answers=answers_of(segments), center=center)
    answer, several = server.evaluate(query.to_bytes()).data, max(1, len(centers))
    return several * query.nbytes, several * len(answer)
