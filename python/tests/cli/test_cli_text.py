"""Command lines of `codebook` and `text` as a person types them: output, files and exit codes."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ciphervec import Codebook, InvalidInput
from ciphervec.cli import readers, texts
from ciphervec.cli.terminal import ExitCode
from ciphervec.text import Classifier
from program import Program

WORDS = {"sea": "wave salt ship harbour tide gull", "hill": "stone peak goat path snow ridge"}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Run `ciphervec` in an empty folder; by default it must end with 0."""

    return Program(tmp_path)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A CSV of 80 short texts, two columns of text and one of labels, with quotes and line breaks
    inside."""
    random = np.random.default_rng(5)
    path = tmp_path / "texts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "body", "where"])
        for number in range(80):
            where = "sea" if number % 2 else "hill"
            words = random.choice(WORDS[where].split(), 12)
            writer.writerow([words[0], '"quoted", ' + "\n".join(words[1:]), where])
    return path


def test_a_codebook_from_glove_text(program: Program, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).standard_normal((60, 6)).astype(np.float32)
    lines = [f"word{i} " + " ".join(map(repr, row.tolist())) for i, row in enumerate(rows)]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    options = ("--rows", 8, "--tables", 2)
    said = program(
        "codebook", "train", "glove.txt", "book.npz", *options, "--compare", "product,gumbel", "--epochs", 3,
        "--report", "report.md", "--plot", "plot.png",
    )  # fmt: skip
    assert "60 rows of 6 as 2 tables of 8" in said.stdout
    lines = (tmp_path / "report.md").read_text().splitlines()
    assert [line.split("|")[1].strip() for line in lines[4:]] == ["residual", "product", "gumbel"]
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    book = Codebook.load(tmp_path / "book.npz")
    assert f"{book.error(rows).relative:.4f}" in lines[4]

    shown = json.loads(program("codebook", "show", "book.npz", "--embeddings", "glove.txt", "--json").stdout)
    assert (shown["rows"], shown["dim"], shown["tables"], shown["table_rows"]) == (60, 6, 2, 8)
    assert shown["relative"] == pytest.approx(book.error(rows).relative)
    assert "2 tables of 8" in program("codebook", "show", "book.npz").stdout
    record = json.loads(program("codebook", "train", "glove.txt", "b.npz", *options, "--json").stdout)
    assert [one["method"] for one in record["methods"]] == ["residual"]


def test_codebook_commands_refuse_with_a_code(program: Program, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((20, 3), np.float32))
    (tmp_path / "bad.npz").write_bytes(b"no")
    small = ("--rows", 4)
    assert "residual" in program("codebook", "train", "rows.npy", "o.npz", "--method", "best", code=2).stderr
    assert "at most 20" in program("codebook", "train", "rows.npy", "o.npz", code=2).stderr
    program("codebook", "train", "missing.npy", "o.npz", code=int(ExitCode.MISSING))
    program("codebook", "show", "missing.npz", code=int(ExitCode.MISSING))
    program("codebook", "show", "bad.npz", code=int(ExitCode.CORRUPT))
    program("codebook", "train", "rows.npy", "no/folder/o.npz", *small, code=int(ExitCode.STORAGE))
    assert not (tmp_path / "o.npz").exists()


def test_a_classifier_from_a_table(program: Program, table: Path, tmp_path: Path) -> None:
    columns = ("--text-column", "title,body", "--label-column", "where")
    small = ("--rows", 8, "--tables", 2, "--dim", 6, "--test", 0.25)
    said = program("text", "train", table, "model.npz", *columns, *small, "--epochs", 12).stdout
    assert "60 texts, 14 tokens" in said
    assert "2 codes a token" in said
    assert "0 texts were cut at 128 tokens, 0 are empty" in said
    model = Classifier.load(tmp_path / "model.npz")
    assert model.classes == ("hill", "sea")
    assert model.predict(["waves, a ship and salt", "a goat on the ridge"]) == ["sea", "hill"]

    found = json.loads(program("text", "evaluate", "model.npz", table, *columns, "--json").stdout)
    assert found["documents"] == 80
    assert found["accuracy"] == np.trace(found["confusion"]) / 80 > 0.9
    told = program("text", "evaluate", "model.npz", table, *columns).stdout
    assert f"{found['accuracy']:.4f}" in told
    trained = json.loads(
        program(
            "text", "train", table, "m.npz", *columns, *small, "--epochs", 1, "--ngrams", 2, "--json"
        ).stdout
    )
    assert [one["documents"] for one in trained["results"]] == [20, 20]


def test_a_classifier_from_folders(program: Program, tmp_path: Path) -> None:
    for where, words in WORDS.items():
        (tmp_path / "data" / where).mkdir(parents=True)
        for number in range(6):
            (tmp_path / "data" / where / f"{number}.txt").write_text(words)
    program("text", "train", "data", "model.npz", "--rows", 4, "--tables", 1, "--test", 0, "--epochs", 8)
    found = json.loads(program("text", "evaluate", "model.npz", "data", "--json").stdout)
    assert (found["documents"], found["accuracy"]) == (12, 1.0)


def test_text_commands_refuse_with_a_code(program: Program, table: Path, tmp_path: Path) -> None:
    missing = program("text", "train", table, "m.npz", code=2).stderr
    assert "title, body, where" in missing
    assert "--text-column" in missing
    columns = ("--text-column", "body", "--label-column", "where")
    program("text", "train", "none.csv", "m.npz", *columns, code=int(ExitCode.MISSING))
    program("text", "evaluate", "none.npz", table, *columns, code=int(ExitCode.MISSING))
    program("text", "evaluate", table, table, *columns, code=int(ExitCode.CORRUPT))
    assert "--test" in program("text", "train", table, "m.npz", *columns, "--test", 1, code=2).stderr
    one = ("--text-column", "body", "--label-column", "title")
    assert "ngrams" in program("text", "train", table, "m.npz", *one, "--ngrams", 3, code=2).stderr
    (tmp_path / "empty").mkdir()
    assert "a folder for each class" in program("text", "train", "empty", "m.npz", code=2).stderr


def test_texts_are_classified_encrypted(program: Program, table: Path, tmp_path: Path) -> None:
    columns = ("--text-column", "title,body", "--label-column", "where")
    sizes = ("--rows", 4, "--tables", 2, "--dim", 6, "--epochs", 2)
    program("text", "train", table, "m.npz", *columns, *sizes, "--min-count", 1)
    said = program("text", "classify", "m.npz", table, *columns).stdout
    assert "80 texts" in said and "80 of 80 labels are those of the plain classifier, 80 are right" in said
    (tmp_path / "lines.txt").write_text("ship and wave\n\nsnow on the peak\n")
    for strategy in ("histogram", "ive_digits"):
        done = program("text", "classify", "m.npz", "lines.txt", "--strategy", strategy, "--json")
        record = json.loads(done.stdout)
        assert record["labels"] == ["sea", "hill"] and record["same_as_plain"] == record["documents"] == 2
        assert record["right"] is None and record["query_bytes"] > 2 * 2 * 4 * 5
        assert record["margins"][0] > record["error_bound"] > 0 > record["margins"][1]


def test_a_line_at_a_time_is_served(table: Path, tmp_path: Path, program: Program) -> None:
    columns = ("--text-column", "title,body", "--label-column", "where", "--min-count", 1)
    program("text", "train", table, "m.npz", *columns, "--rows", 4, "--tables", 1, "--dim", 6, "--epochs", 2)
    done = subprocess.run(
        [sys.executable, "-m", "ciphervec", "text", "serve-local", "m.npz"],
        input="harbour and tide\ngoat path\n\nnever read\n",
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if "  +" in line or "  -" in line] == ["sea", "hill"]
    assert done.stdout.count("the server took") == 2


def test_words_and_numbers_are_read_as_glove_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\nthe 1 2.5\n. . -1 3e-2\ncaf\u00e9 0 1 \n", encoding="utf-8")
    found = readers.read(path, readers.Columns())
    assert found.ids == ["the", ". .", "caf\u00e9"]
    np.testing.assert_allclose(found.embeddings, [[1, 2.5], [-1, 0.03], [0, 1]])


@pytest.mark.parametrize(("content", "line"), [("a 1 2\nb 1\n", 2), ("a 1 2\nb 1 x\n", 2), ("a\n", 1)])
def test_a_short_or_wrong_line_of_words_is_named(tmp_path: Path, content: str, line: int) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(content)
    with pytest.raises(InvalidInput, match=f"line {line}: a word and"):
        readers.read(path, readers.Columns())


def test_compressed_tables_of_text_are_read(table: Path) -> None:
    want = texts.read_labelled(table, "body", "where")
    packed = table.with_suffix(".csv.gz")
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert texts.read_labelled(packed, "body", "where") == want
    packed.write_bytes(b"not gzip")
    with pytest.raises(InvalidInput, match=r"unpacked as \.gz"):
        texts.read_labelled(packed, "body", "where")
    pyarrow = pytest.importorskip("pyarrow")
    packed = table.with_suffix(".csv.zst")
    with pyarrow.output_stream(str(packed), compression="zstd") as stream:
        stream.write(table.read_bytes())
    assert texts.read_labelled(packed, "body", "where") == want
    packed.write_bytes(b"not zstd")
    with pytest.raises(InvalidInput, match=r"unpacked as \.zst"):
        texts.read_labelled(packed, "body", "where")


def test_a_record_that_is_too_short_is_named(tmp_path: Path) -> None:
    path = tmp_path / "short.csv"
    path.write_text("text,label\na,1\nb\n")
    with pytest.raises(InvalidInput, match="record 2 has fewer"):
        texts.read_labelled(path, "text", "label")
    path.write_bytes(b"text,label\n\xff,1\n")
    with pytest.raises(InvalidInput, match="UTF-8"):
        texts.read_labelled(path, "text", "label")
    path.write_text("text,label\n")
    with pytest.raises(InvalidInput, match="holds no texts"):
        texts.read_labelled(path, "text", "label")
