"""Refreshing of spent arrays, and what cannot be refreshed; keys to and from files, whole, cut and altered."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ciphervec import CorruptData, InvalidInput, StorageError, WrongKey, ckks


def test_the_plan_says_what_a_refreshing_takes_and_gives() -> None:
    small, large = (ckks.Bootstrapper.of(log_n).plan() for log_n in (15, 16))
    assert (small.slots, large.slots) == (16_384, 32_768)
    assert small.precision_bits >= 15 and small.levels_left >= 3
    assert large.precision_bits >= 20 and large.levels_left >= 8
    for plan in (small, large):
        assert plan.level == plan.lowest_level + plan.levels_left <= plan.levels
        assert plan.failure_log2 < -128 and plan.bound_bits < plan.precision_bits
        words = plan.explain()
        assert f"2^{plan.log_n}" in words and f"{plan.levels_left} products" in words
        assert all(f"{bits:.1f}" in words for bits in (plan.precision_bits, plan.bound_bits))
    assert 0 < small.key_bytes < large.key_bytes and small.rotations > 1 < small.relinearisations


@pytest.mark.parametrize("log_n", [14, 17, True, "16"])
def test_sets_that_there_are_not_are_refused(log_n: int) -> None:
    with pytest.raises(InvalidInput, match="15 or 16"):
        ckks.Bootstrapper(log_n)


def test_sets_are_told_apart_by_slots_and_precision() -> None:
    all_slots, few, precise = (
        ckks.Bootstrapper.of(15),
        ckks.Bootstrapper.of(15, slots=100),
        ckks.Bootstrapper.of(16, precise=True),
    )
    assert few is ckks.Bootstrapper.of(15, slots=128) and all_slots is ckks.Bootstrapper.of(15, slots=16_384)
    assert (few.plan().slots, few.plan().levels_left, few.plan().reductions) == (128, 3, 1)
    assert [ckks.Bootstrapper.of(15, slots=n).plan().slots for n in (1, 9, 512)] == [8, 16, 512]
    assert few.plan().key_bytes < all_slots.plan().key_bytes and few.plan().precision_bits > 15.5
    plan = precise.plan()
    assert (plan.iterations, plan.reductions, plan.slots) == (2, 4, 32_768)
    assert plan.levels_left >= 7 and 28 < plan.precision_bits < 30 and plan.bound_bits > 25
    assert plan.log_modulus <= 1747 and "then of what that left" in plan.explain()
    assert all_slots.plan().iterations == 1 and "then of" not in all_slots.explain()
    assert pickle.loads(pickle.dumps(few)) is few and "128 slots" in repr(few)
    listed = (
        "log_n=15; log_n=15, slots=512; log_n=15, slots=32768; log_n=16; log_n=16, slots=65536; "
        "log_n=16, precise=True"
    )
    for asked in ({"slots": 600}, {"precise": True}, {"slots": 65_536}):
        with pytest.raises(InvalidInput, match=listed):
            ckks.Bootstrapper(15, **asked)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"log_n=16, slots=512; there are: " + listed):
        ckks.Context.for_bootstrapping(16, slots=512)
    with pytest.raises(InvalidInput, match="at least 1"):
        ckks.Bootstrapper.of(15, slots=0)


def test_real_slots_are_twice_as_many() -> None:
    real = ckks.Bootstrapper.of(15, slots=32_768)
    plan = real.plan()
    assert (plan.slots, plan.ring, plan.reductions) == (32_768, "conjugate-invariant", 1)
    assert plan.precision_bits > 15 and plan.failure_log2 < -128 and plan.levels_left == 3
    assert "conjugate-invariant, with 32,768 slots" in plan.explain()
    assert ckks.Bootstrapper.of(15).plan().ring == "standard"
    assert pickle.loads(pickle.dumps(real)) is real
    with pytest.raises(InvalidInput, match=r"log_n=15, slots=32768; "):
        ckks.Bootstrapper.of(16, slots=32_769)


def with_keys_by_file(
    path: Path, slots: int
) -> tuple[ckks.Context, ckks.PublicContext, ckks.BootstrappingKeys]:
    """An owner at N = 2^15, and a server that has what may be sent, its keys from a file."""
    owner = ckks.Context.for_bootstrapping(15, slots=slots)
    made = owner.bootstrapping_keys()
    made.save(path)
    assert path.stat().st_size == made.plan().key_bytes
    server = ckks.PublicContext.from_bytes(owner.public().to_bytes())
    assert server.bootstrapper() is made.bootstrapper
    with pytest.raises(InvalidInput, match="parameters"):
        ckks.BootstrappingKeys.load(path, 15)
    return owner, server, ckks.BootstrappingKeys.load(path, 15, slots=slots)


def refreshed_to(
    numbers: np.ndarray, owner: ckks.Context, spent: ckks.CkksArray, keys: ckks.BootstrappingKeys
) -> None:
    plan, fresh = keys.plan(), spent.refresh(keys)
    error = np.abs(owner.decrypt(owner.array_from_bytes(fresh.to_bytes())) - numbers)
    assert fresh.level == plan.level and error.max() < 2**-plan.bound_bits


@pytest.mark.slow
def test_real_slots_are_refreshed_from_a_file_of_keys(tmp_path: Path) -> None:
    owner, server, keys = with_keys_by_file(tmp_path / "real.keys", 32_768)
    numbers = np.linspace(-1, 1, 32_768)
    x = server.array_from_bytes(owner.encrypt(numbers).to_bytes())
    for _ in range(keys.plan().levels_left):
        x = (x * x - 0.5).bounded(1.0)
        numbers = numbers * numbers - 0.5
    refreshed_to(numbers, owner, x, keys)


@pytest.mark.slow
def test_few_slots_are_refreshed_from_a_file_of_keys(tmp_path: Path) -> None:
    owner, server, keys = with_keys_by_file(tmp_path / "few.keys", 512)
    numbers = np.linspace(-1, 1, 512)
    x = server.array_from_bytes(owner.encrypt(numbers).to_bytes())
    for _ in range(keys.plan().levels_left):
        x = x * np.ones(512)
    refreshed_to(numbers, owner, x, keys)
    with pytest.raises(InvalidInput, match=r"at most 512.*got 1024"):
        owner.encrypt(np.zeros(1000)).refresh(keys)
    other = ckks.Context.for_bootstrapping(15)
    with pytest.raises(InvalidInput, match=r"for_bootstrapping\(log_n=15, slots=512\)"):
        other.encrypt([0.5]).refresh(keys)
    # Under the same parameters: keys for fewer slots, which are others.
    with pytest.raises(InvalidInput, match=r"few.keys: keys are missing \(.*same number of them"):
        ckks.BootstrappingKeys.load(tmp_path / "few.keys", 15, slots=8)
    eight = owner.bootstrapping_keys(slots=5)
    eight.save(tmp_path / "eight.keys")
    eight = ckks.BootstrappingKeys.load(tmp_path / "eight.keys", 15, slots=8)
    refreshed_to(numbers[:8], owner, owner.encrypt(numbers[:8]), eight)
    with pytest.raises(InvalidInput, match=r"at most 8.*got 16"):
        owner.encrypt(np.zeros(9)).refresh(eight)


def test_a_bootstrapper_is_made_once() -> None:
    one = ckks.Bootstrapper.of(15)
    assert ckks.Bootstrapper.of(15) is one
    assert pickle.loads(pickle.dumps(one)).plan() == one.plan()
    with pytest.raises(InvalidInput, match="for_bootstrapping"):
        ckks.Context.for_depth(1).bootstrapper()


def test_files_that_are_no_keys_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "refresh.keys"
    with pytest.raises(StorageError, match=r"refresh\.keys"):
        ckks.BootstrappingKeys.load(path, 15)
    for data, said in ((b"", "has 0 bytes"), (bytes(64), "CVEC"), (b"CVEC" + bytes(80), "version")):
        path.write_bytes(data)
        with pytest.raises(CorruptData, match=rf"refresh\.keys.*{said}"):
            ckks.BootstrappingKeys.load(path, 15)


@pytest.mark.slow
def test_products_go_on_without_end(tmp_path: Path) -> None:
    owner = ckks.Context.for_bootstrapping(15)
    seen: list[tuple[int, int]] = []
    made = owner.bootstrapping_keys(progress=lambda *counts: seen.append(counts))
    plan = made.plan()
    assert seen == [(count, len(seen)) for count in range(1, len(seen) + 1)]
    assert len(seen) == plan.rotations + 1
    assert made.bytes == plan.key_bytes
    assert "key " + owner.key_id in repr(made)
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(made)

    path = tmp_path / "refresh.keys"
    path.write_bytes(b"what was there before")
    made.save(path)
    del made
    assert [one.name for one in tmp_path.iterdir()] == ["refresh.keys"]
    assert path.stat().st_size == plan.key_bytes

    # The server's half: bytes of a context, a file of keys, bytes of an array.
    server = ckks.PublicContext.from_bytes(owner.public().to_bytes())
    keys = ckks.BootstrappingKeys.load(path, 15)
    numbers = np.linspace(-1, 1, plan.slots)
    x = server.array_from_bytes(owner.encrypt(numbers).to_bytes())
    expected = numbers
    for _ in range(2):
        for _ in range(plan.levels_left):
            x, expected = x * x, expected * expected
        assert x.level == plan.lowest_level
        x = x.refresh(keys)
        assert x.level == plan.level == owner.depth
    found = owner.decrypt(owner.array_from_bytes(x.to_bytes()))
    error = np.abs(found - expected)
    # A square of a number near 1 doubles its error.
    assert error.max() < (2**plan.levels_left + 1) * 2**-plan.bound_bits
    assert np.sqrt(np.mean(error**2)) < 2 ** -(plan.precision_bits - 1)

    # What would come out wrong is refused: at the client, by the declared bound, by the levels.
    with pytest.raises(InvalidInput, match=r"at most 1 in absolute value.*1\.5"):
        owner.encrypt([0.5, 1.5])
    double = owner.encrypt([0.25, 0.75]) + owner.encrypt([0.25, 0.125])
    with pytest.raises(InvalidInput, match=r"within ±2: multiply them by 0\.5 .*bounded\(1\.0\)"):
        double.refresh(keys)
    # Few numbers repeat in all slots, and come back as they were.
    assert np.abs(owner.decrypt(double.bounded(1.0).refresh(keys)) - [0.5, 0.875]).max() < 2**-plan.bound_bits
    spent = x
    while spent.level >= plan.lowest_level:
        spent = spent * spent
    with pytest.raises(InvalidInput, match=f"{plan.lowest_level} levels are needed.*has {spent.level}"):
        spent.refresh(keys)
    with pytest.raises(InvalidInput, match="layout slots or single"):
        owner.encrypt([0.5], layout="coefficients").refresh(keys)
    other = ckks.Context.for_depth(3, ring="standard")
    with pytest.raises(InvalidInput, match=r"parameters.*for_bootstrapping\(log_n=15\)"):
        other.encrypt([0.5]).refresh(keys)
    stranger = ckks.Context.for_bootstrapping(15)
    with pytest.raises(WrongKey, match=stranger.key_id):
        stranger.encrypt([0.5]).refresh(keys)

    # A context from its file is the same, and files that are cut or altered say so.
    owner.save(tmp_path / "owner.key", "open sesame")
    again = ckks.load(tmp_path / "owner.key", "open sesame")
    assert again.bootstrapper() is keys.bootstrapper and again.depth == plan.level
    with path.open("r+b") as file:
        file.truncate(plan.key_bytes - 1)
    with pytest.raises(
        CorruptData, match=rf"refresh\.keys is truncated: {plan.key_bytes} bytes.*has {plan.key_bytes - 1}"
    ):
        ckks.BootstrappingKeys.load(path, 15)
    with path.open("r+b") as file:
        file.seek(0, 2)
        file.write(b"??")
    with pytest.raises(CorruptData, match="longer than what was written"):
        ckks.BootstrappingKeys.load(path, 15)
