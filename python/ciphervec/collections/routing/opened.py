"""Opened routing: a collection's sealed table enters; which segment is which cluster, and where these lie, leave. Key owner's
side."""

from __future__ import annotations

from ...errors import InvalidInput
from ...ingest.arrays import FloatArray
from ..owner import Owner
from ..states import State, States
from ..stores.store import CollectionStore
from ..write_batch import ROUTING
from .table import SLOTS, RoutingTable, open_centroids


class OpenedRouting:
    """The routing of a collection as of the state that its owner holds; empty where nothing is routed."""

    def __init__(self, store: CollectionStore, states: States) -> None:
        self._store = store
        self._states = states
        self.table: RoutingTable | None = None
        self._clusters: dict[bytes, int] = {}
        self._centroids: FloatArray | None = None

    def open(self, owner: Owner, state: State | None) -> None:
        """Read the table that goes with a state, in place of what was here. Raises CorruptData."""
        self.table, self._clusters, self._centroids = None, {}, None
        if state is None or not any(state.routing):
            return
        sealed = self._store.attachment(ROUTING)
        self._states.check_attachment(ROUTING, sealed)
        self.take(RoutingTable.open(owner, sealed))

    def take(self, table: RoutingTable) -> None:
        """Go on with another table, which a commit has put into force."""
        self.table, self._clusters = table, table.clusters

    def hidden(self, segment_id: bytes) -> list[int]:
        """Rows that don't count though the store knows nothing of it."""
        number = self._clusters.get(segment_id)
        return [] if number is None or self.table is None else self.table.hidden(number)

    def cluster_of(self, segment_id: bytes) -> int | None:
        """Which cluster a segment is; None for one that is unrouted."""
        return self._clusters.get(segment_id)

    def staged(self) -> set[bytes]:
        """Segments that were made to become clusters and don't count yet."""
        return set() if self.table is None else self.table.staged

    def routed(self) -> set[bytes]:
        """Segments that are clusters, or are to become some."""
        return {*self._clusters, *self.staged()}

    def centroids(self, owner: Owner) -> FloatArray:
        """The centroids of the clusters in use. Raises CorruptData, or InvalidInput where there are none."""
        table = self.table
        if table is None or table.active is None:
            raise InvalidInput("nothing is clustered here yet: call recluster().")
        if self._centroids is None:
            sealed = self._store.attachment(SLOTS[table.active.slot])
            self._centroids = open_centroids(owner, sealed, table.active)
        return self._centroids
