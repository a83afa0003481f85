"""Everyday programs of statistics, sorting and searching, as people write them who know NumPy and nothing of
encryption."""

from __future__ import annotations

import numpy as np

from ciphervec import programs, public, secret
from everyday import case

R = np.random.default_rng(12)


@case(x=secret(40, bits=8))
def variance_int(x):
    return x.var(), x.mean()


@case(x=secret(40, low=0, high=10, real=True))
def z_scores(x):
    return (x - x.mean()) / np.sqrt(np.maximum(x.var(), 0.25))


@case(x=secret((30, 5), low=-1, high=1, real=True))
def covariance(x):
    c = x - x.mean(axis=0)
    return c.T @ c / 29


@case(x=secret(25, low=0, high=1, real=True), y=secret(25, low=0, high=1, real=True))
def pearson(x, y):
    a, b = x - x.mean(), y - y.mean()
    return (a * b).sum() / np.sqrt(np.maximum((a * a).sum() * (b * b).sum(), 0.01))


@case(x=secret(100, bits=8))
def moving_average(x):
    return sum(x[i : i + 95] for i in range(5)) / 5


@case(x=secret(64, bits=8, signed=True))
def moving_average_cumsum(x):
    c = np.cumsum(x)
    return (c[8:] - c[:-8]) / 8


@case(x=secret(20, low=0, high=100, real=True))
def ema(x):
    s = x[0]
    for i in range(1, 20):
        s = 0.3 * x[i] + 0.7 * s
    return s


@case(o=secret((2, 3), low=0, high=50))
def chi_squared(o):
    t = o.sum()
    e = o.sum(1, keepdims=True) * o.sum(0, keepdims=True)
    return (o * o * t / np.maximum(e, 1)).sum() - t


@case(o=secret(6, low=0, high=30))
def chi_squared_fair_die(o):
    n = np.maximum(o.sum(), 6)
    return ((o - n / 6) ** 2).sum() / (n / 6)


@case(x=secret(16, bits=8))
def median16(x):
    return np.median(x)


@case(x=secret(15, bits=6))
def quartiles(x):
    s = np.sort(x)
    return s[3], s[7], s[11], s[-1] - s[0]


@case(x=secret(20, bits=6))
def quantile(x):
    return np.quantile(x, 0.25)


@case(x=secret(20, bits=6))
def percentile(x):
    return np.percentile(x, 90)


@case(c=secret(200, bits=3))
def histogram_codes(c):
    return (c[:, None] == np.arange(8)).sum(0)


@case(c=secret(50, bits=3))
def mode_of_codes(c):
    return np.argmax((c[:, None] == np.arange(8)).sum(0))


@case(c=secret(30, bits=3))
def bincount(c):
    return np.bincount(c, minlength=8)


@case(c=secret(30, bits=5))
def np_histogram(c):
    return np.histogram(c, bins=4, range=(0, 32))[0]


@case(x=secret(10, low=0, high=100), w=secret(10, low=1, high=9))
def weighted_mean(x, w):
    return (x * w).sum() / w.sum()


@case(x=secret(10, low=0, high=100), w=secret(10, low=1, high=9))
def np_average(x, w):
    return np.average(x, weights=w)


@case(x=secret(12, bits=5))
def gini(x):
    return np.abs(x[:, None] - x[None, :]).sum() / (2 * 12 * np.maximum(x.sum(), 1))


@case(x=secret(20, bits=8))
def top3_mask(x):
    return programs.topk_mask(x, 3)


@case(x=secret(64, bits=8))
def sort64(x):
    return np.sort(x)


@case(x=secret(16, low=0, high=7))
def argsort_ties(x):
    return np.argsort(x, kind="stable")


@case(x=secret((4, 8), low=-8, high=7))
def sort_axis0_desc(x):
    return np.sort(-x, axis=0)


@case(x=secret(16, bits=6))
def running_max_loop(x):
    m, out = x[0], [x[0]]
    for i in range(1, 16):
        m = np.maximum(m, x[i])
        out.append(m)
    return np.stack(out)


