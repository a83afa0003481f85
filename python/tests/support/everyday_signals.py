"""Everyday programs of signals, pictures, small models, games and algorithms, as people write them who know NumPy and
nothing of encryption."""

from __future__ import annotations

import numpy as np

from ciphervec import fold, programs, public, secret
from everyday import case

R = np.random.default_rng(14)
TAPS = R.normal(size=9) / 3
SPECTRUM = np.exp(-2j * np.pi * np.outer(np.arange(8), np.arange(8)) / 8)
COSINES = np.cos(np.pi / 8 * np.outer(np.arange(8), np.arange(8) + 0.5))
CENTRES = R.normal(size=(4, 6))
LAYER = R.normal(size=(8, 6)) / 3
HEAD = R.normal(size=(6, 3)) / 3
LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
SQUARE = R.integers(0, 256, 256)


# Signals


@case(x=secret(64, low=-1, high=1, real=True), taps=public(TAPS))
def filtered(x, taps):
    return np.convolve(x, taps, mode="valid")


@case(x=secret(8, low=-1, high=1, real=True), w=public(SPECTRUM.real), v=public(SPECTRUM.imag))
def power_spectrum(x, w, v):
    return (w @ x) ** 2 + (v @ x) ** 2


@case(x=secret(8, bits=8), c=public(COSINES))
def cosine_transform(x, c):
    return c @ x


@case(x=secret(32, low=-8, high=8))
def zero_crossings(x):
    return ((x[1:] > 0) != (x[:-1] > 0)).sum()


@case(x=secret(20, bits=5))
def local_peaks(x):
    return (x[1:-1] > x[:-2]) & (x[1:-1] > x[2:])


@case(x=secret(18, bits=5))
def median_filter(x):
    return np.median(np.stack([x[:-2], x[1:-1], x[2:]]), axis=0)


@case(x=secret(40, low=-1.0, high=1.0, real=True))
def root_mean_square(x):
    return np.sqrt((x**2).mean() + 0.01)


@case(x=secret(24, low=-1, high=1, real=True), y=secret(24, low=-1, high=1, real=True))
def correlation_at_lags(x, y):
    return np.stack([(x[k:] * y[: 24 - k]).sum() for k in range(5)])


@case(x=secret(32, low=0, high=100))
def threshold_with_count(x):
    loud = x > 80
    return loud, loud.sum() >= 5


@case(x=secret(16, low=-128, high=127))
def clipped_gain(x):
    return np.clip(3 * x, -128, 127)


@case(x=secret(12, bits=6))
def peak_place(x):
    return np.argmax(np.abs(np.diff(x)))


@case(x=secret(16, low=-1, high=1, real=True))
def detrended(x):
    t = np.arange(16) - 7.5
    return x - x.mean() - t * (t @ x) / (t @ t)


@case(x=secret(30, low=0, high=50, real=True))
def double_exponential(x):
    level, trend = x[0], x[1] - x[0]
    for i in range(1, 30):
        before = level
        level = 0.5 * x[i] + 0.5 * (level + trend)
        trend = 0.3 * (level - before) + 0.7 * trend
    return level, trend


@case(x=secret(24, boolean=True))
def longest_run(x):
    best = run = 0
    for i in range(6):
        run = np.where(x[i], run + 1, 0)
        best = np.maximum(best, run)
    return best


# Pictures


@case(x=secret((10, 10), bits=6))
def sobel(x):
    gx = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    gy = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    return np.abs(gx) + np.abs(gy)


@case(x=secret((8, 8), boolean=True))
def dilated(x):
    p = np.pad(x, 1)
    return p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:] | x


@case(x=secret((8, 8), bits=8))
def brightness_histogram(x):
    return np.histogram(x, bins=4, range=(0, 256))[0]


@case(x=secret((6, 6, 3), bits=8))
def grey(x):
    return x @ np.array([0.299, 0.587, 0.114])


