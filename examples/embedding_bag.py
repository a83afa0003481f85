"""A recommendation model whose embedding tables are looked up in privately, in the manner of DLRM.

    python examples/embedding_bag.py

A visitor has one value for each of eight categorical features (country, device, hour, ...) and a
bag of items that they looked at lately. A model of a click has an embedding for every value and
every item, summed over all of them, and a linear layer on top. The server has the tables and must
not learn anything about the visitor.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from ciphervec import lookup

FEATURES, VALUES, ITEMS, DIMENSION, VISITORS, VIEWED = 8, 64, 256, 8, 400, 20

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


def main() -> None:
    random = np.random.default_rng(5)
    features = random.integers(0, VALUES, (VISITORS, FEATURES))
    viewed = [random.integers(0, ITEMS, (random.integers(1, VIEWED + 1), 1)) for _ in range(VISITORS)]
    taste, items = random.standard_normal((FEATURES, VALUES)), random.standard_normal(ITEMS)
    signal = taste[np.arange(FEATURES), features].sum(1) + [items[one].mean() * 4 for one in viewed]
    clicked = signal + random.standard_normal(VISITORS) > 0
    tables, bag, layer = train(features, viewed, clicked)

    # The server. A linear layer on sums of embeddings is one number a row: it is multiplied into
    # the tables.
    by_feature = lookup.setup(tables @ layer[:, None], pooling="sum", limit=1)
    by_item = lookup.setup(bag @ layer[:, None], pooling="mean", limit=VIEWED)
    # One that hands out the embeddings themselves, each of them: a row of every table, summed.
    rows = lookup.setup(tables, strategy="ive_digits")

    # The visitors' side: a key for each set of tables, from nothing but their descriptions.
    mine = lookup.Client.generate(by_feature.description())
    seen = lookup.Client.generate(by_item.description())
    began = time.perf_counter()
    asked = mine.query([one[None] for one in features]), seen.query(viewed)
    encrypted = time.perf_counter()
    answers = by_feature.embed(asked[0]), by_item.embed(asked[1])
    answered = time.perf_counter()
    margins = (mine.decode(answers[0]) + seen.decode(answers[1]))[:, 0]

    exact = embedded(tables, bag, features, viewed) @ layer
    bound = by_feature.error_bound + by_item.error_bound
    print(f"{VISITORS} visitors of {FEATURES} features and up to {VIEWED} items")
    print(f"features by {by_feature.strategy}, items by {by_item.strategy}")
    sizes = [sum(map(len, one)) / VISITORS / 1000 for one in (asked, answers)]
    print(f"up {sizes[0]:.1f} KB a visitor, down {sizes[1]:.2f} KB")
    times = [(encrypted - began) / VISITORS * 1e6, (answered - encrypted) / VISITORS * 1e6]
    print(f"a visitor takes {times[0]:.0f} µs to encrypt and the server {times[1]:.0f} µs")
    print(f"scores within {np.abs(margins - exact).max():.0e} of the clear, {bound:.0e} promised")
    same = int(np.sum((margins > 0) == (exact > 0)))
    print(f"same decision as in the clear: {same} of {VISITORS}")

    owner = lookup.Client.generate(rows.description())
    keys = owner.keys()
    assert keys is not None
    rows.register(keys)
    found = owner.decode(rows.embed(owner.query(features)))
    plain = tables[np.arange(FEATURES), features].sum(1)
    error = np.sqrt(np.mean((found - plain) ** 2) / np.mean(plain**2))
    print(f"embeddings of {DIMENSION} numbers by {rows.strategy}: relative error {error:.0e}")


def embedded(tables: Floats, bag: Floats, features: Indices, viewed: list[Indices]) -> Floats:
    """The sum of a visitor's embeddings, and the mean of their items'."""
    means = np.array([bag[one[:, 0]].mean(0) for one in viewed])
    return np.asarray(tables[np.arange(FEATURES), features].sum(1) + means)


def train(
    features: Indices, viewed: list[Indices], clicked: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """A logistic loss, descended with full gradients; enough for an example."""
    random = np.random.default_rng(6)
    tables = random.standard_normal((FEATURES, VALUES, DIMENSION)) * 0.1
    bag, layer = random.standard_normal((ITEMS, DIMENSION)) * 0.1, random.standard_normal(DIMENSION)
    for _ in range(60):
        inner = embedded(tables, bag, features, viewed)
        slope = (1 / (1 + np.exp(-(inner @ layer))) - clicked) / VISITORS * 30
        step = slope[:, None] * layer
        for feature in range(FEATURES):
            np.add.at(tables[feature], features[:, feature], -step)
        for one, down in zip(viewed, step, strict=True):
            np.add.at(bag, one[:, 0], -down / len(one))
        layer = layer - 0.1 * inner.T @ slope / 30
    return tables, bag, layer


if __name__ == "__main__":
    main()
