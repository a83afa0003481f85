"""What `make` and CI stand on: the licence rule, the list of steps, the lock file."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest

import ciphervec

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(
    not (ROOT / "tools").exists(), reason="needs the repository, not only the wheel"
)


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import licences
    import steps
    import wheel_glibc
    import wheel_windows

    found = {"licences": licences, "steps": steps, "wheel_glibc": wheel_glibc, "wheel_windows": wheel_windows}
    yield found
    for name in [name for name in sys.modules if name in found or name.split(".")[0] == "actions"]:
        sys.modules.pop(name)


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("MIT OR Apache-2.0", True),
        ("MIT/Apache-2.0", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("(MIT OR GPL-2.0-only) AND (ISC OR AGPL-3.0)", True),
        ("(MIT OR GPL-2.0-only) AND AGPL-3.0", False),
        ("Apache-2.0 WITH LLVM-exception OR MIT", True),
        ("((MIT))", True),
        ("none stated", False),
    ],
)
def test_a_licence_expression(tools: dict[str, ModuleType], expression: str, fine: bool) -> None:
    assert tools["licences"].permitted(expression) is fine


def test_a_wheel_for_windows_is_ours_with_another_library(
    tools: dict[str, ModuleType], tmp_path: Path
) -> None:
    info = "ciphervec-0.1.0.dist-info"
    files = {
        "ciphervec/__init__.py": b"import ciphervec._native",
        "ciphervec/_native.abi3.so": b"for Linux",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp310-abi3-manylinux_2_28_x86_64\n",
        f"{info}/RECORD": b"ciphervec/__init__.py,sha256=x,1\n",
    }
    ours = tmp_path / "ciphervec-0.1.0-cp310-abi3-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(ours, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    library = tmp_path / "_native.dll"
    library.write_bytes(b"for Windows")
    made = tools["wheel_windows"].packed(ours, library)
    assert made.name == "ciphervec-0.1.0-cp310-abi3-win_amd64.whl"
    with zipfile.ZipFile(made) as archive:
        assert archive.read("ciphervec/_native.pyd") == b"for Windows"
        assert not [name for name in archive.namelist() if name.endswith(".so")]
        assert archive.read(f"{info}/WHEEL").endswith(b"Tag: cp310-abi3-win_amd64\n")
        lines = [line.split(",") for line in archive.read(f"{info}/RECORD").decode().splitlines()]
        assert sorted(line[0] for line in lines) == sorted(archive.namelist())
        for name, digest, size in lines:
            if digest:
                content = archive.read(name)
                stated = base64.urlsafe_b64decode(digest.removeprefix("sha256=") + "=")
                assert (stated, int(size)) == (hashlib.sha256(content).digest(), len(content))


def test_a_wheel_that_needs_too_new_a_glibc(
    tools: dict[str, ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the names of versions as they stand in the library's bytes."""
    check = tools["wheel_glibc"]
    library = Path(ciphervec._native.__file__).read_bytes()
    names = set(re.findall(rb"GLIBC_(\d+(?:\.\d+)+)\0", library))
    if not names:
        pytest.skip("this native module is not for Linux with glibc")
    versions = {tuple(map(int, name.split(b"."))): name for name in names}

    def wheel(tag: str, content: bytes, name: str = "ciphervec/_native.abi3.so") -> Path:
        path = tmp_path / f"ciphervec-1.0-cp310-abi3-{tag}.whl"
        with ZipFile(path, "w") as archive:
            archive.writestr(name, content)
        return path

    def says(path: Path) -> tuple[int, str]:
        return check.main([str(path)]), capsys.readouterr().err

    assert check.needs(library)[0] == set(versions)
    # As if it were built where glibc is older than what we promise, and newer.
    new = [version for version in versions if version > check.PROMISED] or [max(versions)]
    for version, code in ((b"2.28", 0), (b"2.29", 1), (b"2.99", 1)):
        kept = library
        for one in new:
            kept = kept.replace(b"GLIBC_" + versions[one] + b"\0", b"GLIBC_" + version + b"\0")
        ended, error = says(wheel("manylinux_2_28_x86_64", kept))
        assert ended == code, error
        assert (f"asks for GLIBC_{version.decode()}" in error) == bool(code)
    assert "its name says manylinux (2, 35)" in says(wheel("manylinux_2_35_x86_64", kept))[1]
    assert "no shared library" in says(wheel("manylinux_2_28_x86_64", b"", "a.py"))[1]
    other = library.replace(b"libc.so.6\0", b"libx.so.6\0")
    assert "loads libx.so.6" in says(wheel("manylinux_2_28_x86_64", other))[1]


