"""Messages of Chroma's API, for the key owner: ids, vectors, metadata and counts of requests, checked, and answers as JSON."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np
import orjson

from ..collections.ranking import SparseRow, sparse_rows
from ..ingest.arrays import BoolArray, FloatArray
from ..ingest.nesting import check_depth
from .problem import Problem, invalid

INCLUDE = ("distances", "documents", "embeddings", "metadatas", "uris")
URI = "chroma:uri"
"""The field of a row's metadata that holds its address."""
MAX_BATCH = 50_000
"""Rows that clients are told to send at most in one request."""
_NUMBERS = (int, float)
_VECTORS = ("embeddings", "query_embeddings")


def read(body: bytes) -> dict[str, Any]:
    """The object of a request's body. Raises Problem, or InvalidInput for one that is nested too deep."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise invalid(f"Failed to parse the request body as JSON: {error}") from None
    if not isinstance(content, dict):
        raise Problem(422, f"the body must be a JSON object, got {type(content).__name__}.")
    for name, value in content.items():
        if name not in _VECTORS:  # which are long, and checked where they are read
            check_depth(value, name)
    return content


def written(value: Any) -> bytes:
    """JSON, arrays of numbers among it."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY)
    except (
        orjson.JSONEncodeError
    ):  # a whole number of more than 64 bits, which rows of the Python API may have
        return json.dumps(value, default=np.ndarray.tolist).encode()


def ids(content: dict[str, Any], *, needed: bool = False) -> list[str] | None:
    """The ids of a request; None where there are none, which is a problem if they are needed."""
    found = content.get("ids")
    if found is None:
        if needed:
            raise Problem(422, "missing field `ids`.")
        return None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise Problem(422, "ids must be a list of strings.")
    if "" in found:
        raise invalid("Empty ID, ID must have at least one character")
    return found


def number(content: dict[str, Any], name: str, default: int | None) -> int | None:
    """A whole number of at least 0. Raises Problem."""
    value = content.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 32:
        raise Problem(422, f"{name}: expected a whole number from 0 to 4294967295, got {value!r}.")
    return value


def include(content: dict[str, Any], default: tuple[str, ...]) -> list[str]:
    """The parts that are asked for."""
    found = content.get("include")
    if found is None:
        return list(default)
    if not isinstance(found, list) or any(one not in INCLUDE for one in found):
        raise Problem(422, f"include: unknown variant in {found!r}, expected {', '.join(INCLUDE)}.")
    return found


def listed(content: dict[str, Any], name: str, kind: type, count: int) -> list[Any] | None:
    """A list with an entry an id, of this kind or null."""
    found = content.get(name)
    if found is None:
        return None
    if not isinstance(found, list) or not all(one is None or isinstance(one, kind) for one in found):
        raise Problem(422, f"{name}: expected a list of {kind.__name__} or null.")
    same(count, len(found))
    return found


def same(count: int, found: int) -> None:
    """Raise Problem unless there is one for each id."""
    if count != found:
        raise invalid("Inconsistent number of IDs, embeddings, documents, URIs and metadatas")


def metadatas(content: dict[str, Any], count: int, *, changes: bool) -> list[dict[str, Any] | None] | None:
    """Metadata and addresses of rows, an entry an id, together. In `changes` a field may be null, to be taken
    away."""
    found = listed(content, "metadatas", dict, count)
    uris = listed(content, "uris", str, count)
    for row, fields in enumerate(found or ()):
        for name, value in (fields or {}).items():
            if not name or name.startswith(("$", "chroma:")):
                raise invalid(
                    f"Validation error: metadatas: Invalid metadata at index {row}: the name {name!r}"
                )
            if is_sparse(value):
                sparse_vector(value, f"metadatas[{row}].{name}")
            elif not _plain(value) and not (value is None and changes):
                raise Problem(
                    422,
                    f"metadatas[{row}].{name}: expected a string, number, boolean, list or sparse vector.",
                )
    if uris is None:
        return found
    pairs = zip(found or [None] * count, uris, strict=True)
    return [fields if uri is None else {**(fields or {}), URI: uri} for fields, uri in pairs]


