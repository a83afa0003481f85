"""Checks the compose file and the Helm chart with compose's and Helm's own programs. Go builds the tools."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from .base import ROOT, StepFailedError, StepSkippedError, call, quiet

COMPOSE = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
CHART = "deploy/chart"
WAYS: Sequence[Sequence[str]] = (
    (),
    ("data=s3://bucket/prefix", "bucketSecret=bucket"),
    (
        "storage.class=fast",
        "monitor.enabled=true",
        "service.type=LoadBalancer",
        "arguments={--log-format=json}",
    ),
)
"""Values that reach each branch of the templates."""


def go(tool: str, *arguments: str) -> list[str]:
    if shutil.which("go") is None:
        raise StepSkippedError("Go is not installed, which builds the tools that check")
    return ["go", "run", tool, *arguments]


def compose() -> None:
    """By the reader that `docker compose` has: fields, types, and that services, volumes and files belong together."""
    done = quiet(go(COMPOSE, str(ROOT / "deploy" / "compose.yaml")))
    if done.returncode != 0:
        raise StepFailedError(f"deploy/compose.yaml: {done.stderr.strip()}")


def chart() -> None:
    """By helm: its own lint, and every branch of the templates rendered."""
    for values in WAYS:
        given = [part for value in values for part in ("--set", value)]
        call(go(HELM, "lint", "--strict", CHART, *given))
        done = quiet(go(HELM, "template", "try", CHART, *given))
        if done.returncode != 0:
            raise StepFailedError(
                f"{CHART} with {' '.join(values) or 'its own values'}: {done.stderr.strip()}"
            )
