"""The owner's half and the server's half with nothing but bytes between them; keys; damaged and
foreign bytes."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import (
    CiphervecError,
    CorruptData,
    DuplicateId,
    EvaluationKeys,
    IndexSpec,
    InvalidInput,
    Keys,
    Owner,
    SealedSegment,
    ServerIndex,
    StorageError,
    UnknownId,
    WrongKey,
)

MODES = ("open", "sealed-index", "sealed-query", "sealed")
modes = pytest.mark.parametrize("mode", MODES)


def halves(keys: Keys, mode: str, metric: str = "cosine", dimension: int = 16) -> tuple[Owner, ServerIndex]:
    spec = IndexSpec("split", dimension, metric, mode)
    owner, server = Owner(keys, spec), ServerIndex(IndexSpec.from_bytes(spec.to_bytes()))
    if mode in ("sealed", "sealed-query"):
        server.set_evaluation_keys(owner.evaluation().to_bytes())
    return owner, server


@pytest.mark.core
@modes
def test_an_answer_may_be_older_than_the_directory_only_where_that_is_said(
    keys: Keys, vectors: Any, mode: str
) -> None:
    rows = vectors(40, 16)
    owner, server = halves(keys, mode)
    old = owner.seal(range(20), rows[:20])
    server.add(old)
    query = owner.query(rows[[3, 30]])
    response = server.evaluate(query.to_bytes())
    new = owner.seal(range(20, 40), rows[20:])
    with pytest.raises(CorruptData, match="left it out"):
        query.open(response)
    with pytest.raises(CorruptData, match="left it out"):
        owner.open(query, response, newer=[old.id])
    found = owner.open(query, response, newer=[new.id])
    assert found[0].ids[0] == 3 and all(isinstance(i, int) and i < 20 for i in found[1].ids)


@pytest.mark.core
@modes
def test_bytes_are_all_that_passes_between_the_halves(keys: Keys, vectors: Any, mode: str) -> None:
    rows = vectors(60, 16)
    owner, server = halves(keys, mode)
    for start in (0, 40):
        segment = owner.seal(range(start, start + 20), rows[start : start + 20])
        assert server.add(bytes(segment.segment)) == segment.id
    query = owner.query(rows[[5, 50]])
    response = server.evaluate(query.to_bytes())
    assert type(response) is bytes
    assert [m.ids[0] for m in query.open(response, 3)] == [5, 50]
    assert [m.ids for m in owner.open(query, response, 3)] == [m.ids for m in query.open(response, 3)]
    assert server.rows == 40 and len(owner) == 40
    assert query.nbytes == len(query.to_bytes()) and query.rows == 2


@modes
def test_an_owner_comes_back_from_its_sidecars(keys: Keys, vectors: Any, mode: str) -> None:
    rows = vectors(20, 16)
    owner, server = halves(keys, mode)
    segment = owner.seal([f"r{i}" for i in range(20)], rows)
    server.add(segment.segment)
    again = Owner(keys, owner.spec)
    again.attach(segment.id, segment.sidecar, deleted_rows=[3])
    assert len(again) == 19 and "r3" not in again
    query = again.query(rows[3])
    found = query.open(server.evaluate(query.to_bytes()), 20)[0]
    assert "r3" not in found.ids and len(found) == 19
    np.testing.assert_allclose(
        again.unseal(segment.segment), rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=2e-4
    )
    assert again.forget("r5") == [(segment.id, 5)]
    with pytest.raises(UnknownId):
        again.forget(["r6", "r5"])
    assert "r6" in again


@modes
def test_a_server_and_what_it_holds_travel_as_bytes(keys: Keys, vectors: Any, mode: str) -> None:
    rows = vectors(30, 16)
    owner, server = halves(keys, mode)
    segment = owner.seal(range(30), rows)
    server.add(segment.segment)
    query = owner.query(rows[7])
    for other in (
        ServerIndex.from_bytes(server.to_bytes()),
        pickle.loads(pickle.dumps(server)),
    ):
        assert query.open(other.evaluate(query.to_bytes()), 1)[0].ids == [7]
        assert other.spec == owner.spec
    for thing in (owner.spec, segment, owner.evaluation() if mode.startswith("sealed") else owner.spec):
        twin = pickle.loads(pickle.dumps(thing))
        assert type(twin) is type(thing)
        assert twin.to_bytes() == thing.to_bytes()
    server.remove(segment.id)
    assert server.rows == 0 and server.segment_ids() == []


def test_secrets_do_not_travel(keys: Keys, vectors: Any) -> None:
    owner, _ = halves(keys, "sealed")
    owner.seal([1], vectors(1, 16))
    for secret in (keys, keys._native, owner, owner.query(vectors(1, 16))):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(secret)
        with pytest.raises(TypeError):
            copy.deepcopy(secret) if secret is not keys else pickle.dumps(secret)
    assert copy.deepcopy(keys) is keys


def test_a_segment_is_new_each_time_it_is_sealed(keys: Keys, vectors: Any) -> None:
    """The same rows twice: other nonce, other bytes. Equal bytes would give differences of vectors
    away."""
    rows = vectors(10, 16)
    for mode in ("sealed-index", "sealed"):
        owner, _ = halves(keys, mode)
        one, two = (owner.seal(range(10), rows, attach=False) for _ in range(2))
        assert one.id != two.id
        words = [np.frombuffer(s.segment[-640:], np.uint8) for s in (one, two)]
        assert (words[0] == words[1]).mean() < 0.05


def test_what_the_owner_refuses(keys: Keys, vectors: Any) -> None:
    rows = vectors(4, 16)
    owner, server = halves(keys, "sealed")
    segment = owner.seal([1, 2, 3, 4], rows)
    server.add(segment.segment)
    with pytest.raises(DuplicateId, match="already in"):
        owner.seal([9, 2], rows[:2])
    with pytest.raises(DuplicateId, match="twice"):
        owner.seal([9, 9], rows[:2])
    with pytest.raises(InvalidInput, match="nothing to seal"):
        owner.seal([], [])
    with pytest.raises(InvalidInput, match="expected 1, got 2"):
        owner.seal([9], rows[:2])
    with pytest.raises(InvalidInput, match="nothing to ask"):
        owner.query([])
    with pytest.raises(InvalidInput, match="dimensions"):
        owner.query(vectors(1, 15))
    with pytest.raises(InvalidInput, match="needs keys"):
        Owner(None, owner.spec)
    with pytest.raises(InvalidInput, match="IndexSpec"):
        Owner(keys, "split")  # type: ignore[arg-type]
    with pytest.raises(CiphervecError):
        server.add(segment.segment)
    assert server.rows == 4 and len(owner) == 4


@pytest.mark.parametrize("mode", ["sealed-index", "sealed-query", "sealed"])
def test_another_owners_bytes_are_refused_before_any_work(keys: Keys, vectors: Any, mode: str) -> None:
    rows = vectors(10, 16)
    owner, server = halves(keys, mode)
    stranger, _ = halves(Keys.generate(), mode)
    segment = owner.seal(range(10), rows)
    server.add(segment.segment)
    if mode != "sealed-query":  # whose vectors lie in the clear
        with pytest.raises(WrongKey, match=keys.key_id):
            stranger.unseal(segment.segment)
    with pytest.raises((WrongKey, CorruptData)):
        stranger.attach(segment.id, segment.sidecar)
    assert len(stranger) == 0
    if mode != "sealed-index":
        stranger.seal(range(10), rows)
        with pytest.raises(CiphervecError):
            server.evaluate(stranger.query(rows[0]).to_bytes())


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_a_server_without_evaluation_keys_says_so(keys: Keys, vectors: Any, mode: str) -> None:
    spec = IndexSpec("split", 16, "cosine", mode)
    owner, server = Owner(keys, spec), ServerIndex(spec)
    server.add(owner.seal([1], vectors(1, 16)).segment)
    with pytest.raises(CiphervecError, match="evaluation"):
        server.evaluate(owner.query(vectors(1, 16)).to_bytes())
    owner.epoch = 4
    server.set_evaluation_keys(Owner(keys, spec).evaluation().to_bytes())
    with pytest.raises(CiphervecError, match="epoch"):
        server.evaluate(owner.query(vectors(1, 16)).to_bytes())
    assert keys.evaluation(spec, epoch=4).epoch == 4
    server.set_evaluation_keys(keys.evaluation(owner, epoch=4).to_bytes())
    assert server.evaluate(owner.query(vectors(1, 16)).to_bytes())


def test_evaluation_keys_are_small_and_say_so(keys: Keys) -> None:
    for dimension in (2, 512, 4096, 16_384):
        evaluation = keys.evaluation(IndexSpec("big", dimension))
        assert evaluation.nbytes == len(evaluation.to_bytes()) <= 1_500_000
        assert evaluation.key_id == keys.key_id and f"{evaluation.nbytes:,}" in repr(evaluation)
    with pytest.raises(InvalidInput, match="takes a collection"):
        keys.evaluation("big")  # type: ignore[arg-type]


def damaged(data: bytes) -> list[tuple[str, bytes]]:
    """Cuts everywhere in small objects and at many places in large ones, extra bytes, and flipped
    bits."""
    step = max(1, len(data) // 60)
    cuts = [(f"cut at {n}", data[:n]) for n in range(0, len(data), step)]
    flips = []
    for n in sorted({*range(min(len(data), 90)), *range(0, len(data), step), len(data) - 1}):
        changed = bytearray(data)
        changed[n] ^= 1 << (n % 8)
        flips.append((f"bit {n % 8} of byte {n}", bytes(changed)))
    return [*cuts, *flips, ("one byte more", data + b"\0"), ("nothing", b""), ("zeros", bytes(len(data)))]


@modes
def test_damaged_bytes_never_pass(keys: Keys, vectors: Any, mode: str) -> None:
    rows = vectors(5, 16)
    owner, server = halves(keys, mode)
    segment = owner.seal(range(5), rows)
    server.add(segment.segment)
    query = owner.query(rows[0])
    response = server.evaluate(query.to_bytes())
    directory = Owner(keys, owner.spec)
    decoders: list[tuple[str, bytes, Any]] = [
        ("spec", owner.spec.to_bytes(), IndexSpec.from_bytes),
        ("sealed segment", segment.to_bytes(), SealedSegment.from_bytes),
        ("segment", segment.segment, ServerIndex(owner.spec).add),
        ("sidecar", segment.sidecar, lambda data: directory.attach(segment.id, data)),
        ("query", query.to_bytes(), server.evaluate),
        ("response", response, query.open),
        ("server", server.to_bytes(), ServerIndex.from_bytes),
    ]
    if mode in ("sealed", "sealed-query"):
        evaluation = owner.evaluation().to_bytes()
        decoders.append(("evaluation keys", evaluation, EvaluationKeys.from_bytes))
        decoders.append(("evaluation keys", evaluation, server.set_evaluation_keys))
    for name, data, decode in decoders:
        for harm, bad in damaged(data):
            if decode is EvaluationKeys.from_bytes and not bad:
                continue  # the evaluation keys of a mode that needs none
            try:
                decode(bad)
            except CiphervecError as error:
                assert str(error), (name, harm)
            else:
                pytest.fail(f"{name} with {harm} was accepted")
    assert query.open(server.evaluate(query.to_bytes()), 1)[0].ids == [0]


def test_bytes_of_another_kind_are_named(keys: Keys, vectors: Any) -> None:
    owner, server = halves(keys, "sealed")
    segment = owner.seal([1], vectors(1, 16))
    with pytest.raises(CorruptData):
        server.add(segment.sidecar)
    with pytest.raises(CorruptData):
        server.evaluate(segment.segment)
    with pytest.raises(CorruptData):
        IndexSpec.from_bytes(segment.segment)
    other = Owner(keys, IndexSpec("split", 17))
    with pytest.raises(CiphervecError):
        server.add(other.seal([1], vectors(1, 17)).segment)


def test_keys_keep_their_secret(tmp_path: Path, keys: Keys) -> None:
    assert keys.key_id in repr(keys) and "secret" in repr(keys)
    assert keys == keys and keys != Keys.generate() and len({keys, keys}) == 1
    path = tmp_path / "my.key"
    keys.save(path, passphrase="correct horse")
    assert Keys.load(path, passphrase="correct horse") == keys
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(WrongKey, match="wrong passphrase"):
        Keys.load(path, passphrase="wrong")
    with pytest.raises(InvalidInput, match="passphrase"):
        Keys.load(path)
    with pytest.raises(StorageError, match="exists already"):
        keys.save(path, passphrase="x")
    with pytest.raises(InvalidInput, match="allow_plaintext=True"):
        keys.save(tmp_path / "plain.key")
    with pytest.raises(InvalidInput, match="empty"):
        keys.save(tmp_path / "plain.key", passphrase="")
    keys.save(tmp_path / "plain.key", allow_plaintext=True)
    assert Keys.load(tmp_path / "plain.key") == keys
    with pytest.raises(StorageError, match=r"absent\.key"):
        Keys.load(tmp_path / "absent.key")
    with pytest.raises(InvalidInput, match=r"Keys\.generate"):
        Keys(b"0" * 32)  # type: ignore[arg-type]


def test_a_damaged_key_file_is_refused(tmp_path: Path, keys: Keys) -> None:
    path = tmp_path / "plain.key"
    keys.save(path, allow_plaintext=True)
    whole = path.read_bytes()
    for harm, bad in damaged(whole):
        path.write_bytes(bad)
        with pytest.raises(CiphervecError):
            assert Keys.load(path) is None, harm


def test_the_module_says_what_it_runs_on() -> None:
    assert ciphervec.backend() in ciphervec.available_backends()
    assert "portable" in ciphervec.available_backends()
    assert ciphervec.__version__
    for name in ciphervec.__all__:
        assert hasattr(ciphervec, name)
    assert (Path(ciphervec.__file__).parent / "py.typed").is_file()


def test_an_unknown_backend_is_refused_at_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import ciphervec"],
        env={**os.environ, "CIPHERVEC_BACKEND": "abacus"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0 and "InvalidInput" in done.stderr and "abacus" in done.stderr
    assert "portable" in done.stderr
