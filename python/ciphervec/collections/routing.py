"""Clusters: how a collection is to be routed enters; the checked choice leaves. Runs on the key owner's side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .._native import IndexSpec
from ..errors import InvalidInput
from ..ingest.arrays import count, finite

MAX_CLUSTERS = 1 << 20
"""Clusters of one collection: a query names segments by 16 bytes each."""

_OPEN = "sealed-query"


@dataclass(frozen=True)
class Clusters:
    """Routing for `create_collection(..., routing=Clusters())`: a query asks about a few clusters of near rows
    instead of all rows, and shows the server which.

    `count` clusters of equally many rows, `probes` of them scanned for a query, and `decoys` beside these: what is
    left out is chosen when the rows are clustered (`Collection.recluster`), so that `recall` of the ten nearest rows are
    found, measured on the key holder's own rows; as many decoys as probes. Clusters stand in fixed secret groups of one
    and its decoys, so that decoys are rounded up to a multiple of the probes, and a query names whole groups. In mode
    `sealed-query`, where the server can compute the centroids from the rows it holds and so learns where each query
    lies, routing has to be asked for with `server_learns_queries=True`.

    What one query shows: the names of `probes + decoys` clusters, in a random order, and nothing else of which are
    the real ones. Related queries share whole groups, so that however many there are, the server can't tell within a group;
    that they are related it sees. `where=` and `ids=` choose among the rows of these clusters, and no others are scanned
    for them.
    """

    count: int | None = None
    probes: int | None = None
    decoys: int | None = None
    recall: float = 0.95
    server_learns_queries: bool = False

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        for name, least in (("count", 2), ("probes", 1), ("decoys", 0)):
            value = getattr(self, name)
            if value is not None:
                # Zero decoys are a choice; `count` takes what is counted from one.
                object.__setattr__(self, name, count(value + 1, f"{name} + 1") - 1)
                if not least <= getattr(self, name) <= MAX_CLUSTERS:
                    raise InvalidInput(f"{name} must be {least} to {MAX_CLUSTERS:,}, got {value!r}.")
        if not 0 < finite(self.recall, "recall") <= 1:
            raise InvalidInput(f"recall must be above 0 and at most 1, got {self.recall!r}.")
        if self.count is not None and (self.probes or 1) + (self.decoys or 0) > self.count:
            raise InvalidInput(
                f"{self.probes or 1} probes and {self.decoys or 0} decoys are more than {self.count} clusters."
            )

    def check(self, spec: IndexSpec, filterable: tuple[str, ...]) -> None:
        """Whether a collection of this description may be routed. Raises InvalidInput saying why not."""
        if spec.mode == "sealed-index":
            raise InvalidInput(
                "routing is refused in mode 'sealed-index': the server sees the queries, and from where they lie and which "
                "clusters they name it learns where the centroids are, and so about where each sealed row is. Use mode "
                "'sealed'."
            )
        if spec.mode == "open":
            raise InvalidInput("mode 'open' hides nothing and is not routed: it is there to compare with.")
        if spec.mode == _OPEN and not self.server_learns_queries:
            raise InvalidInput(
                "in mode 'sealed-query' the server has the rows, computes the centroids itself, and learns from the clusters "
                "that a query names where it lies: to the precision of a cluster. If that is acceptable, say so with "
                "Clusters(server_learns_queries=True); mode 'sealed' does not show it."
            )
        if filterable:
            raise InvalidInput(
                "a routed collection has no filterable fields: their tags would show the server which rows of a cluster are "
                "alike, and which are padding. where= works on every field without, and is tested here."
            )

    def to_json(self) -> dict[str, Any]:
        """What the description keeps, sealed."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Any) -> Clusters | None:
        """The same, read."""
        return None if content is None else cls(**content)
