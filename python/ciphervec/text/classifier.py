"""A text classifier, trained and used in the clear. Plays both sides.

The two halves stay apart for the encrypted form: `encoder` and the vocabulary's codes are what a
client needs, `folded()` is what a server holds, and the margin of a document is the mean over its
tokens of the folded rows its codes name, plus a bias:

    e(token) = Σ_j T_j[c_j(token)]        score = W · (1/k) Σ e + b
    F_j = T_j (W_1 - W_0)ᵀ        margin = (1/k) Σ_tokens Σ_j F_j[c_j] + b_1 - b_0,    above zero for the second class
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import ciphervec.lookup as lookup

from ..codebooks.codebook import Codebook, Progress, StrPath, counted
from ..codebooks.kmeans import Codes, Floats
from ..errors import CorruptData, InvalidInput
from ..ingest import archive, arrays
from ..ingest.files import at_home, read_file, write_file
from .encoder import Documents, Encoder, Numbers, checked, segment_sums
from .encrypted import Client, Reader, Server
from .metrics import Metrics, measure
from .tokenize import tokenize
from .train import Fitted, Settings, Uncompressed, fit
from .vocabulary import Vocabulary

VERSION = 1
MAX_TOKENS = 1 << 16
MAX_CLASSES = 1024

Label: TypeAlias = str | int

_KIND = "classifier"
_MEMBERS = ("codes", "tables", "weights", "bias", "vocabulary")


class Folded(NamedTuple):
    """The server's half: `tables` (tables, rows, outputs) float64 and `bias` (outputs,). One output
    for two classes."""

    tables: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]


@dataclass(frozen=True)
class DocumentCodes:
    """What a client would encrypt: `self[i]` is (k, tables) uint16, the table rows of each of
    document i's k tokens.

    `documents` says what was cut off, what was empty, and how many tokens were unknown.
    """

    codes: Codes
    documents: Documents

    def __len__(self) -> int:
        return len(self.documents)

    def __getitem__(self, document: int) -> Codes:
        at = range(len(self))[document]
        offsets = self.documents.offsets
        return self.codes[offsets[at] : offsets[at + 1]]


class Classifier:
    """A fastText-style text classifier with compressed embeddings. Read-only."""

    def __init__(
        self,
        encoder: Encoder,
        codebook: Codebook,
        weights: Floats,
        bias: Floats,
        classes: Sequence[Label],
        fitted: Fitted | None = None,
    ) -> None:
        """The codebook has a row for each token number; `weights` is (classes, d), `bias`
        (classes,). Raises InvalidInput."""
        dimension = codebook.tables.shape[2]
        if len(codebook) != len(encoder.vocabulary):
            raise InvalidInput(f"{len(encoder.vocabulary)} tokens need as many codes, got {len(codebook)}.")
        if not 2 <= len(classes) <= MAX_CLASSES or len(set(classes)) != len(classes):
            raise InvalidInput(f"a classifier has 2 to {MAX_CLASSES} distinct classes, got {len(classes)}.")
        if weights.shape != (len(classes), dimension) or bias.shape != (len(classes),):
            raise InvalidInput(
                f"weights must be ({len(classes)}, {dimension}) and bias ({len(classes)},), "
                f"got {weights.shape} and {bias.shape}."
            )
        if not (np.isfinite(weights).all() and np.isfinite(bias).all()):
            raise InvalidInput("weights and bias must be finite numbers.")
        self.encoder, self.codebook, self.classes = encoder, codebook, tuple(classes)
        self.weights, self.bias = weights, bias
        self._fitted = fitted
        self._folded = self._fold(codebook.tables.astype(np.float64))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        labels: Iterable[Label],
        rows: int = 256,
        tables: int = 4,
        *,
        dim: int = 50,
        ngrams: int = 1,
        tokens: int = 128,
        vocabulary: int = 100_000,
        min_count: int = 2,
        seed: int = 0,
        progress: Progress | None = None,
        settings: Settings | None = None,
    ) -> Classifier:
        """Learn from texts and their labels, strings or integers.

        A document is its first `tokens` tokens, single words or with `ngrams=2` adjacent pairs too.
        The `vocabulary` most frequent ones seen `min_count` times are known. Their embeddings of
        `dim` numbers are sums of a row from each of `tables` tables of `rows` rows. `settings` has
        the rest. The same seed on the same machine gives the same classifier. Raises InvalidInput.
        """
        listed, names, targets = _labelled(texts, labels)
        sizes = replace(
            settings or Settings(),
            rows=_within(rows, "rows", 2, 1 << 16),
            tables=_within(tables, "tables", 1, 64),
            dim=_within(dim, "dim", 1, arrays.MAX_DIMENSION),
        )
        ngrams, limit = _within(ngrams, "ngrams", 1, 2), _within(tokens, "tokens", 1, MAX_TOKENS)
        kept = (tokenize(text, ngrams)[:limit] for text in listed)
        size, least = arrays.count(vocabulary, "vocabulary"), arrays.count(min_count, "min_count")
        encoder = Encoder(Vocabulary.build(kept, size, least), ngrams, limit)
        known = len(encoder.vocabulary)
        if known < 2:
            raise InvalidInput(
                f"no word occurs min_count={least} times in these texts; there is nothing to learn from."
            )
        documents = encoder.encode(listed)
        random = np.random.default_rng(seed)
        fitted = fit(documents, targets, known, sizes, random, counted(sizes.epochs, progress))
        if progress is not None:
            progress(sizes.epochs, sizes.epochs)
        codebook = Codebook(fitted.codes, fitted.tables)
        return cls(encoder, codebook, fitted.weights, fitted.bias, names, fitted)

    @property
    def outputs(self) -> int:
        """Numbers a document's margin has: one for two classes, else one a class."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def fitted(self) -> Fitted | None:
        """How training went, and the uncompressed model; None for a classifier that was loaded."""
        return self._fitted

    def codes(self, texts: Iterable[str]) -> DocumentCodes:
        """The codes of every document's tokens, in order. Raises InvalidInput."""
        documents = self.encoder.encode(texts)
        return DocumentCodes(self.codebook.codes[documents.numbers], documents)

    def folded(self) -> Folded:
        """The classifier multiplied into the tables: what a server holds."""
        return self._folded

    def server_half(
        self, strategy: str = "histogram", *, precision_bits: int = 14, word_bytes: int = 5
    ) -> Server:
        """What classifies encrypted texts: the folded tables under a strategy of `lookup.setup`.
        Raises InvalidInput."""
        tables = lookup.setup(
            self._folded.tables,
            strategy,
            pooling="mean",
            limit=self.encoder.limit,
            precision_bits=precision_bits,
            word_bytes=word_bytes,
        )
        return Server(tables)

    def reader(self) -> Reader:
        """What encrypts them: vocabulary, codes, names and bias, without the tables."""
        return Reader(self.encoder, self.codebook.codes, self.classes, self._folded.bias)

    def client(self, server: Server) -> Client:
        """A client of `server` with a fresh key; its evaluation keys, if it needs any, are not
        registered yet."""
        return Client.generate(self.reader(), server.description())

    def margins(self, texts: Iterable[str]) -> npt.NDArray[np.float64]:
        """(n,) for two classes, positive where the second is likelier; else (n, classes) scores.
        Raises InvalidInput.

        A document without tokens gets the bias alone.
        """
        margins = self._margins(self.codes(texts))
        return margins[:, 0] if self.outputs == 1 else margins

    def predict(self, texts: Iterable[str]) -> list[Label]:
        """The likeliest class of each document. Raises InvalidInput."""
        return [self.classes[number] for number in self._called(self._margins(self.codes(texts)))]

    def evaluate(self, texts: Iterable[str], labels: Iterable[Label], *, compressed: bool = True) -> Metrics:
        """How well labels are predicted; by the uncompressed model if not `compressed`. Raises
        InvalidInput."""
        listed, wanted = checked(texts), list(labels)
        arrays.same_length(len(listed), wanted, "labels")
        numbers = {name: number for number, name in enumerate(self.classes)}
        strange = next((one for one in wanted if one not in numbers), None)
        if strange is not None or not wanted:
            raise InvalidInput(f"labels must be of {', '.join(map(str, self.classes))}, got {strange!r}.")
        true = np.array([numbers[one] for one in wanted])
        margins = self._margins(self.codes(listed)) if compressed else self._uncompressed(listed)
        return measure(true, self._called(margins), margins[:, 0], len(self.classes))

    def save(self, path: StrPath) -> None:
        """Write an .npz file, all or nothing; both halves are in it. Raises StorageError."""
        write_file(Path(at_home(path)), self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes; `ciphervec.ingest.archive` has the layout."""
        header = {"classes": list(self.classes), "ngrams": self.encoder.ngrams, "tokens": self.encoder.limit}
        words = np.frombuffer(self.encoder.vocabulary.to_bytes(), np.uint8)
        members = (self.codebook.codes, self.codebook.tables, self.weights, self.bias, words)
        return archive.pack(_KIND, VERSION, header, dict(zip(_MEMBERS, members, strict=True)))

    @classmethod
    def load(cls, path: StrPath) -> Classifier:
        """Read a file that `save` wrote. Raises CorruptData, UnsupportedVersion or StorageError."""
        return cls.from_bytes(read_file(Path(at_home(path))))

    @classmethod
    def from_bytes(cls, data: bytes) -> Classifier:
        """Raises CorruptData for anything but what `to_bytes` gives, UnsupportedVersion for that of
        a newer release."""
        header, members = archive.unpack(data, _KIND, VERSION, _MEMBERS)
        try:
            words = Vocabulary.from_bytes(members["vocabulary"].tobytes())
            encoder = Encoder(
                words,
                _within(header.get("ngrams"), "ngrams", 1, 2),
                _within(header.get("tokens"), "tokens", 1, MAX_TOKENS),
            )
            codebook = Codebook(members["codes"], members["tables"])
            classes = header.get("classes")
            if not isinstance(classes, list) or not all(type(one) in (str, int) for one in classes):
                raise InvalidInput("classes must be a list of strings or integers.")
            return cls(encoder, codebook, members["weights"], members["bias"], classes)
        except InvalidInput as error:
            raise CorruptData(f"the parts of this classifier don't fit: {error}") from error

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.classes[:4])) + (", …" if len(self.classes) > 4 else "")
        return f"<ciphervec.text.Classifier of {names}: {len(self.encoder.vocabulary):,} tokens, {self.codebook!r}>"

    def _fold(self, tables: npt.NDArray[np.float64]) -> Folded:
        weights, bias = self._difference(self.weights, self.bias)
        return Folded(tables @ weights.T, bias)

    def _difference(
        self, weights: Floats, bias: Floats
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Of two classes only the difference of their scores matters."""
        wide, offset = weights.astype(np.float64), bias.astype(np.float64)
        return (wide[1:] - wide[:1], offset[1:] - offset[:1]) if self.outputs == 1 else (wide, offset)

    def _margins(self, codes: DocumentCodes) -> npt.NDArray[np.float64]:
        looked_up = sum(table[codes.codes[:, j]] for j, table in enumerate(self._folded.tables))
        return _means(np.asarray(looked_up), codes.documents) + self._folded.bias

    def _uncompressed(self, texts: list[str]) -> npt.NDArray[np.float64]:
        if self._fitted is None:
            raise InvalidInput("the uncompressed model is not saved; it is there right after training.")
        model: Uncompressed = self._fitted.uncompressed
        weights, bias = self._difference(model.weights, model.bias)
        documents = self.encoder.encode(texts)
        return _means(model.vectors[documents.numbers].astype(np.float64) @ weights.T, documents) + bias

    def _called(self, margins: npt.NDArray[np.float64]) -> Numbers:
        """Class numbers; the first of equals."""
        called: Any = (margins[:, 0] > 0).astype(np.int64) if self.outputs == 1 else margins.argmax(axis=1)
        return np.asarray(called, dtype=np.int64)


def _means(rows: npt.NDArray[np.float64], documents: Documents) -> npt.NDArray[np.float64]:
    sums = segment_sums(rows, documents.offsets)
    return np.asarray(sums / np.maximum(documents.lengths, 1)[:, None])


def _labelled(texts: Iterable[str], labels: Iterable[Label]) -> tuple[list[str], list[Label], Numbers]:
    """Texts, the distinct labels in order, and each text's label as a number."""
    listed, wanted = checked(texts), [_label(one) for one in labels]
    arrays.same_length(len(listed), wanted, "labels")
    names = sorted(set(wanted), key=lambda name: (isinstance(name, str), name))
    if not 2 <= len(names) <= MAX_CLASSES:
        raise InvalidInput(f"labels must be of 2 to {MAX_CLASSES} classes, got {len(names)}.")
    numbers = {name: number for number, name in enumerate(names)}
    return listed, names, np.array([numbers[one] for one in wanted])


def _label(value: object) -> Label:
    if isinstance(value, str):
        return str(value)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(
            f"a label must be a string or an integer, got {type(value).__name__} {value!r}."
        ) from None


def _within(value: object, what: str, least: int, most: int) -> int:
    number = arrays.count(value, what)
    if not least <= number <= most:
        raise InvalidInput(f"{what} must be from {least} to {most}, got {number}.")
    return number
