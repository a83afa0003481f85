"""Builds the site from the repository's pages and generated references, into target/site/public."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from . import measure
from .base import ROOT, StepFailedError, StepSkippedError, call, quiet, say
from .browser import need_program
from .setup import SITE_LOCK as LOCK
from .setup import patiently
from .web import JS, MODULES, PROGRAM, need_node, need_server

SITE = ROOT / ".venv-site"
SITE_PYTHON = SITE / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
OUT = ROOT / "target" / "site"
LEAST_PYTHON = (3, 11)


def install() -> None:
    """The generator, as it is locked."""
    if sys.version_info < LEAST_PYTHON:
        raise StepSkippedError(f"the site's generator needs Python {'.'.join(map(str, LEAST_PYTHON))}")
    state = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    mark = SITE / ".installed"
    if mark.exists() and mark.read_text() == state:
        return
    shutil.rmtree(SITE, ignore_errors=True)
    if quiet([sys.executable, "-m", "venv", str(SITE)]).returncode != 0:
        raise StepFailedError("this Python cannot make a virtual environment")
    patiently(SITE_PYTHON, "--requirement", str(LOCK))
    mark.write_text(state)


def openapi() -> None:
    """The document of the server in .venv."""
    need_server()
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [str(PROGRAM), "serve", "--data", folder, "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            line = next((one for one in process.stderr if one.startswith("listening on ")), "")
            if not line:
                raise StepFailedError("the server did not start")
            address = line.removeprefix("listening on ").strip()
            with urllib.request.urlopen(f"{address}/openapi.json") as answer:  # noqa: S310, this machine's
                (OUT / "openapi.json").write_bytes(answer.read())
        finally:
            process.terminate()
            process.communicate()


def typedoc() -> None:
    """The reference of @ciphervec/client, as Markdown."""
    need_node()
    if not MODULES.exists():
        raise StepSkippedError("no js/node_modules; `python3 tools/steps.py web npm` installs them")
    call(["npm", "run", "--silent", "reference", "--workspace", "reference"], cwd=JS)


def pictures() -> None:
    """Those of stored results that are missing or older than what they show."""
    need_program()
    if not measure.installed("ciphervec_lab"):
        raise StepSkippedError("the lab, which draws them, is not in .venv")
    old = [
        path
        for path in (ROOT / "benches" / "results").glob("*.json")
        if (picture := path.with_suffix(".png")).exists() and picture.stat().st_mtime < path.stat().st_mtime
    ]
    drawn = any((ROOT / "benches" / "results").glob("*.png"))
    if old or not drawn:
        measure.pictures()


def build() -> None:
    """Pages with what is left out of them said; then the files, which must load nothing from elsewhere. A link that leads
    nowhere fails."""
    if not SITE_PYTHON.exists():
        raise StepSkippedError("no .venv-site, for the reason given there")
    call([sys.executable, "tools/website.py", "stage"])
    shutil.rmtree(OUT / "public", ignore_errors=True)
    call([str(SITE_PYTHON), "-m", "zensical", "build", "--strict", "--clean"], cwd=OUT)
    call([sys.executable, "tools/website.py", "check"])
    size = sum(path.stat().st_size for path in (OUT / "public").rglob("*") if path.is_file())
    say(
        f"{(OUT / 'public').relative_to(ROOT)}, {size / 1e6:.1f} MB; `python3 -m http.server -d target/site/public`"
    )
