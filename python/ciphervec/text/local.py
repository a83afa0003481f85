"""Encrypted classification with both halves in one process, nothing but bytes between them, and what a round took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from .classifier import Classifier
from .encrypted import Answers, Client, Server

STRATEGIES = ("histogram", "ive_digits", "one_hot_digits", "one_hot", "ive", "indicator")


@dataclass(frozen=True)
class Round:
    """What came back, the bytes that travelled, and milliseconds of each half."""

    answers: Answers
    up: int
    down: int
    ms_encrypt: float
    ms_server: float
    ms_decrypt: float


@dataclass(frozen=True)
class Halves:
    """A server with the tables, a client that has never seen them, and the classifier that both are
    halves of."""

    model: Classifier
    server: Server
    client: Client

    @classmethod
    def of(cls, model: Classifier, strategy: str) -> Halves:
        """Sends what a deployment would: the reader and the description one way, evaluation keys
        the other.

        Raises InvalidInput.
        """
        server = model.server_half(strategy)
        client = Client.generate(model.reader().to_bytes(), server.description())
        keys = client.keys()
        if keys is not None:
            server.register(keys)
        return cls(model, server, client)

    def classify(self, texts: Sequence[str]) -> Round:
        """One round. Raises InvalidInput."""
        began = time.perf_counter()
        query = self.client.encrypt(texts)
        encrypted = time.perf_counter()
        answer = self.server.classify(query)
        served = time.perf_counter()
        answers = self.client.decode(answer)
        ended = time.perf_counter()
        times = [1e3 * (b - a) for a, b in ((began, encrypted), (encrypted, served), (served, ended))]
        return Round(answers, len(query), len(answer), *times)
