"""Keyed private lookup in Python: tables against dictionaries, files, a client and a server in one process, over HTTP, and what
a server that lies and one that only looks get."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import (
    AsyncHttpClient,
    Conflict,
    CorruptData,
    HttpClient,
    InvalidInput,
    PinMismatch,
    PrivateTable,
    PrivateTableClient,
    TableNotFound,
    errors,
)
from ciphervec.http import LocalServer
from program import Program, token

RECORDS: dict[Any, bytes] = {
    "a": b"first",
    b"a": b"another kind of key",
    7: b"seven",
    "7": b"",
    -(2**127): b"x" * 300,
    "größe": "größe".encode(),
}


@pytest.fixture(scope="module")
def words() -> dict[str, bytes]:
    """20,000 keys with records of 0 to 63 bytes."""
    draw = random.Random(5)
    return {f"word {index}": bytes(draw.randrange(256) for _ in range(index % 64)) for index in range(20_000)}


@pytest.fixture(scope="module")
def table(words: dict[str, bytes]) -> PrivateTable:
    return PrivateTable.build(words)


@pytest.fixture
def client(server_url: str, tmp_path: Path) -> Iterator[HttpClient]:
    with HttpClient(server_url, state=tmp_path / "state") as client:
        yield client
        for one in client.list_tables():
            client.delete_table(one["name"])


def test_records_come_back_by_keys_of_three_kinds(keys: ciphervec.Keys) -> None:
    for sealing in (None, keys):
        table = PrivateTable.build(RECORDS, keys=sealing)
        client = table.client(sealing)
        assert client.get_many(RECORDS) == list(RECORDS.values())
        assert [table.get(key, sealing) for key in RECORDS] == list(RECORDS.values())
        assert client.get_many(["b", 8, b"7", "größ", ""], bound=10) == [None] * 5
        assert (
            client.get("b") is None
            and client.get("b", b"default") == b"default"
            and client.get(7) == b"seven"
        )
        assert 7 in client and 8 not in client and np.int64(7) in client
        assert client.get_many([]) == [] and client.get_many([7] * 3) == [b"seven"] * 3
        assert (len(table), len(client), table.record_bytes, table.sealed) == (6, 6, 300, sealing is not None)


def test_tables_agree_with_a_dictionary(table: PrivateTable, words: dict[str, bytes], tmp_path: Path) -> None:
    draw = random.Random(9)
    asked = [f"word {draw.randrange(25_000)}" for _ in range(10_000)]
    assert [table.get(key) for key in asked] == [words.get(key) for key in asked]
    client = table.client()
    assert client.get_many(asked[:60]) == [words.get(key) for key in asked[:60]]
    table.save(tmp_path / "words.table")
    again = PrivateTable.load(tmp_path / "words.table")
    assert (again.fingerprint, again.info(), again.description) == (
        table.fingerprint,
        table.info(),
        table.description,
    )
    again.verify()
    assert again.client().get_many(asked[60:70]) == [words.get(key) for key in asked[60:70]]
    built = PrivateTable.build(words.items(), path=tmp_path / "words.table", record_bytes=100)
    assert built.record_bytes == 100 and built.get("word 63") == words["word 63"]
    assert [path.name for path in tmp_path.iterdir()] == ["words.table"]


def test_keys_alone_take_one_place_and_long_records_three() -> None:
    alone = PrivateTable.build(dict.fromkeys(range(3000), b""))
    assert alone.info()["places"] == 1 and alone.client().get_many([0, 2999, 3000]) == [b"", b"", None]
    long = PrivateTable.build({index: bytes([index]) * (9000 - index) for index in range(12)})
    assert long.info()["places"] == 3 and long.client().get_many([11, 12]) == [b"\x0b" * 8989, None]
    nothing = PrivateTable.build({})
    assert nothing.client().get("a") is None and len(nothing) == 0 and nothing


def test_what_is_no_record_or_key_is_refused(keys: ciphervec.Keys, tmp_path: Path) -> None:
    build: Any = PrivateTable.build
    with pytest.raises(InvalidInput, match="records 1 and 2 have the same key"):
        build([("a", b"1"), ("b", b"2"), ("b", b"3")])
    for bad in (
        [("a", 3)],
        [("a",)],
        ["abc"],
        [(1.5, b"")],
        [(True, b"")],
        [(2**127, b"")],
        [(None, b"")],
        "text",
        [("\ud800", b"")],
    ):
        with pytest.raises(InvalidInput):
            build(bad)
    with pytest.raises(InvalidInput, match="65535"):
        build({"a": b"x" * 65_536})
    with pytest.raises(InvalidInput, match="32 bytes"):
        build({}, seed=b"short")
    client = build({"a": b"1"}).client()
    for keys_of in (["a"] * 2, []):
        with pytest.raises(InvalidInput):
            client.get_many(keys_of, bound=1 if keys_of else 5001)
    with pytest.raises(InvalidInput, match="list of keys"):
        client.get_many("abc")
    sealed = build({"a": b"1"}, keys=keys)
    for other in (None, ciphervec.Keys.generate()):
        with pytest.raises((InvalidInput, CorruptData)):
            sealed.client(other)
        with pytest.raises(CorruptData):
            sealed.get("a", other)
    with pytest.raises(InvalidInput, match="fingerprint"):
        PrivateTableClient(sealed.description, "00" * 32, keys)
    path = tmp_path / "bad.table"
    for content in (b"", b"CVKEYTAB", os.urandom(9000)):
        path.write_bytes(content)
        with pytest.raises(CorruptData):
            PrivateTable.load(path)
    build({"a": b"1"}).save(path)
    damaged = bytearray(path.read_bytes())
    damaged[-7000] ^= 1
    path.write_bytes(bytes(damaged))
    with pytest.raises(CorruptData, match="bucket"):
        PrivateTable.load(path).verify()
    with pytest.raises(CorruptData):
        PrivateTable.load(path).client().get("a")
    with pytest.raises(errors.StorageError):
        PrivateTable.load(tmp_path / "none.table")


def test_records_of_parquet_and_of_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(
        pyarrow.table({"key": [3, 5], "record": ["three", "five"], "other": [b"x", b"y"]}),
        tmp_path / "rows.parquet",
    )
    file = tmp_path / "rows.parquet"
    assert PrivateTable.from_parquet(file).client().get_many([3, 4, 5]) == [b"three", None, b"five"]
    assert PrivateTable.from_parquet(file, key="other", record=None).get(b"x") == b""
    with pytest.raises(InvalidInput, match="no 'missing'"):
        PrivateTable.from_parquet(file, key="missing")
    (tmp_path / "no.parquet").write_bytes(b"none")
    with pytest.raises(InvalidInput, match="Parquet"):
        PrivateTable.from_parquet(tmp_path / "no.parquet")


def test_a_wrong_answer_ends_a_client_and_what_is_no_answer_does_not() -> None:
    records = {index: bytes([index]) * 3000 for index in range(40)}
    table, other = PrivateTable.build(records), PrivateTable.build(records)
    client = PrivateTableClient(table.description, table.fingerprint)
    asked, queries = client.ask([7, 99])
    answers = [table.answer(asked.evaluation_keys(), query) for query in queries]
    for bad in ([], answers[:1], [answers[0][:-1], answers[1]], [b"", b""]):
        with pytest.raises(errors.CiphervecError) as caught:
            client.open(asked, bad)
        assert not isinstance(caught.value, errors.TamperedAnswer)
    with pytest.raises(CorruptData):  # of a table with other buckets
        other.answer(asked.evaluation_keys(), queries[0])
    assert client.open(asked, answers) == [records[7], None]
    # One that was right for another query is wrong.
    with pytest.raises(errors.TamperedAnswer):
        client.open(asked, answers[:1] * 2)
    with pytest.raises(errors.TamperedAnswer):
        client.open(asked, answers)
    with pytest.raises(errors.TamperedAnswer):
        client.ask([7])


def test_lookups_go_over_http(
    client: HttpClient, table: PrivateTable, words: dict[str, bytes], tmp_path: Path
) -> None:
    said = client.put_table("words", table)
    assert (said["records"], said["fingerprint"], client.list_tables()) == (20_000, table.fingerprint, [said])
    remote = client.get_table("words", table.fingerprint)
    asked = [f"word {index}" for index in (0, 63, 64, 19_999, 20_000)]
    assert remote.get_many(asked) == [words.get(key) for key in asked]
    assert remote.get("word 5") == words["word 5"] and "word -1" not in remote
    assert (remote.name, len(remote), remote.fingerprint) == ("words", 20_000, table.fingerprint)
    facts = {name: value for name, value in table.info().items() if name != "bytes"}
    assert remote.info() == {**facts, "failures": 0, "ended": False}
    # The same fingerprint again, and none: the first one counts. Another table under the name is found out.
    client.get_table("words")
    table.save(tmp_path / "words.table")
    client.put_table("words", tmp_path / "words.table")
    assert remote.get("word 5") == words["word 5"]
    newer = PrivateTable.build({"word 5": b"replaced"})
    client.put_table("words", newer)
    with pytest.raises(Conflict, match="replaced"):
        remote.get("word 5")
    with pytest.raises(PinMismatch, match="fingerprint"):
        client.get_table("words")
    assert client.get_table("words", newer.fingerprint).get("word 5") == b"replaced"
    assert client.get_table("words").get("word 6") is None
    with pytest.raises(PinMismatch):
        client.get_table("words", table.fingerprint)
    for bad in ("", "zz" * 32, "00"):
        with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
            client.get_table("words", bad)
    client.delete_table("words")
    for call in (client.get_table, client.delete_table):
        with pytest.raises(TableNotFound):
            call("words")
    with pytest.raises(TableNotFound):
        remote.get("word 5")
    (tmp_path / "no.table").write_bytes(b"none")
    with pytest.raises(InvalidInput):
        client.put_table("words", tmp_path / "no.table")
    with pytest.raises(InvalidInput):
        client.put_table("..", table)


def test_a_sealed_table_serves_its_owner(server_url: str, keys: ciphervec.Keys, tmp_path: Path) -> None:
    table = PrivateTable.build({"a": b"sealed record"}, keys=keys)
    with HttpClient(server_url, keys=keys, state=tmp_path / "one") as owner:
        owner.put_table("sealed", table)
        assert owner.get_table("sealed", table.fingerprint).get_many(["a", "b"]) == [b"sealed record", None]
        with (
            HttpClient(server_url, state=tmp_path / "two") as other,
            pytest.raises(InvalidInput, match="sealed"),
        ):
            other.get_table("sealed")
        owner.delete_table("sealed")


def test_large_tables_go_in_pieces_and_lookups_wait(server_url: str) -> None:
    table = PrivateTable.build({index: index.to_bytes(4, "little") * 500 for index in range(14_000)})
    sent: list[int] = []

    async def look() -> list[bytes | None]:
        on_upload = lambda done, total: sent.append(done)  # noqa: E731
        async with AsyncHttpClient(server_url, state=None, on_upload=on_upload) as client:
            await client.put_table("large", table)
            remote = await client.get_table("large", table.fingerprint)
            assert (remote.name, len(remote), remote.fingerprint) == ("large", 14_000, table.fingerprint)
            assert (remote.record_bytes, remote.sealed, (await remote.info())["failures"]) == (2000, False, 0)
            one, many = await asyncio.gather(remote.get(13_999), remote.get_many([0, 14_000]))
            assert not await remote.contains(-1)
            await client.delete_table("large")
            return [one, *many]

    assert asyncio.run(look()) == [(13_999).to_bytes(4, "little") * 500, b"\0" * 2000, None]
    assert sent and sent[-1] == table.info()["bytes"] > 24 << 20


class Watched(httpx.HTTPTransport):
    """What a server sees of requests."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Any, ...]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        names = tuple(sorted(name for name in request.headers if name != "host"))
        self.seen.append((request.method, request.url.path, len(body), names))
        return super().handle_request(request)


