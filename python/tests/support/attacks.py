"""What an attacker on mode `sealed-index` has: the stored words, the public masks, linear algebra modulo 4."""

from __future__ import annotations

import numpy as np

import ciphervec._native as _native

TILE = 64
# Ring degree, bits of the modulus, bits rounded away, log2 of both scales, bytes of a word.
SIZES = {"standard": (2048, 37, 5, 15.4, 4), "small": (2048, 32, 8, 11.4, 3), "wide": (4096, 64, 0, 31.4, 8)}


class Unsolvable(Exception):  # noqa: N818
    """The equations contradict each other: they are not about the secret."""


def chacha_words(seed: bytes, stream: int, count: int) -> np.ndarray:
    """Words of the ChaCha20 keystream that the masks are made of."""
    blocks = (count * 8 + 63) // 64
    nonce = np.frombuffer(stream.to_bytes(8, "little") + b"\0" * 4, "<u4")
    start = np.zeros((16, blocks), np.uint32)
    start[:4] = np.frombuffer(b"expand 32-byte k", "<u4")[:, None]
    start[4:12] = np.frombuffer(seed, "<u4")[:, None]
    start[12] = np.arange(blocks, dtype=np.uint32)
    start[13:] = nonce[:, None]
    s = start.copy()

    def turn(x: np.ndarray, bits: int) -> np.ndarray:
        return (x << np.uint32(bits)) | (x >> np.uint32(32 - bits))

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] += s[y]
            s[z] = turn(s[z] ^ s[x], bits)

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    s += start
    return np.ascontiguousarray(s.T).view("<u8").reshape(-1)[:count].copy()


class Stored:
    """One block of a segment as the server has it, and the masks, which every writer's card has."""

    def __init__(self, segment: bytes, mask_seed: bytes, rows: int, dimension: int, precision: str) -> None:
        self.degree, self.bits, self.drop, self.log_scale, size = SIZES[precision]
        self.scale = 2.0**self.log_scale
        raw = np.frombuffer(segment[128 : 128 + rows * dimension * size], np.uint8).reshape(-1, size)
        words = np.zeros((len(raw), 8), np.uint8)
        words[:, :size] = raw
        flat = words.view("<u8").reshape(-1)
        self.words = np.empty((rows, dimension), np.uint64)
        for start in range(0, rows, TILE):
            tile = min(TILE, rows - start)
            part = flat[start * dimension : (start + tile) * dimension]
            self.words[start : start + tile] = part.reshape(dimension, tile).T
        masks = [chacha_words(mask_seed, i, self.degree) for i in range(dimension)]
        self.masks = np.stack(masks) & np.uint64((1 << self.bits) - 1)

    def equations(self, row: int, bits: int = 2) -> np.ndarray:
        """What the secret is multiplied by in coefficient `row` of each mask times it, modulo a power of two."""
        at = np.arange(self.degree)
        taken = self.masks[:, (row - at) % self.degree].view(np.int64)
        taken[:, at > row] *= -1
        return taken & -1 if bits == 64 else taken & ((1 << bits) - 1)

    def secret(self, known: dict[int, np.ndarray], sure: np.ndarray | None = None) -> np.ndarray:
        """The block's secret from rows whose numbers, noise included, are known in units of 2^-drop: all of them, or the
        `sure` ones."""
        left = np.concatenate([self.equations(row) for row in known])
        right = [self.words[row].astype(np.int64) * (1 << self.drop) - known[row] for row in known]
        taken = slice(None) if sure is None else sure.reshape(-1)
        return solve(left[taken], np.concatenate(right)[taken] % 4)

    def open(self, row: int, secret: np.ndarray) -> np.ndarray:
        """A row's coordinates, in the clear."""
        masked = self.equations(row, self.bits) @ secret
        plain = (self.words[row].view(np.int64) << self.drop) - masked
        return (plain << (64 - self.bits) >> (64 - self.bits)) / (self.scale * 2**self.drop)


def eliminate(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve modulo 2, eight columns at a time: what eight pivot rows add up to is in a table of 256 rows."""
    columns = left.shape[1]
    spare = -columns % 8  # columns of their own for whole bytes
    bits = np.zeros((len(left) + spare, columns + spare + 8), np.uint8)
    bits[: len(left), :columns] = left & 1
    bits[: len(left), columns + spare] = right & 1
    bits[len(left) + np.arange(spare), columns + np.arange(spare)] = 1
    packed = np.packbits(bits, axis=1, bitorder="little")
    packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    for done in range(0, columns + spare, 8):
        window = packed[:, done // 8]
        basis: dict[
            int, tuple[int, int]
        ] = {}  # leading bit: what is left of the window, which pivots are in it
        chosen: list[int] = []
        for row in range(done, len(packed)):
            value, of = int(window[row]), 1 << len(chosen)
            while value and value.bit_length() in basis:
                other, those = basis[value.bit_length()]
                value, of = value ^ other, of ^ those
            if value:
                basis[value.bit_length()] = (value, of)
                chosen.append(row)
                if len(chosen) == 8:
                    break
        if len(chosen) < 8:
            raise Unsolvable("more equations are needed")
        table = np.zeros((256, packed.shape[1]), np.uint8)
        for bit in range(8):
            rest, of = 1 << bit, 0
            while rest:
                other, those = basis[rest.bit_length()]
                rest, of = rest ^ other, of ^ those
            pivot = np.bitwise_xor.reduce(
                packed[[row for at, row in enumerate(chosen) if of >> at & 1]], axis=0
            )
            table[1 << bit : 2 << bit] = table[: 1 << bit] ^ pivot
        places = range(done, done + 8)
        free = [row for row in chosen if row not in places]
        packed[free] = packed[[row for row in places if row not in chosen]]
        wanted = packed[:, done // 8].copy()
        wanted[done : done + 8] = 0
        whole = packed.view(np.uint64)
        whole ^= table.view(np.uint64)[wanted]
        packed[done : done + 8] = table[1 << np.arange(8)]
    last = packed[:, (columns + spare) // 8] & 1
    if last[columns + spare :].any():
        raise Unsolvable(f"{int(last[columns + spare :].sum())} equations contradict the others")
    return last[:columns].astype(np.int64)


def solve(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The ternary solution, lifted from modulo 2 to modulo 4."""
    odd = eliminate(left, right)
    rest = (left @ odd - right) % 4
    if (rest & 1).any():
        raise Unsolvable("no solution modulo 2")
    places = np.flatnonzero(odd)
    signs = eliminate(left[:, places], rest >> 1)
    secret = odd
    secret[places] -= 2 * signs
    return secret


def forged(data: bytes, at: int, change: bytes) -> bytes:
    """A frame with other bytes from `at` on, and a checksum that fits."""
    body = data[:at] + change + data[at + len(change) :]
    return body[:32] + _native.blake3(body[:32] + body[64:]) + body[64:]
