"""Answers and keys of whoever can write any bytes, with lengths and checksums that fit: each part of them is looked at."""

from __future__ import annotations

import os
import re
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec._native as _native
from attacks import forged
from ciphervec import Index, IndexSpec, Keys, Owner, Probe, ServerIndex, Writer
from ciphervec.errors import CiphervecError, CorruptData, InvalidInput, TamperedAnswer, WrongKey
from ciphervec.ingest.where import canonical
from ring_liar import MODES as RING
from ring_liar import Liar, halves, reframed
from ring_liar import N as DEGREE

pytestmark = pytest.mark.core
D, HEADER = 64, 64
HEAD = HEADER + 8 + 4 + 1
"""Where an answer says how many segments follow: behind the index, the number of queries, and that of levels, which is none."""
MARK = 16 + 4 + 1
"""Of a segment: its name, its rows, its level; then whether a filter was applied."""
ROWS = np.random.default_rng(8).standard_normal((600, D)).astype(np.float32)
modes = pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index"])


def fitted(frame: bytes) -> bytes:
    """With the length and the checksum that fit."""
    return forged(frame[:24] + struct.pack("<Q", len(frame) - HEADER) + frame[32:], HEADER, b"")


class Party:
    """An owner and a server with two segments of 20 rows, of which the even ones have a tag."""

    def __init__(self, keys: Keys, mode: str, rows: int = 20) -> None:
        spec = IndexSpec("forged", D, "cosine", mode, incarnation=bytes(16))
        self.owner, self.server = Owner(keys, spec), ServerIndex(spec)
        if mode != "sealed-index":
            self.server.set_evaluation_keys(self.owner.evaluation().to_bytes())
        self.tag = self.owner.filter_tag("even", canonical(True))
        self.segments = []
        for start in (0, rows):
            sealed = self.owner.seal(list(range(start, start + rows)), ROWS[start : start + rows])
            tags = _native.FilterTags([[self.tag] if row % 2 == 0 else [] for row in range(rows)])
            self.server.add(sealed.segment, tags.to_bytes())
            self.segments.append(sealed)

    def parts(self, answer: bytes) -> tuple[bytes, list[bytes]]:
        """What comes before the segments, and each of them, in the order of `segments`."""
        assert answer[HEAD - 1] == 0 and answer[HEAD : HEAD + 4] == struct.pack("<I", len(self.segments))
        starts = sorted(answer.index(one.id, HEAD) for one in self.segments)
        found = [answer[at:to] for at, to in zip(starts, [*starts[1:], len(answer)], strict=True)]
        return answer[:HEAD], sorted(
            found, key=lambda part: [one.id for one in self.segments].index(part[:16])
        )


def together(head: bytes, segments: list[bytes], after: bytes = b"") -> bytes:
    return fitted(head + struct.pack("<I", len(segments)) + b"".join(segments) + after)


def marked(part: bytes, at: int, data: bytes) -> bytes:
    return part[:at] + data + part[at + len(data) :]


Forge = Callable[[bytes, bytes, bytes], bytes]
LIES: dict[str, tuple[Forge, str]] = {
    "parameters": (lambda head, a, b: together(marked(head, 8, b"\1" * 8), [a, b]), "parameter"),
    "index": (lambda head, a, b: together(marked(head, HEADER, bytes(8)), [a, b]), "another index"),
    "queries": (lambda head, a, b: together(marked(head, HEADER + 8, b"\2\0\0\0"), [a, b]), "1 queries expected, 2 came"),
    "rows": (lambda head, a, b: together(head, [marked(a, 16, b"\x13\0\0\0"), b]), "20 rows at level . expected, 19 rows"),
    "level": (lambda head, a, b: together(head, [marked(a, 20, bytes([a[20] ^ 1])), b]), "20 rows at level"),
    "unknown": (lambda head, a, b: together(head, [a, b, bytes(16) + a[16:]]), "does not know it"),
    "twice": (lambda head, a, b: together(head, [a, b, a]), "answered twice"),
    "left out": (lambda head, a, b: together(head, [b]), "left it out"),
    "filter": (lambda head, a, b: together(head, [marked(a, MARK, b"\1") + bytes(3), b]), "the filter was not applied"),
    "longer": (lambda head, a, b: together(head, [a, b], bytes(5)), "5 bytes too many"),
}  # fmt: skip


