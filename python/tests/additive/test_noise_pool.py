"""Noise pools: every element once, sealed in files that one process claims."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import (
    CorruptData,
    InvalidInput,
    PoolExhausted,
    StorageError,
    WrongKey,
    damgard_jurik,
    elgamal,
    okamoto_uchiyama,
    paillier,
)
from ciphervec.additive.paillier import NoisePool

PAIRS = {
    "paillier": lambda: paillier.generate(512, insecure=True),
    "damgard-jurik": lambda: damgard_jurik.generate(512, insecure=True),
    "okamoto-uchiyama": lambda: okamoto_uchiyama.generate(1024, insecure=True),
}


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Any:
    return PAIRS[request.param]()


def test_a_pool_encrypts_and_runs_out(pair: Any) -> None:
    pool = NoisePool(pair)
    seen: list[tuple[int, int]] = []
    pool.fill(5, progress=lambda done, of: seen.append((done, of)))
    assert len(pool) == 5 and seen == [(5, 5)]
    assert pair.decrypt(pool.encrypt(-7)) == -7
    assert pair.decrypt(pool.encrypt(np.array([1, -2, 3]))).tolist() == [1, -2, 3]
    with pytest.raises(PoolExhausted, match="holds 1 elements, 2 were asked"):
        pool.encrypt(np.array([1, 2]))
    assert len(pool) == 1


def test_vectors_from_a_pool_score_as_the_others(pair: Any) -> None:
    rows = np.random.default_rng(5).standard_normal((2, 9))
    pool = NoisePool(pair)
    pool.fill(18)
    sealed = pool.encrypt_vectors(rows)
    assert len(pool) == 0
    expected = rows @ rows[0] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[0])
    np.testing.assert_allclose(np.ravel(pair.decrypt(sealed @ rows[0])), expected, atol=1e-3)


def test_no_ciphertext_shows_twice(pair: Any) -> None:
    pool = NoisePool(pair)
    pool.fill(64)
    assert len({pool.encrypt(0).to_bytes() for _ in range(64)}) == 64


def test_one_thread_fills_while_another_takes(pair: Any) -> None:
    pool = NoisePool(pair)
    thread = pool.fill_in_background(300)
    assert isinstance(thread, threading.Thread)
    taken = 0
    while taken < 300:
        try:
            assert pair.decrypt(pool.encrypt(taken)) == taken
            taken += 1
        except PoolExhausted:
            thread.join(0.01)
    thread.join()
    assert len(pool) == 0


def test_a_file_is_claimed_once(pair: Any, tmp_path: Path) -> None:
    path = tmp_path / "noise.pool"
    pool = NoisePool(pair)
    pool.fill(3)
    pool.save(path)
    with pytest.raises(InvalidInput, match="saved"):
        pool.encrypt(1)
    claimed = NoisePool.claim(path, pair)
    assert len(claimed) == 3 and not path.exists()
    with pytest.raises(StorageError, match="ciphervec precompute"):
        NoisePool.claim(path, pair)
    claimed.save(path)
    again = NoisePool(pair)
    again.fill(1)
    with pytest.raises(StorageError, match="exists"):
        again.save(path)


def test_files_of_others_and_damaged_ones_stay(pair: Any, tmp_path: Path) -> None:
    path = tmp_path / "noise.pool"
    pool = NoisePool(pair)
    pool.fill(1)
    pool.save(path)
    with pytest.raises(WrongKey):
        NoisePool.claim(path, PAIRS["paillier"]())
    good = path.read_bytes()
    for at in (0, 9, 14, 40, len(good) - 1):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises((CorruptData, WrongKey)):
            NoisePool.claim(path, pair)
    path.write_bytes(good)
    assert len(NoisePool.claim(path, pair)) == 1


def test_what_is_no_pool_is_refused(pair: Any) -> None:
    with pytest.raises(InvalidInput, match="ElGamal"):
        NoisePool(elgamal.generate())
    with pytest.raises(InvalidInput, match="key pair"):
        NoisePool(pair.public)
    with pytest.raises(InvalidInput, match="count"):
        NoisePool(pair).fill(0)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(NoisePool(pair))
