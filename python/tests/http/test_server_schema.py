"""The server against its own OpenAPI document: requests made up from the schemas get documented answers alone."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

import ciphervec

CHECKS: list[Any] = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FEW = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
BY_DESIGN = (503, 507)
"""Busy and full are the 500s that a client is meant to meet."""


@ciphervec.program
def double(x: Any) -> Any:
    return x * 2


@contextlib.contextmanager
def server(folder: Path, *options: str) -> Iterator[str]:
    """A server on a free port of loopback; yields its address."""
    command = [sys.executable, "-m", "ciphervec", "serve", "--data", str(folder), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("listening on "):
                yield line.removeprefix("listening on ").strip()
                break
        else:
            pytest.fail("the server ended before it listened")
    finally:
        process.terminate()
        process.stderr.close()
        assert process.wait(20) == 0


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("schema")
    quiet = ("--audit", str(folder / "audit.jsonl"), "--patience", "2s", "--upload-quota", "1MiB")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CIPHERVEC_LOG", "error")
        with server(folder / "db", *quiet) as url:
            client = ciphervec.HttpClient(url, keys=ciphervec.Keys.generate(), state=None)
            faces = client.create_collection("faces", dimension=8)
            faces.add(list(range(6)), np.eye(6, 8, dtype=np.float32))
            plan = double.compile(x=ciphervec.secret(4, bits=4), failure=128)
            remote = client.put_program("faces", plan)
            remote.send_keys_bytes(plan.client().evaluation_keys())
            yield url


@pytest.fixture(scope="module")
def document(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def probe(case: Any) -> None:
    # Made-up names are all 404; the collection and the program that are there get further, and stay.
    if case.operation.method.upper() != "DELETE" and "name" in (case.path_parameters or {}):
        case.path_parameters["name"] = "faces"
    response = case.call()
    assert response.status_code < 500 or response.status_code in BY_DESIGN, response.text
    assert response.headers["ciphervec-api"] == ["1"]
    case.validate_response(response, checks=CHECKS)


def test_answers_are_the_documented_ones(document: Any) -> None:
    operations = [result.ok() for result in document.get_all_operations()]
    assert len(operations) >= 35  # all but the document itself
    for operation in operations:
        FEW(given(case=operation.as_strategy())(probe))()


def test_the_document_is_openapi_3_1_and_names_every_error(document: Any) -> None:
    raw = document.raw_schema
    assert raw["openapi"].startswith("3.1.")
    for path, item in raw["paths"].items():
        for method, operation in item.items():
            answers = operation["responses"]
            assert any(status.startswith("2") for status in answers), (method, path)
            for status, answer in answers.items():
                if status >= "400":
                    assert list(answer["content"]) == ["application/problem+json"], (method, path, status)
                    assert answer["description"], (method, path, status)
            assert operation["summary"], (method, path)