def test_a_release_without_its_linker_says_what_is_missing(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    setup, steps = sys.modules["actions.setup"], tools["steps"]

    def no_registry(command: list[str], **_: object) -> None:
        assert any(part.endswith("requirements-release.txt") for part in command)
        raise steps.StepFailedError("`pip install` ended with exit code 1")

    monkeypatch.setattr(setup, "call", no_registry)
    monkeypatch.setattr(setup, "VENV", tmp_path)
    with pytest.raises(
        steps.StepFailedError, match=r"exit code 1\n.*zig links it(.|\n)*`make test`.*do without"
    ):
        setup.install_release_tools()
    assert not list(tmp_path.iterdir()), "the next run tries again"


def test_an_install_from_a_slow_registry_is_gone_on_with(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    setup, steps = sys.modules["actions.setup"], tools["steps"]
    asked: list[list[str]] = []
    fails = [True, False, True, True]

    def call(command: list[str], **_: object) -> None:
        asked.append(command)
        if fails[len(asked) - 1]:
            raise steps.StepFailedError("no answer")

    monkeypatch.setattr(setup, "call", call)
    setup.patiently(Path("python"), "--requirement", "a.txt")
    assert len(asked) == 2 and asked[0] == asked[1] and asked[0][-2:] == ["--requirement", "a.txt"]
    assert {"--retries", "--timeout"} <= set(asked[0])
    with pytest.raises(steps.StepFailedError, match="no answer"):
        setup.patiently(Path("python"), "--requirement", "a.txt")
    assert len(asked) == 4


def test_every_target_of_the_makefile_has_steps(tools: dict[str, ModuleType]) -> None:
    called = set(re.findall(r"\$\(STEPS\) ([\w-]+)", (ROOT / "Makefile").read_text()))
    assert called == set(tools["steps"].TARGETS) | {"help"}


def test_the_page_of_chromas_suite_counts_what_is_left_out(tools: dict[str, ModuleType]) -> None:
    names = tools["steps"].chroma.LEFT_OUT
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    (left_out,) = re.findall(r"^\| Chroma [^|]+ \| \d+ \| (\d+), most of them models", page, re.MULTILINE)
    assert (
        int(left_out) == 2 * len(names) == 2 * len(set(names))
    )  # by the blocking and the asynchronous client


def test_ci_is_make_test_and_the_longer_suites(tools: dict[str, ModuleType]) -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make ci"
    (parts,) = re.findall(r"^ci: ([\w ]+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert parts.split() == ["console", "test", "pages"]
    targets = tools["steps"].TARGETS
    alone = [*tools["steps"].BEGIN, tools["steps"].WHEEL]
    for suite, beside in (
        ("chromium", "pages"),
        ("web", "pages"),
        ("site", "pages"),
        ("compat", "nightly"),
        ("ray", "nightly"),
    ):
        assert all(step in targets[beside] for step in targets[suite] if step not in alone)
    for target in targets.values():
        assert len({step.name for step in target}) == len(target)
    names = [step.name for step in targets["test"]]
    assert {"rustfmt", "clippy", "cargo-test", "pytest", "ruff", "mypy", "stubtest", "licences"} <= set(names)


def test_every_crate_of_ours_is_tested_with_its_assertions() -> None:
    text = (ROOT / "Cargo.toml").read_text()
    members = re.findall(
        r'"((?:crates/\w[\w-]*)|python)"', text.partition("members = ")[2].partition("\n")[0]
    )
    names = [
        re.findall(r'^name = "(.+)"', (ROOT / member / "Cargo.toml").read_text(), re.M)[0]
        for member in members
    ]
    profile = text.partition("[profile.dev.package]")[2].partition("\n[")[0]
    checked = re.findall(r"^([\w-]+) = .*debug-assertions = true, overflow-checks = true", profile, re.M)
    assert sorted(checked) == sorted(names) and len(names) > 7


def test_a_failing_step_ends_the_run_and_names_itself(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = tools["steps"]
    ran: list[str] = []

    def fail() -> None:
        raise steps.StepFailedError("the reason")

    def skip() -> None:
        raise steps.StepSkippedError("no such thing here")

    plan = [
        steps.Step("one", "skips", skip),
        steps.Step("two", "fails", fail),
        steps.Step("three", "never runs", lambda: ran.append("three")),
    ]
    monkeypatch.setitem(steps.TARGETS, "test", plan)
    assert steps.run("test", None) == 1
    output = capsys.readouterr()
    assert "[1/3] one: skipped, no such thing here" in output.out
    assert "[2/3] two: FAILED" in output.err
    assert "the reason" in output.err
    assert "tools/steps.py test two" in output.err
    assert not ran
    assert steps.run("test", "three") == 0
    assert ran == ["three"]


def test_a_step_beside_the_next_is_told_after_it_and_ends_the_run_too(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps, base = tools["steps"], sys.modules["actions.base"]
    met = threading.Barrier(2, timeout=30)

    def slow() -> None:
        base.say("from beside")
        met.wait()

    def fail() -> None:
        raise steps.StepFailedError("the reason")

    def front() -> None:
        met.wait()
        base.say("from the front")

    plan = [
        steps.Step("slow", "waits", slow, beside=True),
        steps.Step("bad", "fails", fail, beside=True),
        steps.Step("front", "runs", front),
        steps.Step("never", "never runs", fail),
    ]
    monkeypatch.setitem(steps.TARGETS, "test", plan)
    assert steps.run("test", None) == 1
    output = capsys.readouterr()
    told = [line for line in output.out.splitlines() if line]
    assert [line for line in told if line.startswith("from")] == ["from the front", "from beside"]
    assert any(line.startswith("[1/4] slow: ok") for line in told)
    assert "[2/4] bad: FAILED" in output.err
    assert "never" not in output.out + output.err


def test_actions_run_together_and_print_one_after_the_other(
    tools: dict[str, ModuleType], capfd: pytest.CaptureFixture[str]
) -> None:
    base = sys.modules["actions.base"]
    met = threading.Barrier(2, timeout=30)

    def first() -> None:
        met.wait()
        print("first")

    def second() -> None:
        base.call([sys.executable, "-c", "print('from a command')"])
        base.say("second")
        met.wait()

    def fails() -> None:
        raise base.StepFailedError("the reason")

    base.together(first, second)
    assert capfd.readouterr().out.splitlines() == ["first", "from a command", "second"]
    with pytest.raises(base.StepFailedError, match="the reason"):
        base.together(lambda: base.say("still runs"), fails)
    assert capfd.readouterr().out == "still runs\n"


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (
            "requirements-dev.txt",
            (
                "maturin",
                "numpy",
                "pytest",
                "ruff",
                "mypy",
                "flit-core",
                "faiss-cpu",
                "threadpoolctl",
                "scikit-learn",
            ),
        ),
        (
            "requirements-compat.txt",
            (
                "haystack-ai",
                "langchain-core",
                "langchain-tests",
                "llama-index-core",
                "pytest",
                "scikit-learn",
            ),
        ),
        ("requirements-ray.txt", ("moto", "pyarrow", "pytest", "ray", "starlette")),
        ("requirements-peers.txt", ("deepface", "gmpy2", "lightphe", "openfhe", "phe", "tenseal")),
    ],
)
def test_the_lock_files_pin_everything_and_name_no_host(file: str, names: tuple[str, ...]) -> None:
    lines = [line for line in (ROOT / file).read_text().splitlines() if line]
    assert all(re.match(r"[a-z0-9._-]+==[\w.]+( ; .+)?$", line) for line in lines), lines
    assert len(lines) > 40
    for name in names:
        assert any(line.startswith(f"{name}==") for line in lines)


def test_help_lists_the_commands() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "steps.py")], capture_output=True, text=True)
    assert done.returncode == 0
    for target in ("demo", "check", "test", "release", "compat", "ray", "ci", "bench"):
        assert f"make {target}" in done.stdout


