"""What stands beside the product in tests: an S3 server of this machine, and certificates."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_TOOL = Path(__file__).parents[3] / "tools" / "with_bucket.py"


@contextmanager
def s3_bucket() -> Iterator[str]:
    """Its URL, and the variables by which this process and those it starts find it."""
    found = importlib.util.spec_from_file_location("with_bucket", _TOOL)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    with module.bucket() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield "s3://bucket"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine and its key, in files; skips the test where none can be made."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("skipped: no openssl program to make a certificate with")
    made, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(made)],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key
