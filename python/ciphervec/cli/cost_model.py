"""Cost model of `plan`: machines, bytes, latency and dollars a query, by arithmetic alone, without Ray or a key.

Sizes are those of the formats (docs/sealed.md): what a row takes packed, what an answer has for it.
Speeds and prices are stated, and options replace them. Measured once on the machine that is to run
it, `ciphervec bench scale` gives speeds that are worth more than these.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import ciphervec._native as _native

from ..errors import InvalidInput

DEGREE = 4096
"""Coefficients of a polynomial in the ring form."""
_WORD_BITS = {7: 24, 8: 23, 9: 22}
"""Bits of a coefficient of V in an answer, by the level of the index (docs/sealed.md, section 2.3);
above and below these the nearest. A score's own word has six bits less."""
_QUERY_BYTES = 25_700
_KEYS_BYTES = 615_000
_SQUARE_BYTES = 51 << 10
"""The key of t² that a query brings whose clusters are folded."""
_NUMBERS = 4
"""Digits of a bit of a cluster's number, each a number under encryption."""
_NAME_BYTES = 16
_SIDECAR_ROW = 40
"""Bytes a row of ids, norms and check sums in the encrypted sidecar, without documents."""
_MAX_NODES = 1024
_BUSY = 0.7
"""Of a machine's threads, those that may be busy on average: beyond it queries wait."""


@dataclass(frozen=True)
class Speeds:
    """What one machine does. Those of one thread were measured by `make bench` on AMD EPYC with
    AVX-512 (benches/results/search-1-query.md)."""

    ns_a_number_sealed: float = 0.24
    """Scan and answer, nanoseconds of one thread a number (a dimension of a vector), ring form."""
    ns_a_number_compact: float = 0.10
    """The same for `sealed-index`."""
    node_us: float = 46.0
    """Expanding one node of a query's tree, microseconds of one thread."""
    fold_us: float = 50.0
    """Folding a block of rows to one of the clusters that a query chooses, microseconds of one thread."""
    memory_gb_s: float = 8.0
    """Bytes a thread reads from memory beside the other threads of its machine."""
    open_ns_a_row: float = 16.0
    """What the key holder takes for a row of an answer, one thread."""


@dataclass(frozen=True)
class Prices:
    """Dollars. The defaults are list prices of a large cloud for memory-rich machines by the hour, its
    object storage, and its traffic to the internet."""

    machine_hour: float = 2.02
    machine_threads: int = 32
    machine_memory_gb: float = 256.0
    storage_gb_month: float = 0.023
    request_million: float = 0.40
    egress_gb: float = 0.05


@dataclass(frozen=True)
class Routing:
    """A routed collection: how many clusters, how many of them a query asks for, and how many more it
    asks for beside, so that nobody sees which."""

    clusters: int
    probes: int
    decoys: int
    padding: float = 1.05
    """Rows a cluster is filled up to, as a multiple of the mean: all clusters look alike."""
    fresh: float = 0.01
    """Share of the rows that came since the last clustering, which every query scans."""
    oblivious: bool = False
    """Whether all clusters are scanned, and folded under encryption to those that a query probes."""

    @property
    def share(self) -> float:
        """Of the padded rows, those that one query scans."""
        return 1.0 if self.oblivious else min(1.0, (self.probes + self.decoys) / self.clusters)


@dataclass(frozen=True)
class Estimate:
    """What it takes; bytes in bytes, times in seconds, money in dollars."""

    rows: float
    dimension: int
    mode: str
    routing: str
    way: str
    """`whole`, `routed`, or `oblivious`."""
    queries_a_second: float
    level: int
    rows_scanned: float
    """A query, with padding, decoys and fresh rows."""
    stored_bytes: float
    """With the vectors as they were put in, which a collection keeps unless told."""
    memory_bytes: float
    machines: int
    shards: int
    """Machines that hold all rows together; beyond that are copies, for the load."""
    bytes_up: float
    bytes_down: float
    core_seconds: float
    latency: float
    scan_seconds: float
    transfer_seconds: float
    dollars_a_query: float
    dollars_a_month: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


TIPTOE = {
    "name": "Tiptoe (SOSP 2023), as printed",
    "rows": 360e6,
    "dimension": 192,
    "machines": 45,
    "core_seconds": 57.0,
    "bytes": 14.7 * 2**20,
    "latency": 2.7,
    "dollars_a_query": 0.001,
}
"""A private search over web pages by clusters, its embeddings plain at the server; 100 Mbit/s."""


class Layout(NamedTuple):
    """How rows lie in the ring form at one level of the query's tree."""

    level: int
    nodes: int
    """Polynomials a block, one a node of the tree."""
    rows: int
    """A block: those whose scores one polynomial holds."""
    block_bytes: int


def layouts(dimension: int) -> list[Layout]:
    """Those that a segment of this dimension may have, by level. Raises InvalidInput."""
    return [Layout(level, *sizes) for level, sizes in enumerate(_native.ring_layouts(dimension))]


