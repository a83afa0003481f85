"""The examples of docs/integrations.md, run as they stand, each where its framework is installed; Chroma's beside a sidecar."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ciphervec

PAGE = Path(__file__).resolve().parents[3] / "docs" / "integrations.md"
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS = {
    "Chroma": "chromadb",
    "DeepFace": "deepface.modules.database.inventory",
    "Haystack": "haystack",
    "LangChain": "langchain_core",
    "LangGraph": "langgraph.store.base",
    "LlamaIndex": "llama_index.core",
    "MTEB": "numpy",
    "scikit-learn": "sklearn",
}

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the repository, not only the wheel")


def examples() -> dict[str, list[str]]:
    """The Python blocks of every section that has some."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    found = {name: BLOCK.findall(body) for name, body in SECTION.findall(text)}
    return {name: blocks for name, blocks in found.items() if blocks}


def test_every_framework_has_an_example() -> None:
    assert examples().keys() == NEEDS.keys()


@pytest.mark.parametrize("framework", NEEDS)
def test_example(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(NEEDS[framework], reason=f"needs {framework}: see make compat")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__example__"}
    beside = sidecar() if framework == "Chroma" else contextlib.nullcontext("8000")
    with beside as port:
        for number, code in enumerate(examples()[framework]):
            code = code.replace("port=8000", f"port={port}")
            exec(compile(code, f"docs/integrations.md, {framework}, example {number}", "exec"), names)


@contextlib.contextmanager
def sidecar() -> Iterator[str]:
    """The port of one that runs."""
    from chroma_api import running

    with running(ciphervec.Client()) as api:
        yield str(api.base_url.port)
