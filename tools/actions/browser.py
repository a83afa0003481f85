"""Steps that need a browser: the demo page, and tests and benches in Chromium. Skipped where there is none."""

from __future__ import annotations

import os
import shutil

from .base import ROOT, StepFailedError, StepSkippedError, call, from_debian, say
from .web import JS, PROGRAM, need_node, need_server

MODEL = JS / "demo" / "public" / "model"
DATA = ROOT / "demo-data" / "web"
RESULTS = ROOT / "benches" / "results"
PLACES = ("chromium", "chromium-browser", "google-chrome")


def need_program() -> None:
    """Raises what a step without the package says."""
    if not PROGRAM.exists():
        raise StepSkippedError("no ciphervec in .venv; `make wheel` installs it")


def need_chromium() -> None:
    """Raises what a step without a browser says."""
    if not (os.environ.get("CIPHERVEC_CHROMIUM") or any(shutil.which(name) for name in PLACES)):
        raise StepSkippedError("no Chromium; on Debian: apt-get install chromium")


def chromium() -> None:
    """Debian's browser, where it is missing and this may install it."""
    try:
        need_chromium()
    except StepSkippedError:
        from_debian("no Chromium", "chromium")
    else:
        say("already there")


def model() -> None:
    """The demo's passages and model, written by Python where the page finds them."""
    need_program()
    call([str(PROGRAM), "demo", "--export-web", str(MODEL)])


def suite() -> None:
    """The browser tests."""
    need_node()
    need_server()
    need_chromium()
    call(["npm", "run", "test:browser", "--workspace", "browser"], cwd=JS)


def console() -> None:
    """The pages of the console, over the server of .venv."""
    need_node()
    need_server()
    need_chromium()
    call(["npm", "run", "test:browser", "--workspace", "console"], cwd=JS)


def demo() -> None:
    """A server on demo-data/web and the page in front of it, until the person ends them."""
    need_node()
    need_server()
    if not MODEL.exists():
        raise StepFailedError("the page has no passages: run the step `model` first")
    DATA.mkdir(parents=True, exist_ok=True)
    call(["npm", "run", "show", "--workspace", "demo"], cwd=JS,
         environment={"CIPHERVEC_PROGRAM": str(PROGRAM), "CIPHERVEC_DATA": str(DATA)})  # fmt: skip


def bench() -> None:
    """The figures in Chromium beside the native module's in the same minutes."""
    need_node()
    need_server()
    need_chromium()
    call(["npm", "run", "bench", "--workspace", "browser"], cwd=JS,
         environment={"CIPHERVEC_RESULTS": str(RESULTS)})  # fmt: skip
