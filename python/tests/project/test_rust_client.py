"""A collection that Rust and Python read and write in turns."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ciphervec import HttpClient, Keys

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TURNS = TARGET / "debug" / "examples" / "turns"
pytestmark = pytest.mark.skipif(
    not TURNS.exists(), reason="needs the example turns: cargo build --example turns -p ciphervec-client"
)


def turn(url: str, keys: Path, name: str, row: str) -> list[str]:
    run = subprocess.run([TURNS, url, keys, name, row], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index"])
def test_a_collection_is_written_in_turns(mode: str, server_url: str, tmp_path: Path) -> None:
    keys = Keys.generate()
    file = tmp_path / "owner.key"
    keys.save(file, allow_plaintext=True)
    client = HttpClient(server_url, keys=keys)
    docs = client.create_collection("turns", dimension=16, mode=mode)
    rows = np.random.default_rng(3).standard_normal((40, 16)).astype(np.float32)
    docs.add(
        ids=[f"python-{i}" for i in range(40)],
        embeddings=rows,
        metadatas=[{"n": float(i), "big": 2**60} for i in range(40)],
        documents=[f"row {i}" for i in range(40)],
    )
    first = turn(server_url, file, "turns", "rust-0")
    assert first[0] == "41 rust-0"
    assert first[1] == 'python-0\t{"n":0.0,"big":1152921504606846976}\trow 0'
    assert docs.get(ids=["rust-0"])["metadatas"] == [{"by": "rust", "n": 1.0}]
    assert docs.query(query_embeddings=np.roll(rows[-1], 1), n_results=1, audience="owner")["ids"] == [
        ["rust-0"]
    ]
    docs.update(ids=["rust-0"], metadatas=[{"seen": True}])
    docs.delete(ids=["python-0", "python-39"])
    second = turn(server_url, file, "turns", "rust-1")
    assert second[0] == "40 rust-1"
    assert 'rust-0\t{"by":"rust","n":1.0,"seen":true}\trow rust-0' in second
    docs.refresh()
    assert docs.count() == 40
    docs.verify()
