"""Files of the command line: what is read is what was written, for ids, metadata and vectors of
every format, or it is refused with file, line and remedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciphervec import Keys, PersistentClient
from ciphervec.cli import readers, texts
from program import Program

NAMES = ["id", "ids", "document", "documents", "embedding", "embeddings", "vector", "metadata", "metadatas", "uri",
         "Unnamed: 0", "__index_level_0__", "index", "distance", "_", "a", "é"]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
METADATA = st.none() | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4)
IDS = st.integers(-(2**63), 2**63 - 1) | st.text(
    st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6
)
ROWS = st.lists(
    st.tuples(IDS, METADATA, st.none() | TEXTS), min_size=1, max_size=6, unique_by=lambda row: row[0]
)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    made("keygen", "my.key", "--no-passphrase")
    return made


def answers(done: Any) -> Any:
    return json.loads(done.stdout)


def stored(program: Program, name: str) -> dict[str, Any]:
    return answers(program("get", "db", name, "--json"))


def rows_of(folder: Path, place: str) -> list[Any]:
    with PersistentClient(folder / place, Keys.load(folder / "my.key"), read_only=True) as client:
        found = client.get_collection("docs").get(include=["documents", "metadatas", "embeddings"])
        assert found["embeddings"] is not None
        columns = (found["ids"], found["metadatas"], found["documents"], found["embeddings"].tolist())
        return sorted(map(list, zip(*columns, strict=True)), key=repr)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=ROWS)
def test_what_export_writes_import_reads(
    program: Program, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, rows: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    (folder / "my.key").write_bytes((tmp_path / "my.key").read_bytes())
    run = Program(folder, CIPHERVEC_KEYS="my.key")
    ids, metadatas, documents = (list(column) for column in zip(*rows, strict=True))
    vectors = np.random.default_rng(1).standard_normal((len(rows), 4)).astype(np.float32)
    with PersistentClient(folder / "db", Keys.load(folder / "my.key")) as client:
        client.create_collection("docs", 4, mode="sealed-index").add(ids, vectors, metadatas, documents)
    run("export", "db", "docs", "rows.jsonl")
    run("import", "copy", "docs", "rows.jsonl", "--mode", "sealed-index")
    asked = json.loads(
        run("query", "copy", "docs", "rows.jsonl", "-n", "1", "--json", "--audience", "owner").stdout
    )
    assert [ids[0] for ids in asked["ids"]] == [
        json.loads(line)["id"] for line in (folder / "rows.jsonl").open()
    ]
    assert repr(rows_of(folder, "copy")) == repr(
        rows_of(folder, "db")
    )  # 1, 1.0 and true are equal, and not the same


def test_fields_of_a_line_are_what_they_are_by_their_place(program: Program, tmp_path: Path) -> None:
    line = {
        "id": "x",
        "embedding": [1, 0],
        "metadata": {"id": 7, "document": "inner", "embedding": 3, "metadata": {}},
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps({**line, "lang": "en"}) + "\n")
    program("import", "db", "docs", "rows.jsonl")
    found = stored(program, "docs")
    assert found["ids"] == ["x"] and found["documents"] == [None]
    assert found["metadatas"] == [{"lang": "en", **line["metadata"]}]  # type: ignore[dict-item]
    for second, says in (
        ({**line, "lang": "en", "metadata": {"lang": "de"}}, "'lang' both in its metadata and beside"),
        ({**line, "metadata": "text"}, "line 1: metadata must be an object"),
    ):
        (tmp_path / "bad.jsonl").write_text(json.dumps(second) + "\n")
        assert says in program("import", "db", "docs", "bad.jsonl", code=2).stderr
    (tmp_path / "bad.jsonl").write_text('{"id": "y", "embedding": [1, 0], "n": 1, "n": 2}\n')
    assert (
        "line 1" in (said := program("import", "db", "docs", "bad.jsonl", code=2).stderr)
        and "'n' twice" in said
    )
    assert "lines of JSON, .jsonl" in program("export", "db", "docs", "rows.csv", code=2).stderr
    assert not (tmp_path / "rows.csv").exists()


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    names=st.lists(st.sampled_from([n for n in NAMES if n[0] not in "U_" and n not in ("embedding", "id", "document")]),
                   unique=True),
)  # fmt: skip
def test_columns_of_any_name_are_metadata_in_every_format(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, names: list[str]
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("formats")
    column = st.lists(TEXTS.map(lambda t: "t" + t.replace("\0", "")), min_size=3, max_size=3)
    fields = {name: data.draw(column) for name in names}
    vectors = np.eye(3, 4, dtype=np.float32)
    ids, documents = ["x", "y", "z"], data.draw(column)
    records = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)] or [
        None
    ] * 3
    table = {"id": ids, "document": documents, **fields, "embedding": vectors.tolist()}
    pq.write_table(pa.table(table), folder / "rows.parquet")
    lines = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    inner = [{**{n: v for n, v in line.items() if n not in fields}, "metadata": {n: line[n] for n in fields}}
             for line in lines]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in inner), encoding="utf-8")
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        import csv

        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(
            [json.dumps(cell) if isinstance(cell, list) else cell for cell in line.values()] for line in lines
        )
    arrays = {**{n: np.array(v) for n, v in table.items() if n != "embedding"}, "embedding": vectors}
    made = ["rows.parquet", "rows.jsonl", "rows.csv"]
    if not any(value.endswith("\0") for column in (documents, *fields.values()) for value in column):
        np.savez(folder / "rows.npz", **arrays)  # type: ignore[arg-type]
        made.append("rows.npz")
    for name in made:
        found = readers.read(folder / name, readers.Columns())
        assert found.names(None) == ids and found.documents == documents
        np.testing.assert_array_equal(found.embeddings, vectors)
        expected = records if name != "rows.jsonl" or names else [{}] * 3
        assert (found.metadatas or [None] * 3) == expected, name


def test_an_index_of_pandas_is_asked_about(program: Program, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    numbers = np.random.default_rng(0).normal(size=(3, 4))
    wide = pd.DataFrame(numbers, columns=list("abcd"))
    wide.insert(0, "id", ["x", "y", "z"])
    wide.to_csv(tmp_path / "wide.csv")
    pd.read_csv(tmp_path / "wide.csv").to_csv(tmp_path / "twice.csv", index=False)
    whole = pd.DataFrame({"id": ["x", "y", "z"], "embedding": numbers.tolist()})
    whole.to_csv(tmp_path / "whole.csv")
    whole.iloc[[2, 0, 1]].to_parquet(tmp_path / "whole.parquet")
    for file, index in (
        ("wide.csv", "Unnamed: 0"),
        ("twice.csv", "Unnamed: 0"),
        ("whole.csv", "Unnamed: 0"),
        ("whole.parquet", "__index_level_0__"),
    ):
        name = file.replace(".", "-")
        said = program("import", "db", name, file, code=2).stderr
        assert index in said and "--leave-out" in said
        program("import", "db", name, file, "--leave-out", index)
        found = program("export", "db", name, "-", "--where", '{"n": {"$exists": false}}').stdout.splitlines()
        rows = {row["id"]: row for row in map(json.loads, found)}
        np.testing.assert_allclose([rows[i]["embedding"] for i in "xyz"], numbers, rtol=1e-6)
        assert all("metadata" not in row for row in rows.values())
        program("create", "db", f"{name}-2", "--dim", 4)
        assert index in program("add", "db", f"{name}-2", file, code=2).stderr
        program("add", "db", f"{name}-2", file, "--id-column", index, *(
            ["--leave-out", "id"] if file in ("wide.csv", "twice.csv") else []))  # fmt: skip
        assert sorted(stored(program, f"{name}-2")["ids"]) == [0, 1, 2]


def test_columns_that_may_be_coordinates_are_asked_about(program: Program, tmp_path: Path) -> None:
    lines = ["id,label,v0,v1,v2", "x,3,1,0,0", "y,4,0,1,0"]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    said = program("import", "db", "docs", "rows.csv", code=2).stderr
    assert "'label', 'v0', 'v1', 'v2'" in said and "--vector-columns" in said
    program("import", "db", "docs", "rows.csv", "--vector-columns", "v*")
    assert stored(program, "docs")["metadatas"] == [{"label": 3}, {"label": 4}]
    program("import", "db", "all", "rows.csv", "--vector-columns", "label,v0", "--vector-columns", "v1,v2")
    assert [
        len(json.loads(line)["embedding"]) for line in program("export", "db", "all", "-").stdout.splitlines()
    ] == [4, 4]
    program("import", "db", "none", "rows.csv", "--leave-out", "label")
    assert stored(program, "none")["metadatas"] == [None, None]
    program("query", "db", "docs", "rows.csv", code=2)
    found = program(
        "query", "db", "docs", "rows.csv", "--vector-columns", "v*", "-n", 1, "--json", "--audience", "owner"
    )
    assert answers(found)["ids"] == [["x"], ["y"]]
    for words, says in (
        (["--vector-columns", "w*"], "no column like 'w*'"),
        (["--vector-columns", "v*", "--leave-out", "w"], "no 'w' to leave out"),
        (["--vector-columns", "v*", "--id-column", "key"], "no 'key', which --id-column names"),
        (["--vector-columns", "v*", "--document-column", "text"], "no 'text', which --document-column names"),
    ):
        assert says in program("import", "db", "docs", "rows.csv", *words, code=2).stderr
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow.csv").read_csv(tmp_path / "rows.csv")
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert "--vector-columns" in program("import", "db", "p", "rows.parquet", code=2).stderr
    program("import", "db", "p", "rows.parquet", "--vector-columns", "v*")
    assert stored(program, "p") == stored(program, "docs")


def test_other_arrays_of_an_npz_are_metadata_or_asked_about(program: Program, tmp_path: Path) -> None:
    days = np.array(["2024-01-01", "NaT"], "datetime64[D]")
    np.savez(tmp_path / "a.npz", embeddings=np.eye(2), ids=["x", "y"], label=[3, 4], day=days)
    program("import", "db", "docs", "a.npz")
    assert stored(program, "docs")["metadatas"] == [
        {"label": 3, "day": "2024-01-01T00:00:00"}, {"label": 4, "day": None}
    ]  # fmt: skip
    np.savez(tmp_path / "b.npz", embeddings=np.eye(2), ids=["x", "y"], identity=np.eye(3))
    assert "b.npz:identity has shape (3, 3)" in program("import", "db", "b", "b.npz", code=2).stderr
    program("import", "db", "b", "b.npz", "--leave-out", "identity")
    np.savez(tmp_path / "c.npz", embeddings=np.eye(2), ids=days)
    assert "ids[0] must be a string" in program("import", "db", "c", "c.npz", code=2).stderr
    np.savez(tmp_path / "d.npz", embeddings=np.eye(2), documents=np.array([b"a", b"b"]))
    assert "documents[0] must be a string" in program("import", "db", "d", "d.npz", code=2).stderr


WORDS = ["0001", "1_0", "+5", " 7", "7 ", "٤", "-0", "1e3", "5.0", "0x10", "9223372036854775808", "１"]


def test_only_what_prints_back_the_same_is_a_number(program: Program, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.eye(len(WORDS)))
    for name, words in (
        ("texts", WORDS),
        ("mixed", ["1", *WORDS[1:]]),
        ("numbers", list(map(str, range(-6, 6)))),
    ):
        (tmp_path / "names.txt").write_text("\n".join(words), encoding="utf-8")
        program("create", "db", name, "--dim", len(WORDS), "--mode", "sealed-index")
        program("add", "db", name, "rows.npy", "--ids", "names.txt")
        assert stored(program, name)["ids"] == (words if name != "numbers" else list(range(-6, 6)))
        cells = "\n".join(
            f'"{word}","{json.dumps(row.tolist())}"' for word, row in zip(words, np.eye(12), strict=True)
        )
        (tmp_path / "rows.csv").write_text("id,embedding\n" + cells, encoding="utf-8")
        program("import", "db", f"{name}-csv", "rows.csv", "--mode", "sealed-index")
        assert stored(program, f"{name}-csv")["ids"] == stored(program, name)["ids"]
    (tmp_path / "names.txt").write_text("\n".join(WORDS), encoding="utf-8")
    program("create", "db", "bad", "--dim", len(WORDS))
    said = program("add", "db", "bad", "rows.npy", "--ids", "names.txt", "--id-type", "int", code=2).stderr
    assert "names.txt, id 1: '0001' is no whole number" in said


def test_a_word_deletes_the_row_of_that_name(program: Program, tmp_path: Path) -> None:
    others = [*WORDS, '"q"']
    numbers = [1, 10, 5, 7, 4, 0, 1000, 16]
    with PersistentClient(tmp_path / "db", Keys.load(tmp_path / "my.key")) as client:
        ids = [*others, *numbers, "5", "12"]
        client.create_collection("docs", len(ids), mode="sealed-index").add(ids, np.eye(len(ids)))
    program("delete", "db", "docs", "007", code=4)
    for word in others:
        said = program("get", "db", "docs", "--json", "--", f'"{word}"').stdout
        assert json.loads(said)["ids"] == [word]
        if word != '"q"':
            assert answers(program("get", "db", "docs", "--json", "--", word))["ids"] == [word]
            program("delete", "db", "docs", "--", word)
            program("get", "db", "docs", "--", word, code=4)
    left = stored(program, "docs")["ids"]
    assert left == ['"q"', *numbers, "5", "12"]
    # Of a number and its text each can be said.
    assert answers(program("get", "db", "docs", "5", "--json"))["ids"] == [5]
    assert answers(program("get", "db", "docs", "5", "--id-type", "int", "--json"))["ids"] == [5]
    for words in (["5", "--id-type", "str"], ['"5"'], ["12"], ['"q"', "--id-type", "str"]):
        (found,) = answers(program("get", "db", "docs", *words, "--json"))["ids"]
        assert found == ("5" if "5" in words[0] else words[0])
    program("get", "db", "docs", "12", "--id-type", "int", code=4)
    assert "is no whole number" in program("delete", "db", "docs", "007", "--id-type", "int", code=2).stderr
    assert "int or str" in program("get", "db", "docs", "5", "--id-type", "float", code=2).stderr
    shown = {line.split()[0] for line in program("get", "db", "docs").stdout.splitlines()}
    assert {'""q""', "5", '"5"', '"12"'} <= shown


@pytest.mark.parametrize("there", [["1", "2"], [1, 2], ["1", 2, "x"]])
def test_rows_are_replaced_and_none_is_doubled(program: Program, tmp_path: Path, there: list[Any]) -> None:
    vectors = np.eye(3)[: len(there)]
    lines = [{"id": name, "embedding": row.tolist()} for name, row in zip(there, vectors, strict=True)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "rows.csv").write_text("id,a,b,c\n1,1,0,1\n2,0,1,1\n")
    np.save(tmp_path / "rows.npy", np.eye(3)[:2])
    (tmp_path / "names.txt").write_text("1\n2\n")
    ways = (["add", "rows.csv"], ["import", "rows.csv"], ["add", "rows.npy", "--ids", "names.txt"])
    for i, (command, *rest) in enumerate(ways):
        program("import", "db", f"docs{i}", "rows.jsonl")
        program(command, "db", f"docs{i}", *rest, code=5)
        program(command, "db", f"docs{i}", *rest, "--upsert")
        assert sorted(stored(program, f"docs{i}")["ids"], key=repr) == sorted(there, key=repr)
        program(command, "db", f"docs{i}", *rest, "--upsert", "--id-type", "str")
        assert set(map(str, there)) | {"1", "2"} == {str(name) for name in stored(program, f"docs{i}")["ids"]}
        assert {"1", "2"} <= set(stored(program, f"docs{i}")["ids"])


BAD: list[tuple[str, bytes, str]] = [
    ("latin.csv", 'id,embedding,t\n1,"[1, 2]",a\n2,"[1, 2]",é\n'.encode("latin-1"), "line 3: byte 12 is not UTF-8"),
    ("latin.jsonl", '{"embedding": [1, 2]}\n{"embedding": [1, 2], "t": "é"}\n'.encode("latin-1"), "line 2: byte 29"),
    ("latin.txt", "a 1 2\né 1 2\n".encode("latin-1"), "line 2: byte 1"),
    ("wide.csv", 'id,embedding\n1,"[1, 2]"\n'.encode("utf-16"), "is UTF-16"),
    ("wide.jsonl", '{"embedding": [1, 2]}\n'.encode("utf-16"), "is UTF-16"),
    ("wide-le.txt", "a 1 2\n".encode("utf-16-le"), "is UTF-16"),
    ("open.csv", b'id,embedding\n1,"[1, 2]\n2,"[1, 2]"\n', "line 3"),
    ("short.csv", b'id,embedding,t\n1,"[1, 2]"\n', "line 2: there are fewer cells"),
    ("long.csv", b'id,embedding,t\n1,"[1, 2]","two\nlines"\n2,"[1, 2]",a,b\n', "line 4: there are more cells"),
    ("twice.csv", b'id,embedding,t,t\n1,"[1, 2]",a,b\n', "two columns 't'"),
    ("ragged.csv", b'id,embedding\n1,"[1, 2]"\n\n2,"[1]"\n', "line 4 has 1 numbers, and line 2 2"),
    ("texts.csv", b'id,embedding\n1,"[1, ""2""]"\n', "line 2: a vector is a list of numbers"),
    ("deep.jsonl", b'{"embedding": [[1, 2]]}\n', "line 1: a vector is a list of numbers"),
    ("score.csv", b"id,x1,x2\n1,1_0,2\n", "line 2: a number belongs in every column ('1_0'"),
    ("digits.csv", "id,x1,x2\n1,٤,2\n".encode(), "line 2: a number belongs in every column"),
    ("nan.csv", b"id,x1,x2\n1,nan,2\n", "line 2"),
    ("score.txt", b"one 1_0 2\n", "line 1: a word and 2 numbers"),
    ("some.jsonl", b'{"id": 1, "embedding": [1, 2]}\n{"embedding": [1, 2]}\n', "line 2: some rows have 'id'"),
    ("null.jsonl", b'{"id": 1, "embedding": [1, 2]}\n{"id": null, "embedding": [1, 2]}\n', "row 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "says"), BAD)
def test_what_is_no_such_file_is_refused_with_its_line(
    program: Program, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    said = " ".join(program("import", "db", "docs", name, code=2).stderr.split())
    assert name in said and says in said
    if "UTF" in says:
        assert "iconv" in said


def test_files_with_a_byte_order_mark_are_utf8(program: Program, tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    (tmp_path / "rows.csv").write_bytes(mark + 'id,embedding,t\n1,"[1, 0]",é\r\n'.encode())
    (tmp_path / "rows.jsonl").write_bytes(mark + b'{"id": 2, "embedding": [1, 0]}\r\n')
    (tmp_path / "rows.txt").write_bytes(mark + b"a 1 2\n")
    (tmp_path / "names.txt").write_bytes(mark + "0é\u2028x\r\n".encode())
    np.save(tmp_path / "rows.npy", np.eye(2)[0])
    for file in ("rows.csv", "rows.jsonl", "rows.txt"):
        program("import", "db", "docs", file, "--id-type", "str", "--mode", "sealed-index")
    program("add", "db", "docs", "rows.npy", "--ids", "names.txt")
    assert stored(program, "docs")["ids"] == ["1", "2", "a", "0é\u2028x"]
    assert stored(program, "docs")["metadatas"][0] == {"t": "é"}
    for content in ("é\n".encode("latin-1"), "a\n".encode("utf-16")):
        (tmp_path / "names.txt").write_bytes(content)
        assert "names.txt" in program("add", "db", "docs", "rows.npy", "--ids", "names.txt", code=2).stderr
    for option in ("--passphrase-file", "--token-file"):
        program("keygen", "marked.key", "--passphrase-file", "names.txt", code=2)
        assert (
            "UTF-16" in program("list", "http://127.0.0.1:1", "--token-file", "names.txt", code=2).stderr
        ), option


def test_texts_of_other_encodings_are_told(tmp_path: Path) -> None:
    for label in ("a", "b"):
        (tmp_path / label).mkdir()
    (tmp_path / "a" / "1.txt").write_bytes(b"\xef\xbb\xbf" + "né".encode())
    (tmp_path / "b" / "2.txt").write_bytes("né".encode("latin-1"))
    with pytest.warns(UserWarning, match=r"1 of 2 files are not UTF-8, .*2\.txt"):
        assert texts.read_labelled(tmp_path, "", "").texts == ["né", "n\ufffd"]
    with pytest.warns(UserWarning, match="1 of 1 files"):
        assert texts.read_texts(tmp_path / "b" / "2.txt", "") == ["n\ufffd"]


def test_a_passphrase_is_one_with_and_without_a_mark(program: Program, tmp_path: Path) -> None:
    words = "correct horse battery staple"
    (tmp_path / "marked.txt").write_bytes(b"\xef\xbb\xbf" + words.encode() + b"\r\n")
    program("keygen", "marked.key", "--passphrase-file", "marked.txt")
    program("create", "db", "a", "--dim", 2, "--keys", "marked.key", CIPHERVEC_PASSPHRASE=words)
    program("get", "db", "a", "--keys", "marked.key", "--passphrase-file", "marked.txt")


def test_cells_are_as_long_as_they_are(program: Program, tmp_path: Path) -> None:
    long = "x" * 300_000
    vector = [0.123456789 + i for i in range(12_000)]
    (tmp_path / "long.csv").write_text(
        f'id,embedding,document,note\n1,"{json.dumps(vector)}",{long},{long[1:]}\n'
    )
    program("import", "db", "docs", "long.csv", "--mode", "sealed-index")
    found = stored(program, "docs")
    assert found["documents"] == [long] and found["metadatas"] == [{"note": long[1:]}]


def test_a_vector_of_the_command_line_is_a_list_of_numbers(program: Program) -> None:
    program("create", "db", "docs", "--dim", 2)
    for vector in ('["1", 2]', "[null, 1]", "[1, 2", "3", "", "[" * 100_000, '{"a": 1}'):
        said = program("query", "db", "docs", "--vector", vector, code=2).stderr
        assert "--vector must be a JSON list of numbers" in " ".join(said.split())


def test_a_filter_says_a_field_once(program: Program, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,embedding,n\n1,[1],1\n2,[1],9\n")
    said = program("import", "db", "docs", "rows.csv").stdout
    assert "read as id int, n int; --types says otherwise" in said
    for where in ('{"n": {"$gte": 5}, "n": {"$lt": 20}}', '{"n": {"$gte": 5, "$gte": 0}}'):
        assert "twice" in program("delete", "db", "docs", "--where", where, code=2).stderr
    assert stored(program, "docs")["ids"] == [1, 2]


def test_values_by_a_file_are_those_by_the_api(program: Program, tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    import datetime
    import decimal

    fields: Mapping[str, Any] = {
        "day": datetime.date(2024, 1, 2),
        "at": datetime.datetime(2024, 1, 2, 3, 4, 5),
        "price": decimal.Decimal("2.5"),
        "tags": ["a", "b"],
        "nothing": None,
    }
    pq.write_table(pa.table({"id": ["x"], "embedding": [[1.0, 0.0]], **{n: [v] for n, v in fields.items()}}),
                   tmp_path / "a.parquet")  # fmt: skip
    program("import", "db", "docs", "a.parquet", "--mode", "sealed-index")
    with PersistentClient(tmp_path / "db", Keys.load(tmp_path / "my.key")) as client:
        docs = client.get_collection("docs")
        docs.add("y", np.eye(2)[1], fields)
        one, other = docs.get(["x", "y"])["metadatas"]
        assert one == other and docs.get(where={"day": fields["day"]})["ids"] == ["x", "y"]
    pq.write_table(pa.table({"embedding": [[1.0, 0.0]], "raw": [b"bytes"]}), tmp_path / "b.parquet")
    assert "metadatas[0] must hold JSON values" in program("import", "db", "b", "b.parquet", code=2).stderr


def test_writers_read_files_by_the_same_rules(program: Program, tmp_path: Path) -> None:
    program("create", "db", "docs", "--dim", 2, "--mode", "sealed-index")
    program("writer", "card", "db", "docs", "a.card")
    add: Callable[..., Any] = lambda *words, **more: program("writer", "add", "a.card", "db", *words, **more)  # noqa: E731
    (tmp_path / "rows.csv").write_text(",id,a,b\n0,007,1,0\n")
    assert "--leave-out" in add("rows.csv", code=2).stderr
    add("rows.csv", "--leave-out", "Unnamed: 0")
    (tmp_path / "rows.csv").write_text("id,a,b\n7,1,0\n")
    add("rows.csv")
    add("rows.csv", "--id-type", "str")
    assert sorted(map(repr, stored(program, "docs")["ids"])) == ["'007'", "'7'", "7"]
