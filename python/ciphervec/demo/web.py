"""Writes the folder of passages and a model that a web page embeds and searches with. The key owner's side."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .corpus import Passage, some
from .embed import DIMENSION, TfidfSvd, fit_tfidf
from .search import QUESTIONS

FORMAT = 1
KNOWN = 300
# Words that no model knows, case, digits, marks and an empty text, beside the passages themselves.
HARD = (
    "",
    "!?",
    "zzqx qqzv",
    "ITERABLE, Iterable; iterable",
    "naïve café Straße ΟΔΟΣ",
    "x_1 __init__ utf_8 3.14 2to3",
    "e\u0301clair İstanbul \u00b2\u00b3 ½ 数字",
)


def export(folder: Path, found: Sequence[Passage], dimension: int = DIMENSION) -> TfidfSvd:
    """Fit the model on the passages and write what embeds in a page, little-endian:

    - `model.json`: the format's number, `words` in the order of their columns, `dimension`, the demo's questions;
    - `model.bin`: float32, `idf` of `[words]`, then `directions` of `[words, dimension]`;
    - `passages.json`: `[name, text]` of each; the page embeds, seals and stores them itself;
    - `known.json`, `known.bin`: texts, and in float32 the vectors that this model gives for them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = fit_tfidf([passage.searchable for passage in found], dimension)
    head = {
        "format": FORMAT,
        "python": platform.python_version(),
        "dimension": dimension,
        "questions": list(QUESTIONS),
        "words": model.words,
    }
    known = [*HARD, *QUESTIONS, *(passage.searchable for passage in some(list(found), KNOWN))]
    _json(folder / "model.json", head)
    _floats(folder / "model.bin", model.idf, model.directions)
    _json(folder / "passages.json", [[passage.name, passage.text] for passage in found])
    _json(folder / "known.json", known)
    _floats(folder / "known.bin", model.embed(known))
    return model


def _json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def _floats(path: Path, *arrays: npt.NDArray[np.float32]) -> None:
    path.write_bytes(b"".join(array.astype("<f4").tobytes() for array in arrays))