def _answer_row(layout: Layout) -> float:
    """Bytes of an answer for a row of a full block."""
    bits = _WORD_BITS[min(max(layout.level, min(_WORD_BITS)), max(_WORD_BITS))]
    return (bits - 6 + bits * DEGREE / layout.rows) / 8


def estimate(
    rows: float,
    dimension: int,
    queries_a_second: float,
    *,
    mode: str = "sealed",
    routing: Routing | None = None,
    speeds: Speeds | None = None,
    prices: Prices | None = None,
    bandwidth_gbit: float = 1.0,
    round_trip: float = 0.02,
    scan_seconds: float = 1.0,
    originals: bool = True,
) -> Estimate:
    """What a collection of so many rows takes under this load.

    Machines are as many as hold the padded rows in memory and scan for one query within
    `scan_seconds`, and all of that as often as the load needs at 70 % of their threads.
    `bandwidth_gbit` is between the machines and the key holder; `originals` counts the vectors that a collection keeps
    as they were put in. Where clusters are folded obliviously, one machine has all of them; an answer about all rows is
    counted in place of that where it comes sooner, as the client asks for it then. Raises InvalidInput.
    """
    common = (rows, dimension, queries_a_second, mode, routing, speeds, prices)
    network = (bandwidth_gbit, round_trip, scan_seconds, originals)
    whole = _estimate(*common, *network, fold=False)
    if routing is None or not routing.oblivious:
        return whole
    if whole.memory_bytes > _room(prices or Prices()):
        return replace(
            whole, routing=f"{whole.routing}; answered whole: one machine does not hold all clusters"
        )
    folded = _estimate(*common, *network, fold=True)
    if whole.latency <= folded.latency:
        return replace(whole, routing=f"{whole.routing}; answered whole, which comes sooner")
    return folded


def _room(prices: Prices) -> float:
    """Bytes of a machine's memory that rows may take."""
    return prices.machine_memory_gb * 1e9 * 0.85


def _estimate(
    rows: float,
    dimension: int,
    queries_a_second: float,
    mode: str,
    routing: Routing | None,
    speeds: Speeds | None,
    prices: Prices | None,
    bandwidth_gbit: float,
    round_trip: float,
    scan_seconds: float,
    originals: bool,
    *,
    fold: bool,
) -> Estimate:
    speeds, prices = speeds or Speeds(), prices or Prices()
    if rows < 1 or dimension < 1 or queries_a_second <= 0 or bandwidth_gbit <= 0 or scan_seconds <= 0:
        raise InvalidInput(
            "rows, dimension, queries a second, bandwidth and the time for a scan are positive."
        )
    if mode not in ("sealed", "sealed-query", "sealed-index"):
        raise InvalidInput(f"mode is sealed, sealed-query or sealed-index, got {mode!r}.")
    if routing is not None:
        _expect_routing(routing, mode)
    ring = mode != "sealed-index"
    fresh = rows * routing.fresh if routing else 0.0
    padded = (rows - fresh) * routing.padding + fresh if routing else float(rows)
    scanned = (padded - fresh) * routing.share + fresh if routing else padded
    level, tree, a_row, answer_row = 0, 0, 4.0 * dimension, 4.0
    chosen = _Choice(scanned)
    if ring:
        layout = _layout(dimension, scanned, speeds, bandwidth_gbit)
        level, tree = layout.level, layout.nodes
        a_row, answer_row = layout.block_bytes / layout.rows, _answer_row(layout)
        if fold and routing is not None:
            chosen = _choice(routing, padded - fresh, fresh, layout, speeds)
    rate = speeds.ns_a_number_sealed if ring else speeds.ns_a_number_compact
    # A scan is bound by whichever is slower, products or memory.
    row_seconds = max(rate * 1e-9 * dimension, a_row / (speeds.memory_gb_s * 1e9))
    expand = tree * speeds.node_us * 1e-6
    memory = padded * a_row
    threads = prices.machine_threads
    for_memory = math.ceil(memory / _room(prices))
    for_time = math.ceil(scanned * row_seconds / threads / max(scan_seconds - expand, scan_seconds / 10))
    # Who folds clusters has all of them.
    shards = 1 if fold else max(1, for_memory, for_time)
    # Every scanner expands the query for itself, so that more of them are more work; what more load
    # needs are copies of them all.
    core = scanned * row_seconds + shards * expand + chosen.seconds
    machines = shards * math.ceil(queries_a_second * core / (shards * threads * _BUSY))
    down = chosen.rows * answer_row
    up = float(_QUERY_BYTES * math.ceil(dimension / DEGREE)) if ring else 4.0 * dimension + 80
    up += chosen.bytes_up
    transfer = (up + down) * 8 / (bandwidth_gbit * 1e9)
    scan = expand + (scanned * row_seconds + chosen.seconds) / (shards * threads)
    latency = round_trip + scan + transfer + chosen.rows * speeds.open_ns_a_row * 1e-9
    kept = 4.0 * dimension if originals else 0.0
    stored = padded * (a_row + _SIDECAR_ROW) + rows * kept + (_KEYS_BYTES if ring else 0)
    storage_month = stored / 1e9 * prices.storage_gb_month
    month = 30 * 86400.0
    # Machines are paid whether they work or not; loading them from the bucket once a day is noise.
    machine_month = machines * prices.machine_hour * 24 * 30
    traffic = down / 1e9 * prices.egress_gb + prices.request_million / 1e6
    queries_month = queries_a_second * month
    return Estimate(
        rows=float(rows),
        dimension=dimension,
        mode=mode,
        routing="none" if routing is None else _says(routing),
        way="whole" if routing is None else "oblivious" if routing.oblivious else "routed",
        queries_a_second=queries_a_second,
        level=level,
        rows_scanned=scanned,
        stored_bytes=stored,
        memory_bytes=memory,
        machines=machines,
        shards=shards,
        bytes_up=up,
        bytes_down=down,
        core_seconds=core,
        latency=latency,
        scan_seconds=scan,
        transfer_seconds=transfer,
        dollars_a_query=(machine_month + storage_month) / queries_month + traffic,
        dollars_a_month=machine_month + storage_month + traffic * queries_month,
    )