@case(x=secret((8, 8), bits=6))
def pooled(x):
    return x.reshape(4, 2, 4, 2).mean(axis=(1, 3)), x.reshape(4, 2, 4, 2).max(axis=(1, 3))


@case(x=secret((6, 6), bits=8))
def picture_transposed_and_mirrored(x):
    return (255 - x.T)[::-1]


@case(a=secret((6, 6), bits=8), b=secret((6, 6), bits=8))
def pictures_differ(a, b):
    return np.abs(a - b).sum() > 500


@case(a=secret(8, bits=8), b=secret(8, bits=8), t=secret((), low=0.0, high=1.0, real=True))
def blended(a, b, t):
    return a * (1 - t) + b * t


@case(x=secret((5, 5), bits=8))
def otsu_like_mask(x):
    return x > x.mean()


# Small models


@case(x=secret(8, low=-1, high=1, real=True), w=public(LAYER), h=public(HEAD))
def small_network(x, w, h):
    return np.maximum(x @ w, 0) @ h


@case(x=secret(8, low=-1, high=1, real=True), w=public(LAYER), h=public(HEAD))
def softmax_of_network(x, w, h):
    z = np.tanh(x @ w) @ h
    e = np.exp(z - z.max())
    return e / e.sum()


@case(x=secret(6, low=-1, high=1, real=True), c=public(CENTRES))
def cosine_to_centres(x, c):
    return (c @ x) / (np.sqrt((x * x).sum() + 0.01) * np.linalg.norm(c, axis=1))


@case(x=secret((12, 3), low=-1, high=1, real=True))
def distance_matrix(x):
    return ((x[:, None] - x[None]) ** 2).sum(-1)


@case(p=secret(16, low=0.01, high=0.99, real=True), y=secret(16, boolean=True))
def cross_entropy(p, y):
    return -np.where(y, np.log(p), np.log(1 - p)).mean()


@case(p=secret(30, boolean=True), y=secret(30, boolean=True))
def precision_and_recall(p, y):
    hit = (p & y).sum()
    return hit / np.maximum(p.sum(), 1), hit / np.maximum(y.sum(), 1)


@case(y=secret(20, low=0, high=10), p=secret(20, low=0, high=10))
def r_squared(y, p):
    return 1 - ((y - p) ** 2).sum() / np.maximum(((y - y.mean()) ** 2).sum(), 1)


@case(x=secret((10, 4), bits=4))
def most_similar_pair(x):
    d = ((x[:, None] - x[None]) ** 2).sum(-1) + 10_000 * np.eye(10, dtype=int)
    return np.argmin(d)


@case(x=secret(12, low=0, high=40), y=secret(12, low=0, high=40))
def spearman_like(x, y):
    rank_x = (x[:, None] > x).sum(1)
    rank_y = (y[:, None] > y).sum(1)
    return ((rank_x - rank_y) ** 2).sum()


@case(w=secret((6, 3), low=-1, high=1, real=True), x=secret((8, 6), low=-1, high=1, real=True))
def classes(w, x):
    return x @ w


@case(x=secret((6, 4), low=-2, high=2, real=True))
def standardised(x):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 0.1)


@case(x=secret(10, low=-3, high=3, real=True))
def elu_and_softplus(x):
    return np.where(x > 0, x, np.exp(x) - 1), np.log(1 + np.exp(x))


@case(x=secret(16, low=-4, high=4, real=True))
def hard_sigmoid(x):
    return np.clip(x / 6 + 0.5, 0, 1)


@case(x=secret(8, bits=3), y=secret(8, bits=3))
def manhattan_and_chebyshev(x, y):
    return np.abs(x - y).sum(), np.abs(x - y).max()


@case(a=secret(32, boolean=True), b=secret(32, boolean=True))
def tanimoto(a, b):
    return np.sum(a & b) / np.maximum(np.sum(a | b), 1)


# Games and algorithms


