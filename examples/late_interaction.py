"""Many vectors a document, encrypted: each word is a vector, and MaxSim finds the note whose words are nearest to those of a
question, one by one, on a server that sees neither.

    python examples/late_interaction.py

The vectors here count the letters' triples of a word and need no model: a word is near to itself misspelt. ColBERT's and
ColPali's matrices go in the same way.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

import ciphervec
from ciphervec.http import LocalServer

WIDTH = 64
NOTES = [
    "the spare keys are under the third flower pot",
    "onions carrots a bay leaf two hours on a small flame",
    "the boiler is drained in november before the frost",
    "the passport is renewed and lies in the blue folder",
    "the neighbours feed the cat when we are away",
]
QUESTIONS = {"where is the pasport": 3, "boyler in wintre": 2, "who feeds the catt": 4}


def tokens(text: str) -> npt.NDArray[np.float32]:
    """A vector of unit length for each word: its triples of letters, hashed to WIDTH places."""
    words = text.split()
    rows = np.zeros((len(words), WIDTH), np.float32)
    for row, word in zip(rows, words, strict=True):
        marked = f"<{word}>"
        for start in range(len(marked) - 2):
            row[zlib.crc32(marked[start : start + 3].encode()) % WIDTH] += 1
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


def main() -> None:
    keys = ciphervec.Keys.generate()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalServer(Path(folder) / "db") as server,
        ciphervec.HttpClient(server.url, keys=keys, state=Path(folder) / "state") as client,
    ):
        notes = client.create_collection("notes", metric="ip", multi=ciphervec.Muvera(WIDTH))
        matrices = [tokens(note) for note in NOTES]
        notes.add(range(len(NOTES)), multi_embeddings=matrices, documents=NOTES)
        print(
            f"{sum(map(len, matrices))} vectors of {len(NOTES)} notes, of each one of {notes.dimension:,} sealed"
        )
        right = 0
        for question, note in QUESTIONS.items():
            found = notes.query(
                query_multi_embeddings=[tokens(question)], n_results=1, include=["scores", "documents"]
            )
            (score,), (bound,) = found["scores"][0], found.bounds
            print(f"{question!r}: {found['documents'][0][0]!r}, MaxSim {score:.2f} to within {bound:.2f}")
            right += found["ids"][0] == [note]
        print(f"the right note for {right} of {len(QUESTIONS)} questions")


if __name__ == "__main__":
    main()