def test_licences_of_what_is_shipped_go_with_it(tools: dict[str, ModuleType], tmp_path: Path) -> None:
    """Of a package under Apache-2.0 its notices; of another its own text; each text once."""

    def package(name: str, licence: str, **files: str) -> dict[str, str]:
        folder = tmp_path / name
        folder.mkdir()
        for file, text in files.items():
            (folder / file).write_text(text)
        return {
            "name": name,
            "version": "1.0",
            "license": licence,
            "manifest_path": str(folder / "Cargo.toml"),
        }

    text = tools["licences"].texts(
        [
            package("both", "MIT OR Apache-2.0", LICENSE="MIT of both", NOTICE="a notice"),
            package("one", "MIT", LICENSE="permission is granted"),
            package("two", "MIT", COPYING="permission  is\ngranted"),
            package("bare", "CC0-1.0"),
        ],
        "what ships",
    )
    assert "is part of what ships, and" in text
    assert "both 1.0" in text and "a notice" in text and "MIT of both" not in text
    assert text.count("permission") == 1 and "one 1.0, two 1.0:" in text
    assert "bare 1.0:\n\nLicensed under CC0-1.0." in text


def test_the_wheel_holds_nothing_of_the_lab() -> None:
    """Neither its package, nor what was of the program before it had one."""
    try:
        files = importlib.metadata.files("ciphervec")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("skipped: ciphervec is not installed from a wheel")
    code = [file.as_posix() for file in files or () if file.suffix == ".py"]
    assert len(code) > 100 and all(name.startswith("ciphervec/") for name in code)
    assert not [name for name in code if re.search(r"/(lab|bench|reproduce)", name)]