@modes
@pytest.mark.parametrize("lie", LIES)
def test_an_answer_has_the_parts_that_its_query_asked_for(keys: Keys, mode: str, lie: str) -> None:
    party = Party(keys, mode)
    query = party.owner.query(ROWS[7])
    honest = party.server.evaluate(query.to_bytes())
    forge, says = LIES[lie]
    head, (one, two) = party.parts(honest)
    with pytest.raises(CiphervecError, match=says) as refused:
        query.open(forge(head, one, two), 3, audience="owner")
    assert not isinstance(refused.value, TamperedAnswer), "nothing was opened"
    assert query.open(honest, 3, audience="owner")[0].ids[0] == 7


@modes
def test_an_answer_is_under_its_key_and_in_its_words(keys: Keys, mode: str) -> None:
    party = Party(keys, mode)
    query = party.owner.query(ROWS[7])
    honest = party.server.evaluate(query.to_bytes())
    with pytest.raises(WrongKey):
        query.open(forged(honest, 16, b"\5" * 8), 3)
    other = 2 if mode == "sealed-index" else 1
    with pytest.raises(CorruptData, match="was asked for, version"):
        query.open(forged(honest, 4, struct.pack("<H", other)), 3)


@modes
def test_an_answer_applies_the_filter(keys: Keys, mode: str) -> None:
    party = Party(keys, mode)
    query = party.owner.query(ROWS[7], tags=[party.tag])
    rows = [(one.id, bytes(int(row % 2 == 0) for row in range(20))) for one in party.segments]
    query.expect_matching(rows)
    honest = party.server.evaluate(query.to_bytes())
    assert all(name % 2 == 0 for name in query.open(honest, 40, audience="owner")[0].ids)
    head, (one, two) = party.parts(honest)
    whole = marked(one, MARK, b"\0")[: MARK + 1] + one[MARK + 4 :]
    beyond = marked(one, MARK + 3, bytes([one[MARK + 3] | 0x80]))
    for lie, says in (
        (together(head, [whole, two]), "the filter was not applied"),
        (together(head, [marked(one, MARK, b"\2"), two]), "the filter was not applied"),
        (together(head, [beyond, two]), "beyond the last row"),
        (together(head, [two]), "left it out"),
    ):
        with pytest.raises(CorruptData, match=says):
            query.open(lie, 3, audience="owner")


@modes
def test_an_answer_is_about_the_segments_that_were_asked_about(keys: Keys, mode: str) -> None:
    party = Party(keys, mode)
    first, second = party.segments
    query = party.owner.query(ROWS[7], segments=[first.id])
    honest = party.server.evaluate(query.to_bytes())
    part = honest[HEAD + 4 :]
    with pytest.raises(CorruptData, match="it was not asked about"):
        query.open(together(honest[:HEAD], [part, second.id + part[16:]]), 3)
    with pytest.raises(CorruptData, match="left it out"):
        query.open(together(honest[:HEAD], []), 3)


def test_scores_beyond_any_cosine_are_refused_whatever_the_sums_say(keys: Keys) -> None:
    """Half of the range is what the sums see least."""
    party = Party(keys, "sealed-index")
    query = party.owner.query(ROWS[7])
    honest = party.server.evaluate(query.to_bytes())
    at, name = HEAD + 4, bytes(honest[HEAD + 4 : HEAD + 20])
    first = [one.id for one in party.segments].index(name) * 20
    cosines = ROWS[first : first + 20] @ ROWS[7] / np.linalg.norm(ROWS[first : first + 20], axis=1)
    for row in np.flatnonzero(np.abs(cosines / np.linalg.norm(ROWS[7])) < 0.1):
        top = at + MARK + 1 + 4 * row + 3
        with pytest.raises(TamperedAnswer):
            query.open(forged(honest, top, bytes([honest[top] ^ 0x80])), 3)