def routed(rows: float) -> Routing:
    """The routing that a collection of so many rows is estimated with: as many clusters as the square
    root of the rows, one in 200 of them probed, and as many decoys. How many probes a recall takes
    depends on the vectors: `recluster` measures it on yours."""
    clusters = max(16, round(math.sqrt(rows)))
    probes = max(2, round(clusters / 200))
    return Routing(clusters, probes, probes)


def oblivious(rows: float, dimension: int, padding: float = Routing.padding) -> Routing:
    """The same for clusters that the server does not learn: of one block of rows each, since they are all scanned."""
    each = _layout(dimension, rows, Speeds(), 1.0).rows
    clusters = max(4, math.ceil(rows * padding / each))
    return Routing(clusters, max(2, round(clusters / 200)), 0, padding, oblivious=True)


class _Choice(NamedTuple):
    """What the choice of clusters under encryption adds to a query."""

    rows: float
    """That are answered about."""
    bytes_up: float = 0.0
    seconds: float = 0.0
    """Of one thread of the server."""


def _choice(routing: Routing, clustered: float, fresh: float, layout: Layout, speeds: Speeds) -> _Choice:
    """Decision 44: four numbers a bit of each probe's cluster, as many a ciphertext as a query's tree has leaves, each
    expanded and multiplied by a key; a fold of every block for every probe."""
    blocks = math.ceil(clustered / routing.clusters / layout.rows)
    numbers = _NUMBERS * math.ceil(math.log2(routing.clusters)) * routing.probes
    messages = math.ceil(numbers / min(layout.nodes, _MAX_NODES))
    up = _SQUARE_BYTES + messages * _QUERY_BYTES + _NAME_BYTES * routing.clusters
    selectors = 2 * numbers * speeds.node_us
    folds = routing.clusters * blocks * routing.probes * speeds.fold_us
    return _Choice(routing.probes * blocks * layout.rows + fresh, float(up), (selectors + folds) * 1e-6)


def _layout(dimension: int, rows: float, speeds: Speeds, bandwidth_gbit: float) -> Layout:
    """The cheapest in seconds of one query, as the key holder chooses it for large segments."""

    def seconds(layout: Layout) -> float:
        return (
            layout.nodes * speeds.node_us * 1e-6
            + rows / layout.rows * layout.block_bytes / 25e9
            + rows * _answer_row(layout) * 8 / (bandwidth_gbit * 1e9)
        )

    return min((one for one in layouts(dimension) if one.nodes <= _MAX_NODES), key=seconds)


def _expect_routing(routing: Routing, mode: str) -> None:
    if mode == "sealed-index":
        raise InvalidInput(
            "a collection in sealed-index is not routed: its queries are plain, and would show which rows lie together."
        )
    if routing.oblivious and routing.decoys:
        raise InvalidInput(f"clusters that the server does not learn need no decoys, got {routing.decoys}.")
    counts = (routing.clusters, routing.probes, routing.decoys + 1)
    if min(counts) < 1 or routing.probes + routing.decoys > routing.clusters:
        raise InvalidInput(
            f"{routing.probes} probes and {routing.decoys} decoys of {routing.clusters} clusters: probe at least 1, and no "
            "more than there are."
        )
    if routing.padding < 1 or not 0 <= routing.fresh < 1:
        raise InvalidInput(
            f"padding is at least 1, got {routing.padding}; the fresh share below 1, got {routing.fresh}."
        )


def _says(routing: Routing) -> str:
    beside = "none of them shown" if routing.oblivious else f"{routing.decoys} decoys"
    return (
        f"{routing.clusters:,} clusters, {routing.probes} probes, {beside}, padded ×{routing.padding:g}, "
        f"{routing.fresh:.1%} fresh"
    )


__all__ = ["TIPTOE", "Estimate", "Prices", "Routing", "Speeds", "estimate", "oblivious", "routed"]