def is_sparse(value: Any) -> bool:
    """Whether it is a sparse vector, as clients write such."""
    return isinstance(value, dict) and value.get("#type") == "sparse_vector"


def sparse_vector(value: dict[str, Any], what: str) -> SparseRow:
    """Raises InvalidInput."""
    found = sparse_rows([{name: value.get(name) for name in ("indices", "values")}], what) or [None]
    return found[0] or ([], [])


def sparse_column(metadatas: list[dict[str, Any] | None] | None, field: str) -> list[SparseRow | None] | None:
    """The sparse vectors of rows, in this field of their metadata: an empty one where that is taken away or something else,
    None where it stays."""
    if metadatas is None:
        return None
    given = [(fields or {}).get(field, ...) for fields in metadatas]
    return [
        None if one is ... else sparse_vector(one, field) if is_sparse(one) else ([], []) for one in given
    ]


def _plain(value: Any) -> bool:
    if isinstance(value, str | int | float):
        return True
    if isinstance(value, list):
        return bool(value) and all(type(one) is type(value[0]) for one in value) and _plain(value[0])
    return False


def vectors(content: dict[str, Any], count: int, *, some: bool = False) -> list[Any] | FloatArray | None:
    """Vectors of rows, an entry an id: float32 (n, d); with `some` a list that may have None. As lists of
    numbers or as base64 of little-endian float32. Raises Problem."""
    found = content.get("embeddings")
    if found is None:
        if some:
            return None
        raise Problem(422, "missing field `embeddings`; the sidecar embeds no texts, the client does.")
    if not isinstance(found, list):
        raise Problem(422, "embeddings: expected a list.")
    same(count, len(found))
    if some and any(one is None for one in found):
        return [None if one is None else array([one])[0] for one in found]
    return array(found)


def array(found: list[Any]) -> FloatArray:
    """Vectors of one dimension, (n, d). Raises Problem."""
    if not found:
        return np.empty((0, 0), np.float32)
    if all(isinstance(one, str) for one in found):
        return _decoded(found)
    if not all(isinstance(one, list) for one in found):
        raise Problem(422, "embeddings: expected lists of numbers, or base64 strings.")
    lengths = {len(one) for one in found}
    if 0 in lengths:
        raise invalid("Validation error: embeddings: Each embedding must have at least 1 dimension")
    if len(lengths) > 1:
        raise invalid("Inconsistent dimensions in provided embeddings")
    try:
        rows = np.array(found)  # without a type, of which texts that spell numbers would become some
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.ndim != 2 or rows.dtype.kind not in "iuf" or not all(type(one) in _NUMBERS for one in found[0]):
        raise Problem(422, "embeddings: expected numbers only.")
    return _single(rows)


def _decoded(found: list[str]) -> FloatArray:
    try:
        data = [base64.b64decode(one, validate=True) for one in found]
    except (binascii.Error, ValueError) as error:
        raise invalid(f"embeddings: not base64: {error}.") from None
    lengths = {len(one) for one in data}
    for length in lengths:
        if length % 4 or not length:
            raise invalid(
                f"Invalid byte length: {length} bytes cannot be converted to f32 values (must be divisible by 4)"
            )
    if len(lengths) > 1:
        raise invalid("Inconsistent dimensions in provided embeddings")
    return np.frombuffer(b"".join(data), "<f4").reshape(len(data), -1).astype(np.float32, copy=False)


def _single(rows: np.ndarray) -> FloatArray:
    with np.errstate(over="ignore"):
        return rows.astype(np.float32)


def given(vectors: list[Any] | FloatArray | None, count: int) -> BoolArray:
    """Which rows have a vector."""
    if vectors is None:
        return np.zeros(count, np.bool_)
    return np.array([one is not None for one in vectors], np.bool_)
