"""Is a paragraph about networks or about windows on a screen? A classifier whose halves can be kept
apart.

    python examples/text_classifier.py

It learns from the docstrings of Python's standard library. Whole modules are kept out of training,
so that it can't win by recognising a module's phrases. The client's half turns a text into codes,
the server's half is a small table, and what the two give together is what the undivided classifier
says. Here everything is in the clear.
"""

from __future__ import annotations

import numpy as np

from ciphervec.demo import corpus
from ciphervec.text import Classifier

TRAINING = {
    "network": "asyncio email ftplib imaplib ipaddress mailbox nntplib poplib socket ssl telnetlib urllib xmlrpc cgi",
    "windows": "idlelib turtle",
}
UNSEEN = {"network": "http smtplib socketserver wsgiref", "windows": "tkinter"}


def labelled(modules: dict[str, str], passages: list[corpus.Passage]) -> tuple[list[str], list[str]]:
    """The paragraphs of these modules and their labels. A paragraph's own name would give the label
    away."""
    label = {module: name for name, listed in modules.items() for module in listed.split()}
    found = [(p.text, label.get(p.name.partition(".")[0])) for p in passages]
    return [text for text, name in found if name], [name for _, name in found if name]


def main() -> None:
    passages = corpus.passages()
    texts, labels = labelled(TRAINING, passages)
    unseen, truth = labelled(UNSEEN, passages)
    model = Classifier.train(texts, labels, rows=64, tables=2)
    plain, coded = model.evaluate(unseen, truth, compressed=False), model.evaluate(unseen, truth)
    print(f"{len(texts):,} paragraphs to learn from, {len(unseen):,} of modules kept out")
    print(
        f"accuracy {plain.accuracy:.1%} with a vector for each of {len(model.encoder.vocabulary):,} tokens,"
    )
    print(f"         {coded.accuracy:.1%} with two codes each; area under the ROC curve {coded.roc_auc:.3f}")

    question = "Open a connection to the host and return the status line of its reply."
    codes = model.codes([question])[0]  # the client's half: what it would encrypt
    tables, bias = model.folded()  # the server's half: all it holds
    margin = np.mean([tables[0][a] + tables[1][b] for a, b in codes]) + bias[0]
    print(f"\n{question}\n{len(codes)} tokens, codes {', '.join(map(str, codes[:4].tolist()))} …")
    print(
        f"the halves together: {margin:+.4f}; the classifier: {model.margins([question])[0]:+.4f}, "
        f"{model.predict([question])[0]}"
    )
    print(f"the server's half is {tables.size} numbers and a bias; words and codes stay with the client")
    if not np.isclose(margin, model.margins([question])[0]):
        raise SystemExit("the halves disagree with the whole")
    if coded.accuracy < plain.accuracy - 0.02:
        raise SystemExit("the codes lose more than two points of accuracy")


if __name__ == "__main__":
    main()
