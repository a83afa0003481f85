"""Programs on the shipped server: two clients with keys of their own on one plan, galleries that stay,
restarts and kills at random moments, lost answers, limits, tokens, and clients that leave."""

from __future__ import annotations

import asyncio
import random
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import AsyncHttpClient, HttpClient, InvalidInput, ProgramNotFound, programs, public, secret
from ciphervec.http import LocalServer, RemoteProgram
from ciphervec.http import programs as remote_programs
from network import Faulty, lose, only
from program import token

ROWS, D = 12, 16


@ciphervec.program
def distances(probe: Any, gallery: Any) -> Any:
    return ((gallery - probe) ** 2).sum(axis=1)


@ciphervec.program
def powers(x: Any) -> Any:
    return np.stack([(x * k) ** 2 for k in range(1, 200)])


@pytest.fixture(scope="module")
def plan() -> programs.Plan:
    return distances.compile(failure=128, probe=secret(D, bits=4), gallery=secret((ROWS, D), bits=4))


@pytest.fixture
def client(server_url: str) -> Iterator[HttpClient]:
    with HttpClient(server_url, state=None) as client:
        yield client
        for name in client.list_programs():
            client.delete_program(name)


def people(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 16, (ROWS, D))


def settled(client: HttpClient, plan: programs.Plan, seed: int) -> tuple[RemoteProgram, programs.Client]:
    """A client's keys and gallery on a server."""
    remote, holder = client.get_program("nearest", plan), plan.client()
    remote.send_keys(holder)
    remote.keep(holder, gallery=people(seed))
    return remote, holder


def test_two_clients_share_a_program_and_nothing_else(client: HttpClient, plan: programs.Plan) -> None:
    remote = client.put_program("nearest", plan)
    client.put_program("nearest", plan)
    assert client.list_programs() == ["nearest"] and client.list_collections() == []
    halves = [settled(client, plan, seed) for seed in (1, 2)]
    for seed, (mine, holder) in enumerate(halves, 1):
        for row in (0, 5):
            found = mine.run(holder, probe=people(seed)[row])
            expected = distances(probe=people(seed)[row], gallery=people(seed))
            assert found.dtype == np.int64 and (found == expected).all()
    one, two = (holder for _, holder in halves)
    # Several galleries by name, and inputs of one run alone.
    remote.keep_bytes("of-2025", one.encrypt(gallery=people(3))["gallery"])
    probe = people(3)[4]
    assert remote.run(one, "of-2025", probe=probe)[4] == 0
    assert remote.run(one, probe=probe, gallery=people(4)).tolist() == distances(probe, people(4)).tolist()
    sealed = two.encrypt(probe=probe)
    assert two.decrypt(remote.run_bytes(sealed.values(), "gallery")).shape == (ROWS,)
    # What the server says it knows is what the plan says it takes.
    known = remote.info()
    assert known["plan"]["id"] == plan.id and known["plan"]["key_bytes"] == plan.key_bytes
    assert known["plan"]["predicted_ms"] > 0 and set(known["keys"]) == {one.key_id, two.key_id}
    assert set(known["keys"][one.key_id]["inputs"]) == {"gallery", "of-2025"}
    remote.send_keys(one)  # they are there
    remote.forget(one, "gallery", "of-2025")
    with pytest.raises(InvalidInput, match="gallery"):
        remote.run(one, probe=probe)
    remote.remove_keys(one.key_id)
    with pytest.raises(InvalidInput, match=f"no evaluation keys of {one.key_id}"):
        remote.run(one, probe=probe, gallery=people(1))
    assert remote.run(two, probe=people(2)[3])[3] == 0
    other = distances.compile(failure=128, probe=secret(D, bits=3), gallery=secret((ROWS, D), bits=3))
    for refused in (client.put_program, client.get_program):
        with pytest.raises(InvalidInput, match="plan"):
            refused("nearest", other)
    with pytest.raises(InvalidInput, match="plan"):
        remote.run(other.client(), probe=probe)
    client.delete_program("nearest")
    for gone in (remote.info, lambda: remote.run(two, probe=probe), lambda: remote.send_keys(two)):
        with pytest.raises(ProgramNotFound, match="nearest"):
            gone()


