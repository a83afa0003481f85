"""Starts a Ray cluster of this machine, or checks that the one this process is in is safe to use. Either of the two
clusters.

A Ray job is remote code execution by design: whoever reaches its ports runs what they like there.
So a cluster is on loopback, or talks over mutual TLS and asks for a token, and shows no dashboard.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import ray

from ..errors import InvalidInput

NO_SPILL = {"automatic_object_spilling_enabled": False}
"""Ray's own setting by which no object is written to a disk."""


@contextmanager
def local_cluster(*, nodes: int = 1, cpus: int = 2, store_bytes: int = 200 << 20) -> Iterator[Any]:
    """A Ray cluster of this machine alone, until the block ends: `nodes` nodes of `cpus` processors
    and `store_bytes` of shared memory each, on loopback, without dashboard, without usage reports,
    without spilling. Yields a `ray.cluster_utils.Cluster`, to which nodes can be added. Raises
    InvalidInput where this process is in a cluster already."""
    if ray.is_initialized():
        raise InvalidInput("this process is in a Ray cluster already; call ray.shutdown() first.")
    if nodes < 1 or cpus < 1:
        raise InvalidInput(f"a cluster has at least 1 node of 1 processor, got {nodes} of {cpus}.")
    from ray._private import ray_constants
    from ray.cluster_utils import Cluster

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Otherwise Ray takes loopback for an address of this machine that others reach.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False
    facts = {
        "num_cpus": cpus,
        "object_store_memory": store_bytes,
        "include_dashboard": False,
        "node_ip_address": "127.0.0.1",
    }
    cluster = Cluster(initialize_head=True, head_node_args={**facts, "_system_config": {**NO_SPILL, **_SOON}})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(**facts)
        ray.init(
            address=cluster.address,
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
            namespace="ciphervec",
        )
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


_SOON = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000}
"""A node that is gone on this machine is missed within seconds."""


def expect_guarded(*, trusted_network: bool) -> None:
    """Raises InvalidInput where strangers may reach the ports of the cluster that this process is
    in, or where there is none."""
    if not ray.is_initialized():
        raise InvalidInput(
            "this process is in no Ray cluster. Call ray.init(address=...) first, or use ciphervec.ray.local_cluster()."
        )
    guarded = os.environ.get("RAY_USE_TLS") == "1" and os.environ.get("RAY_AUTH_MODE") == "token"
    if trusted_network or guarded:
        return
    open_to = sorted({str(node["NodeManagerAddress"]) for node in ray.nodes() if node["Alive"]})
    strangers = [address for address in open_to if not is_loopback(address)]
    if strangers:
        raise InvalidInput(
            f"the Ray cluster listens on {', '.join(strangers[:3])}, and whoever reaches a Ray cluster runs code in it. Start "
            "it on loopback (ray start --node-ip-address 127.0.0.1), or with mutual TLS and tokens (RAY_USE_TLS=1, "
            "RAY_AUTH_MODE=token), or say trusted_network=True where nobody else reaches its ports."
        )


def expect_no_plain_spill(spill: str) -> None:
    """Raises InvalidInput where Ray may write plaintext vectors to a disk that nobody said is
    encrypted."""
    if spill not in ("refuse", "encrypted"):
        raise InvalidInput(f"spill is 'refuse' or 'encrypted', got {spill!r}.")
    if spill == "refuse" and may_spill():
        raise InvalidInput(
            "blocks of this Dataset are plaintext vectors, and this Ray cluster may spill them to a disk. Start it with "
            "ray start --head --system-config='{\"automatic_object_spilling_enabled\": false}', or let it spill to an "
            "encrypted volume (--object-spilling-directory) and say spill='encrypted'; or pass the path of parquet files, "
            "which workers read themselves, past Ray's memory."
        )


def may_spill() -> bool:
    """Whether this cluster writes objects to disks when memory is short; true where that is not
    known."""
    try:
        from ray._private.state import state

        return bool(state.get_system_config().get("automatic_object_spilling_enabled", True))
    except (AttributeError, ImportError, ValueError):
        return True


def is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
