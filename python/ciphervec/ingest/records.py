"""A row's metadata and document as the JSON bytes that get sealed, and back. Runs on the key owner's side."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import CorruptData, InvalidInput, InvalidRows
from .arrays import BoolArray, FloatArray, Id, refuse_unordered, same_length
from .nesting import check_depth

Metadata: TypeAlias = Mapping[str, Any]
"""Field names to JSON values: str, int, float, bool, None, or lists and objects of these. What `plain`
knows is made one of them."""

MAX_RECORD_BYTES = 64 << 20
MAX_DIGITS = 4300
"""Of a whole number; Python reads and prints no more."""
_ORIGINAL = b"\x01"
_AS_THEY_ARE = (str, int, float, bool, type(None))
_UNPAIRED = re.compile("[\ud800-\udfff]")
"""Half of a pair of UTF-16, which no UTF-8 has."""


class Record(NamedTuple):
    """What is stored beside one vector. Either part may be absent."""

    metadata: dict[str, Any] | None = None
    document: str | None = None

    def merged(self, metadata: dict[str, Any] | None, document: str | None) -> Record:
        """This record with `metadata` laid over its own fields and `document`, if given, in place
        of its own."""
        fields = self.metadata
        if metadata is not None:
            fields = {**(fields or {}), **metadata}
        return Record(fields, self.document if document is None else document)

    def without(self, fields: Collection[str]) -> Record:
        """This record without these metadata fields."""
        if not self.metadata or not fields:
            return self
        return self._replace(
            metadata={name: value for name, value in self.metadata.items() if name not in fields}
        )

    def to_bytes(self) -> bytes:
        """UTF-8 JSON, keys in the order given. An empty record is no bytes at all."""
        content: dict[str, Any] = {}
        if self.metadata is not None:
            content["metadata"] = self.metadata
        if self.document is not None:
            content["document"] = self.document
        if not content:
            return b""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """Read what `to_bytes` wrote. Raises CorruptData."""
        if not data:
            return cls()
        try:
            content = json.loads(data)
            metadata, document = content.pop("metadata", None), content.pop("document", None)
            content.pop("sparse", None)  # for ranking alone
            sound = not content and isinstance(metadata, dict | None) and isinstance(document, str | None)
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise CorruptData(f"a stored record is not the JSON object expected: {error}.") from error
        if not sound:
            raise CorruptData("a stored record holds other fields than metadata and document.")
        return cls(metadata, document)


def check(
    ids: Sequence[Id], metadatas: object | None, documents: object | None
) -> list[tuple[dict[str, Any] | None, str | None]]:
    """Pair every id with its checked metadata and document. Raises InvalidInput naming every
    offending row."""
    metadata_rows = listed(metadatas, Mapping, "metadatas")
    document_rows = listed(documents, str, "documents")
    same_length(len(ids), metadata_rows, "metadatas")
    same_length(len(ids), document_rows, "documents")
    rows: list[tuple[dict[str, Any] | None, str | None]] = []
    faults: dict[int, str] = {}
    for i in range(len(ids)):
        try:
            metadata = None if metadata_rows is None else _metadata(metadata_rows[i], f"metadatas[{i}]")
            document = None if document_rows is None else _document(document_rows[i], f"documents[{i}]")
            rows.append((metadata, document))
        except InvalidInput as error:
            faults[i] = str(error)
    if faults:
        raise InvalidRows.of(faults)
    return rows


def field_names(value: object, what: str) -> list[str]:
    """Several names of metadata fields, checked. Raises InvalidInput."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"{what} must be a list of field names, got {value!r:.100}.")
    names = list(value)
    for one in names:
        if not isinstance(one, str) or not one or one.startswith("$") or _UNPAIRED.search(one):
            raise InvalidInput(
                f"{what} holds {one!r:.100}; field names are non-empty texts of valid Unicode without leading '$'."
            )
    return [*map(str.__str__, names)]


def payload(record: Record, what: str) -> bytes:
    """The bytes to seal for one record. Raises InvalidInput when they exceed 64 MiB."""
    data = record.to_bytes()
    if len(data) > MAX_RECORD_BYTES:
        raise InvalidInput(
            f"the metadata and document of {what} take {len(data):,} bytes; the limit is "
            f"{MAX_RECORD_BYTES:,}. Store a reference to the document instead."
        )
    return data


