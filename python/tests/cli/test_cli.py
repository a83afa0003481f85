"""Command lines as a person types them: output, files and exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import errors
from ciphervec.cli import readers
from ciphervec.cli.terminal import ExitCode, exit_code, screen
from program import Program

ROWS, DIMENSION = 40, 24
OWN_JSON = ("--json", "--audience", "owner")  # what mode sealed asks for


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run `ciphervec` in an empty folder."""
    return Program(tmp_path, CIPHERVEC_PASSPHRASE="pass")


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    return np.random.default_rng(11).standard_normal((ROWS, DIMENSION)).astype(np.float32)


@pytest.fixture(scope="session")
def made_shelf(tmp_path_factory: pytest.TempPathFactory, rows: np.ndarray) -> Path:
    """A key without a passphrase and a filled collection, made by the program itself."""
    folder = tmp_path_factory.mktemp("shelf")
    program = Program(folder)
    np.save(folder / "rows.npy", rows)
    program("keygen", "my.key", "--no-passphrase")
    program("create", "db", "items", "--dim", DIMENSION, "--keys", "my.key")
    program("add", "db", "items", "rows.npy", "--keys", "my.key")
    return folder


@pytest.fixture
def shelf(made_shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it that a test may change: three runs of the program fewer. What one test commits
    must not make the copy of the next a rollback, so each has a state folder of its own."""
    shutil.copytree(made_shelf, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    return tmp_path


def answers(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_from_key_to_hit(program: Program, shelf: Path, rows: np.ndarray) -> None:
    np.save(shelf / "probe.npy", rows[7])
    asked = ("query", "db", "items", "probe.npy", "-n", "3", "--keys", "my.key")
    text = program(*asked, process=True).stdout  # as a person starts it
    assert "query 1 of 1" in text
    lines = [line.split() for line in text.splitlines()]
    assert lines[1][:2] == ["1", "7"]
    assert abs(float(lines[1][2])) < 2e-4
    found = answers(program(*asked, *OWN_JSON))
    exact = rows.astype(float) @ rows[7] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[7])
    assert found["ids"] == [np.argsort(-exact)[:3].tolist()]
    np.testing.assert_allclose(found["scores"][0], np.sort(exact)[::-1][:3], atol=2e-4)


def test_a_terminal_shows_some_of_many_rows(
    program: Program, shelf: Path, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("get", "db", "items", "--keys", "my.key")
    assert len(program(*asked).stdout.splitlines()) == len(rows), "into a pipe goes everything"
    monkeypatch.setattr(screen, "_force_terminal", True)
    monkeypatch.setattr("ciphervec.cli.rows._SHOWN", 30)
    shown = program(*asked).stdout.splitlines()
    assert len(shown) == 31 and "--offset 30 goes on" in shown[-1]
    assert len(program(*asked, "--limit", 35).stdout.splitlines()) == 35


def test_a_key_file_is_protected_and_never_overwritten(program: Program, tmp_path: Path) -> None:
    made = answers(program("keygen", "a.key", "--json"))
    assert made["protected"] is True
    assert (tmp_path / "a.key").stat().st_mode & 0o077 == 0
    before = (tmp_path / "a.key").read_bytes()
    failed = program("keygen", "a.key", code=5)
    assert "never overwritten" in failed.stderr
    assert (tmp_path / "a.key").read_bytes() == before
    program("create", "db", "items", "--dim", 4, "--keys", "a.key")
    wrong = program(
        "create", "db", "more", "--dim", 4, "--keys", "a.key", code=3, CIPHERVEC_PASSPHRASE="other"
    )
    assert "error:" in wrong.stderr
    (tmp_path / "word").write_text("pass\n")
    program(
        "create",
        "db",
        "more",
        "--dim",
        4,
        "--keys",
        "a.key",
        "--passphrase-file",
        "word",
        CIPHERVEC_PASSPHRASE="x",
    )


def test_without_a_keyboard_the_passphrase_is_not_waited_for(program: Program, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ciphervec", "keygen", "k"],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("CIPHERVEC_")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "CIPHERVEC_PASSPHRASE" in done.stderr
    assert not (tmp_path / "k").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["query", "db", "nothing", "rows.npy", "--keys", "my.key"], 4, "no collection 'nothing'"),
        (["query", "db", "items", "absent.npy", "--keys", "my.key"], 4, "there is no file absent.npy"),
        (["query", "db", "items", "rows.npy", "--keys", "absent.key"], 4, "ciphervec keygen absent.key"),
        (["query", "db", "items", "--keys", "my.key"], 2, "--vector"),
        (["query", "db", "items", "--vector", "[1, 2]", "--keys", "my.key", "--audience", "owner"], 2, "24"),
        (["query", "db", "items", "--vector", "not json", "--keys", "my.key"], 2, "JSON list"),
        (["query", "db", "items", "rows.npy", "--where", "[]", "--keys", "my.key"], 2, "JSON object"),
        (["query", "db", "items", "rows.npy"], 2, "key"),
        (["create", "db", "items", "--dim", "8", "--keys", "my.key"], 5, "items"),
        (["create", "db", "other", "--dim", "0", "--keys", "my.key"], 2, "dimension"),
        (["create", "db", "other", "--dim", "8", "--mode", "secret", "--keys", "my.key"], 2, "sealed-index"),
        (["add", "db", "items", "my.key", "--keys", "my.key"], 2, ".parquet"),
        (["add", "db", "items", "rows.npy", "--ids", "ids.txt", "--keys", "my.key"], 5, "already"),
        (["info", "nowhere"], 4, "no folder nowhere"),
        (["verify", "db", "nothing"], 4, "items"),
    ],
)
def test_errors_say_the_next_step(
    program: Program, shelf: Path, arguments: list[str], code: int, says: str
) -> None:
    (shelf / "ids.txt").write_text("\n".join(map(str, range(ROWS))))
    failed = program(*arguments, code=code)
    assert says in failed.stderr
    assert failed.stdout == ""
    if arguments[0] not in ("create",) or code != 2:
        content = answers(program(*arguments, "--json", code=code))["error"]
        assert content["exit_code"] == code
        assert says in content["message"]


def test_a_wrong_key_is_named_before_any_work(program: Program, shelf: Path) -> None:
    program("keygen", "other.key", "--no-passphrase")
    failed = program("query", "db", "items", "rows.npy", "--keys", "other.key", code=3)
    assert ciphervec.Keys.load(shelf / "my.key").key_id in failed.stderr


def test_ids_are_numbered_on_and_files_can_name_them(program: Program, shelf: Path, rows: np.ndarray) -> None:
    np.save(shelf / "two.npy", rows[:2] + 1)
    assert (
        answers(program("add", "db", "items", "two.npy", "--append", "--keys", "my.key", "--json"))["count"]
        == ROWS + 2
    )
    (shelf / "names.txt").write_text("left\nright\n")
    program("add", "db", "items", "two.npy", "--ids", "names.txt", "--keys", "my.key")
    (shelf / "short.txt").write_text("left\n")
    short = program("add", "db", "items", "two.npy", "--ids", "short.txt", "--keys", "my.key", code=2)
    assert "1 ids for 2 vectors" in short.stderr
    program("add", "db", "items", "two.npy", "--ids", "names.txt", "--upsert", "--keys", "my.key")
    found = answers(program("query", "db", "items", "two.npy", "-n", "2", "--keys", "my.key", *OWN_JSON))
    assert {str(name) for name in found["ids"][0]} == {"left", str(ROWS)}


def test_info_and_verify_need_no_key(program: Program, shelf: Path) -> None:
    [listed] = answers(program("info", "db", "--json"))
    one = answers(program("info", "db", "items", "--json"))
    assert listed == one
    assert (one["rows"], one["dimension"], one["mode"], one["metric"]) == (
        ROWS,
        DIMENSION,
        "sealed",
        "cosine",
    )
    assert one["key_id"] == ciphervec.Keys.load(shelf / "my.key").key_id
    assert f"{ROWS} × {DIMENSION}" in program("info", "db").stdout
    assert "sealed" in program("info", "db", "items").stdout
    assert "sound" in program("verify", "db").stdout
    assert answers(program("verify", "db", "--json"))[0]["sound"] is True


def test_verify_finds_one_flipped_byte_anywhere(program: Program, shelf: Path) -> None:
    files = [path for path in (shelf / "db" / "items" / "blobs").iterdir() if path.is_file()]
    assert files
    for path in files:
        sound = path.read_bytes()
        middle = len(sound) // 2
        path.chmod(0o600)
        path.write_bytes(sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :])
        failed = program("verify", "db", "--json", code=6)
        [report] = answers(failed)
        assert report["sound"] is False
        [problem] = report["problems"]
        assert path.name in problem
        assert path.name in "".join(program("verify", "db", code=6).stdout.split())
        path.write_bytes(sound)
    program("verify", "db")


def test_columns_become_ids_documents_and_metadata(
    program: Program, tmp_path: Path, rows: np.ndarray
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(
        {
            "id": [f"row {i}" for i in range(ROWS)],
            "vector": rows.tolist(),
            "document": [f"text {i}" for i in range(ROWS)],
            "lang": ["en" if i % 2 else "de" for i in range(ROWS)],
        }
    )
    parquet.write_table(table, tmp_path / "rows.parquet")
    program("keygen", "my.key", "--no-passphrase")
    program("create", "db", "docs", "--dim", DIMENSION, "--filterable", "lang", "--keys", "my.key")
    failed = program("add", "db", "docs", "rows.parquet", "--keys", "my.key", code=2)
    assert "--embedding-column" in failed.stderr
    program("add", "db", "docs", "rows.parquet", "--embedding-column", "vector", "--keys", "my.key")
    np.save(tmp_path / "probe.npy", rows[4])
    question = ["query", "db", "docs", "probe.npy", "--keys", "my.key", *OWN_JSON]
    found = answers(program(*question))
    assert found["ids"][0][0] == "row 4"
    assert found["documents"][0][0] == "text 4"
    assert found["metadatas"][0][0] == {"lang": "de"}
    english = answers(program(*question, "--where", '{"lang": "en"}', "-n", "50"))
    assert sorted(english["ids"][0]) == sorted(f"row {i}" for i in range(1, ROWS, 2))


def test_every_format_gives_the_same_vectors(tmp_path: Path, rows: np.ndarray) -> None:
    columns = readers.Columns()
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "a.npz", embeddings=rows, ids=np.arange(ROWS), documents=np.array(["t"] * ROWS))
    text = "\n".join(
        ["id,embedding,lang", *(f'{i},"{json.dumps(row.tolist())}",en' for i, row in enumerate(rows))]
    )
    (tmp_path / "a.csv").write_text(text)
    header = ",".join(["id", *(f"x{i}" for i in range(DIMENSION))])
    lines = [",".join([str(i), *map(repr, row.tolist())]) for i, row in enumerate(rows)]
    (tmp_path / "b.csv").write_text("\n".join([header, *lines]))
    for name in ("a.npy", "a.npz", "a.csv", "b.csv"):
        table = readers.read(tmp_path / name, columns)
        np.testing.assert_array_equal(np.asarray(table.embeddings), rows)
        assert len(table) == ROWS
    assert readers.read(tmp_path / "a.npz", columns).ids == list(range(ROWS))
    assert readers.read(tmp_path / "a.csv", columns).metadatas == [{"lang": "en"}] * ROWS


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.npy", b"not numpy", "not a NumPy file"),
        ("a.npz", b"PK not a zip", "not a NumPy file"),
        ("a.csv", b"id,x\n1,one\n", "line 2"),
        ("a.csv", b'id,embedding\n1,"[1, 2]"\n2,"[1]"\n', "differ in length"),
        ("a.parquet", b"PAR1", "not a Parquet file"),
        ("a.txt", b"one 1 2\ntwo 1\n", "line 2"),
        ("a.doc", b"", "known endings"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ciphervec.InvalidInput, match=says) as caught:
        readers.read(path, readers.Columns())
    assert name in str(caught.value)


def test_pickled_arrays_are_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.write_text, (tmp_path / "sprung", "x"))

    np.save(tmp_path / "a.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(ciphervec.InvalidInput):
        readers.read(tmp_path / "a.npy", readers.Columns())
    assert not (tmp_path / "sprung").exists()


def test_a_locked_folder_has_a_code_of_its_own(program: Program, shelf: Path) -> None:
    keys = ciphervec.Keys.load(shelf / "my.key")
    np.save(shelf / "more.npy", np.ones((1, DIMENSION), np.float32))
    with ciphervec.PersistentClient(shelf / "db", keys) as client:
        client._alone = True  # as one of another process is
        client.get_collection("items")
        program("add", "db", "items", "more.npy", "--keys", "my.key", code=7)
        # Reading goes on beside a writer.
        program("query", "db", "items", "more.npy", "--keys", "my.key")


def test_a_pair_of_keys_and_its_noise(program: Program, tmp_path: Path) -> None:
    made = answers(
        program(
            "keygen", "pair.key", "--scheme", "paillier", "--bits", 2048, "--public", "pair.pub", "--json"
        )
    )
    assert (made["scheme"], made["bits"], made["protected"]) == ("paillier", 2048, True)
    public = ciphervec.paillier.PublicKey.from_bytes((tmp_path / "pair.pub").read_bytes())
    assert public.key_id == made["key_id"]

    first = answers(program("precompute", "noise.pool", "--keys", "pair.key", "-n", 5, "--json"))
    assert (first["found"], first["elements"]) == (0, 5)
    text = program("precompute", "noise.pool", "--keys", "pair.key", "-n", 3).stdout
    assert "8 elements" in text

    pair = ciphervec.paillier.load(tmp_path / "pair.key", "pass")
    pool = ciphervec.paillier.NoisePool.claim(tmp_path / "noise.pool", pair)
    assert len(pool) == 8 and pair.decrypt(pool.encrypt(-3)) == -3

    other = program("keygen", "b.key", "--scheme", "elgamal", "--no-passphrase").stdout
    assert "126-bit security" in other and "elgamal.load" in other
    assert "elgamal" in program("precompute", "p", "--keys", "b.key", code=2).stderr
    assert "ciphervec keygen" in program("precompute", "p", "--keys", "none.key", code=4).stderr
    program("precompute", "p", "--keys", "pair.key", code=3, CIPHERVEC_PASSPHRASE="wrong")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--bits", "2048"), "one length"),
        (("--scheme", "elgamal", "--bits", "2048"), "one length"),
        (("--scheme", "paillier", "--s", "2"), "damgard-jurik"),
        (("--scheme", "paillier", "--bits", "1024"), "2048"),
        (("--public", "x.pub"), "key pairs"),
    ],
)
def test_keys_that_do_not_exist_are_refused(program: Program, arguments: tuple[str, ...], says: str) -> None:
    assert says in program("keygen", "a.key", *arguments, code=2).stderr


def test_every_error_class_has_a_code() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert exit_code(kind("x")) not in (ExitCode.DONE, ExitCode.FAILED), name


def test_help_teaches_by_example(program: Program) -> None:
    top = program("--help").stdout
    for command in ("keygen", "create", "add", "query", "info", "verify", "precompute", "demo", "bench"):
        assert command in top
        arguments = (command, "search") if command == "bench" else (command,)
        page = program(*arguments, "--help").stdout
        assert f"ciphervec {' '.join(arguments)}" in page
        assert "Examples" in page
    for code in ExitCode:
        assert code.says in " ".join(top.split())
    assert ciphervec.__version__ in program("--version").stdout


@pytest.mark.parametrize(
    "words",
    [
        "bench",
        "bench --help",
        "bench search --rows 100",
        "bench faults kill",
        "reproduce",
        "reproduce marble",
    ],
)
def test_what_measures_says_where_it_is_to_be_had(words: str, tmp_path: Path) -> None:
    """One sentence, whatever was asked for, where the lab is not installed."""
    script = """
import sys
class Hidden:
    def find_spec(self, name, *_):
        if name == "ciphervec_lab":
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Hidden())
sys.argv[0] = "ciphervec"
from ciphervec.cli import main
main()
"""
    command = [sys.executable, "-c", script, *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert done.stderr == (
        f"error: `ciphervec {words.split()[0]}` needs ciphervec-lab, which is not installed; in a clone of "
        "ciphervec's repository: pip install ./lab\n"
    )


def test_a_build_without_the_server_says_how_to_get_it(tmp_path: Path) -> None:
    script = (
        "import sys, ciphervec._native as native; del native.run_server; from ciphervec.cli import main; "
        "sys.argv[0] = 'ciphervec'; main()"
    )
    for command in ("serve", "token"):
        done = subprocess.run(
            [sys.executable, "-c", script, command], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode not in (ExitCode.DONE, ExitCode.FAILED)
        assert "Traceback" not in done.stderr
        said = " ".join(done.stderr.split())
        assert f"`ciphervec {command}` needs the server" in said
        assert "`make wheel`" in said
