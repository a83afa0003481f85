"""Owners of the ring modes, and a server that adds what it likes to their answers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import ciphervec
from ciphervec import Keys, Owner, ServerIndex, _native

D, N = 64, 4096
HEADER, QUERY_HEAD = 64, 19
MODES = ("sealed", "sealed-query")


class Liar:
    """An honest server's answers, of which one part is made to depend on one coefficient of a key.

    Before answers were checked, whether the best score reached a threshold was that coefficient.
    """

    def __init__(self, query: bytes, honest: bytes) -> None:
        self.bits = query[HEADER + QUERY_HEAD :]
        self.answer = bytearray(honest)

    def segments(self) -> list[tuple[int, int, int, int]]:
        """Where the answer to the first query starts in each segment, its rows, level and bits of V."""
        at = HEADER + 8 + 4
        assert self.answer[at] == 0  # no mask sums: nothing of a server's is multiplied with a block's secret
        at += 1
        count = int.from_bytes(self.answer[at : at + 4], "little")
        at += 4
        found = []
        for _ in range(count):
            rows = int.from_bytes(self.answer[at + 16 : at + 20], "little")
            level, at = self.answer[at + 20], at + 22
            v = self.bits[level]
            found.append((at, rows, level, v))
            per = vectors_per_block(level)
            for start in range(0, rows, per):
                at += N * v // 8 + (min(per, rows - start) * (v - 6) + 7) // 8
        return found

    def put(self, at: int, place: int, bits: int, word: int) -> None:
        bit = place * bits
        base = at + bit // 8
        mask = ((1 << bits) - 1) << bit % 8
        held = int.from_bytes(self.answer[base : base + 8], "little") & ~mask | word << bit % 8
        self.answer[base : base + 8] = (held & (1 << 64) - 1).to_bytes(8, "little")[
            : len(self.answer[base : base + 8])
        ]

    def add(self, at: int, place: int, bits: int, word: int) -> None:
        bit = place * bits
        held = int.from_bytes(self.answer[at + bit // 8 :][:8], "little") >> bit % 8
        self.put(at, place, bits, (held + word) % (1 << bits))

    def guessed(self, guesses: Mapping[int, tuple[int, int]], share: float = 0.01) -> bytes:
        """The first score of segment i shifted by `share` of a perfect one times coefficient j of the query key,
        and back by g times as much, of `guesses[i] = j, g`: it is what it was if g is that coefficient."""
        for place, (at, _, _, v) in enumerate(self.segments()):
            target, guess = guesses.get(place, (0, 0))
            word, short = round(share * 0.465 * 2**v), round(share * 0.465 * 2 ** (v - 6))
            if place in guesses:
                self.add(at, (N - target) % N, v, -word if target else word)
                self.add(at + N * v // 8, 0, v - 6, -guess * short)
        return reframed(self.answer)

    def forged(self, target: int, sign: int, share: float, *, alone: bool) -> bytes:
        """The first score shifted by `share` of a perfect one times coefficient `target` of the query key;
        `alone`: all other scores far away."""
        for first, (at, rows, level, v) in enumerate(self.segments()):
            per = vectors_per_block(level)
            for start in range(0, rows, per):
                n = min(per, rows - start)
                if alone:
                    self.answer[at : at + N * v // 8] = bytes(N * v // 8)
                if first == 0 and start == 0:
                    word = int((-sign if target else sign) * share * 0.465 * 2**v) % 2**v
                    self.put(at, (N - target) % N, v, word)
                far = int(-0.44 * 2 ** (v - 6)) % 2 ** (v - 6)
                for row in range(n) if alone else ():
                    if (first, start, row) != (0, 0, 0):
                        self.put(at + N * v // 8, row, v - 6, far)
                at += N * v // 8 + (n * (v - 6) + 7) // 8
        return reframed(self.answer)


def vectors_per_block(level: int) -> int:
    stride = -(-D // 2**level) * 2**level
    return (N // stride) << level


def reframed(answer: bytearray) -> bytes:
    answer[32:64] = _native.blake3(bytes(answer[:32] + answer[64:]))
    return bytes(answer)


def halves(mode: str, rows: int) -> tuple[Owner, ServerIndex, np.ndarray]:
    vectors = np.random.default_rng(5).standard_normal((rows, D)).astype(np.float32)
    spec = ciphervec.IndexSpec("liar", D, "cosine", mode, "standard", incarnation=bytes(range(16)))
    owner, server = Owner(Keys.generate(), spec), ServerIndex(spec)
    server.set_evaluation_keys(owner.evaluation().to_bytes())
    server.add(owner.seal(list(range(rows)), vectors).segment)
    return owner, server, vectors
