"""Adapters without their frameworks: nothing imports them unasked, and the error names the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ciphervec
from ciphervec.adapters.support import nearest, one_each

PACKAGE = Path(ciphervec.__file__).parent
EXTRAS = {
    "deepface": ("deepface", "deepface"),
    "haystack": ("haystack", "haystack"),
    "langchain": ("langchain_core", "langchain"),
    "langgraph": ("langgraph", "langgraph"),
    "llama_index": ("llama_index", "llama-index"),
    "sklearn": ("sklearn", "sklearn"),
}
PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


def test_every_adapter_is_listed() -> None:
    apart = {"__init__", "support", "mteb"}  # the last is a protocol, and needs nothing
    files = {path.stem for path in (PACKAGE / "adapters").glob("*.py")} - apart
    assert files == EXTRAS.keys()


@pytest.mark.skipif(not PYPROJECT.exists(), reason="needs the repository, not only the wheel")
def test_every_extra_can_be_installed() -> None:
    text = PYPROJECT.read_text(encoding="utf-8")
    for _, extra in EXTRAS.values():
        assert f"\n{extra} = [" in text


@pytest.mark.parametrize("adapter", EXTRAS)
def test_a_missing_framework_is_named_with_its_extra(adapter: str) -> None:
    framework, extra = EXTRAS[adapter]
    code = f"""
import sys
sys.modules[{framework!r}] = None
import ciphervec.adapters
assert {framework!r} not in sys.modules or sys.modules[{framework!r}] is None
try:
    import ciphervec.adapters.{adapter}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"ciphervec.adapters.{adapter} needs" in done.stdout
    assert f"pip install 'ciphervec[{extra}]'" in done.stdout


@pytest.mark.parametrize("count", [0, 2, 4])
def test_an_embedder_that_returns_another_number_of_vectors_is_refused(count: int) -> None:
    with pytest.raises(ciphervec.InvalidInput, match=f"each of the 3 texts .* returned {count}"):
        one_each([[1.0]] * count, ["a", "b", "c"])
    assert one_each([[1.0]] * 3, ["a", "b", "c"]) == [[1.0]] * 3


def test_a_question_is_one_vector() -> None:
    docs = ciphervec.Client().create_collection("docs", 2, mode="sealed-index")
    docs.add([0, 1], [[1, 0], [0, 1]])
    assert nearest(docs, [1, 0], 1)[0].id == "0"
    for several in ([[1, 0], [0, 1]], []):
        with pytest.raises(ciphervec.InvalidInput, match=f"one vector .* got {len(several)}"):
            nearest(docs, several, 1)


def test_nothing_imports_a_framework_unasked() -> None:
    frameworks = {framework for framework, _ in EXTRAS.values()}
    code = f"""
import sys, ciphervec, ciphervec.adapters
for name in ciphervec.__all__:
    getattr(ciphervec, name)
print(*sorted({frameworks!r} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
