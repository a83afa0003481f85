"""A classifier of texts, as fastText has it, reads encrypted ones: the mean of the words' vectors, times
weights. The words go encrypted, the verdict comes back encrypted.

    python examples/programs/bag_of_words.py

Written as anybody would, with the table of vectors indexed by words. A word is two codes, each a row of
a small table, so that 128 rows stand for a whole vocabulary. The plan sends how often each code occurs,
and does the mean and the weights to the public tables before anything is encrypted: what is left is one
product and a sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated, in_halves

import ciphervec
from ciphervec import public, secret
from ciphervec.demo import corpus
from ciphervec.text import Classifier

ROWS, WORDS = (1024, 256) if FULL else (64, 128)
READ = 20 if FULL else 5
TRAINING = {"network": "asyncio email ftplib imaplib socket ssl urllib xmlrpc", "windows": "idlelib turtle"}
UNSEEN = {"network": "http smtplib socketserver wsgiref", "windows": "tkinter"}


@ciphervec.program
def scores(first: Any, second: Any, codes: Any, weights: Any) -> Any:
    words = first[codes[:, 0]] + second[codes[:, 1]]
    return words.mean(axis=0) @ weights


def main() -> None:
    passages = corpus.passages()
    model = Classifier.train(*labelled(TRAINING, passages), rows=ROWS, tables=2)
    texts, truth = labelled(UNSEEN, passages)
    print(f"accuracy {model.evaluate(texts, truth).accuracy:.1%} of {len(texts)} paragraphs, in the clear")

    # A last row of zeros is no word, and a last column of ones carries the bias.
    tables = [np.pad(table.astype(np.float64), ((0, 1), (0, 1))) for table in model.codebook.tables]
    tables[0][:-1, -1] = 1
    weights = np.column_stack([model.weights, model.bias]).T.astype(np.float64)
    arrays = [public(table) for table in tables]
    codes = secret((WORDS, 2), low=0, high=ROWS)
    plan = analysed(scores.compile(*arrays, codes, public(weights), precision=10))

    right = 0
    for text, label in zip(texts[:READ], model.predict(texts[:READ]), strict=True):
        given = np.full((WORDS, 2), ROWS)
        words = model.codes([text])[0][:WORDS]
        given[: len(words)] = words
        found = np.asarray(evaluated(plan, codes=given).encrypted)
        right += model.classes[found.argmax()] == label
    in_halves(plan, codes=given)
    print(f"same class as in the clear: {right} of {READ}")


def labelled(modules: dict[str, str], passages: list[corpus.Passage]) -> tuple[list[str], list[str]]:
    """The paragraphs of these modules and their labels."""
    label = {module: name for name, listed in modules.items() for module in listed.split()}
    found = [(p.text, label.get(p.name.partition(".")[0])) for p in passages]
    return [text for text, name in found if name], [name for _, name in found if name]


if __name__ == "__main__":
    main()