@pytest.mark.parametrize("mode", ["sealed-index", "sealed"])
def test_an_answer_to_another_query_is_none_by_more_than_one_check(keys: Keys, mode: str) -> None:
    party = Party(keys, mode, 256)
    query, other = party.owner.query(ROWS[7]), party.owner.query(ROWS[8])
    with pytest.raises(TamperedAnswer):
        query.open(party.server.evaluate(other.to_bytes()), 20, audience="owner")


@pytest.mark.parametrize("mode", RING)
def test_what_a_small_group_returns_does_not_depend_on_the_answer(mode: str) -> None:
    """What comes is compared with nothing: whether it is near the score would tell a coefficient of the query's key to a
    server that has moved it by a multiple of that, and what it guesses back again."""
    owner, server, vectors = halves(mode, 20)
    query = owner.query(vectors[:1])
    honest = server.evaluate(query.to_bytes())
    (right,) = query.open(honest, 20, audience="owner")

    def moved(share: float) -> bytes:
        """The second row's score is another."""
        lie = Liar(query.to_bytes(), honest)
        ((at, _, _, bits),) = lie.segments()
        short = bits - 6
        first = at + DEGREE * bits // 8
        held = int.from_bytes(honest[first : first + 16], "little") >> short & (1 << short) - 1
        lie.put(first, 1, short, int(held + max(1, share * 2**short)) % 2**short)
        return reframed(lie.answer)

    for share in (0, 0.1, 0.5):
        (found,) = query.open(moved(share), 20, audience="owner")
        assert found.ids == right.ids
        np.testing.assert_array_equal(found.scores, right.scores)