@case(x=secret((6, 6), boolean=True))
def game_of_life(x):
    n = sum(np.roll(x, (i, j), (0, 1)) * 1 for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
    return (n == 3) | (x & (n == 2))


@case(board=secret(9, low=0, high=2), lines=public(LINES))
def tic_tac_toe(board, lines):
    return np.any(np.all(board[lines] == 1, axis=1)), np.any(np.all(board[lines] == 2, axis=1))


@case(a=secret(10, low=0, high=2), b=secret(10, low=0, high=2))
def rock_paper_scissors(a, b):
    return ((a - b) % 3 == 1).sum()


@case(dice=secret(5, low=1, high=6))
def yahtzee(dice):
    counts = (dice[:, None] == np.arange(1, 7)).sum(0)
    return np.any(counts == 5), np.any(counts >= 3), dice.sum()


@case(a=secret(8, boolean=True), b=secret(8, boolean=True))
def ripple_adder(a, b):
    carry, out = np.zeros((), bool), []
    for i in range(4):
        out.append(a[i] ^ b[i] ^ carry)
        carry = (a[i] & b[i]) | (carry & (a[i] ^ b[i]))
    return np.stack([*out, carry])


@case(x=secret(6, bits=8))
def to_bits(x):
    return (x[:, None] >> np.arange(8)) & 1


@case(x=secret(12, bits=6))
def odd_ones(x):
    return (x % 2 == 1).sum(), np.where(x % 2 == 0, x // 2, 3 * x + 1)


@case(x=secret(8, bits=8), table=public(SQUARE))
def substituted(x, table):
    return table[x]


@case(m=secret((3, 3), low=-5, high=5))
def determinant(m):
    return np.linalg.det(m)


@case(a=secret((4, 4), low=-3, high=3), x=secret(4, low=-3, high=3))
def two_steps_of_a_chain(a, x):
    return a @ (a @ x)


@case(p=secret((3, 3), low=-2, high=2), q=secret(3, low=-2, high=2))
def affine_point(p, q):
    return np.cross(p[0], q), p @ q


@case(x=secret(4, low=1.0, high=4.0, real=True))
def newton_root(x):
    y = x / 2 + 0.5
    for _ in range(3):
        y = (y + x / y) / 2
    return y


@case(x=secret(10, low=-1.0, high=1.0, real=True))
def polynomial(x):
    return np.polyval([2.0, -1.0, 0.5, 3.0], x)


@case(x=secret(6, low=0, high=6.28, real=True))
def circle(x):
    return np.cos(x), np.sin(x)


@case(a=secret((4, 4), boolean=True))
def reachable(a):
    two = (a[:, :, None] & a[None, :, :]).any(axis=1)
    return a | two


@case(w=secret((4, 4), bits=4))
def shortest_in_two(w):
    return np.minimum(w, (w[:, :, None] + w[None]).min(axis=1))


@case(x=secret(8, low=-5, high=5))
def largest_slice(x):
    best = run = x[0]
    for i in range(1, 4):
        run = np.maximum(x[i], run + x[i])
        best = np.maximum(best, run)
    return best


@case(x=secret(8, bits=4))
def first_above(x):
    return np.argmax(x > 9), np.any(x > 9)


@case(x=secret(9, bits=4))
def is_sorted(x):
    return np.all(x[1:] >= x[:-1])


@case(x=secret(8, bits=4))
def ranks(x):
    return np.argsort(np.argsort(x, kind="stable"))


@case(x=secret(16, bits=4))
def fold_of_maxima(x):
    return fold(np.maximum, x), fold(np.add, x)


@case(x=secret(9, low=1, high=9))
def sudoku_row(x):
    return np.array_equal(np.sort(x), np.arange(1, 10))


@case(x=secret(7, low=0, high=100))
def inverse_interpolated(x):
    return np.interp(x, [0, 20, 50, 100], [0.0, 1.0, 1.5, 2.0])


@case(cards=secret(5, low=2, high=14))
def flush_points(cards):
    return cards.sum() - cards.min(), programs.topk_mask(cards, 2)