def test_the_wheel_carries_them() -> None:
    try:
        files = importlib.metadata.files("ciphervec")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("skipped: ciphervec is not installed from a wheel")
    assert {"LICENSE-APACHE", "LICENSE-MIT", "LICENSE-THIRD-PARTY"} <= {file.name for file in files or ()}
    said = importlib.metadata.metadata("ciphervec").get_all("Classifier") or []
    assert "Operating System :: OS Independent" not in said


def test_what_a_long_command_prints_is_shown_where_it_fails(
    tools: dict[str, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    """Otherwise `make demo` shows a page of crates, and its result below."""
    base = sys.modules["actions.base"]
    prints = "import sys; [print('Compiling', i) for i in range(200)]; sys.exit(int(sys.argv[1]))"
    base.watched([sys.executable, "-c", prints, "0"])
    assert capsys.readouterr().out == ""
    base.watched([sys.executable, "-c", prints, "0"], every=0.0)
    assert "200 lines, now: Compiling 199" in capsys.readouterr().out
    with pytest.raises(base.StepFailedError, match="exit code 3"):
        base.watched([sys.executable, "-c", prints, "3"])
    assert capsys.readouterr().out.splitlines() == [f"Compiling {i}" for i in range(200)]


def test_a_leak_is_what_every_run_sees(tools: dict[str, ModuleType]) -> None:
    timing = tools["steps"].timing
    said = (
        "running 2 benches\nbench powers seeded with 0x1f\nbench powers ... : n == +0.004M, max t = -3.25000, "
        "max tau = -0.02, (5/tau)^2 = 2\nbench control_early_end seeded with 0x2\nbench control_early_end ... : "
        "n == +0.020M, max t = +61.61472, max tau = +0.28863, (5/tau)^2 = 300\n"
    )
    run = timing.largest(said)
    assert run == {"powers": 3.25, "control_early_end": 61.61472}
    assert timing.complaints([run, run]) == []
    loud = {**run, "powers": 40.0}
    assert timing.complaints([run, loud]) == []
    (leak,) = timing.complaints([loud, loud])
    assert "powers depends on its secret" in leak
    (blind,) = timing.complaints([run, {**run, "control_early_end": 2.0}])
    assert "control_early_end leaks on purpose" in blind
    assert timing.complaints([{"powers": float("nan")}]), "no number is no proof"
