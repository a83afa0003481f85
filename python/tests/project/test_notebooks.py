"""The notebooks run, from nothing, and print what is stored in them: the site shows that."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "notebooks"
BOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {"2_rag": "onnxruntime"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BOOKS, reason="needs the repository, not only the wheel"),
]


def printed(book: object) -> list[list[str]]:
    """By cell of code, what it printed and returned."""
    return [
        [
            output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
            for output in cell["outputs"]
        ]
        for cell in book["cells"]  # type: ignore[index]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", BOOKS, ids=[path.stem for path in BOOKS])
def test_a_notebook_prints_what_is_stored_in_it(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient")
    nbclient = pytest.importorskip("nbclient")
    if path.stem in NEEDS:
        pytest.importorskip(
            NEEDS[path.stem], reason="needs the default model: pip install 'ciphervec[texts]'"
        )
    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert path.stat().st_size < 20_000, "outputs are kept, as long as they are small"
    book = nbformat.from_dict(stored)
    client = nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    before = printed(stored)
    client.execute()
    assert printed(book) == before


def test_there_is_a_notebook_for_each_task() -> None:
    assert [path.stem for path in BOOKS] == [
        "1_first_search",
        "2_rag",
        "3_faces",
        "4_programs",
        "5_private_lookup",
    ]