def originals(rows: FloatArray, there: BoolArray | None) -> list[bytes]:
    """The bytes to seal of each vector, (n, d), so that it is read back as it was put in: a byte that
    begins no JSON, and the numbers, little-endian. Empty where a row is not `there`."""
    numbers = rows.astype("<f4", copy=False)
    if there is None:
        return [_ORIGINAL + row.tobytes() for row in numbers]
    return [_ORIGINAL + row.tobytes() if kept else b"" for row, kept in zip(numbers, there, strict=True)]


def listed(value: object | None, single: type, what: str) -> list[object] | None:
    """One value for each row as a list; a `single` one is that of the only row. Raises InvalidInput."""
    if value is None:
        return None
    if isinstance(value, single):
        return [value]
    refuse_unordered(value, what)
    try:
        return list(value)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise InvalidInput(
            f"{what} must be a list with one entry per id, got {type(value).__name__}."
        ) from None


def _metadata(value: object, what: str) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be a dict or None, got {type(value).__name__}.")
    for name in value:
        if not isinstance(name, str) or not name or name.startswith("$"):
            raise InvalidInput(
                f"{what} has the field {name!r}; names are non-empty strings that don't start with '$'."
            )
    check_depth(value, what)
    try:
        fields = {name: plain(field) for name, field in value.items()}
        json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:  # InvalidInput is one
        raise InvalidInput(
            f"{what} must hold JSON values (str, int, float, bool, None, list, dict): {error}."
        ) from None
    return fields


def plain(value: object) -> object:
    """A value as JSON has it: a NumPy scalar is the Python number it stands for, a date or time its
    ISO 8601 text (one with a time zone in UTC, so that texts compare as times do), a UUID its text, a
    Decimal a number, what stands for no value None; within lists and dicts too. Anything else as it is.
    Raises InvalidInput for an object with a name that is no text, which JSON would make one."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if _stands_for_nothing(value):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = _time(value)
    elif hasattr(value, "item") and getattr(value, "shape", None) == ():
        held = value.item()
        if type(held) not in (
            type(value),
            tuple,
        ):  # a long double is its own item; a structure would lose its names
            return plain(held)
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo is None else value.astimezone(datetime.timezone.utc)).isoformat()
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return _number(value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        strange = [name for name in value if not isinstance(name, str)]
        if strange:
            raise InvalidInput(f"an object has the name {strange[0]!r}; names in objects are strings.")
        return {name: plain(one) for name, one in value.items()}
    return value


def _number(value: decimal.Decimal) -> object:
    """A Decimal as the number that reads the same, or as it is where there is none. Raises InvalidInput for one with
    more digits than numbers of JSON keep, which would be another."""
    if not value.is_finite():
        return math.nan if value.is_nan() else float(value)  # float() raises for a signaling one
    if value.adjusted() < MAX_DIGITS and value == value.to_integral_value():
        return int(value)
    found = float(value)
    if decimal.Decimal(repr(found)) != value:
        raise InvalidInput(
            f"the Decimal {value!s:.100} has more digits than a number keeps, which would be {found!r}. Round it, or store it "
            "as text."
        )
    return found


def _stands_for_nothing(value: object) -> bool:
    """Whether a value stands for there being none: pandas' NA and NaT, NumPy's NaT, a masked number."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return value is np.ma.masked or (
        type(value).__name__ in ("NAType", "NaTType") and type(value).__module__.startswith("pandas.")
    )


def _time(value: Any) -> object:
    """NumPy's time as Python's, or as its text where it is finer than Python has. Durations, and years that
    Python doesn't have, stay what they are: `item()` would make bare numbers of them."""
    whole = value.astype("datetime64[us]") if value.dtype.kind == "M" else None
    found = None if whole is None else whole.item()
    if not isinstance(found, datetime.datetime):
        return value
    return found if whole == value else str(np.datetime_as_string(value))


def _document(value: object, what: str) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{what} must be a string or None, got {type(value).__name__}.")
    if value is not None:
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{what} is not valid Unicode: {error}.") from None
    return value
