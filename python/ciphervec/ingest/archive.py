"""Named arrays in one checked .npz file, without pickle. Needs no key.

Any program that reads NumPy's format reads such a file. Ours reads only what it would write itself:
stored members, little-endian, C order, sizes that fit the bytes that are there. So a hostile file
can't have it allocate more than its own size, or run anything. `header.json` comes first; the
checksum is the zip's CRC-32.

`Codebook.save`: header `{"kind": "codebook", "version": 1}`; `codes` (n, ℓ) u16, each below p; `tables` (ℓ, p, d) f32,
finite. `text.Classifier.save`: header `{"kind": "classifier", "version": 1, "classes": [...], "ngrams": 1 or 2,
"tokens": most a text}`, classes being strings or integers; `codes` and `tables` of the tokens' codebook, token 0 being
every unknown one; `weights` (classes, d) f32; `bias` (classes,) f32; `vocabulary` u8, a token a line from number 1.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CorruptData, UnsupportedVersion

Array: TypeAlias = npt.NDArray[Any]

_HEADER = "header.json"
_MAX_HEADER_BYTES = 1 << 20
_MAX_AXES = 4
_DTYPES = {"|u1": 1, "<u2": 2, "<f4": 4}
_MAGIC = b"\x93NUMPY\x01\x00"
_DESCRIPTION = re.compile(
    r"\{'descr': '([^']{3})', 'fortran_order': False, 'shape': \(((?:\d{1,12}, ?)*(?:\d{1,12},?)?)\), \} *\n",
    re.ASCII,
)


def pack(kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """An .npz of uint8, uint16 or float32 arrays whose `header.json` says what it is. The same
    input, the same bytes."""
    content = json.dumps({"kind": kind, "version": version, **header}, ensure_ascii=False, sort_keys=True)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), content.encode())
        for name, array in arrays.items():
            member = io.BytesIO()
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            np.lib.format.write_array(member, plain, version=(1, 0), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return file.getvalue()


def unpack(
    data: bytes, kind: str, version: int, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and exactly the arrays of `names`. Raises CorruptData, or UnsupportedVersion for a
    newer file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _members(archive, len(data))
            header = _header(members.pop(_HEADER, b""), kind, version)
    except (
        zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OSError, EOFError, struct.error, OverflowError
    ) as error:  # fmt: skip
        raise CorruptData(f"this is not a {kind} file, or a damaged one: {error}") from error
    if set(members) != {f"{name}.npy" for name in names}:
        raise CorruptData(
            f"a {kind} file holds {', '.join(names)}; this one holds {', '.join(members) or 'nothing'}."
        )
    return header, {name: _array(members[f"{name}.npy"], f"{name} of this {kind} file") for name in names}


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, bytes]:
    """Every member's bytes, none compressed, none twice, all of them together no larger than the
    file."""
    listed = archive.infolist()
    stored = all(one.compress_type == zipfile.ZIP_STORED and not one.flag_bits & 1 for one in listed)
    if not stored or sum(one.file_size for one in listed) > size:
        raise CorruptData(
            "members of such a file are stored, neither compressed nor encrypted; this one's are not."
        )
    if len({one.filename for one in listed}) != len(listed):
        raise CorruptData("a member's name occurs twice in this file.")
    return {one.filename: archive.read(one) for one in listed}


def _header(text: bytes, kind: str, version: int) -> dict[str, Any]:
    try:
        header = json.loads(text[:_MAX_HEADER_BYTES])
    except (ValueError, RecursionError) as error:
        raise CorruptData(f"this is not a {kind} file: it has no readable {_HEADER}.") from error
    if not isinstance(header, dict) or header.pop("kind", None) != kind:
        raise CorruptData(f"this is not a {kind} file: its {_HEADER} says something else.")
    found = header.pop("version", None)
    if isinstance(found, int) and found > version:
        raise UnsupportedVersion(
            f"{kind} format {found}; this ciphervec reads up to {version}. Upgrade ciphervec."
        )
    if type(found) is not int or found != version:
        raise CorruptData(f"a {kind} file has a version from 1 to {version}, this one has {found!r}.")
    return header


def _array(member: bytes, what: str) -> Array:
    """An array of format version 1.0 whose length is what its shape says."""
    length = int.from_bytes(member[8:10], "little")
    described = _DESCRIPTION.fullmatch(member[10 : 10 + length].decode("latin-1"))
    if member[:8] != _MAGIC or described is None or described[1] not in _DTYPES:
        raise CorruptData(f"{what} is not an array of uint8, uint16 or float32 as NumPy writes it.")
    shape = tuple(int(axis) for axis in described[2].replace(",", " ").split())
    body = memoryview(member)[10 + length :]
    expected = _DTYPES[described[1]]
    for axis in shape:
        expected *= axis
    if len(shape) > _MAX_AXES or len(body) != expected:
        raise CorruptData(f"{what} has shape {shape}, which takes {expected} bytes; {len(body)} are there.")
    return np.frombuffer(body, dtype=described[1]).reshape(shape)
