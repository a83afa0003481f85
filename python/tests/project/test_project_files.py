"""Workflows, images, compose file and chart name only what there is, and what compose sets up serves."""

from __future__ import annotations

import datetime
import importlib
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = ROOT / ".github" / "workflows"
DEPLOY = ROOT / "deploy"

pytestmark = pytest.mark.skipif(not WORKFLOWS.exists(), reason="needs the repository, not only the wheel")


def imported(name: str) -> Any:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """File, name and content of every job."""
    for path in sorted(WORKFLOWS.glob("*.yml")):
        for name, job in yaml.safe_load(path.read_text())["jobs"].items():
            yield path.name, name, job


def variants(job: dict[str, Any], text: str) -> list[str]:
    """A text with what the job's matrix puts in place of `${{ matrix.… }}`."""
    matrix = job.get("strategy", {}).get("matrix", {})
    found = [text]
    for key in re.findall(r"\$\{\{ matrix\.(\w+) \}\}", text):
        values = [value for value in matrix.get(key, []) if isinstance(value, str)]
        found = [one.replace(f"${{{{ matrix.{key} }}}}", value) for one in found for value in values]
    return found


def test_workflows_run_steps_and_packages_that_there_are() -> None:
    steps = imported("steps")
    names = {target: {step.name for step in listed} for target, listed in steps.TARGETS.items()}
    crates = {
        re.search(r'(?m)^name = "(.+)"', path.read_text())[1]  # type: ignore[index]
        for path in (ROOT / "crates").glob("*/Cargo.toml")
    }
    seen = 0
    for file, name, job in jobs():
        assert job.get("uses") or job["timeout-minutes"] <= 350, f"{file}: {name}"
        for step in job.get("steps", []):
            for command in variants(job, step.get("run", "")):
                for loop in re.findall(
                    r'for step in ([\w -]+); do python3 tools/steps.py (\w+) "\$step"', command
                ):
                    assert set(loop[0].split()) <= names[loop[1]], f"{file}: {name}: {command}"
                    seen += 1
                for target in re.findall(r"tools/steps\.py ([\w-]+)$", command, re.MULTILINE):
                    assert target in names, f"{file}: {name}: {command}"
                    seen += 1
                assert set(re.findall(r"-p ([\w-]+)", command)) <= crates, f"{file}: {name}: {command}"
                for path in re.findall(r"(?:python3?|sh) ((?:tools|examples|deploy)/[\w/.]+)", command):
                    assert (ROOT / path).is_file(), f"{file}: {name}: {path}"
    assert seen >= 14


def test_every_suite_runs_on_linux_for_every_change() -> None:
    """Chromium is installed by a step of its own, and the console is a part of release."""
    (matrix,) = [
        job["strategy"]["matrix"]["target"]
        for file, name, job in jobs()
        if (file, name) == ("test.yml", "linux")
    ]
    assert set(matrix) == {"test", "release", "compat", "ray", "web", "site"}


def test_every_place_says_one_version() -> None:
    release = imported("release")
    said = {version for _, version in release.found()}
    assert len(said) == 1, release.found()
    assert release.notes(said.pop())
    with pytest.raises(SystemExit, match=r"9\.9\.9 expected: .*Cargo\.toml says"):
        release.check("9.9.9")


MANIFESTS = re.compile(
    r"(?:^|/)(?:Cargo\.(?:toml|lock)|pyproject\.toml|package(?:-lock)?\.json|Chart\.yaml|CITATION\.cff)$"
)