@case(x=secret(16, bits=6))
def running_max_ufunc(x):
    return np.maximum.accumulate(x)


@case(b=secret(12, bits=8))
def second_price(b):
    w = np.argmax(b)
    return w, np.sort(b)[-2]


@case(b=secret(12, bits=8))
def second_price_where(b):
    w = np.argmax(b)
    rest = np.where(np.arange(12) == w, 0, b)
    return w, rest.max()


@case(x=secret(10, low=0, high=2))
def argmax_many_ties(x):
    return np.argmax(x), np.argmin(x), x.argmax() == 0


@case(x=secret((6, 5), low=-3, high=3))
def argminmax_axes(x):
    return x.argmin(0), x.argmax(1), x.argmin()


@case(x=secret(33, bits=6), q=secret((), bits=6))
def rank_of(x, q):
    return (x < q).sum(), (x == q).sum()


@case(x=secret(20, bits=8), e=public(np.array([10, 50, 100, 200])))
def searchsorted_public(x, e):
    return np.searchsorted(e, x)


@case(x=secret(20, bits=8), e=public(np.array([10, 50, 100, 200])))
def digitize_by_hand(x, e):
    return (x[:, None] >= e).sum(1)


@case(x=secret(20, bits=8))
def digitize(x):
    return np.digitize(x, np.array([10, 50, 100, 200]))


@case(x=secret(8, bits=5))
def bubble_by_hand(x):
    a = [x[i] for i in range(8)]
    for i in range(8):
        for j in range(7 - i):
            lo, hi = np.minimum(a[j], a[j + 1]), np.maximum(a[j], a[j + 1])
            a[j], a[j + 1] = lo, hi
    return np.stack(a)


@case(x=secret(30, low=-50, high=50))
def outliers(x):
    m = x.mean()
    return ((x - m) ** 2 > 4 * x.var()).sum()


@case(x=secret(24, bits=7), y=secret(24, bits=7))
def wilcoxon_like(x, y):
    return np.sign(x - y).sum(), np.abs(x - y).sum(), np.abs(x - y).max()


@case(p=secret(8, low=0.0, high=1, real=True))
def entropy(p):
    q = np.maximum(p, 0.01)
    return -(q * np.log2(q)).sum()


@case(x=secret((), low=1, high=1000))
def compound_interest(x):
    return x * 1.05**10, np.log(x), np.sqrt(x)


@case(s=secret((), low=50, high=150, real=True), k=secret((), low=50, high=150, real=True))
def black_scholes(s, k):
    d1 = (np.log(s / k) + 0.03) / 0.2

    def n(z):
        return 0.5 * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3)))

    return s * n(d1) - k * 0.98 * n(d1 - 0.2)


@case(lat=secret((), low=-1.5, high=1.5, real=True))
def sine_refused(lat):
    return np.sin(lat)


@case(x=secret(21, low=-1, high=1, real=True), y=secret(21, low=-1, high=1, real=True))
def ols_slope(x, y):
    a = x - x.mean()
    return (a * y).sum() / np.maximum((a * a).sum(), 0.5)


@case(x=secret(9, bits=4))
def majority_boyer(x):
    return np.where((x[:, None] == x[None, :]).sum(1).max() > 4, 1, 0)


@case(x=secret((20, 2), bits=5), q=secret(4, bits=5))
def range_count(x, q):
    return ((x[:, 0] >= q[0]) & (x[:, 0] <= q[1]) & (x[:, 1] >= q[2]) & (x[:, 1] <= q[3])).sum()


@case(age=secret(40, low=0, high=120), dept=secret(40, low=0, high=3), pay=secret(40, low=0, high=20000))
def group_by_sum(age, dept, pay):
    m = (dept[:, None] == np.arange(4)) & (age >= 30)[:, None]
    return (m * pay[:, None]).sum(0), m.sum(0)
