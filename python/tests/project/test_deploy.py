"""Every metric that the alert rules and the dashboard name is one that a running server, a decrypt service or `doctor`
exports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import yaml
from starlette.testclient import TestClient
from typer.testing import CliRunner

from ciphervec import HttpClient, IndexSpec, Keys, Owner, ServerIndex
from ciphervec.cli import app
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.ledger import Ledger
from ciphervec.http import LocalServer

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
NAME = re.compile(r"\bciphervec_[a-z0-9_]+")

pytestmark = pytest.mark.skipif(not DEPLOY.exists(), reason="needs the repository, not only the wheel")


def exported(text: str) -> dict[str, str]:
    """Names that can be asked for, with their types: OpenMetrics appends to the names of counters and histograms."""
    names: dict[str, str] = {}
    for name, kind in re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE):
        for suffix in {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(kind, [""]):
            # Those of the older text format have it in their names.
            names[name if suffix and name.endswith(suffix) else name + suffix] = kind
    return names


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("deploy")
    keys = Keys.generate()
    keys.save(folder / "my.key", allow_plaintext=True)
    with LocalServer(folder / "data") as server:
        with HttpClient(server.url, keys=keys, state=folder / "state") as client:
            client.create_collection("faces", 8, mode="sealed-index").add([1], [[1.0] * 8])
        metrics = httpx.get(f"{server.url}/metrics").text
    out = folder / "ciphervec.prom"
    CliRunner().invoke(
        app, ["doctor", str(folder / "data"), "--keys", str(folder / "my.key"), "--metrics", str(out)]
    )
    return exported(metrics) | exported(out.read_text()) | exported(decrypt_metrics(folder))


def decrypt_metrics(folder: Path) -> str:
    """What a decrypt service says at /metrics."""
    return TestClient(application([], Ledger(folder / "ledger.db"), metrics=True)).get("/metrics").text


def check(expression: str, known: dict[str, str]) -> None:
    for opened, closed in ("()", "{}", "[]"):
        assert expression.count(opened) == expression.count(closed), expression
    bare = re.sub(r'"[^"]*"', "", expression)
    named = NAME.findall(bare)
    assert named, expression
    for name in named:
        assert name in known, f"{expression}: nothing exports {name}; there are {sorted(known)}"
    for function, name in re.findall(r"\b(rate|increase)\((ciphervec_[a-z0-9_]+)", bare):
        assert known[name] in ("counter", "histogram"), f"{function} of {name}, which is a {known[name]}"


def test_alerts_name_what_is_exported(known: dict[str, str]) -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yml").read_text())
    alerts: list[dict[str, Any]] = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) >= 12
    for rule in alerts:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert set(rule["annotations"]) == {"summary", "action"}
        check(rule["expr"], known)
    watched = " ".join(rule["expr"] for rule in alerts)
    for needed in ("budget", "quarantine", "opening", "storage_errors", "closed_connections"):
        assert needed in watched


def test_the_dashboard_shows_what_is_exported(known: dict[str, str]) -> None:
    board = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"] and panel["targets"]
        for target in panel["targets"]:
            check(target["expr"], known)
    [variable] = [one for one in board["templating"]["list"] if one["type"] == "query"]
    check(variable["query"]["query"].removeprefix("label_values"), known)


def test_checks_that_alerts_name_are_checks_of_doctor() -> None:
    commands = Path(__file__).resolve().parents[2] / "ciphervec/cli"
    source = "".join((commands / name).read_text() for name in ("doctor.py", "doctor_checks.py"))
    for path in (DEPLOY / "prometheus-alerts.yml", DEPLOY / "grafana-dashboard.json"):
        for names in re.findall(r'check=~?\\?"([^"\\]+)', path.read_text()):
            for name in names.split("|"):
                assert f'"{name}"' in source, name


@pytest.mark.parametrize(("dimension", "rows"), [(128, 1_000), (384, 1_000), (128, 10_000)])
def test_answers_are_as_long_as_the_page_says(keys: Keys, dimension: int, rows: int) -> None:
    """The table of bytes a row in docs/server.md, where that is quick to measure: of answers for the owner."""
    page = (DEPLOY.parent / "docs/server.md").read_text(encoding="utf-8")
    head = next(line for line in page.splitlines() if line.startswith("| dimensions |"))
    column = [cell.strip() for cell in head.split("|")].index(f"{rows:,} rows")
    line = next(line for line in page.splitlines() if line.startswith(f"| {dimension:,} |"))
    said = float(line.split("|")[column])
    spec = IndexSpec("answers", dimension)
    owner, server = Owner(keys, spec), ServerIndex(spec)
    server.set_evaluation_keys(owner.evaluation().to_bytes())
    vectors = np.random.default_rng(rows).standard_normal((rows, dimension))
    server.add(owner.seal(range(rows), vectors).segment)
    answer = server.evaluate(owner.query(vectors[0], answers="short").to_bytes())
    assert said == pytest.approx(len(answer) / rows, rel=0.02)