def test_lost_answers_and_large_keys(
    client: HttpClient, server_url: str, plan: programs.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every answer of a change is lost once; keys and a gallery go in pieces, one of which is lost."""
    monkeypatch.setattr(ciphervec.http.retry, "_FIRST", 0.01)
    monkeypatch.setattr(remote_programs, "INLINE", 50_000)
    monkeypatch.setattr(ciphervec.http.session, "PIECE", 400_000)
    client.put_program("nearest", plan)
    network, sent = Faulty(), []
    with HttpClient(server_url, state=None, transport=network, on_upload=lambda *at: sent.append(at)) as mine:
        remote = mine.put_program("nearest", plan)
        holder = plan.client()
        keys = f"keys/{holder.key_id}"
        for ending, call in (
            (keys, lambda: remote.send_keys(holder)),
            ("inputs/gallery", lambda: remote.keep(holder, gallery=people(1))),
        ):
            faults = [only(ending, "PUT", lose), only("", "PATCH", lose, 2)]
            network.fault = lambda request, go, faults=faults: faults[0](
                request, lambda: faults[1](request, go)
            )
            call()
        assert remote.run(holder, probe=people(1)[2])[2] == 0
        assert sent[-1][0] == sent[-1][1] and max(total for _, total in sent) == plan.key_bytes
        network.fault = only("inputs/gallery", "DELETE", lose)
        remote.forget(holder, "gallery")
        network.fault = only(keys, "DELETE", lose)
        remote.remove_keys(holder.key_id)
        assert remote.info()["keys"] == {}
        network.fault = only("/run", "POST", lose)
        with pytest.raises(InvalidInput, match="no evaluation keys"):
            remote.run(holder, probe=people(1)[2], gallery=people(1))


@pytest.mark.slow
def test_what_was_acknowledged_outlives_kills_at_any_moment(
    tmp_path: Path, plan: programs.Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is killed while keys and galleries come, in pieces, and runs are computed; then all
    that was acknowledged is there, and nothing of the rest is in the way."""
    monkeypatch.setattr(remote_programs, "INLINE", 50_000)
    monkeypatch.setattr(ciphervec.http.session, "PIECE", 200_000)
    chance, keys = random.Random(3), plan.client()
    done: dict[str, int] = {}
    sealed = [keys.encrypt(gallery=people(seed))["gallery"] for seed in range(4)]
    answers = [distances(people(0)[0], people(seed)).tolist() for seed in range(4)]
    evaluation = keys.evaluation_keys()
    data = tmp_path / "db"
    with LocalServer(data) as server, HttpClient(server.url, state=None) as client:
        client.put_program("nearest", plan).send_keys_bytes(evaluation)

    def work(url: str) -> None:
        with HttpClient(url, state=None, retries=0, timeout=10) as client:
            for turn in range(1000):
                remote = client.get_program("nearest", plan)
                name, version = f"gallery-{turn % 3}", turn % 4
                trying[name] = version
                remote.keep_bytes(name, sealed[version])
                done[name] = trying.pop(name)
                holder = plan.client()
                remote.send_keys(holder)
                acknowledged.append(holder.key_id)
                remote.run(keys, name, probe=people(0)[0])
                if turn % 2:
                    remote.remove_keys(acknowledged[-1])
                    acknowledged.pop()

    acknowledged: list[str] = []
    trying: dict[str, int] = {}
    for turn in range(5):
        with LocalServer(data) as server:
            with HttpClient(server.url, state=None) as client:
                remote = client.get_program("nearest", plan)
                known = remote.info()["keys"]
                assert set(acknowledged[:-1]) <= set(known), "the last one may have been on its way out"
                for name, version in done.items():
                    may = {version, trying.get(name, version)}
                    answer = remote.run(keys, name, probe=people(0)[0]).tolist()
                    found = [one for one in may if answers[one] == answer]
                    assert found
                    done[name] = found[0]
            if turn < 4:
                acknowledged, trying = [], {}
                worker = threading.Thread(target=_until_lost, args=(work, server.url))
                worker.start()
                time.sleep(chance.uniform(0.1, 0.6))
                server.kill()
                worker.join()
    assert not [path.name for path in (data / ".programs").iterdir() if path.name.startswith(".")]


def _until_lost(work: Any, url: str) -> None:
    with pytest.raises((ciphervec.ServerError, httpx.HTTPError)):
        work(url)


@pytest.mark.slow
def test_limits_say_what_is_over_and_by_how_much(tmp_path: Path, plan: programs.Plan) -> None:
    for option, value, said in (
        ("--program-steps", "3", "steps, at most 3 "),
        ("--program-memory", "1MiB", "at most 1048576 "),
    ):
        with (
            LocalServer(tmp_path / option, [option, value]) as server,
            HttpClient(server.url, state=None) as client,
        ):
            with pytest.raises(InvalidInput, match=said) as refused:
                client.put_program("nearest", plan)
            assert option in str(refused.value)
            assert client.list_programs() == []


@pytest.mark.slow
def test_tokens_without_the_verb(tmp_path: Path, plan: programs.Plan) -> None:
    data = tmp_path / "db"
    data.mkdir()
    verbs = (("admin",), ("owner",), ("run",), ("read", "query", "write"))
    owner, enrols, asks, reads = (token(data, "near*", *some) for some in verbs)
    with LocalServer(data) as server:
        with HttpClient(server.url, owner, state=None) as client:
            client.put_program("nearest", plan)
            with pytest.raises(ProgramNotFound):
                client.get_program("elsewhere", plan)
        holder = plan.client()
        with HttpClient(server.url, enrols, state=None) as client:
            with pytest.raises(ciphervec.AuthenticationError, match="admin"):
                client.put_program("nearest", plan)
            remote = client.get_program("nearest", plan)
            remote.send_keys(holder)
            remote.keep(holder, gallery=people(1))
            with pytest.raises(ProgramNotFound):
                client.delete_program("other")
        with HttpClient(server.url, asks, state=None) as client:
            remote = client.get_program("nearest", plan)
            assert remote.run(holder, probe=people(1)[6])[6] == 0
            for call in (
                lambda: remote.keep(holder, gallery=people(2)),
                lambda: remote.send_keys(plan.client()),
                lambda: remote.remove_keys(holder.key_id),
                lambda: client.delete_program("nearest"),
            ):
                with pytest.raises(ciphervec.AuthenticationError):
                    call()
        with HttpClient(server.url, reads, state=None) as client:
            assert client.list_programs() == []
            with pytest.raises(ProgramNotFound):
                client.get_program("nearest", plan)


@pytest.mark.slow
def test_a_client_that_leaves_frees_what_its_run_took(tmp_path: Path) -> None:
    """A run of seconds on an event loop is cancelled; the server's memory is what it was before."""
    long = powers.compile(x=secret(4000, bits=3), precision=4, failure=128)
    holder = long.client()

    def memory(url: str) -> int:
        text = httpx.get(f"{url}/metrics").text
        line = next(line for line in text.splitlines() if line.startswith("ciphervec_program_memory_bytes "))
        return int(line.split()[1])

    async def leave(url: str) -> None:
        async with AsyncHttpClient(url, state=None) as client:
            remote = await client.put_program("long", long)
            await remote.send_keys(holder)
            await remote.keep(holder, x=np.arange(4000) % 8)
            found = await remote.run(holder)
            assert (found[4] == (5 * (np.arange(4000) % 8)) ** 2).all()
            before = memory(url)
            for _ in range(2):
                running = asyncio.create_task(remote.run(holder))
                while memory(url) <= before and not running.done():
                    await asyncio.sleep(0.001)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                for _ in range(1000):
                    if memory(url) == before:
                        break
                    await asyncio.sleep(0.01)
                assert memory(url) == before
            one = long.client().encrypt(x=np.zeros(4000))
            with pytest.raises(InvalidInput, match="no evaluation keys"):
                await remote.run_bytes(one.values())

    # A run is longer than a connection may rest, and than a sender may pause.
    with LocalServer(tmp_path / "db", ["--idle", "1s", "--patience", "1s"]) as server:
        asyncio.run(leave(server.url))
        assert "ciphervec_runs_in_flight 0" in httpx.get(f"{server.url}/metrics").text


@ciphervec.program
def weighed(x: Any, weights: Any, rates: Any) -> Any:
    return (x * weights * rates).sum(), weights.max()


def test_public_inputs_are_sent_kept_and_checked_like_others(client: HttpClient) -> None:
    declared = {"weights": public(D, bits=4, signed=True), "rates": public(D, bits=4)}
    plan = weighed.compile(failure=128, x=secret(D, bits=4), **declared)
    assert plan.public == ("weights", "rates") and plan.analyse().levels == 1
    remote, holder = client.put_program("weighed", plan), plan.client()
    remote.send_keys(holder)
    random = np.random.default_rng(5)
    weights, rates = random.integers(-8, 8, D), random.integers(0, 16, D)
    remote.keep(holder, weights=weights)
    for x in (np.full(D, 15), np.zeros(D, np.int64), random.integers(0, 16, D)):
        assert remote.run(holder, x=x, rates=rates) == weighed(x, weights, rates)
    kept = client.get_program("weighed", plan).info()
    assert kept["plan"]["inputs"][1]["bytes"] < 300
    assert [one["public"] for one in kept["plan"]["inputs"]] == [False, True, True]
    # What no honest client sends is refused by the server, with what was expected and what came.
    good = holder.encrypt(x=np.ones(D), rates=rates)
    for number, says in ((16.0, "element 3 is 16"), (np.nan, "element 3 is NaN"), (0.5, "multiples of 1")):
        bad = struct.pack("<d", number)
        start = len(good["rates"]) - 8 * D + 24
        forged = reframed(good["rates"][:start] + bad + good["rates"][start + 8 :])
        with pytest.raises(InvalidInput, match=says):
            remote.run_bytes([good["x"], forged], "weights")
    with pytest.raises(InvalidInput, match="16 numbers of 8 bytes expected, got 120"):
        remote.run_bytes([good["x"], reframed(good["rates"][:-8])], "weights")
    assert holder.decrypt(remote.run_bytes(list(good.values()), "weights")) == weighed(
        np.ones(D, np.int64), weights, rates
    )


def reframed(frame: bytes) -> bytes:
    """A frame with the length and the checksum of what it holds."""
    head, body = frame[:24], frame[64:]
    head += struct.pack("<Q", len(body))
    return head + _native.blake3(head + body) + body


def test_names_and_bytes_that_are_none(client: HttpClient, plan: programs.Plan) -> None:
    remote = client.put_program("nearest", plan)
    sealed = plan.client().encrypt(probe=people(0)[0])["probe"]
    for name in ("", "..", "a/b", "a b", "x" * 65):
        with pytest.raises(InvalidInput, match="kept input's name"):
            remote.keep_bytes(name, sealed)
    for data in (b"", b"junk" * 20):
        for call in (remote.send_keys_bytes, lambda data: remote.keep_bytes("one", data)):
            with pytest.raises(InvalidInput, match="expected"):
                call(data)
    for key in ("", "0" * 15, "G" * 16):
        with pytest.raises(InvalidInput, match="16 hexadecimal"):
            remote.remove_keys(key)
    with pytest.raises(InvalidInput):
        client.put_program("../up", plan)
    assert "nearest" in repr(remote) and remote.plan is plan
