"""Files that hold rows: written in every format that the command line reads, and then damaged."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import values
from .model import Row

FORMATS = [".jsonl", ".csv", ".npz", ".npy", ".txt", *([".parquet"] if values.pa is not None else [])]
Rows = list[tuple[Any, Row]]


def write(chance: random.Random, path: Path, rows: Rows) -> Rows:
    """Write them in the format of the ending; what is to be read there, where formats can't say all."""
    return {
        ".jsonl": _jsonl,
        ".csv": _csv,
        ".npz": _npz,
        ".npy": _npy,
        ".txt": _words,
        ".parquet": _parquet,
    }[path.suffix](chance, path, rows)


def _jsonl(chance: random.Random, path: Path, rows: Rows) -> Rows:
    ascii_, beside = chance.random() < 0.5, chance.random() < 0.5
    lines = []
    for name, row in rows:
        line: dict[str, Any] = {"id": name, "embedding": row.vector.tolist()}
        if row.document is not None:
            line["document"] = row.document
        safe = (
            beside
            and row.metadata is not None
            and not {"id", "document", "embedding", "metadata"} & row.metadata.keys()
        )
        if safe and row.metadata:
            line.update(row.metadata)
        elif row.metadata is not None:
            line["metadata"] = row.metadata
        lines.append(json.dumps(line, ensure_ascii=ascii_))
    end = chance.choice(["\n", "\r\n", "\n\n"])
    path.write_bytes(chance.choice([b"", b"\xef\xbb\xbf"]) + (end.join(lines) + end).encode())
    return rows


def _csv(chance: random.Random, path: Path, rows: Rows) -> Rows:
    """Texts, whole numbers, fractions and truths in columns; ids all numbers or all texts."""
    made: Rows = []
    kinds = {"t": str, "n": int, "x": float, "b": bool}
    fields = chance.sample(list(kinds), chance.randrange(4))
    rows = [(name.replace("\0", "0") if isinstance(name, str) else name, row) for name, row in rows]
    if all(re.fullmatch("0|-?[1-9][0-9]*", str(name)) for name, _ in rows):
        rows = [(int(name), row) for name, row in rows]
    numbers = all(type(name) is int and abs(name) < 10**18 for name, _ in rows)
    cells: list[list[str]] = []
    words = [values.text(chance).replace("\0", "0") for _ in rows]
    for (name, row), word in zip(rows, words, strict=True):
        drawn = {
            "t": f"t{word}",
            "n": chance.randrange(-5, 100),
            "x": chance.choice([0.5, -1.25, 1e-9, 12.0]),
            "b": chance.random() < 0.5,
        }
        about = {field: drawn[field] for field in fields}
        shown = {**drawn, "x": f"{drawn['x']:.12f}", "b": str(drawn["b"])}
        document = f"d{word}"
        id_ = name if numbers else str(name)
        cells.append(
            [str(id_), document, *(str(shown[field]) for field in fields), json.dumps(row.vector.tolist())]
        )
        made.append((id_, Row(row.vector, about or None, document)))
    order = list(range(len(fields) + 3))
    chance.shuffle(order)
    out = io.StringIO()
    writer = csv.writer(
        out,
        quoting=chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        lineterminator=chance.choice(["\n", "\r\n"]),
    )
    header = ["id", "document", *fields, "embedding"]
    for line in [header, *cells]:
        writer.writerow([line[at] for at in order])
    path.write_bytes(chance.choice([b"", b"\xef\xbb\xbf"]) + out.getvalue().encode())
    return [
        (
            name,
            Row(
                row.vector,
                row.metadata
                and {header[at]: row.metadata[header[at]] for at in order if header[at] in fields},
                row.document,
            ),
        )
        for name, row in made
    ]


