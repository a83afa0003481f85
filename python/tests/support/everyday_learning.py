"""Everyday programs of linear algebra and machine learning, as people write them who know NumPy and nothing of
encryption."""

from __future__ import annotations

import numpy as np

from ciphervec import programs, public, secret
from everyday import case

R = np.random.default_rng(11)
K3 = R.integers(-3, 4, (3, 3))
K3b = R.integers(-2, 3, (3, 3))
W1 = R.normal(size=(64, 32)) / 8
B1 = R.normal(size=32) / 4
W2 = R.normal(size=(32, 10)) / 6
V1 = R.integers(-4, 5, (16, 8))
V2 = R.integers(-4, 5, (8, 3))
C1 = R.integers(-20, 20, 8)


@case(a=secret((16, 16), bits=8, signed=True), b=secret((16, 16), bits=8, signed=True))
def matmul16(a, b):
    return a @ b


@case(a=secret((8, 12), low=-1, high=1, real=True), b=secret((12, 8), low=-1, high=1, real=True))
def matmul_real_then_trace(a, b):
    return np.trace(a @ b), a @ b


@case(x=secret((16, 16), bits=8), k=public(K3))
def conv2d(x, k):
    out = 0
    for i in range(3):
        for j in range(3):
            out = out + k[i, j] * x[i : i + 14, j : j + 14]
    return out


@case(x=secret((8, 8), bits=4), k=public(K3), m=public(K3b))
def two_convs(x, k, m):
    h = 0
    for i in range(3):
        for j in range(3):
            h = h + k[i, j] * x[i : i + 6, j : j + 6]
    h = h * h
    o = 0
    for i in range(3):
        for j in range(3):
            o = o + m[i, j] * h[i : i + 4, j : j + 4]
    return o


@case(x=secret((8, 8), bits=4), k=public(K3))
def conv_relu_pool(x, k):
    h = 0
    for i in range(3):
        for j in range(3):
            h = h + k[i, j] * x[i : i + 6, j : j + 6]
    h = np.maximum(h, 0)
    return h.reshape(3, 2, 3, 2).max(axis=(1, 3))


@case(
    x=secret((20, 6), low=-2, high=2, real=True),
    w=secret(6, low=-1, high=1, real=True),
    b=secret((), low=-1, high=1, real=True),
)
def linear_regression(x, w, b):
    return x @ w + b


@case(
    x=secret((32, 8), low=-1, high=1, real=True),
    y=secret(32, boolean=True),
    w=secret(8, low=-1, high=1, real=True),
)
def logistic_step(x, y, w):
    p = programs.sigmoid(x @ w)
    return w - 0.5 * (x.T @ (p - y)) / 32


@case(
    x=secret((24, 4), low=-1, high=1, real=True),
    y=secret(24, low=-1, high=1, real=True),
    w=secret(4, low=-1, high=1, real=True),
)
def least_squares_two_steps(x, y, w):
    for _ in range(2):
        w = programs.within(w - 0.1 * (x.T @ (x @ w - y)) / 24, -1, 1)
    return w


@case(
    x=secret(64, low=-1, high=1, real=True),
    w1=public(W1),
    b1=public(B1),
    w2=public(W2),
    opts={"gap": 2**-10},
)
def poly_mlp_argmax(x, w1, b1, w2):
    h = x @ w1 + b1
    h = 0.25 * h * h + 0.5 * h
    return np.argmax(h @ w2)


@case(x=secret(64, low=-1, high=1, real=True), w1=public(W1), b1=public(B1), w2=public(W2))
def poly_mlp_logits(x, w1, b1, w2):
    h = x @ w1 + b1
    return (0.25 * h * h + 0.5 * h) @ w2


@case(x=secret(16, bits=4), w1=public(V1), c=public(C1), w2=public(V2))
def relu_mlp_int(x, w1, c, w2):
    return np.argmax(np.maximum(x @ w1 + c, 0) @ w2)


@case(p=secret((32, 2), bits=6), c=secret((3, 2), bits=6))
def kmeans_assign(p, c):
    return ((p[:, None, :] - c[None, :, :]) ** 2).sum(-1).argmin(axis=1)


@case(p=secret((32, 2), bits=5), c=secret((3, 2), bits=5))
def kmeans_step(p, c):
    d = ((p[:, None, :] - c[None, :, :]) ** 2).sum(-1)
    who = np.argmin(d, axis=1)
    member = who[:, None] == np.arange(3)
    n = member.sum(axis=0)
    return (member[:, :, None] * p[:, None, :]).sum(0) / np.maximum(n, 1)[:, None]


CENT = R.integers(0, 64, (5, 8))


@case(x=secret(8, bits=6), c=public(CENT))
def nearest_centroid(x, c):
    return np.argmin(((x - c) ** 2).sum(1))


PTS = R.integers(0, 16, (20, 4))
LAB = R.integers(0, 3, 20)


