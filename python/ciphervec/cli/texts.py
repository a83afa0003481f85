"""Readers of texts and labels, for the side that trains or has labels: a CSV file, or a folder of text files."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidInput
from ..ingest.files import read_text
from ..ingest.remarks import remark
from .readers import LONGEST_CELL
from .terminal import existing


@dataclass(frozen=True)
class Labelled:
    """Texts and their labels, in the order they were found."""

    texts: list[str]
    labels: list[str]


def read_labelled(path: Path, text_columns: str, label_column: str) -> Labelled:
    """A folder with a folder of .txt files a class, or a CSV file with a header, packed or not.

    `text_columns` may name several, comma-separated; their texts are joined in that order. Raises
    InvalidInput.
    """
    existing(path, "file or folder")
    found = _folder(path) if path.is_dir() else _csv(path, text_columns, label_column)
    if not found.texts:
        raise InvalidInput(f"{path} holds no texts.")
    return found


def read_texts(path: Path, text_columns: str) -> list[str]:
    """Texts without labels: a CSV file's columns, a folder's .txt files, or the lines of a .txt
    file. Raises InvalidInput."""
    existing(path, "file or folder")
    if path.is_dir():
        return _contents(sorted(path.rglob("*.txt")))
    if path.suffix == ".txt":
        return [line for line in _contents([path])[0].splitlines() if line.strip()]
    return _joined(*_records(path, text_columns, []))


def _folder(path: Path) -> Labelled:
    files = sorted(path.glob("*/*.txt"))
    if not files:
        raise InvalidInput(f"{path} must hold a folder for each class with .txt files in it.")
    return Labelled(_contents(files), [file.parent.name for file in files])


def _contents(files: list[Path]) -> list[str]:
    """Whole files of text. Old collections of them are of many encodings, and most of each is read in any."""
    found, others = [], []
    for file in files:
        data = file.read_bytes()
        try:
            found.append(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            found.append(data.decode("utf-8", errors="replace"))
            others.append(file)
    if others:
        remark(
            f"{len(others):,} of {len(files):,} files are not UTF-8, {others[0]} for one: characters that are not became "
            "U+FFFD. Convert them, with iconv for example, to keep them."
        )
    return found


def _csv(path: Path, text_columns: str, label_column: str) -> Labelled:
    names, records = _records(path, text_columns, [label_column])
    return Labelled(_joined(names, records), [record[label_column].strip() for record in records])


def _joined(names: list[str], records: list[dict[str, str]]) -> list[str]:
    return [" ".join(record[name] or "" for name in names) for record in records]


def _records(path: Path, text_columns: str, others: list[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The names of the text columns, and the lines of the table. All columns must be there."""
    names = [name.strip() for name in text_columns.split(",") if name.strip()]
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_CELL))
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    try:
        there = reader.fieldnames or []
        missing = [name for name in (*names, *others) if name not in there]
        if missing or not names:
            raise InvalidInput(
                f"{path} has the columns {', '.join(there) or 'none'}, and no {', '.join(missing) or 'text column was named'}. "
                "Name them with --text-column and --label-column."
            )
        records = list(reader)
    except csv.Error as error:
        raise InvalidInput(f"{path}, near line {reader.line_num}: {error}.") from error
    short = next((i for i, one in enumerate(records, 1) if any(one[name] is None for name in others)), None)
    if short is not None:
        raise InvalidInput(f"{path}: record {short} has fewer columns than the header.")
    return names, records
