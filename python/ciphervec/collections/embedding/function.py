"""Calls and saves the function that embeds a collection's texts, given by the caller or named by the collection. Runs
on the key owner's side, and nowhere else.

With the collection are saved the function's name and configuration, sealed: never code, and nothing that
is run by reading it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from ...errors import InvalidInput, InvalidRows
from ...ingest import arrays, records
from ...ingest.arrays import FloatArray
from ...ingest.remarks import remark
from . import encoders

MAX_CONFIG_BYTES = 16 << 10


class Encoder(Protocol):
    """What has the method of sentence-transformers' models."""

    def encode(self, sentences: Any, /) -> Any:
        """Vectors of these texts, (n, d)."""
        ...


EmbeddingFunction: TypeAlias = Callable[[list[str]], Any] | Encoder | str
"""Called with a list of texts it returns a vector for each, (n, d). Chroma's, which may have `embed_query`
for questions, and a name; any other; a model of sentence-transformers, or the name of one; "default"."""

_FORMS = (
    "a function that takes a list of texts and returns a vector for each, an object with such an encode(texts) "
    "(sentence-transformers' models), or the name of a model: 'default', or 'all-MiniLM-L6-v2' say"
)


@dataclass(frozen=True)
class SavedFunction:
    """What is known of a function without having it."""

    name: str
    config: Mapping[str, Any] = field(default_factory=dict)
    named: bool = True
    """Whether the function says what it is called; else that is what its code is called, which another
    function may be as well."""

    def to_json(self) -> dict[str, Any]:
        """As it is sealed with the collection."""
        return {"name": self.name, "config": dict(self.config), "named": self.named}

    def to_text(self) -> str:
        """The same as text."""
        return json.dumps(self.to_json())

    @classmethod
    def from_json(cls, content: Any) -> SavedFunction | None:
        """Read what `to_json` wrote; None where nothing was. Raises KeyError or TypeError."""
        if content is None:
            return None
        return cls(str(content["name"]), dict(content["config"]), content["named"] is True)


class Embedder:
    """A function that embeds texts, and what is saved of it."""

    def __init__(self, function: EmbeddingFunction) -> None:
        """Raises InvalidInput for what is none."""
        used: Any = encoders.named(function) if isinstance(function, str) else function
        if isinstance(used, type) or inspect.iscoroutinefunction(used):
            what = (
                "a class: pass an object of it" if isinstance(used, type) else "a coroutine, and must return"
            )
            raise InvalidInput(f"embedding_function is {what}. Expected is {_FORMS}.")
        call = callable(used)
        if hasattr(used, "encode") and not (call and callable(getattr(used, "name", None))):
            # Models are callable too: that is their step of training.
            self._documents = encoders.encoding(used, "encode_document")
            self._questions = encoders.encoding(used, "encode_query")
        elif call:
            self._documents = used
            asked = getattr(used, "embed_query", None)
            self._questions = asked if callable(asked) else used
        else:
            raise InvalidInput(f"embedding_function must be {_FORMS}; got {type(used).__name__}.")
        self.saved = _described(used)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.saved.name

    def documents(self, texts: Sequence[str], dimension: int | None, metric: str) -> FloatArray:
        """The vectors of these texts, float32 (n, d), checked. Raises InvalidInput for anything else, and
        what the function raises."""
        return self._checked(self._documents, texts, dimension, metric)

    def questions(self, texts: Sequence[str], dimension: int | None, metric: str) -> FloatArray:
        """The same of questions, which some functions embed otherwise."""
        return self._checked(self._questions, texts, dimension, metric)

    def refuse_other(self, saved: SavedFunction | None, collection: str) -> None:
        """Raise InvalidInput where the collection's vectors are those of another function; say so where
        that is not sure."""
        if saved is None or saved == self.saved:
            return
        if saved.named and saved.name != self.name:
            raise InvalidInput(
                f"collection {collection!r} is embedded by {saved.name!r}, and the function given is {self.name!r}: their "
                "vectors don't compare. Give the first one, or embed the texts yourself. If both are the same, "
                "set_embedding_function saves the other name."
            )
        if saved.name == self.name and (not saved.config or saved.name.startswith(encoders.SENTENCES)):
            return  # mode `open` saves no configuration, and where a model lies may change
        if saved.named == self.saved.named:
            fields = {*saved.config, *self.saved.config}
            differ = sorted(n for n in fields if saved.config.get(n) != self.saved.config.get(n))
            how = (
                f"with another {', '.join(differ)}"
                if saved.name == self.name
                else f"{self.name!r}, and neither says by a name() what it is"
            )
            remark(
                f"collection {collection!r} was embedded by {saved.name!r}, and the function given is {how}: if its vectors "
                "are others, nothing is found by them."
            )

    def _checked(
        self, function: Callable[[list[str]], Any], texts: Sequence[str], dimension: int | None, metric: str
    ) -> FloatArray:
        if not texts:
            return np.empty((0, dimension or 0), np.float32)
        who = f"embedding function {self.name!r}"
        size = "" if dimension is None else f" of {dimension:,} numbers"
        wanted = f"{who} must return a vector{size} for each of the {len(texts):,} texts it is given"
        found = function(list(texts))
        if inspect.iscoroutine(found):
            found.close()
            raise InvalidInput(f"{wanted}, and returned a coroutine, which is not waited for.")
        if isinstance(found, Iterator):
            found = list(found)
        try:
            came = np.shape(found)
        except (TypeError, ValueError) as error:  # of differing lengths, or on another device
            raise InvalidInput(f"{wanted}, and what it returned is no (n, d) array: {error}.") from error
        if len(came) != 2 or came[0] != len(texts) or came[1] == 0:
            kind = f"an array of shape {came}" if came else f"{type(found).__name__} {found!r:.40}"
            raise InvalidInput(f"{wanted}, and returned {kind}.")
        try:
            return arrays.vectors(found, dimension or came[1], metric, what="vectors")
        except InvalidRows as error:
            raise InvalidRows(
                f"{wanted}, and returned some that can't be used: {error}", error.rows
            ) from error
        except InvalidInput as error:
            raise InvalidInput(f"{wanted}: {error}") from error


