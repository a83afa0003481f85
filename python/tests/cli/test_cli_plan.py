"""`ciphervec plan`: figures that follow from the formats, worked out another way, and what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import ciphervec
from ciphervec import InvalidInput, Keys
from ciphervec.cli import cost_model
from ciphervec.cli.cost_model import Prices, Routing, Speeds, estimate
from program import Program


@pytest.mark.parametrize("dimension", [128, 384, 512, 768])
def test_sizes_are_those_of_sealed_bytes(keys: Keys, dimension: int) -> None:
    """Rows that are sealed here against the formulas, at the level that they have."""
    books = ciphervec.Client(keys).create_collection("books", dimension, mode="sealed")
    rows = np.random.default_rng(1).standard_normal((2000, dimension)).astype(np.float32)
    books.add(list(range(2000)), rows)
    info = books.info()
    [level] = info["packing"]["rows_by_level"]
    layout = cost_model.layouts(dimension)[level]
    assert info["segments"] == 1
    assert info["bytes"]["rows"] == 128 + math.ceil(2000 / layout.rows) * layout.block_bytes
    assert layout.block_bytes == layout.nodes * 4096 * 50 // 8


def test_a_whole_collection_is_its_parts() -> None:
    """10^8 rows of 512: at level 9 a block has 4096 rows and 512 polynomials."""
    one = estimate(1e8, 512, 50, scan_seconds=1)
    assert (one.level, one.rows_scanned) == (9, 1e8)
    assert one.memory_bytes == pytest.approx(1e8 * 512 * 6.25)
    assert one.bytes_down == pytest.approx(4.75e8, rel=1e-3)
    machine = 256e9 * 0.85
    assert one.shards >= one.memory_bytes / machine
    assert one.shards * 32 * 1.0 >= 1e8 * 512 * 0.24e-9
    assert one.machines % one.shards == 0 and one.machines * 32 * 0.7 >= 50 * one.core_seconds
    fixed = one.machines * 2.02 * 720 + one.stored_bytes / 1e9 * 0.023
    assert one.dollars_a_query == pytest.approx(
        fixed / (50 * 30 * 86400) + one.bytes_down / 1e9 * 0.05 + 0.4e-6
    )
    assert one.latency > one.scan_seconds + one.transfer_seconds


def test_kept_vectors_are_counted_unless_left_out() -> None:
    kept, lean = (estimate(1e6, 512, 1, originals=keep) for keep in (True, False))
    assert kept.stored_bytes - lean.stored_bytes == 1e6 * 512 * 4
    assert kept.memory_bytes == lean.memory_bytes, "a scan does not read them"
    routed = estimate(1e6, 512, 1, routing=Routing(1000, 5, 5, padding=2.0))
    padded = estimate(1e6, 512, 1, routing=Routing(1000, 5, 5, padding=2.0), originals=False)
    assert routed.stored_bytes - padded.stored_bytes == 1e6 * 512 * 4, "padding has none"


def test_routing_counts_padding_decoys_and_fresh_rows() -> None:
    way = Routing(clusters=1000, probes=8, decoys=2, padding=1.5, fresh=0.02)
    one = estimate(1e8, 256, 10, routing=way)
    assert one.rows_scanned == pytest.approx(1e8 * (0.98 * 1.5 * 0.01 + 0.02))
    assert one.memory_bytes > estimate(1e8, 256, 10).memory_bytes * 1.4
    more = estimate(1e8, 256, 10, routing=Routing(1000, 8, 12, 1.5, 0.02))
    assert more.bytes_down > 1.4 * one.bytes_down and "8 probes, 12 decoys" in more.routing
    # All clusters asked for is the whole collection, and its padding.
    every = estimate(1e8, 256, 10, routing=Routing(10, 8, 2, 1.0, 0.0))
    assert every.rows_scanned == 1e8


def test_clusters_that_the_server_does_not_learn_take_the_bytes_of_those_probed() -> None:
    """Decision 44: ten million rows of 128 in 2,441 clusters of 4,096, of which 8 are probed."""
    rows = 2441 * 4096
    way = Routing(2441, 8, 0, padding=1.0, fresh=0.0, oblivious=True)

    def of(speeds: Speeds, routing: Routing = way) -> cost_model.Estimate:
        return estimate(rows, 128, 1, routing=routing, speeds=speeds, bandwidth_gbit=0.1)

    one = of(Speeds(node_us=0.0, fold_us=100.0))
    assert (one.level, one.way, one.shards, one.rows_scanned) == (7, "oblivious", 1, rows)
    assert one.bytes_down == 8 * (4096 * 18 + 4096 * 24) / 8
    assert one.bytes_up == 25_700 + 52_224 + 3 * 25_700 + 16 * 2441
    assert one.core_seconds - of(Speeds(node_us=0.0, fold_us=0.0)).core_seconds == pytest.approx(
        2441 * 8 * 100e-6
    )
    assert one.memory_bytes == estimate(rows, 128, 1).memory_bytes
    # Selectors: four numbers for each of twelve bits and eight probes, two key switches each; and the query's own tree.
    switched = of(Speeds(node_us=1.0, fold_us=100.0))
    assert switched.core_seconds - one.core_seconds == pytest.approx((2 * 384 + 128) * 1e-6)
    fresh = of(Speeds(), Routing(2441, 8, 0, 1.0, 0.01, oblivious=True))
    assert fresh.bytes_down - one.bytes_down == pytest.approx(rows * 0.01 * 42 / 8, rel=1e-3)


def test_whole_answers_stand_in_place_of_folded_ones_where_they_come_sooner() -> None:
    few, many = Routing(8, 7, 0, oblivious=True), Routing(2441, 8, 0, oblivious=True)
    one = estimate(32_768, 128, 1, routing=few)
    assert "answered whole, which comes sooner" in one.routing and one.bytes_up == 25_700
    two = estimate(1e7, 128, 1, routing=many)
    assert "whole" not in two.routing and two.bytes_down < 1e6
    large = estimate(1e9, 128, 1, routing=Routing(244_141, 8, 0, oblivious=True))
    assert "one machine does not hold all clusters" in large.routing and large.shards > 1
    assert cost_model.oblivious(1e7, 128).clusters == math.ceil(1.05e7 / 4096)


def test_prices_and_speeds_replace_those_that_are_stated() -> None:
    base = estimate(1e8, 512, 50)
    dear = estimate(1e8, 512, 50, prices=Prices(machine_hour=4.04))
    assert dear.dollars_a_month - base.dollars_a_month == pytest.approx(base.machines * 2.02 * 720)
    # Bound by memory as stated, by products when these take ten times as long.
    assert base.core_seconds == pytest.approx(1e8 * 3200 / 8e9 + base.shards * 512 * 46e-6)
    slow = estimate(1e8, 512, 50, speeds=Speeds(ns_a_number_sealed=2.4))
    assert slow.core_seconds == pytest.approx(1e8 * 512 * 2.4e-9 + slow.shards * 512 * 46e-6)
    assert slow.machines > 2 * base.machines
    assert estimate(1e8, 512, 50, bandwidth_gbit=10).transfer_seconds < base.transfer_seconds / 9
    assert estimate(1e6, 512, 1, mode="sealed-index").memory_bytes == 4 * 512 * 1e6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"rows": 0}, "positive"),
        ({"queries_a_second": 0}, "positive"),
        ({"mode": "open"}, "mode is"),
        ({"mode": "sealed-index", "routing": Routing(10, 1, 1)}, "not routed"),
        ({"routing": Routing(10, 9, 2)}, "no more than there are"),
        ({"routing": Routing(10, 0, 2)}, "at least 1"),
        ({"routing": Routing(10, 1, 1, padding=0.5)}, "padding"),
        ({"routing": Routing(10, 1, 1, oblivious=True)}, "no decoys"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], says: str) -> None:
    given = {"rows": 1e6, "dimension": 64, "queries_a_second": 1.0, **arguments}
    with pytest.raises(InvalidInput, match=says):
        estimate(**given)  # type: ignore[arg-type]


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    program = Program(tmp_path)
    table = program("plan", "--rows", "1e9", "--dim", "768", "--qps", "50")
    for words in (
        "1e+09 whole",
        "1e+09 routed",
        "oblivious",
        "Tiptoe",
        "machines",
        "dollars",
        "decoys",
        "core-seconds",
    ):
        assert words in table.stdout, words
    found = json.loads(program("plan", "--rows", "1e8,1e9", "--dim", "768", "--json").stdout)
    ways = [(one["rows"], one["way"]) for one in found["estimates"]]
    assert ways == [(rows, way) for rows in (1e8, 1e9) for way in ("whole", "routed", "oblivious")]
    assert found["beside"]["core_seconds"] == 57 and found["assumed"]["prices"]["machine_hour"] == 2.02
    whole, routed, _ = found["estimates"][3:]
    assert whole["bytes_down"] > 20 * routed["bytes_down"]
    index = json.loads(program("plan", "--rows", "1e6", "--mode", "sealed-index", "--json").stdout)
    assert [one["routing"] for one in index["estimates"]] == ["none"]
    assert "--rows is a number" in program("plan", "--rows", "many", code=2).stderr
