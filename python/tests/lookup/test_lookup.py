"""Private lookup from Python, against sums of the plain rows in float64."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import ciphervec
from ciphervec import lookup
from ciphervec.errors import CorruptData, InvalidInput, WrongKey

Floats = npt.NDArray[np.float64]


def table(tables: int, rows: int, columns: int) -> Floats:
    return np.random.default_rng(1).standard_normal((tables, rows, columns))


def looked_up(values: Floats, indices: npt.NDArray[np.int64]) -> Floats:
    """The sum over tables of the rows named; padding is zero."""
    rows = sum(one[np.maximum(indices[:, j], 0)] for j, one in enumerate(values))
    return np.asarray(np.where(indices[:, :1] < 0, 0.0, np.asarray(rows)))


def ask(server: lookup.Server, *query: Any, **options: Any) -> Floats:
    """Through bytes, with a client that has nothing but the description."""
    client = lookup.Client.generate(server.description())
    keys = client.keys()
    if keys is not None:
        assert server.register(keys)
    return client.decode(server.embed(client.query(*query, **options)))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("word_bytes", [4, 5, 6])
def test_histogram_is_within_its_bound(pooling: str, word_bytes: int) -> None:
    values = table(3, 40, 5)
    server = lookup.setup(values, pooling=pooling, limit=30, word_bytes=word_bytes)
    assert (server.strategy, server.pooling, server.shape) == ("histogram", pooling, (3, 40, 5))
    random = np.random.default_rng(2)
    documents = [random.integers(0, 40, (length, 3)) for length in (30, 1, 7)]
    documents[2][3] = lookup.PADDING
    sums = np.array([looked_up(values, one).sum(0) for one in documents])
    counts = np.array([(one[:, 0] >= 0).sum() for one in documents])[:, None]
    expected = sums if pooling == "sum" else sums / counts
    offsets = np.cumsum([0, *map(len, documents)])
    for got in (ask(server, documents), ask(server, np.concatenate(documents), offsets)):
        assert got.shape == expected.shape
        assert np.abs(got - expected).max() <= server.error_bound
    even = np.stack([documents[2], documents[2][::-1]])
    assert np.abs(ask(server, even) - expected[2]).max() <= server.error_bound


@pytest.mark.parametrize("strategy", ["one_hot", "one_hot_digits", "ive_digits"])
def test_strategies_token_by_token_are_within_their_bounds(strategy: str) -> None:
    values = table(2, 30, 3)
    server = lookup.setup(values, strategy)
    indices = np.random.default_rng(2).integers(0, 30, (50, 2))
    indices[7] = lookup.PADDING
    got, expected = ask(server, indices), looked_up(values, indices)
    assert np.abs(got - expected).max() <= server.error_bound
    # Of 50 rows the root mean square is near that of all.
    assert np.sqrt(np.mean((got - expected) ** 2)) <= 1.5 * 2**-14 * np.sqrt(np.mean(values**2) * 2)


def test_auto_and_shapes() -> None:
    single = table(1, 20, 2)
    server = lookup.setup(single[0])
    chosen = next(line for line in lookup.explain(single[0]).splitlines() if "<- chosen" in line)
    assert server.strategy == chosen.split()[0] != "histogram" and server.shape == (1, 20, 2)
    indices = np.arange(20)
    assert np.abs(ask(server, indices) - single[0]).max() <= server.error_bound
    with_padding = lookup.setup(single[0], padding=True, pooling="sum")
    assert with_padding.shape == (1, 20, 2)
    got = ask(with_padding, [indices[:3], np.array([-1, 4])])
    expected = [single[0][:3].sum(0), single[0][4]]
    assert np.abs(got - expected).max() <= with_padding.error_bound


def test_what_auto_would_take_is_explained() -> None:
    told = lookup.explain((4, 256, 1), pooling="mean", limit=128, batch=1000)
    for strategy in ("one_hot", "one_hot_digits", "indicator", "ive", "ive_digits"):
        assert f"\n{strategy} " in told
    # One multiply-add a count against a ciphertext a row or products of them: no machine sees it
    # otherwise.
    assert any(line.startswith("histogram ") and "<- chosen" in line for line in told.splitlines())
    with pytest.raises(InvalidInput, match="batch"):
        lookup.explain((1, 4, 1), batch=0)
    with pytest.raises(InvalidInput, match="size of the tables"):
        lookup.explain((1, 0, 1))


def test_compact_queries_are_small_and_want_keys_first() -> None:
    values = table(2, 16, 3)
    server = lookup.setup(values, "ive", transport="compact")
    assert server.transport == "compact" and "transport compact" in repr(server)
    again = lookup.Server.from_bytes(server.to_bytes())
    assert again.description() == server.description()
    client = lookup.Client.generate(server.description())
    batch = 1 << 14
    few, full = (client.query(np.zeros((count, 2), np.int64)) for count in (1, batch))
    # A query is that of a full batch, but for a bit a token.
    assert len(full) - len(few) <= batch // 8 and len(full) / batch < 2 * 20 / 8
    standard = lookup.setup(values, "ive")
    usual = lookup.Client.generate(standard.description()).query(np.zeros((batch, 2), np.int64))
    assert len(usual) > 8 * len(full)
    with pytest.raises(InvalidInput, match="register"):
        server.embed(full)
    with pytest.raises(CorruptData):
        server.register(b"keys of nobody")
    for refused in ("one_hot", "indicator", "histogram"):
        with pytest.raises(InvalidInput, match="ive_digits"):
            lookup.setup(values, refused, pooling="sum", transport="compact")
    with pytest.raises(InvalidInput, match="standard or compact"):
        lookup.setup(values, "ive", transport="small")


def test_the_network_decides_between_bytes_and_time() -> None:
    values = table(4, 256, 2)
    slow = ciphervec.Network(megabits=0.05, latency_ms=300)
    options: dict[str, Any] = {"transport": "auto", "batch": 1 << 15}
    assert lookup.setup(values, "ive_digits", **options).transport == "standard"
    assert lookup.setup(values, "ive_digits", **options, network=slow).transport == "compact"
    told = lookup.explain(values, **options, network=slow)
    chosen = next(line for line in told.splitlines() if "<- chosen" in line)
    assert "compact" in chosen and "300.0 ms there and back" in told and "B an index" in told
    # Prices of both, whichever may be taken.
    assert "ive_digits, compact" in lookup.explain((4, 256, 2))
    with pytest.raises(InvalidInput, match="Network"):
        lookup.explain((4, 256, 2), network=cast(Any, "slow"))


def test_codebooks_are_tables() -> None:
    matrix = np.random.default_rng(3).standard_normal((60, 8)).astype(np.float32)
    book = ciphervec.Codebook.train(matrix, rows=8, tables=2)
    server = lookup.setup(book)
    got = ask(server, book.codes[:40])
    assert np.abs(got - book.reconstruct(range(40))).max() <= server.error_bound + 1e-6


def test_halves_travel_as_bytes(tmp_path: Path) -> None:
    server = lookup.setup(table(2, 12, 1), pooling="mean", limit=9)
    again = lookup.Server.from_bytes(server.to_bytes())
    assert again.description() == server.description() and again.to_bytes() == server.to_bytes()
    client = lookup.Client.generate(server.description())
    client.save(tmp_path / "lookup.key", passphrase="sesame")
    loaded = lookup.Client.load(tmp_path / "lookup.key", passphrase="sesame")
    assert loaded.key_id == client.key_id and loaded.error_bound == server.error_bound
    answer = again.embed(client.query([[[1, 2], [3, 4]]]))
    assert np.array_equal(loaded.decode(answer), client.decode(answer))
    with pytest.raises(WrongKey):
        lookup.Client.load(tmp_path / "lookup.key", passphrase="simsim")
    with pytest.raises(TypeError, match="save"):
        pickle.dumps(client)
    assert "12" in repr(server) and "histogram" in repr(client)


def test_bad_tables_are_refused() -> None:
    values = table(2, 5, 3)
    values[1, 2, 0] = np.nan
    for bad, message in (
        (values, "table 1 has NaN in row 2, column 0"),
        (np.zeros(4), "shape"),
        (np.zeros((2, 0, 3)), "size of the tables"),
        (np.zeros((2, 2), complex), "real numbers"),
        ([[1.0], [2.0, 3.0]], "rectangular"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lookup.setup(bad)
    good = table(1, 4, 1)
    for options, message in (
        ({"strategy": "magic"}, "strategy must be"),
        ({"pooling": "max"}, "pooling must be"),
        ({"strategy": "histogram"}, "token by token"),
        ({"pooling": "sum", "limit": 0}, "limit"),
        ({"pooling": "sum", "word_bytes": 7}, "word"),
        ({"precision_bits": 99}, "precision"),
    ):
        with pytest.raises(InvalidInput, match=message):
            lookup.setup(good, **options)


def test_bad_queries_are_refused() -> None:
    server = lookup.setup(table(2, 5, 1), pooling="sum", limit=3)
    client = lookup.Client.generate(server.description())
    for query, message in (
        ([[[0, 5]]], "from 0 to 4"),
        ([[[0, -1]]], "in all tables"),
        ([[[0, 1, 2]]], r"\(tokens, 2\)"),
        ([[[0.5, 1]]], "integers"),
        ([np.zeros((4, 2), int)], "at most 3 tokens"),
        ([[[0, 1]], []], "document 1 has no token"),
        ([], "at least one document"),
        (np.zeros((2, 2), int), "offsets"),
    ):
        with pytest.raises(InvalidInput, match=message):
            client.query(query)
    for offsets in ([0, 1], [1, 2], [0, 2, 1, 2], [-1, 2]):
        with pytest.raises(InvalidInput, match=r"offsets|no token"):
            client.query(np.zeros((2, 2), int), offsets)
    zero = client.decode(server.embed(client.query([[[0, 1]], []], allow_empty=True)))
    assert abs(zero[1, 0]) <= server.error_bound
    with pytest.raises(InvalidInput, match="every row"):
        rows = lookup.setup(table(1, 5, 1), "one_hot")
        lookup.Client.generate(rows.description()).query([1, 2], [0, 2])


def test_strangers_and_damage_are_refused() -> None:
    server, other = lookup.setup(table(1, 5, 1), pooling="sum"), lookup.setup(table(1, 6, 1), pooling="sum")
    client = lookup.Client.generate(server.description())
    query = client.query([[1, 2]])
    answer = server.embed(query)
    with pytest.raises(InvalidInput, match="another table"):
        other.embed(query)
    with pytest.raises(WrongKey):
        lookup.Client.generate(server.description()).decode(answer)
    with pytest.raises(InvalidInput, match="needs no evaluation keys"):
        server.register(b"")
    for half, data in ((server.embed, query), (client.decode, answer)):
        for at in (4, 40, 70, len(data) - 1):
            damaged = bytearray(data)
            damaged[at] ^= 1
            with pytest.raises(CorruptData):
                half(bytes(damaged))
        with pytest.raises(CorruptData):
            half(data[:-1])
        with pytest.raises(InvalidInput, match="bytes"):
            half("text")  # type: ignore[arg-type]
    digits = lookup.setup(table(1, 9, 1), "ive_digits")
    asker = lookup.Client.generate(digits.description())
    with pytest.raises(InvalidInput, match="register"):
        digits.embed(asker.query([1, 2]))
    name = digits.register(asker.keys() or b"")
    assert len(asker.decode(digits.embed(asker.query([1, 2])))) == 2
    assert [digits.forget(one) for one in (name[:-1], "zz" * 8, "", name, name)] == [False] * 3 + [
        True,
        False,
    ]
    with pytest.raises(InvalidInput, match="register"):
        digits.embed(asker.query([1, 2]))