class TextEmbedding:
    """What one collection embeds texts with: the function that it was given, else the one saved with it,
    made again when a text needs it."""

    def __init__(self) -> None:
        self._given: Embedder | None = None
        self._made: tuple[SavedFunction, Embedder] | None = None

    def give(self, embedder: Embedder, saved: SavedFunction | None, collection: str) -> None:
        """Use this function from now on. Raises InvalidInput where the collection names another."""
        embedder.refuse_other(saved, collection)
        self._given = embedder

    def replace(self, embedder: Embedder | None) -> None:
        """The collection has been given another function, or none."""
        self._given, self._made = embedder, None

    def known(self, saved: SavedFunction | None) -> bool:
        """Whether the collection has a function at all."""
        return self._given is not None or saved is not None

    def embedder(self, saved: SavedFunction | None, collection: str, mode: str) -> Embedder:
        """Raises InvalidInput, with what to give."""
        if self._given is not None:
            if saved is not None and saved.named and saved.name != self._given.name:
                self._given.refuse_other(saved, collection)  # another client has saved another one
            return self._given
        if saved is None:
            raise InvalidInput(
                f"collection {collection!r} has no embedding function, so that texts need their vectors beside them. Give it "
                f"one where it is made or opened, embedding_function=...: {_FORMS}."
            )
        if self._made is None or self._made[0] != saved:
            self._made = saved, self._make(saved, collection, mode)
        return self._made[1]

    def _make(self, saved: SavedFunction, collection: str, mode: str) -> Embedder:
        give = (
            f"Give it when the collection is opened: get_collection({collection!r}, embedding_function=...)."
        )
        what = f"collection {collection!r} is embedded by the function {saved.name!r}"
        if mode == "open":
            # Nobody has signed for the name: whoever keeps the bytes would choose what is run here.
            raise InvalidInput(
                f"{what}, as whoever keeps it says: in mode 'open' it is not made from that. {give}"
            )
        try:
            made = encoders.made_again(saved.name, saved.config) if saved.named else None
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(
                f"{what}, which can't be made from what was saved of it: {error}. {give}"
            ) from error
        if made is None:
            raise InvalidInput(f"{what}, which is not known here. {give}")
        return Embedder(made)


def texts_of(value: Any, what: str) -> list[str]:
    """Texts to be embedded, as a list. Raises InvalidRows for those that are none."""
    listed = records.listed(value, str, what) or []
    faults = {
        i: f"{what}[{i}] must be a text to embed, where no vector is given; got {type(text).__name__}."
        for i, text in enumerate(listed)
        if not isinstance(text, str)
    }
    if faults:
        raise InvalidRows.of(faults)
    return [text for text in listed if isinstance(text, str)]


def _described(function: Any) -> SavedFunction:
    """The name and configuration of a function, as far as it tells them. Raises InvalidInput for a
    configuration that can't be saved."""
    model = encoders.model_of(function)
    if model is not None:
        return SavedFunction(*encoders.identity(model))
    say = getattr(function, "name", None)
    name = say() if callable(say) else None
    if not isinstance(name, str) or not name:
        code = function if hasattr(function, "__qualname__") else type(function)
        return SavedFunction(code.__qualname__.rpartition(".")[2], named=False)
    tell = getattr(function, "get_config", None)
    config = tell() if callable(tell) else None
    if not isinstance(config, Mapping):
        return SavedFunction(name)
    try:
        kept = json.loads(json.dumps(dict(config), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"get_config() of embedding function {name!r} must be a dict of JSON values, to be saved with the collection: "
            f"{error}."
        ) from error
    if len(json.dumps(kept)) > MAX_CONFIG_BYTES:
        raise InvalidInput(
            f"get_config() of embedding function {name!r} is longer than {MAX_CONFIG_BYTES:,} bytes of JSON; what is saved "
            "with a collection is a name and a few values."
        )
    return SavedFunction(name, kept)
