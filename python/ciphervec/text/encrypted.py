"""Encrypted classification: a server with a classifier's tables, and a client whose texts it cannot read. Two halves,
bytes between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import ciphervec.lookup as lookup

from ..codebooks.kmeans import Codes
from ..errors import CorruptData, InvalidInput
from ..ingest import archive
from .encoder import Documents, Encoder
from .vocabulary import Vocabulary

Label: TypeAlias = str | int
Floats: TypeAlias = npt.NDArray[np.float64]

VERSION = 1
_READER, _TABLES = "reader of texts", "server of texts"


class Answers(NamedTuple):
    """The likeliest class of each document; margins, (n,) for two classes and positive for the
    second, else (n, classes)."""

    labels: list[Label]
    margins: Floats


class Reader:
    """What a client needs of a classifier: how texts become codes, the names of the classes, and
    the bias. Public.

    The tables stay with the server.
    """

    __slots__ = ("_codes", "bias", "classes", "encoder")

    def __init__(self, encoder: Encoder, codes: Codes, classes: Sequence[Label], bias: Floats) -> None:
        """Not for callers: use `model.reader()` or `Reader.from_bytes(data)`."""
        outputs = 1 if len(classes) == 2 else len(classes)
        if len(codes) != len(encoder.vocabulary) or codes.ndim != 2 or bias.shape != (outputs,):
            raise InvalidInput("a reader has a code for every token and a bias for every class.")
        self.encoder, self._codes, self.classes, self.bias = encoder, codes, tuple(classes), bias

    def codes(self, texts: Iterable[str]) -> tuple[npt.NDArray[np.int64], Documents]:
        """The codes of all tokens, and where documents begin and what was cut off. Raises
        InvalidInput."""
        documents = self.encoder.encode(texts)
        return self._codes[documents.numbers].astype(np.int64), documents

    def answers(self, means: Floats) -> Answers:
        """Classes and margins from what a lookup gave."""
        margins = means + self.bias
        if len(self.classes) == 2:
            called = (margins[:, 0] > 0).astype(np.int64)
            return Answers([self.classes[number] for number in called], margins[:, 0])
        return Answers([self.classes[number] for number in margins.argmax(axis=1)], margins)

    def to_bytes(self) -> bytes:
        """An .npz file (`ciphervec.ingest.archive`) with `codes` and `vocabulary`; `bias` is in the header."""
        header = {
            "classes": list(self.classes),
            "ngrams": self.encoder.ngrams,
            "tokens": self.encoder.limit,
            "bias": self.bias.tolist(),
        }
        words = np.frombuffer(self.encoder.vocabulary.to_bytes(), np.uint8)
        return archive.pack(_READER, VERSION, header, {"codes": self._codes, "vocabulary": words})

    @classmethod
    def from_bytes(cls, data: bytes) -> Reader:
        """Raises CorruptData for anything but what `to_bytes` gives, UnsupportedVersion for that of
        a newer release."""
        header, members = archive.unpack(data, _READER, VERSION, ("codes", "vocabulary"))
        try:
            words = Vocabulary.from_bytes(members["vocabulary"].tobytes())
            ngrams, tokens, classes = header.get("ngrams"), header.get("tokens"), header.get("classes")
            if ngrams not in (1, 2) or type(tokens) is not int or not 1 <= tokens <= 1 << 16:
                raise InvalidInput("ngrams must be 1 or 2, and tokens from 1 to 65536.")
            if not isinstance(classes, list) or not all(type(one) in (str, int) for one in classes):
                raise InvalidInput("classes must be a list of strings or integers.")
            bias = np.array(header.get("bias"), np.float64)
            if len(classes) < 2 or not np.isfinite(bias).all() or members["codes"].dtype.kind != "u":
                raise InvalidInput("at least two classes, finite biases and codes expected.")
            return cls(Encoder(words, ngrams, tokens), members["codes"], classes, bias)
        except (InvalidInput, TypeError, ValueError) as error:
            if isinstance(error, CorruptData):
                raise
            raise CorruptData(f"the parts of this reader don't fit: {error}") from error


class Server:
    """A classifier's tables. Classifies texts that it cannot read, and learns not even the
    label."""

    __slots__ = ("lookup",)

    def __init__(self, tables: lookup.Server) -> None:
        """Not for callers: use `model.server_half()` or `Server.from_bytes(data)`."""
        if not isinstance(tables, lookup.Server):
            raise InvalidInput("use model.server_half(), or Server.from_bytes(data) for a saved one.")
        self.lookup = tables

    def description(self) -> bytes:
        """What a client needs to know of the tables: public."""
        return self.lookup.description()

    def register(self, keys: bytes) -> str:
        """Keep a client's evaluation keys, in strategies that need them. Raises InvalidInput,
        CorruptData."""
        return self.lookup.register(keys)

    def classify(self, texts: bytes) -> bytes:
        """Encrypted margins for what a client's `encrypt` gave. Raises InvalidInput, CorruptData,
        UnsupportedVersion."""
        return self.lookup.embed(texts)

    def to_bytes(self) -> bytes:
        """The tables, for the server's own disk."""
        return self.lookup.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Server:
        """Raises CorruptData for anything but what `to_bytes` gives, UnsupportedVersion for that of
        a newer release."""
        return cls(lookup.Server.from_bytes(data))

    def __repr__(self) -> str:
        return f"<ciphervec.text.Server: {self.lookup!r}>"


class Client:
    """Who has texts to classify: a reader, which is public, and a secret key."""

    __slots__ = ("lookup", "reader")

    def __init__(self, reader: Reader, key: lookup.Client) -> None:
        """A client whose key was kept with `client.lookup.save`; for a new one, `Client.generate`.
        Raises InvalidInput."""
        tables, _, outputs = key.shape
        if (tables, outputs) != (reader._codes.shape[1], len(reader.bias)) or key.pooling != "mean":
            raise InvalidInput("the key was made for other tables than those of this classifier.")
        self.reader, self.lookup = reader, key

    @classmethod
    def generate(cls, reader: Reader | bytes, description: bytes) -> Client:
        """A fresh key for the tables that a server described. Raises InvalidInput, CorruptData,
        UnsupportedVersion."""
        found = reader if isinstance(reader, Reader) else Reader.from_bytes(reader)
        return cls(found, lookup.Client.generate(description))

    def keys(self) -> bytes | None:
        """Evaluation keys for `server.register`; None where the strategy needs none."""
        return self.lookup.keys()

    @property
    def error_bound(self) -> float:
        """A label is that of the plain classifier wherever the plain margin exceeds this: of more
        than two classes, where the two largest scores differ by more than twice this."""
        return self.lookup.error_bound

    def encrypt(self, texts: Iterable[str]) -> bytes:
        """Texts, encrypted. What is cut off, empty or unknown: `client.reader.codes(texts)`. Raises
        InvalidInput."""
        codes, documents = self.reader.codes(texts)
        return self.lookup.query(codes, documents.offsets, allow_empty=True)

    def decode(self, answer: bytes) -> Answers:
        """Labels and margins. A text without tokens has the bias as its margin. Raises WrongKey,
        InvalidInput, CorruptData."""
        return self.reader.answers(self.lookup.decode(answer))

    def __reduce__(self) -> Any:
        raise TypeError("secret keys can't be pickled. Use client.lookup.save(path, passphrase=...).")

    def __repr__(self) -> str:
        return f"<ciphervec.text.Client: {self.lookup!r}>"
