"""Tables as people have them, on the command line: what is read as what, and what is refused: nothing wrong or empty
without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import InvalidInput
from ciphervec.cli import column_types, readers
from program import Program

LINES = [
    "id,embedding,year,price,in_print,zip,note",
    '7,"[1, 0, 0]",2008,1.5,true,01234,',
    '8,"[0, 1, 0]",2012,2,False,99999,',
    '9,"[0, 0, 1]",,3.25,TRUE,00001,late',
]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    made("keygen", "my.key", "--no-passphrase")
    made("create", "db", "books", "--dim", 3, "--mode", "sealed-index")
    (tmp_path / "books.csv").write_text("\n".join(LINES))
    return made


def answers(done: Any) -> Any:
    return json.loads(done.stdout)


def test_columns_are_read_as_what_their_cells_are(program: Program, tmp_path: Path) -> None:
    said = program("add", "db", "books", "books.csv").stdout
    assert "read as id int, year int, price float, in_print bool, zip str, note str" in said
    ask = ("query", "db", "books", "--vector", "[1, 1, 1]", "--json", "--where")
    found = answers(program(*ask, '{"year": {"$gte": 2010}}'))
    assert found["ids"] == [[8]]
    assert found["metadatas"] == [
        [{"year": 2012, "price": 2.0, "in_print": False, "zip": "99999", "note": ""}]
    ]
    assert answers(program(*ask, '{"year": {"$exists": false}}'))["ids"] == [[9]]
    assert answers(program(*ask, '{"zip": "01234", "in_print": true}'))["ids"] == [[7]]
    again = program("add", "db", "books", "books.csv", code=5)
    assert "id 7 is already" in again.stderr


def test_types_can_be_named(program: Program, tmp_path: Path) -> None:
    done = answers(
        program(
            "add", "db", "books", "books.csv", "--types", "id=str,year=float", "--types", "zip=int", "--json"
        )
    )
    assert done["types"]["id"] == "str" and done["types"]["zip"] == "int"
    found = answers(program("query", "db", "books", "--vector", "[1, 0, 0]", "-n", "1", "--json"))
    assert found["ids"] == [["7"]]
    assert found["metadatas"][0][0]["zip"] == 1234
    (tmp_path / "more.csv").write_text('id,embedding\n17,"[1, 2, 3]"')
    done = answers(program("add", "db", "books", "more.csv", "--json"))
    assert done["types"] == {"id": "str"}, "as the ids there are"
    for given, says in (
        ("price=int", "line 2: column 'price' holds '1.5', which is no int"),
        ("prize=int", "has the columns id, year"),
        ("price", "takes COLUMN=TYPE"),
        ("price=number", "takes COLUMN=TYPE"),
    ):
        assert says in program("add", "db", "books", "books.csv", "--types", given, code=2).stderr


@pytest.mark.parametrize(
    ("cells", "of"),
    [
        (["1", "-2", "0"], "int"),
        (["1", "", None], "int"),
        (["007", "8"], "str"),
        (["1234567890123456789"], "str"),
        (["1.5", "2"], "float"),
        (["1.50e-3"], "float"),
        (["1e5"], "str"),
        (["nan"], "str"),
        (["+1"], "str"),
        ([" 1"], "str"),
        (["true", "FALSE"], "bool"),
        (["yes"], "str"),
        (["", None], "str"),
        ([], "str"),
    ],
)
def test_what_cells_are_taken_for(cells: list[str | None], of: str) -> None:
    assert column_types.inferred(cells) == of


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('id,embedding\n1,"[1]",3\n', "line 2: there are more cells"),
        ('id,embedding\n1,"[1]"\n,"[2]"\n', "line 3: the row has no id"),
    ],
)
def test_bad_tables_are_refused_by_line(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(InvalidInput, match=says):
        readers.read(tmp_path / "a.csv", readers.Columns())


def test_rows_without_ids_are_not_added_twice_unawares(program: Program, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.eye(3))
    program("add", "db", "books", "rows.npy")
    refused = program("add", "db", "books", "rows.npy", code=2).stderr
    assert "has 3 rows already" in refused and "--append" in refused and "--upsert" in refused
    assert answers(program("add", "db", "books", "rows.npy", "--upsert", "--json"))["count"] == 3
    assert answers(program("add", "db", "books", "rows.npy", "--append", "--json"))["count"] == 6
    found = answers(program("query", "db", "books", "--vector", "[1, 0, 0]", "-n", "2", "--json"))
    assert sorted(found["ids"][0]) == [0, 3]


def test_a_number_and_a_text_of_its_digits_look_different(program: Program, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        '{"id": 5, "embedding": [1, 0, 0]}\n\n{"id": "5", "embedding": [1, 0.1, 0]}\n{"id": "5b", "embedding": [1, 1, 0]}\n'
    )
    program("add", "db", "books", "rows.jsonl")
    lines = program("query", "db", "books", "--vector", "[1, 0, 0]").stdout.splitlines()
    assert [line.split()[1] for line in lines[1:4]] == ["5", '"5"', "5b"]