def _npz(chance: random.Random, path: Path, rows: Rows) -> Rows:
    names = [name for name, _ in rows]
    texts = not all(type(name) is int for name in names)
    if texts:
        names = [str(name) for name in names]
    odd = any(str(name).endswith("\0") for name in names)
    names = [f"{name}x" if odd else name for name in names]
    arrays: dict[str, Any] = {
        chance.choice(["embedding", "embeddings"]): _layout(chance, np.stack([row.vector for _, row in rows]))
    }
    arrays[chance.choice(["id", "ids"])] = np.array(names)
    scores = [chance.choice([0.5, 1.0, -2.25]) for _ in rows]
    if chance.random() < 0.5:
        arrays["score"] = np.array(scores, chance.choice(["f2", "f4", ">f8"]))
    (np.savez_compressed if chance.random() < 0.5 else np.savez)(path, **arrays)
    return [
        (name, Row(row.vector, {"score": score} if "score" in arrays else None, None))
        for name, (_, row), score in zip(names, rows, scores, strict=True)
    ]


def _layout(chance: random.Random, rows: np.ndarray) -> np.ndarray:
    return chance.choice(
        [rows, np.asfortranarray(rows), rows.astype(">f4"), rows.astype("f8"), rows.astype("f2")]
    )


def _npy(chance: random.Random, path: Path, rows: Rows) -> Rows:
    matrix = _layout(chance, np.stack([row.vector for _, row in rows]))
    np.save(path, matrix[0] if len(rows) == 1 and chance.random() < 0.5 else matrix)
    return [(number, Row(row.vector, None, None)) for number, (_, row) in enumerate(rows)]


def _words(chance: random.Random, path: Path, rows: Rows) -> Rows:
    """GloVe's form: a word can't have a line's end in it, and numbers are as they are printed."""
    made, lines = [], []
    for number, (_, row) in enumerate(rows):
        word = (
            f"w{number}"
            if not number
            else chance.choice(
                [f"w{number}", f"two words{number}", f"caf\u00e9{number}", f"\u2028{number}", f"{number}"]
            )
        )
        lines.append(f"{word} " + " ".join(repr(float(one)) for one in row.vector))
        made.append((word, Row(row.vector, None, None)))
    if all(word.isdecimal() for word, _ in made):
        made = [(word, row) for word, row in made]
    head = [f"{len(rows)} {len(rows[0][1].vector)}"] if chance.random() < 0.3 else []
    path.write_bytes("\n".join([*head, *lines, ""]).encode())
    return made


def _parquet(chance: random.Random, path: Path, rows: Rows) -> Rows:
    pa = values.pa
    import pyarrow.parquet as pq

    numbers = all(type(name) is int for name, _ in rows)
    names = [name if numbers else str(name) for name, _ in rows]
    d = len(rows[0][1].vector)
    kind = chance.choice(
        [
            pa.list_(pa.float32()),
            pa.list_(pa.float32(), d),
            pa.large_list(pa.float64()),
            pa.list_(pa.float64()),
        ]
    )
    columns: dict[str, Any] = {
        "id": names,
        "embedding": pa.array([row.vector.tolist() for _, row in rows], kind),
    }
    about: list[dict[str, Any]] = [{} for _ in rows]
    documents: list[str | None] = [None] * len(rows)
    if chance.random() < 0.5:
        documents = [row.document for _, row in rows]
        columns["document"] = pa.array(documents, pa.string())
    extra = chance.sample(["n", "day", "list", "t", "f16", "cat"], chance.randrange(4))
    for field in extra:
        drawn = [chance.randrange(5) if chance.random() < 0.8 else None for _ in rows]
        stored: list[Any] = list(drawn)
        if field == "n":
            columns[field] = pa.array(drawn, chance.choice([pa.int8(), pa.uint64(), pa.int64()]))
        elif field == "day":
            columns[field] = pa.array(
                [None if one is None else one * 86_400_000_000 for one in drawn], pa.timestamp("us")
            )
            stored = [None if one is None else f"1970-01-0{one + 1}T00:00:00" for one in drawn]
        elif field == "list":
            stored = [None if one is None else [one, None] for one in drawn]
            columns[field] = pa.array(stored, pa.list_(pa.int32()))
        elif field == "t":
            stored = [None if one is None else values.TEXTS[one + 10] for one in drawn]
            columns[field] = pa.array(stored, chance.choice([pa.string(), pa.large_string()]))
        elif field == "f16":
            stored = [None if one is None else one / 2 for one in drawn]
            columns[field] = pa.array(stored, pa.float32())
        else:
            stored = [None if one is None else f"c{one}" for one in drawn]
            columns[field] = pa.array(stored, pa.string()).dictionary_encode()
        for row, one in zip(about, stored, strict=True):
            row[field] = one
    pq.write_table(pa.table(columns), path, row_group_size=chance.choice([1, 2, 100]))
    return [
        (name, Row(row.vector, fields if extra else None, text))
        for name, (_, row), fields, text in zip(names, rows, about, documents, strict=True)
    ]