def test_a_server_sees_the_same_of_any_lookup_of_a_class(server_url: str, table: PrivateTable) -> None:
    watched = Watched()
    with HttpClient(server_url, state=None, transport=watched) as client:
        client.put_table("words", table)
        remote = client.get_table("words", table.fingerprint)
        remote.get("word 1")  # which brings the keys
        views = []
        for asked, bound in [(["word 1"], 1), (["no word"], None), (["word 19999"], 1), ([], 1)]:
            watched.seen.clear()
            remote.get_many(asked, bound=bound)
            views.append(list(watched.seen))
        assert len(views[0]) == 1 and all(view == views[0] for view in views)
        views = []
        for asked, bound in [
            (["word 1"] * 2, None),
            (["none"] * 10, None),
            ([], 10),
            ([f"word {i}" for i in range(7)], 9),
        ]:
            watched.seen.clear()
            remote.get_many(asked, bound=bound)
            views.append(list(watched.seen))
        assert all(view == views[0] for view in views)
        client.delete_table("words")


def test_one_failure_ends_lookups_for_every_client_until_they_are_resumed(tmp_path: Path) -> None:
    records = {index: bytes([index]) * 3000 for index in range(40)}
    table = PrivateTable.build(records)
    with LocalServer(tmp_path / "db") as server, HttpClient(server.url, state=tmp_path / "state") as client:
        client.put_table("people", table)
        remote = client.get_table("people", table.fingerprint)
        assert remote.get(7) == records[7]
        lying = Lying()
        with HttpClient(server.url, state=tmp_path / "state", transport=lying) as deceived:
            victim = deceived.get_table("people", table.fingerprint)
            lying.active = True
            with pytest.raises(errors.TamperedAnswer, match="resume"):
                victim.get(7)
            count = len(lying.seen)
            for _ in range(2):
                with pytest.raises(errors.TamperedAnswer):
                    victim.get(8)
            assert len(lying.seen) == count, "nothing more is sent"
            assert (victim.info()["failures"], victim.info()["ended"]) == (1, True)
        # Another client of this user's, of an honest server too.
        with pytest.raises(errors.TamperedAnswer):
            remote.get(8)
        remote.resume()
        assert remote.get(8) == records[8]
        assert (remote.info()["failures"], remote.info()["ended"]) == (1, False)


