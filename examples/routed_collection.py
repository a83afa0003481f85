"""A routed collection: a question scans a few clusters of near rows, hidden among decoys, instead of all rows. What that
saves, and what it shows the server, is printed.

    python examples/routed_collection.py
"""

from __future__ import annotations

import tempfile

import numpy as np

import ciphervec
from ciphervec import Clusters

ROWS, DIMENSION, TOPICS = 6_000, 32, 150


def notes(count: int, seed: int) -> np.ndarray:
    """Vectors about some topics, as embeddings of texts are."""
    topics = np.random.default_rng(7).standard_normal((TOPICS, DIMENSION), np.float32)
    rng = np.random.default_rng(seed)
    near = 0.35 * rng.standard_normal((count, DIMENSION), np.float32)
    return topics[rng.integers(TOPICS, size=count)] + near


def nearest(rows: np.ndarray, questions: np.ndarray) -> np.ndarray:
    """The truth, in the clear."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return np.argsort(-questions @ unit.T, axis=1)[:, :10]


def main() -> None:
    rows, questions = notes(ROWS, 1), notes(50, 2)
    keys = ciphervec.Keys.generate()
    with tempfile.TemporaryDirectory() as folder, ciphervec.PersistentClient(folder, keys=keys) as client:
        collection = client.create_collection("notes", DIMENSION, routing=Clusters(count=30))
        collection.add(range(ROWS), rows)
        print("before:", collection.explain(), sep="\n")
        print("\nclustering, which takes the key:", collection.recluster())
        print("\nafter:", collection.explain(), sep="\n")

        found = collection.query(questions, 10, include=[])["ids"]
        right = sum(
            len(set(a) & set(b)) for a, b in zip(found, nearest(rows, questions).tolist(), strict=True)
        )
        print(
            f"\nof the ten nearest rows of {len(questions)} questions, {right / len(questions):.1f} were found on average"
        )

        collection.add(["late"], questions[:1])
        collection.delete([int(found[1][0])])
        late = collection.query(questions[0], 1, include=[])["ids"][0]
        print(
            f"a row that came since is found: {late == ['late']}; unrouted rows: {collection.explain().unrouted_rows}"
        )
        collection.optimize()
        print(f"clustered with the others: unrouted rows: {collection.explain().unrouted_rows}")


if __name__ == "__main__":
    main()