@case(x=secret(4, bits=4), pts=public(PTS), lab=public(LAB))
def knn_vote(x, pts, lab):
    d = ((pts - x) ** 2).sum(1)
    near = programs.topk_mask(-d, 5)
    votes = (near[:, None] & (lab[:, None] == np.arange(3))).sum(0)
    return np.argmax(votes)


@case(x=secret((50, 4), bits=8))
def decision_tree(x):
    return np.where(
        x[:, 0] < 100,
        np.where(x[:, 1] < 50, 0, np.where(x[:, 2] >= 200, 3, 1)),
        np.where(x[:, 3] > 17, 2, np.where(x[:, 1] == 255, 5, 4)),
    )


FE = R.integers(0, 6, (5, 7))
TH = R.integers(0, 256, (5, 7))
LE = R.integers(0, 3, (5, 8))


@case(x=secret((10, 6), bits=8), fe=public(FE), th=public(TH), le=public(LE))
def random_forest(x, fe, th, le):
    votes = 0
    for t in range(5):
        go = x[:, fe[t]] >= th[t]
        node = np.where(
            go[:, 0],
            np.where(
                go[:, 2], np.where(go[:, 6], le[t, 7], le[t, 6]), np.where(go[:, 5], le[t, 5], le[t, 4])
            ),
            np.where(
                go[:, 1], np.where(go[:, 4], le[t, 3], le[t, 2]), np.where(go[:, 3], le[t, 1], le[t, 0])
            ),
        )
        votes = votes + (node[:, None] == np.arange(3))
    return np.argmax(votes, axis=1)


QT = np.round(15 / (1 + np.exp(-(np.arange(64) - 32) / 6))).astype(int)
QW = R.integers(-2, 3, (8, 4))


@case(x=secret((16, 8), bits=2), w=public(QW), table=public(QT))
def quantised_layer(x, w, table):
    return table[np.clip(x @ w + 32, 0, 63)]


@case(x=secret(30, low=-1, high=1, real=True), m=public(R.normal(size=(30, 4)) / 5))
def pca_residual(x, m):
    return ((x - (x @ m) @ m.T) ** 2).sum()


@case(z=secret(10, low=-4, high=4, real=True))
def softmax10(z):
    e = np.exp(z)
    return e / e.sum()


@case(z=secret((4, 10), low=-8, high=8, real=True))
def softmax_rows_minus_max(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@case(
    q=secret((4, 8), low=-1, high=1, real=True),
    k=secret((4, 8), low=-1, high=1, real=True),
    v=secret((4, 8), low=-1, high=1, real=True),
)
def attention(q, k, v):
    s = q @ k.T / np.sqrt(8)
    e = np.exp(s)
    return (e / e.sum(axis=-1, keepdims=True)) @ v


@case(
    x=secret((8, 6), low=-3, high=3, real=True),
    mu=secret(6, low=-1, high=1, real=True),
    var=secret(6, low=0.0, high=4, real=True),
)
def batch_norm(x, mu, var):
    return (x - mu) / np.sqrt(var + 0.1)


@case(x=secret((3, 16), low=-4, high=4, real=True))
def layer_norm(x):
    m = x.mean(axis=1, keepdims=True)
    v = ((x - m) ** 2).mean(axis=1, keepdims=True)
    return (x - m) / np.sqrt(v + 1.0)


@case(x=secret(100, low=-6, high=6, real=True))
def activations(x):
    gelu = 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x**3)))
    return gelu, x * programs.sigmoid(x), np.log1p(np.exp(x))


@case(x=secret(200, low=-10, high=2, real=True))
def sigmoid_asymmetric(x):
    return programs.sigmoid(x)


@case(x=secret(16, low=-1, high=1, real=True), w=public(R.normal(size=16)))
def perceptron_sign(x, w):
    return x @ w >= 0


@case(x=secret(12, bits=3), w=public(R.integers(-3, 4, (12, 3))))
def naive_bayes_int(x, w):
    return np.argmax(x @ w), (x @ w).max()


@case(
    x=secret((5, 3), low=-1, high=1, real=True),
    h=secret((5, 4), low=-1, high=1, real=True),
    w=public(R.normal(size=(3, 4)) / 3),
    u=public(R.normal(size=(4, 4)) / 3),
)
def rnn_cell(x, h, w, u):
    for _t in range(3):
        h = np.tanh(x @ w + h @ u)
    return h


@case(r=secret((6, 3), low=-1, high=1, real=True), m=secret((5, 3), low=-1, high=1, real=True))
def recommender(r, m):
    return np.argmax(r @ m.T > 0.5, axis=1), r @ m.T


@case(x=secret((5, 5), low=-1, high=1, real=True))
def matrix_power(x):
    y = x / 5
    for _ in range(3):
        y = y @ y
    return y


@case(x=secret(3, low=-1, high=1, real=True), s=public(R.normal(size=(7, 3))), a=public(R.normal(size=7)))
def svm_rbf(x, s, a):
    return np.exp(-0.5 * ((s - x) ** 2).sum(1)) @ a
