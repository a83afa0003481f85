"""docs/keys-and-backups.md: the commands of its drill run as they stand, from the first copy to a checked restore, and
so does its Python."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs/keys-and-backups.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the repository, not only the wheel")


def blocks() -> list[tuple[str, str]]:
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    assert {language for language, _ in found} == {"bash", "python"}
    return found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
def test_the_drill_of_the_manual(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    codes = [code for language, code in blocks() if language == "bash"]
    assert len(codes) >= 8
    try:
        for number, code in enumerate(codes):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code],
                cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, f"block {number}\n{code}\n{done.stdout}\n{done.stderr}"
        assert "shows version" in " ".join((tmp_path / "refused").read_text().split())
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((tmp_path / "serve.pid").read_text()), signal.SIGKILL)


def test_the_python_of_the_manual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__snippet__"}
    for number, (language, code) in enumerate(blocks()):
        if language == "python":
            exec(compile(code, f"{PAGE.name}, block {number}", "exec"), names)
    assert not (tmp_path / "spare.key").exists()