class Lying(Watched):
    """Changes a word of every answer, once it is told to."""

    active = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self.active and "/lookup/" in request.url.path and response.status_code == 200:
            frame = bytearray(response.read())
            frame[-1] ^= 0x80
            # The checksum is of header and payload: nothing but the records is wrong.
            frame[32:64] = _native.blake3(bytes(frame[:32] + frame[64:]))
            return httpx.Response(200, headers=response.headers, content=bytes(frame))
        return response


def test_tokens_need_the_verbs(tmp_path: Path) -> None:
    table = PrivateTable.build({"a": b"1"})
    data, file = tmp_path / "db", tmp_path / "db" / "tokens.json"
    admin, query, read = (token(data, "people", verb) for verb in ("admin", "query", "read"))
    other = token(data, "others", "query")
    with LocalServer(tmp_path / "db", ["--tokens", str(file)]) as server:
        with HttpClient(server.url, admin, state=None) as client:
            client.put_table("people", table)
        with HttpClient(server.url, query, state=None) as client:
            assert client.get_table("people").get("a") == b"1"
            assert len(client.list_tables()) == 1
            with pytest.raises(errors.AuthenticationError):
                client.delete_table("people")
        with HttpClient(server.url, read, state=None) as client, pytest.raises(errors.AuthenticationError):
            client.get_table("people").get("a")
        with HttpClient(server.url, other, state=None) as client:
            assert client.list_tables() == []
            with pytest.raises(TableNotFound):
                client.get_table("people")