def test_one_command_writes_the_version_everywhere(tmp_path: Path) -> None:
    """In a copy of every manifest and lock file: afterwards none has the old number for anything of ours."""
    release = imported("release")
    old = release.found()[0][1]
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    manifests = [name for name in listed if MANIFESTS.search(name) and not name.startswith("tools/")]
    for name in (*manifests, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(
        changelog.replace("\n## ", "\n## Unreleased\n\n- It.\n\n## Before: ", 1)
    )

    release.put("98.7.6", tmp_path, datetime.date(2031, 2, 3))
    release.check("98.7.6", tmp_path)
    assert release.notes("98.7.6", tmp_path) == "- It."
    made = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## 98.7.6 (03 February 2031)\n" in made
    release.put("98.7.6", tmp_path)
    assert (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8") == made, "a section that is there stays"

    named = re.compile(rf'ciphervec[^\n]*(?:\n *"?version"?[:= ]+)?"?{re.escape(old)}\b')
    own = re.compile(rf'(?m)^version = "{re.escape(old)}"')
    left = set()
    for name in manifests:
        text = (tmp_path / name).read_text(encoding="utf-8")
        if named.search(text) or (not name.endswith(".lock") and own.search(text)):
            left.add(name)
    assert not left
    shutil.copy(ROOT / "Cargo.lock", tmp_path / "Cargo.lock")
    with pytest.raises(SystemExit, match=r"98\.7\.6 expected: .*Cargo\.lock says"):
        release.check("98.7.6", tmp_path)
    with pytest.raises(SystemExit, match="expected a version such as"):
        release.put("2", tmp_path)


def test_advisories_and_licences_are_held_to_one_list() -> None:
    allowed = set(re.findall(r'(?m)^    "(.+)",$', (ROOT / "deny.toml").read_text()))
    assert allowed <= imported("licences").PERMISSIVE


def options() -> set[str]:
    """Of `ciphervec serve`."""
    said = subprocess.run(
        [sys.executable, "-m", "ciphervec", "serve", "--help"], capture_output=True, text=True, check=True
    )
    return set(re.findall(r"(?m)^      (--[\w-]+)", said.stdout))


def test_what_containers_are_started_with_is_taken() -> None:
    known = options()
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    texts = [*compose["services"]["server"]["command"]]
    texts += re.findall(
        r"(?m)^ +- (--[\w-]+=.*)$", (DEPLOY / "chart" / "templates" / "server.yaml").read_text()
    )
    texts += re.findall(r'"(--[\w-]+)"', (DEPLOY / "Containerfile").read_text())
    asked = {text.split("=")[0] for text in texts if text.startswith("--")}
    assert len(asked) >= 7 and asked <= known, asked - known
    for service in compose["services"].values():
        for mount in service.get("volumes", []):
            place = mount.split(":")[0]
            assert place in compose["volumes"] or (DEPLOY / place).exists(), mount
    for step in re.findall(r"for step in ([\w ]+); do", (DEPLOY / "Containerfile").read_text()):
        names = {one.name for one in imported("steps").TARGETS["release"]}
        assert set(step.split()) <= names


def test_the_chart_has_every_value_that_it_asks_for() -> None:
    values = yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text())
    templates = "".join(path.read_text() for path in (DEPLOY / "chart" / "templates").iterdir())
    for path in set(re.findall(r"\.Values\.([\w.]+)", templates)):
        found = values
        for part in path.split("."):
            assert part in found, f".Values.{path}"
            found = found[part]


@pytest.mark.skipif(os.name != "posix" or not shutil.which("openssl"), reason="needs a shell and openssl")
def test_what_compose_sets_up_serves(tmp_path: Path) -> None:
    """setup.sh makes a certificate and tokens once, with which the server starts and answers."""
    program = tmp_path / "bin" / "ciphervec-server"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ciphervec "$@"\n')
    program.chmod(0o755)
    state = tmp_path / "state"
    state.mkdir()
    environment = {**os.environ, "STATE": str(state), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    for _ in range(2):
        subprocess.run(
            ["sh", str(DEPLOY / "compose" / "setup.sh")], env=environment, check=True, capture_output=True
        )
        made = {path.name: path.read_bytes() for path in state.iterdir()}
        assert {"tls.crt", "tls.key", "tokens.json", "admin.token", "metrics.token"} <= set(made)
    assert made["admin.token"].startswith(b"cv1_") and made["admin.token"].count(b"\n") == 1
    assert (state / "admin.token").stat().st_mode & 0o077 == 0
    if os.getuid() == 0:  # as the image's user has it
        for name in ("tls.key", "tokens.json"):
            os.chown(state / name, 0, 0)
    server = subprocess.Popen(
        [program, "serve", "--data", tmp_path / "data", "--listen", "127.0.0.1:0", "--tls-cert", state / "tls.crt",
         "--tls-key", state / "tls.key", "--tokens", state / "tokens.json", "--log-format", "json"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stderr is not None
        for line in server.stderr:
            if found := re.search(r"https://127\.0\.0\.1:(\d+)", line):
                break
        else:
            pytest.fail("it ended")
        context = ssl.create_default_context(cafile=str(state / "tls.crt"))
        at = f"https://localhost:{found[1]}"
        with httpx.Client(verify=context) as client:
            assert client.get(f"{at}/metrics").status_code == 401
            token = {"Authorization": f"Bearer {made['metrics.token'].decode().strip()}"}
            assert "ciphervec_" in client.get(f"{at}/metrics", headers=token).text
            assert client.get(f"{at}/v1/collections", headers=token).json()["collections"] == []
    finally:
        server.terminate()
        server.communicate(timeout=30)
