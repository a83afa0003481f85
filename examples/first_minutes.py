"""A collection in a dozen lines: texts and vectors without a dimension, ids or a folder to think about.

What it asks for is typed: a checker takes every line without a test for None.
"""

from __future__ import annotations

import numpy as np

import ciphervec

SEASONS = ["snow on the roof", "the first green", "heat over the fields", "leaves on the path"]


def main() -> None:
    vectors = np.random.default_rng(1).standard_normal((4, 32))
    with ciphervec.Client() as client:
        notes = client.create_collection("notes")
        made = notes.add(
            embeddings=vectors, documents=SEASONS, metadatas=[{"month": m} for m in (1, 4, 7, 10)]
        )
        found = notes.query(vectors[2] + 0.1, n_results=2)
        closest: str | None = found["documents"][0][0]
        score: float = found["scores"][0][0]
        ids: list[list[str | int]] = found["ids"]
        print(f"{notes.dimension} numbers a vector; closest: {closest!r}, cosine {score:.2f}")
        assert ids[0][0] == made[2]
        print(f"{notes.count()} notes, of which from July on:")
        late = notes.get(where={"month": {"$gte": 7}})
        for row in late.rows():
            print(row["document"], row["metadata"])
        try:
            client.create_collection("more", metric="manhattan")  # type: ignore[arg-type]
        except ciphervec.InvalidInput as refusal:
            print(f"refused, by a type checker too: {refusal}")


if __name__ == "__main__":
    main()
