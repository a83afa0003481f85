"""Commands `text classify` and `text serve-local`, to try encrypted classification: both halves run here, with nothing
but bytes between them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InvalidInput
from ..text import Classifier
from ..text.local import STRATEGIES, Halves, Round
from .measuring import one_of
from .tables import grid
from .terminal import Json, command, existing, print_json, screen, size
from .text import LabelColumn, TextColumn, text_app
from .texts import read_labelled, read_texts

SHOWN = 20

Model = Annotated[Path, typer.Argument(help="A classifier's file.")]
Strategy = Annotated[str, typer.Option(help="How texts are encrypted: one of " + ", ".join(STRATEGIES) + ".")]


def halves(model: Path, strategy: str) -> Halves:
    """Of a saved classifier."""
    return Halves.of(
        Classifier.load(existing(model, "classifier")), one_of(strategy, STRATEGIES, "--strategy")
    )


def sentence(asked: Round) -> str:
    """Times and bytes of a round."""
    return (
        f"encrypted in {asked.ms_encrypt:.2f} ms, {size(asked.up)} up, the server took {asked.ms_server:.2f} ms, "
        f"{size(asked.down)} down, decrypted in {asked.ms_decrypt:.2f} ms"
    )


@command
def classify(
    model: Model,
    texts: Annotated[
        Path,
        typer.Argument(
            help="A CSV file with a header, a folder of .txt files, or a .txt file of a text a line."
        ),
    ],
    text_column: TextColumn = "text",
    label_column: LabelColumn = "",
    strategy: Strategy = "histogram",
    as_json: Json = False,
) -> None:
    """Classify texts that the server's half can't read.

    With a label column it says how often the encrypted labels are right, and whether they are those
    of the plain classifier.

    **Examples**

    - `ciphervec text classify spam.npz mails.csv --text-column subject,body --label-column spam`
    - `ciphervec text classify spam.npz lines.txt --strategy ive_digits --json`
    """
    found, truth = _texts(texts, text_column, label_column)
    both = halves(model, strategy)
    asked = both.classify(found)
    labels, margins = asked.answers
    same = sum(one == other for one, other in zip(labels, both.model.predict(found), strict=True))
    right = (
        None if truth is None else sum(str(one) == other for one, other in zip(labels, truth, strict=True))
    )
    if as_json:
        print_json(
            {
                "strategy": strategy, "documents": len(found), "labels": labels, "margins": margins.tolist(),
                "same_as_plain": same, "right": right, "error_bound": both.client.error_bound,
                "query_bytes": asked.up, "answer_bytes": asked.down, "ms_encrypt": asked.ms_encrypt,
                "ms_server": asked.ms_server, "ms_decrypt": asked.ms_decrypt,
            }
        )  # fmt: skip
        return
    lines = [
        [_short(text), str(label), _margin(margin)]
        for text, label, margin in zip(found[:SHOWN], labels, margins, strict=False)
    ]
    grid(screen, f"{len(found):,} texts", ["", "label", "margin"], lines, left=2)
    if len(found) > SHOWN:
        screen.print(f"… and {len(found) - SHOWN:,} more; --json has them all", style="dim", highlight=False)
    screen.print(sentence(asked), highlight=False)
    screen.print(
        f"{same:,} of {len(found):,} labels are those of the plain classifier"
        + ("" if right is None else f", {right:,} are right")
        + f"; a margin is off by at most {both.client.error_bound:.0e}",
        highlight=False,
    )


@command
def serve_local(model: Model, strategy: Strategy = "histogram") -> None:
    """Read texts from standard input, a line each, and classify every one encrypted; both halves in
    this process.

    **Examples**

    - `ciphervec text serve-local spam.npz`
    - `tail -f inbox.txt | ciphervec text serve-local spam.npz --strategy ive_digits`
    """
    both = halves(model, strategy)
    screen.print(f"a text a line, an empty one to end; {strategy}", style="dim", highlight=False)
    for line in sys.stdin:
        if not line.strip():
            break
        asked = both.classify([line])
        labels, margins = asked.answers
        screen.print(f"{labels[0]}  {_margin(margins[0])}", highlight=False, markup=False)
        screen.print(sentence(asked), style="dim", highlight=False)


def _texts(path: Path, text_column: str, label_column: str) -> tuple[list[str], list[str] | None]:
    if label_column:
        found = read_labelled(path, text_column, label_column)
        return found.texts, found.labels
    listed = read_texts(path, text_column)
    if not listed:
        raise InvalidInput(f"{path} holds no texts.")
    return listed, None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 48 else line[:47] + "…"


def _margin(margin: Any) -> str:
    return f"{margin:+.4f}" if margin.ndim == 0 else " ".join(f"{one:+.3f}" for one in margin)


text_app.command()(classify)
text_app.command()(serve_local)
