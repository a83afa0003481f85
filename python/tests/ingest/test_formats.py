"""Files of vectors that others wrote, .fvecs, HDF5, .tsv, packed: read as they are, or refused with place and remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciphervec import InvalidInput
from ciphervec.cli.readers import read
from ciphervec.cli.row_table import Columns
from ciphervec.ingest import packed, vecs
from program import Program

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
RANGES = {".fvecs": (-(2.0**100), 2.0**100), ".bvecs": (0, 255), ".ivecs": (-(2**31), 2**31 - 1)}


def vecs_of(rows: npt.NDArray[Any]) -> bytes:
    return b"".join(struct.pack("<i", len(row)) + row.tobytes() for row in rows)


def refusal(path: Path, columns: Columns | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        read(path, columns or Columns())
    assert path.name in str(caught.value)
    return str(caught.value)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from([*RANGES]), pack=st.sampled_from(["", *PACKERS]),
       rows=st.integers(1, 7), dimension=st.integers(1, 9), block=st.sampled_from([1, 40, vecs._BLOCK]))  # fmt: skip
def test_vecs_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    kind: str,
    pack: str,
    rows: int,
    dimension: int,
    block: int,
) -> None:
    low, high = RANGES[kind]
    numbers = st.floats(low, high, width=32) if kind == ".fvecs" else st.integers(int(low), int(high))
    drawn = data.draw(st.lists(numbers, min_size=rows * dimension, max_size=rows * dimension))
    right = np.array(drawn, vecs.DTYPES[kind]).reshape(rows, dimension)
    path = tmp_path_factory.mktemp("vecs") / f"rows{kind}{pack}"
    path.write_bytes(PACKERS.get(pack, bytes)(vecs_of(right)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vecs, "_BLOCK", block)
        found = read(path, Columns()).embeddings
    assert found.dtype == right.dtype and np.array_equal(found, right)


@settings(max_examples=60, deadline=None)
@given(
    pack=st.sampled_from(["", *PACKERS]),
    at=st.integers(0, 5 * 16 - 1),
    cut=st.booleans(),
    claim=st.integers(-(2**31), 2**31 - 1),
)
def test_vecs_that_are_cut_off_or_lie_of_their_length_are_refused(
    tmp_path_factory: pytest.TempPathFactory, pack: str, at: int, cut: bool, claim: int
) -> None:
    content = vecs_of(np.ones((5, 3), np.float32))
    path = tmp_path_factory.mktemp("vecs") / f"rows.fvecs{pack}"
    row = at // 16
    if cut:
        content = content[:at]
    else:
        content = content[: row * 16] + struct.pack("<i", claim) + content[row * 16 + 4 :]
    path.write_bytes(PACKERS.get(pack, bytes)(content))
    if at % 16 == 0 if cut else claim == 3:
        assert len(read(path, Columns()).embeddings) == (row if cut else 5)
        return
    said = refusal(path)
    assert f"row {row}" in said or (row == 0 and ("bytes" in said or "row 1 " in said))


def test_a_row_of_two_thousand_million_numbers_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "rows.fvecs").write_bytes(struct.pack("<i", 2**31 - 1) + bytes(64))
    assert "row 0: its first four bytes say that it has 2,147,483,647" in refusal(tmp_path / "rows.fvecs")
    (tmp_path / "rows.fvecs").write_bytes(
        vecs_of(np.ones((2, 3), np.float32)) + struct.pack("<i", 2**31 - 1) + bytes(12)
    )
    assert "row 2 at byte 32: it says that it has 2,147,483,647" in refusal(tmp_path / "rows.fvecs")
    (tmp_path / "rows.fvecs").write_bytes(struct.pack(">i", 3) + bytes(12))
    assert "byte order" in refusal(tmp_path / "rows.fvecs")
    (tmp_path / "rows.fvecs").write_bytes(b"")
    assert read(tmp_path / "rows.fvecs", Columns()).embeddings.shape == (0, 0)


TEXTS = {
    "rows.csv": 'id,lang,embedding\na,é,"[1, 2]"\nb,"d,e","[3.5, 4]"\n',
    "rows.tsv": "id\tlang\tembedding\na\té\t[1, 2]\nb\td,e\t[3.5, 4]\n",
    "rows.jsonl": '{"id": "a", "lang": "é", "embedding": [1, 2]}\n{"id": "b", "lang": "d,e", "embedding": [3.5, 4]}\n',
}


@pytest.mark.parametrize("pack", ["", *PACKERS, ".zst"])
@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_read_packed(tmp_path: Path, name: str, pack: str) -> None:
    path = tmp_path / (name + pack)
    content = TEXTS[name].encode()
    if pack == ".zst":
        pa = pytest.importorskip("pyarrow")
        content = pa.compress(content, "zstd", asbytes=True)
    path.write_bytes(PACKERS.get(pack, bytes)(content))
    table = read(path, Columns())
    assert table.ids == ["a", "b"] and table.metadatas == [{"lang": "é"}, {"lang": "d,e"}]
    assert table.embeddings.tolist() == [[1, 2], [3.5, 4]]


@pytest.mark.parametrize("pack", PACKERS)
def test_a_packed_file_is_whole_or_refused(tmp_path: Path, pack: str) -> None:
    """Each byte of it gone or another: what is read is what was written, or an error names the file. Two streams, one
    behind the other, since pbzip2 and log rotation write such, and damage to the second must not be the end."""
    lines = "".join(f"w{i} {i} {i * i % 7}\n" for i in range(40))
    right = read_words(tmp_path, "right.txt", lines.encode())
    whole = PACKERS[pack](lines[:200].encode()) + PACKERS[pack](lines[200:].encode())
    assert read_words(tmp_path, f"rows.txt{pack}", whole) == right
    first = len(PACKERS[pack](lines[:200].encode()))
    for at in range(len(whole)):
        for bad in (whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]):
            if bad == whole[:first]:
                continue  # a file that ends between its streams is one of fewer
            try:
                assert read_words(tmp_path, f"rows.txt{pack}", bad) == right, at
            except InvalidInput as error:
                assert f"rows.txt{pack}" in str(error)
    assert "can't be unpacked" in refused_words(tmp_path, f"rows.txt{pack}", b"")
    assert "can't be unpacked" in refused_words(tmp_path, f"rows.txt{pack}", lines.encode())
    assert "line 2: byte 1 is not UTF-8" in refused_words(
        tmp_path, f"rows.txt{pack}", PACKERS[pack](b"a 1\n\xe9 1\n")
    )


def read_words(folder: Path, name: str, content: bytes) -> list[Any]:
    (folder / name).write_bytes(content)
    table = read(folder / name, Columns())
    return [table.ids, table.embeddings.tolist()]


def refused_words(folder: Path, name: str, content: bytes) -> str:
    (folder / name).write_bytes(content)
    return refusal(folder / name)


def test_a_first_line_of_word2vec_is_one_or_a_row(tmp_path: Path) -> None:
    """It holds for what follows, or the file is refused: cut off, it would be a smaller collection."""
    assert read_words(tmp_path, "a.txt", b"2 3\na 1 2 3\nnew york 4 5 6\n") == [
        ["a", "new york"],
        [[1, 2, 3], [4, 5, 6]],
    ]
    assert read_words(tmp_path, "b.txt", b"1 2\nnew york 4 5\n") == [["new york"], [[4, 5]]]
    assert read_words(tmp_path, "c.txt", b"10 5\n11 6\n") == [["10", "11"], [[5], [6]]]
    for cut in (b"3 2\na 1 2\nb 3 4\n", b"1 2\na 1 2\nb 3 4\n"):
        assert "its first line says" in refused_words(tmp_path, "d.txt", cut)


def test_what_is_not_read_packed_says_so(tmp_path: Path) -> None:
    for name, says in {
        "rows.npy.gz": "Unpack it",
        "rows.hdf5.xz": "Unpack it",
        "rows.gz": "known endings",
    }.items():
        (tmp_path / name).write_bytes(b"")
        assert says in refusal(tmp_path / name)


def test_memory_that_an_xz_asks_for_is_bounded(tmp_path: Path) -> None:
    content = lzma.compress(b"a 1\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26}])
    assert read_words(tmp_path, "rows.txt.xz", content) == [["a"], [[1.0]]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "_MOST_MEMORY", 1 << 25)
        assert "limit" in refused_words(tmp_path, "rows.txt.xz", content)


def test_an_npz_that_says_more_than_it_holds_takes_no_memory(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_2_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 64)}
    )
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("embedding.npy", header.getvalue() + bytes(256))
    assert "its shape is (1099511627776, 64)" in refusal(tmp_path / "rows.npz")


def test_truths_of_a_line_stay_truths(tmp_path: Path) -> None:
    (tmp_path / "bits.jsonl").write_text('{"embedding": [true, false]}\n{"embedding": [false, false]}\n')
    assert read(tmp_path / "bits.jsonl", Columns()).embeddings.dtype == np.bool_
    (tmp_path / "bits.jsonl").write_text('{"embedding": [true, false]}\n{"embedding": [0.5, false]}\n')
    assert read(tmp_path / "bits.jsonl", Columns()).embeddings.tolist() == [[1.0, 0.0], [0.5, 0.0]]


def test_export_packs_and_import_unpacks(tmp_path: Path) -> None:
    program = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    program("keygen", "my.key", "--no-passphrase")
    (tmp_path / "rows.jsonl").write_text(TEXTS["rows.jsonl"])
    program("import", "db", "docs", "rows.jsonl", "--metric", "l2")
    program("export", "db", "docs", "plain.jsonl")
    right = (tmp_path / "plain.jsonl").read_bytes()
    for pack in PACKERS:
        program("export", "db", "docs", f"out.jsonl{pack}")
        program("import", "db", f"docs{pack[1:]}", f"out.jsonl{pack}", "--metric", "l2")
        program("export", "db", f"docs{pack[1:]}", f"again{pack[1:]}.jsonl")
        assert (tmp_path / f"again{pack[1:]}.jsonl").read_bytes() == right
    assert "tell nobody of damage" in program("export", "db", "docs", "out.jsonl.zst", code=2).stderr
    assert not (tmp_path / "out.jsonl.zst").exists()


def hdf5(path: Path, **datasets: Any) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return path


def test_a_benchmark_is_read_by_its_train_and_asked_by_its_test(tmp_path: Path) -> None:
    train, test = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((2, 3), np.float32)
    path = hdf5(tmp_path / "glove.hdf5", train=train, test=test, neighbors=np.zeros((2, 100), np.int32),
                distances=np.zeros((2, 100), np.float32))  # fmt: skip
    table = read(path, Columns())
    assert np.array_equal(table.embeddings, train) and table.ids is None and table.metadatas is None
    assert np.array_equal(read(path, Columns(alone=True, questions=True)).embeddings, test)
    assert np.array_equal(read(path, Columns("test", alone=True)).embeddings, test)
    assert "holds distances, neighbors, test, train, and no 'vectors'" in refusal(path, Columns("vectors"))


def test_datasets_of_one_value_a_row_are_its_fields(tmp_path: Path) -> None:
    rows = np.eye(3, dtype=np.float64)
    path = hdf5(
        tmp_path / "rows.h5", embedding=rows, ids=["a", "é", "c"], lang=["de", "en", "fr"], year=[1, 2, 3]
    )
    table = read(path, Columns())
    assert table.ids == ["a", "é", "c"] and np.array_equal(table.embeddings, rows)
    assert table.metadatas is not None and [one and one["lang"] for one in table.metadatas] == [
        "de",
        "en",
        "fr",
    ]
    path = hdf5(tmp_path / "other.h5", embedding=rows, weights=np.ones((2, 2)))
    assert "other.h5:weights has shape (2, 2)" in refusal(path)
    assert len(read(path, Columns(leave_out=["weights"]))) == 3
    path = hdf5(tmp_path / "sparse.hdf5", train=np.ones(40), size_train=np.ones(4))
    assert "must have shape (n, d), got (40,)" in refusal(path)


def test_an_hdf5_file_reads_nothing_outside_of_itself(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    hdf5(tmp_path / "secret.h5", train=np.ones((2, 2)))
    (tmp_path / "secret.bin").write_bytes(bytes(64))
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["train"] = h5py.ExternalLink("secret.h5", "train")
    assert "is a link" in refusal(tmp_path / "link.h5")
    with h5py.File(tmp_path / "outer.h5", "w") as file:
        file.create_dataset("train", (2, 4), "f8", external=[(str(tmp_path / "secret.bin"), 0, 64)])
    assert "lies in other files" in refusal(tmp_path / "outer.h5")
    layout = h5py.VirtualLayout((2, 2), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "secret.h5"), "train", (2, 2))
    with h5py.File(tmp_path / "virtual.h5", "w") as file:
        file.create_virtual_dataset("train", layout)
    assert "lies in other files" in refusal(tmp_path / "virtual.h5")


def test_an_hdf5_file_is_whole_or_refused(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = hdf5(tmp_path / "rows.hdf5", train=np.random.default_rng(1).standard_normal((100, 8)))
    whole = path.read_bytes()
    for length in (0, 8, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert "Fetch it again" in refusal(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("train", (2**40, 128), "f4", chunks=(1024, 128))
    assert "declares the shape (1099511627776, 128)" in refusal(path)
    with h5py.File(path, "w") as file:
        file.create_group("train")
    assert "is a group" in refusal(path)


def test_without_h5py_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.hdf5").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InvalidInput, match=r"pip install 'ciphervec\[hdf5\]'"):
        read(tmp_path / "rows.hdf5", Columns())


def test_texts_to_embed_come_from_tsv_too(tmp_path: Path) -> None:
    (tmp_path / "notes.tsv.gz").write_bytes(gzip.compress(b"id\tdocument\n1\tone, two\n"))
    table = read(tmp_path / "notes.tsv.gz", Columns(texts=True))
    assert table.documents == ["one, two"] and table.embeddings is None
    assert json.dumps(table.ids) == '["1"]'