def test_tables_outlive_the_server(tmp_path: Path) -> None:
    table = PrivateTable.build({"a": b"1"})
    with LocalServer(tmp_path / "db") as server, HttpClient(server.url, state=None) as client:
        client.put_table("people", table)
        assert client.list_collections() == []
    assert (tmp_path / "db" / ".tables" / "people.table").stat().st_size == table.info()["bytes"]
    with LocalServer(tmp_path / "db") as server, HttpClient(server.url, state=None) as client:
        assert client.get_table("people", table.fingerprint).get("a") == b"1"


def test_the_command_line(server_url: str, tmp_path: Path) -> None:
    program = Program(tmp_path, CIPHERVEC_PASSPHRASE="pass")
    (tmp_path / "words.txt").write_text("alpha\nbeta\n", encoding="utf-8")
    (tmp_path / "people.csv").write_text("phone,name\n17,Ada\n18,Max\n", encoding="utf-8")
    made = json.loads(program("table", "build", "words.txt", "words.table", "--json").stdout)
    assert made["records"] == 2
    assert made["fingerprint"] in program("table", "info", "words.table", "--check").stdout
    columns = ("--key-column", "phone", "--record-column", "name", "--integers")
    program("table", "build", "people.csv", "people.table", *columns)
    assert "Ada" in program("table", "get", "people.table", "17", "--integers").stdout
    program("table", "get", "words.table", "gamma", code=4)
    program("table", "put", server_url, "words", "words.table")
    place = (f"{server_url}/v1/tables/words", "--fingerprint", made["fingerprint"])
    assert "is there" in program("table", "get", *place, "alpha").stdout
    found = program("table", "get", *place, "alpha", "gamma", "--json", code=4).stdout.splitlines()
    assert json.loads(found[0]) == [{"key": "alpha", "record": ""}, {"key": "gamma", "record": None}]
    assert json.loads(program("table", "list", server_url, "--json").stdout)[0]["name"] == "words"
    program("keygen", "my.key", "--no-passphrase")
    program("table", "build", "people.csv", "sealed.table", *columns, "--seal", "--keys", "my.key")
    assert "Max" in program("table", "get", "sealed.table", "18", "--integers", "--keys", "my.key").stdout
    program("table", "build", "people.csv", "sealed.table", *columns, "--seal", code=2)
    program("table", "build", "my.key", "x.table", code=2)
    program("table", "remove", server_url, "words")
    program("table", "remove", server_url, "words", code=4)