@pytest.mark.parametrize("rows", [20, 256], ids=["rows themselves", "sums"])
@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_stored_words_of_the_ring_form_are_those_that_were_sealed(keys: Keys, mode: str, rows: int) -> None:
    party = Party(keys, mode, rows)
    stored = bytes(party.segments[0].segment)
    unit = ROWS[:rows] / np.linalg.norm(ROWS[:rows], axis=1, keepdims=True)
    np.testing.assert_allclose(party.owner.unseal(stored), unit, atol=1e-3)
    for at in (HEADER + 64, len(stored) // 2):
        with pytest.raises(TamperedAnswer):
            party.owner.unseal(forged(stored, at, bytes([stored[at] ^ 0x10])))


def test_a_segment_names_the_key_that_it_is_sealed_under(keys: Keys) -> None:
    for mode in ("sealed", "sealed-index"):
        party = Party(keys, mode)
        with pytest.raises(WrongKey):
            party.owner.unseal(forged(bytes(party.segments[0].segment), 16, b"\5" * 8))


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_evaluation_keys_are_the_owners_for_this_index(keys: Keys, mode: str) -> None:
    owner = Party(keys, mode).owner
    owner.hold_evaluation(owner.evaluation().to_bytes())
    stranger = Owner(Keys.generate(), owner.spec)
    with pytest.raises(WrongKey):
        owner.hold_evaluation(stranger.evaluation().to_bytes())
    neighbour = Owner(keys, IndexSpec("other", D, "cosine", mode, incarnation=bytes(16)))
    with pytest.raises(CorruptData, match="another index"):
        owner.hold_evaluation(neighbour.evaluation().to_bytes())


def test_a_segment_is_attached_once(keys: Keys) -> None:
    party = Party(keys, "sealed-index")
    first = party.segments[0]
    with pytest.raises(CiphervecError, match=r"already|twice"):
        party.owner.attach(first.id, first.sidecar, standing="stored")
    assert len(party.owner) == 40


def test_who_sealed_a_segment_is_said_by_its_own_wrap(keys: Keys) -> None:
    """What counts no more is named by writer and time: those of another segment would let it come back."""
    owner = Party(keys, "sealed-index").owner
    writer = Writer(owner.writer_card("door"))
    (one,), (two,) = (writer.seal([name], ROWS[:1]).segments for name in ("a", "b"))
    assert owner.written(one.id, lambda: one.blobs["wrap"])[0] == "door"
    with pytest.raises(CorruptData, match="its wrapped key is that of"):
        owner.written(one.id, lambda: two.blobs["wrap"])


@modes
def test_a_writers_segment_that_failed_is_out_before_anybody_is_warned(keys: Keys, mode: str) -> None:
    """Where warnings are errors one segment would answer every lie."""
    party = Party(keys, mode)
    writer = Writer(party.owner.writer_card("door"))
    (written,) = writer.seal([f"w{row}" for row in range(300)], ROWS[100:400]).segments
    party.owner.attach(written.id, written.blobs["sidecar"], wrap=written.blobs["wrap"], standing="appended")
    party.server.add(written.blobs["rows"])
    query = party.owner.query(ROWS[7])
    honest = party.server.evaluate(query.to_bytes())
    at = honest.index(written.id, HEAD) + MARK + 1
    lie = forged(honest, at, bytes([honest[at] ^ 0x55, honest[at + 1] ^ 0x55]))
    assert query.open(honest, 1, audience="owner")[0].ids == [7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="'door' failed its check"):
            query.open(lie, 1, audience="owner")
    assert party.owner.quarantined() == [written.id]


def test_the_public_key_of_a_card_is_one(keys: Keys) -> None:
    card = Party(keys, "sealed-index").owner.writer_card("door").to_bytes()
    at = HEADER + 2 + 32
    # A coefficient of ML-KEM's key beyond its modulus.
    with pytest.raises(CorruptData, match="public key"):
        Writer(forged(card, at, b"\xff" * 384))
    with pytest.raises(InvalidInput, match="parameters"):
        Writer(forged(card, 8, b"\1" * 8))


def test_a_probe_names_no_key(keys: Keys) -> None:
    owner = Party(keys, "sealed-index").owner
    good = Probe(owner.spec).query(ROWS[3])
    assert owner.read_query(good).rows == 1
    with pytest.raises(WrongKey):
        owner.read_query(forged(good, 16, b"\5" * 8))


@pytest.mark.parametrize("scheme", ["elgamal", "paillier"])
def test_probes_and_scores_of_the_additive_schemes_fit(scheme: str) -> None:
    more: dict[str, Any] = {} if scheme == "elgamal" else {"bits": 2048}
    index = Index(ndim=16, mode="sealed-index", scheme=scheme, **more)
    rows = ROWS[:6, :16].copy()
    index.add(list(range(6)), rows)
    owner, probe = index.owner, Probe(index.owner.spec, index.owner.evaluation())
    good = probe.query(rows[3])
    query = owner.read_query(good)
    answer = index.server.evaluate(good)
    assert query.open(answer, 1)[0].ids == [3]
    two = owner.query(rows[:2])
    with pytest.raises(CorruptData, match="1 probes with 6 vectors expected"):
        query.open(fitted(marked(index.server.evaluate(two.to_bytes()), HEADER + 8, b"\1\0\0\0")), 1)
    with pytest.raises(WrongKey):
        owner.read_query(forged(good, 16, b"\5" * 8))
    with pytest.raises(CiphervecError):
        owner.read_query(forged(good, HEADER + 8, b"\2\0\0\0"))


def test_what_decrypts_to_no_score_has_failed_its_check() -> None:
    """Ciphertexts that nobody encrypted so open to numbers out of bounds: a wrong answer, and not damage."""
    index = Index(ndim=16, mode="sealed-index", scheme="paillier", bits=2048)
    rows = ROWS[:6, :16].copy()
    index.add(list(range(6)), rows)
    query = index.owner.query(rows[3])
    answer = index.server.evaluate(query.to_bytes())
    for _ in range(3):
        lie = answer[:-40] + os.urandom(16) + answer[-24:]
        # Frames within frames, all of which end with the answer.
        for frame in reversed([one.start() for one in re.finditer(b"CVEC", answer)]):
            lie = lie[:frame] + fitted(lie[frame:])
        with pytest.raises(TamperedAnswer):
            query.open(lie, 1)


class Halves:
    """Half an answer that was fetched ahead, and the one that completes it."""

    def __init__(self, keys: Keys, mode: str) -> None:
        self.party = Party(keys, mode)
        self.owner, self.server = self.party.owner, self.party.server
        self.pool = _native.TokenPool()

    def fetched(self, change: Callable[[bytes], bytes] = lambda answer: answer) -> int:
        request = self.owner.request_tokens(2)
        return self.owner.read_tokens(request, change(self.server.evaluate(request.to_bytes())), self.pool)


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_halves_of_answers_are_of_what_was_asked(keys: Keys, mode: str) -> None:
    ahead = Halves(keys, mode)
    first, _ = ahead.party.segments
    head = HEADER + 8 + 4 + 1 + 16 + 1

    def whole(answer: bytes) -> list[bytes]:
        starts = sorted(answer.index(one.id, head) for one in ahead.party.segments)
        return [answer[at:to] for at, to in zip(starts, [*starts[1:], len(answer)], strict=True)]

    def twice(answer: bytes) -> bytes:
        parts = whole(answer)
        return fitted(answer[:head] + struct.pack("<I", 3) + b"".join([*parts, parts[0]]))

    def fewer(answer: bytes) -> bytes:
        return fitted(answer[:head] + struct.pack("<I", 1) + whole(answer)[0])

    def filtered(answer: bytes) -> bytes:
        one, two = whole(answer)
        return fitted(
            answer[: head + 4] + marked(one, MARK, b"\1")[: MARK + 1] + bytes(3) + one[MARK + 1 :] + two
        )

    lies: list[tuple[Callable[[bytes], bytes], str]] = [
        (lambda answer: forged(answer, 4, b"\2\0"), "was asked for, version 2 came"),
        (lambda answer: forged(answer, HEADER, bytes(8)), "another index"),
        (lambda answer: forged(answer, HEADER + 8, b"\3\0\0\0"), "answers to 2 queries expected, 3 came"),
        (lambda answer: forged(answer, HEADER + 12, b"\2"), "half 1 of an answer expected, half 2 came"),
        (twice, "whole and once was expected"),
        (filtered, "whole and once was expected"),
        (fewer, "have changed since tokens were asked for"),
    ]
    for lie, says in lies:
        with pytest.raises(CiphervecError, match=says):
            ahead.fetched(lie)
    with pytest.raises(WrongKey):
        ahead.fetched(lambda answer: forged(answer, 16, b"\5" * 8))
    assert ahead.fetched() == 2
    query = ahead.owner.query(ROWS[7], tokens=ahead.pool)
    answer = ahead.server.evaluate(query.to_bytes())
    with pytest.raises(CorruptData, match="answered twice"):
        ahead.owner.complete(query, twice(answer))
    with pytest.raises(WrongKey):
        ahead.owner.complete(query, forged(answer, 16, b"\5" * 8))
    with pytest.raises(CiphervecError, match="other evaluation keys"):
        ahead.owner.complete(query, forged(answer, HEADER + 13, bytes(16)))
    found = query.open(ahead.owner.complete(query, answer), 1, audience="owner")
    assert found[0].ids == [7] and first.id
