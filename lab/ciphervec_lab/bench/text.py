"""Times encrypted classification of texts beside plain, a record a strategy."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ciphervec.text import Classifier
from ciphervec.text.local import STRATEGIES, Halves

from . import machine
from .timing import Notify

Record = dict[str, Any]

KEYS = (
    "strategy", "ms_per_document", "bytes_per_document", "accuracy_plain", "accuracy_encrypted", "disagreements",
    "documents",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench text` was asked for."""

    strategies: tuple[str, ...] = STRATEGIES[:1]
    threads: int = 1
    repeats: int = 5


def run(
    model: Classifier,
    texts: Sequence[str],
    labels: Sequence[str],
    settings: Settings,
    notify: Notify = lambda message: None,
) -> tuple[list[Record], list[str]]:
    """A record a strategy, and a sentence with what the client does and what else travels.

    `ms_per_document` is the server's median time over the number of documents, all of them in one
    query; `bytes_per_document` is that query's.
    """
    plain = [str(one) for one in model.predict(texts)]
    count = len(texts)
    records, notes = [], []
    with machine.threads(settings.threads):
        for strategy in settings.strategies:
            notify(f"{strategy}: keys")
            halves = Halves.of(model, strategy)
            rounds = []
            for number in range(settings.repeats + 1):
                notify(f"{strategy} ({number}/{settings.repeats})")
                rounds.append(halves.classify(texts))
            # The first warms up.
            timed, last = rounds[1:], rounds[-1]
            called = [str(one) for one in last.answers.labels]
            records.append(
                {
                    "strategy": strategy,
                    "ms_per_document": statistics.median(one.ms_server for one in timed) / count,
                    "bytes_per_document": last.up / count,
                    "accuracy_plain": _share(plain, labels),
                    "accuracy_encrypted": _share(called, labels),
                    "disagreements": sum(one != other for one, other in zip(called, plain, strict=True)),
                    "documents": count,
                }
            )
            client = [statistics.median(times) / count for times in (
                [one.ms_encrypt for one in timed], [one.ms_decrypt for one in timed]
            )]  # fmt: skip
            keys = halves.client.keys()
            notes.append(
                f"{strategy}: the client takes {client[0]:.3f} ms a document to encrypt and {client[1]:.3f} ms to decrypt; "
                f"{last.down / count:,.1f} bytes a document come back, {len(keys or b'') / 1e6:.1f} MB of keys go up once; a "
                f"margin is off by at most {halves.client.error_bound:.0e}."
            )
    return records, notes


def _share(called: Sequence[str], labels: Sequence[str]) -> float:
    return sum(one == other for one, other in zip(called, labels, strict=True)) / max(1, len(labels))