def damage(chance: random.Random, path: Path, others: Sequence[Path]) -> None:
    """Make it another file: one that is cut, changed, something else, or somebody else's."""
    data = bytearray(path.read_bytes())
    way = chance.choice(
        [
            "cut",
            "flip",
            "flips",
            "zeros",
            "noise",
            "empty",
            "swap",
            "twice",
            "latin",
            "utf16",
            "text",
            "insert",
            "head",
        ]
    )
    if way == "swap" and others:
        data = bytearray(chance.choice(others).read_bytes())
    elif way == "cut":
        del data[chance.randrange(len(data) + 1) :]
    elif way in ("flip", "flips"):
        for _ in range(1 if way == "flip" else 20):
            if data:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way == "zeros":
        at = chance.randrange(len(data) + 1)
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    elif way == "noise":
        data = bytearray(chance.randbytes(chance.choice([1, 16, 1000])))
    elif way == "empty":
        data = bytearray()
    elif way == "twice":
        data = data + bytes(data)
    elif way == "latin":
        data += "caf\u00e9".encode("latin-1")
    elif way == "utf16":
        data = bytearray(data.decode("utf-8", "replace").encode("utf-16"))
    elif way == "text":
        data = bytearray(
            chance.choice(
                [
                    b"null",
                    b"[]",
                    b"{}",
                    b"[[1,2],[3]]",
                    b'"',
                    b"id,embedding\n",
                    b"a,a\n1,2\n",
                    b"\n\n",
                    b"NaN",
                    b'{"id": 1, "embedding": null}',
                    b'{"embedding": [NaN, 1, 1, 1, 1, 1, 1, 1]}',
                    b"1" * 5000,
                    b'{"id": 1, "embedding": [1,2,3,4,5,6,7,8], "n": ' + b"9" * 5000 + b"}",
                    b'{"id": 1, "embedding": [1,2,3,4,5,6,7,8], "n": 1e999}',
                    b'{"id": 1e999, "embedding": [1,2,3,4,5,6,7,8]}',
                    b'{"id": [], "embedding": "x"}',
                    b'{"id": {}, "embedding": [1,2,3,4,5,6,7,8], "document": 5}',
                    b'{"id": "\\ud800", "embedding": [1,2,3,4,5,6,7,8]}',
                    b'id,embedding,n\n1,"[1,2,3,4,5,6,7,8]",' + b"9" * 5000 + b"\n",
                    b"id,embedding\n" + b"9" * 5000 + b',"[1,2,3,4,5,6,7,8]"\n',
                    b'id,embedding\n1,"[1,2,3,4,5,6,7,8"\n2,"[]"\n',
                    b"PK\x03\x04",
                    b"PAR1PAR1",
                    b"\x93NUMPY",
                ]
            )
        )
    elif way == "insert":
        at = chance.randrange(len(data) + 1)
        data[at:at] = chance.choice(
            [b'"', b",", b"\n", b"\r", b"\0", b"{", b"]", b"\xff", b"nan", b"1e400", b"[" * 2000]
        )
    elif way == "head":
        data[: min(len(data), 80)] = chance.randbytes(min(len(data), 80))
    if way == "flip" and path.suffix == ".npz" and zipfile.is_zipfile(path):
        pass  # the members' check sums find it, or nobody reads that byte
    path.write_bytes(bytes(data))
