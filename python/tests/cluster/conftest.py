"""A Ray cluster of this machine, and collections on it. For tests of `ciphervec.ray`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Keys
from ray_scenes import D, Owner
from services import s3_bucket


@pytest.fixture(scope="session")
def bucket(state_folder: Path) -> Iterator[str]:
    """A bucket of an S3 server of this machine, which the cluster's processes find by the variables that
    they inherit: asked for before the cluster."""
    with s3_bucket() as url:
        yield url


@pytest.fixture(scope="session")
def cluster(state_folder: Path, bucket: str) -> Iterator[Any]:
    """Two nodes."""
    from ciphervec.ray import local_cluster

    with local_cluster(nodes=2, cpus=2, store_bytes=150 << 20) as made:
        yield made


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(11).standard_normal((4000, D)).astype(np.float32)


@pytest.fixture
def owner(tmp_path: Path, keys: Keys, vectors: np.ndarray) -> Iterator[Callable[..., Owner]]:
    made: list[Owner] = []

    def make(mode: str = "sealed") -> Owner:
        made.append(Owner(tmp_path / f"db-{len(made)}", keys, vectors, mode))
        return made[-1]

    yield make
    for one in made:
        one.client.close()
