"""What `make` runs: every step in order, numbered and timed. Standard library only: it runs on a bare machine.

`python3 tools/steps.py test` runs all steps of a target; `python3 tools/steps.py test clippy` that one;
and `python3 tools/steps.py test avx2` those with "avx2" in their name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
LOCK = ROOT / "requirements-dev.txt"
WHEELS = ROOT / "dist"
RESULTS = ROOT / "benches" / "results"
DEMO_PACKAGES = ["maturin", "httpx", "numpy", "rich", "typer", "scikit-learn"]
BENCH_COMMON = ["--rows", "200000", "--dim", "512", "--threads", "1"]
PEERS = {"tenseal": ["tenseal"], "lightphe": ["lightphe"], "phe": ["phe", "gmpy2"]}
ADDITIVE = {
    "paillier-2048": ("lightphe,phe", "--bits 2048"),
    "paillier-3072": ("lightphe,phe", "--peer-dim 64"),
    "paillier-3072-high": ("lightphe,phe", "--peer-dim 64 --precision high"),
    "damgard-jurik-3072": ("lightphe", "--peer-dim 32 --scheme damgard-jurik"),
    "okamoto-uchiyama-3072": ("lightphe", "--peer-dim 64 --scheme okamoto-uchiyama"),
    "elgamal": ("", "--scheme elgamal"),
}
"""Result files of the Paillier family: peers that have the scheme, and what `bench paillier` is asked for."""

Command = list[str]


class StepFailedError(Exception):
    """A step that ended badly; the message is the next thing to do."""


class StepSkippedError(Exception):
    """A step this machine cannot run; the message says why."""


@dataclass
class Step:
    name: str
    says: str
    action: Callable[[], None]
    setup: bool = False


@dataclass
class Run:
    skipped: list[str] = field(default_factory=list)
    times: list[tuple[str, float]] = field(default_factory=list)


def call(command: Command, **environment: str) -> None:
    """Run one command with its output straight on the terminal."""
    result = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment})
    if result.returncode != 0:
        raise StepFailedError(f"`{' '.join(command)}` ended with exit code {result.returncode}")


def quiet(command: Command, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


# Set-up -------------------------------------------------------------------------------------------


def look_at_machine() -> None:
    if sys.version_info < (3, 10):  # noqa: UP036, an older one gets this far
        raise StepFailedError(
            f"Python 3.10 or newer is needed and this is {sys.version.split()[0]}; "
            "name another one with `make PYTHON=/path/to/python3 ...`"
        )
    if shutil.which("cargo") is None:
        raise StepFailedError(
            "no `cargo` on the PATH; install a Rust toolchain with rustup and open a new shell"
        )
    rust = quiet(["cargo", "--version"]).stdout.strip()
    print(f"Python {sys.version.split()[0]}, {rust}, {os.cpu_count()} cores")


def make_venv() -> None:
    wanted = "{}.{}".format(*sys.version_info[:2])
    if PYTHON.exists():
        has = quiet([str(PYTHON), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.strip()
        if has == wanted:
            print(f".venv is there (Python {has})")
            return
        shutil.rmtree(VENV)
    result = quiet([sys.executable, "-m", "venv", str(VENV)])
    if result.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        raise StepFailedError(
            "this Python cannot make a virtual environment (on Debian and Ubuntu: "
            f"apt install python3-venv)\n{result.stdout}{result.stderr}"
        )


def install(stamp: str, arguments: Command) -> None:
    """pip install, skipped when the lock file and the arguments are those of the last time."""
    mark = VENV / f".{stamp}"
    state = hashlib.sha256(LOCK.read_bytes() + "\0".join(arguments).encode()).hexdigest()
    if mark.exists() and mark.read_text() == state:
        print("already installed")
        return
    call([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments])
    mark.write_text(state)


def install_demo_tools() -> None:
    install("demo-tools", ["--constraint", str(LOCK), *DEMO_PACKAGES])


def install_test_tools() -> None:
    install("test-tools", ["--requirement", str(LOCK)])


def build_wheel() -> None:
    for old in WHEELS.glob("ciphervec-*.whl"):
        old.unlink()
    call([str(PYTHON), "-m", "maturin", "build", "--release", "--locked", "--out", str(WHEELS),
          "--interpreter", str(PYTHON)])  # fmt: skip
    wheels = list(WHEELS.glob("ciphervec-*.whl"))
    if len(wheels) != 1 or "-abi3-" not in wheels[0].name:
        raise StepFailedError(f"expected one abi3 wheel in {WHEELS}, found {[w.name for w in wheels]}")
    call([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet",
          "--no-deps", "--force-reinstall", str(wheels[0])])  # fmt: skip
    print(f"{wheels[0].name}, {wheels[0].stat().st_size / 1e6:.1f} MB, installed in .venv")


# Rust ---------------------------------------------------------------------------------------------


def need_component(component: str, subcommand: str) -> None:
    if quiet(["cargo", subcommand, "--version"]).returncode == 0:
        return
    if shutil.which("rustup") is not None:
        print(f"{component} is missing: rustup component add {component}")
        if quiet(["rustup", "component", "add", component]).returncode == 0:
            return
    message = f"{component} is not installed and could not be added; `rustup component add {component}`"
    raise StepFailedError(message) if os.environ.get("CI") else StepSkippedError(message)


def rust_format() -> None:
    need_component("rustfmt", "fmt")
    call(["cargo", "fmt", "--all", "--check"])
    call(["cargo", "fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])


def clippy() -> None:
    need_component("clippy", "clippy")
    call(
        [
            "cargo",
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--locked",
            "--",
            "-D",
            "warnings",
        ]
    )


def cargo_test() -> None:
    call(["cargo", "test", "--workspace", "--all-features", "--locked"])


def cargo_docs() -> None:
    call(
        ["cargo", "doc", "--workspace", "--all-features", "--no-deps", "--locked"], RUSTDOCFLAGS="-D warnings"
    )


def server_half() -> None:
    """Without the `client` feature the server's half must build, and neither it nor the server may link what seals or opens."""
    call(["cargo", "check", "--package", "ciphervec", "--no-default-features", "--locked"])
    for package, options in (("ciphervec", ["--no-default-features"]), ("ciphervec-server", [])):
        tree = quiet(["cargo", "tree", "--package", package, *options, "--edges", "normal", "--prefix", "none",
                      "--locked"])  # fmt: skip
        secret = ("chacha20poly1305 ", "scrypt ", "hpke ")
        found = [line for line in tree.stdout.splitlines() if line.startswith(secret)]
        if tree.returncode != 0 or found:
            raise StepFailedError(f"{package} links secret-key code: {found}\n{tree.stderr}")
    print("no AEAD, no key wrap, no key file code in the server's half and in the server")


def native_backends() -> list[str]:
    """The back-ends this processor runs, other than the one chosen by default."""
    probe = "import ciphervec._native as n; print(n.backend())"
    default = quiet([str(PYTHON), "-c", probe]).stdout.strip()
    return [
        name
        for name in ("avx2", "portable")
        if name != default
        and quiet([str(PYTHON), "-c", probe], CIPHERVEC_BACKEND=name).stdout.strip() == name
    ]


def on_backend(name: str, command: Command) -> None:
    if name not in native_backends():
        raise StepSkippedError(f"this processor has no {name}, or it is the default already tested")
    call(command, CIPHERVEC_BACKEND=name)


def cargo_test_on(name: str) -> Callable[[], None]:
    command = ["cargo", "test", "--package", "ciphervec-arith", "--package", "ciphervec-he", "--all-features",
               "--locked"]  # fmt: skip
    return lambda: on_backend(name, command)


# Python -------------------------------------------------------------------------------------------


def module(*arguments: str) -> Callable[[], None]:
    return lambda: call([str(PYTHON), "-m", *arguments])


def ruff() -> None:
    call([str(PYTHON), "-m", "ruff", "format", "--check", "."])
    call([str(PYTHON), "-m", "ruff", "check", "."])


def pytest_on(name: str) -> Callable[[], None]:
    return lambda: on_backend(name, [str(PYTHON), "-m", "pytest", "-q", "-m", "core"])


def structure() -> None:
    call([str(PYTHON), "tools/structure.py"])


def licences() -> None:
    call([str(PYTHON), "tools/licences.py"])


# Results ------------------------------------------------------------------------------------------


def program(*arguments: str) -> Callable[[], None]:
    return lambda: call([str(BIN / "ciphervec"), *arguments])


def results(stem: str, *arguments: str) -> Callable[[], None]:
    base = str(RESULTS / stem)
    return program("bench", *arguments, "--json", f"{base}.json", "--markdown", f"{base}.md")


def reproduce(study: str, *arguments: str) -> Callable[[], None]:
    base = str(RESULTS / study)
    return program("reproduce", study, *arguments, "--json", f"{base}.json", "--markdown", f"{base}.md")


def fault(kind: str, *arguments: str) -> Callable[[], None]:
    return program("bench", "faults", kind, *arguments, "--json", str(RESULTS / f"faults-{kind}.json"))


def bench(stem: str, *arguments: str) -> Callable[[], None]:
    return results(stem, "search", *arguments)


def install_peers() -> None:
    """Each on its own, since one without a wheel for this Python should not keep the others away."""
    failed = []
    for name, packages in PEERS.items():
        try:
            install(f"peer-{name}", packages)
        except StepFailedError:
            failed.append(name)
    if failed:
        raise StepSkippedError(f"no wheel for this Python of {', '.join(failed)}")


def installed(name: str) -> bool:
    return quiet([str(PYTHON), "-c", f"import {name}"]).returncode == 0


def bench_tenseal() -> None:
    if not installed("tenseal"):
        raise StepSkippedError("TenSEAL is not installed")
    bench("search-tenseal", "--rows", "10000", "--dim", "512", "--threads", "1", "--peer", "tenseal")()


def bench_additive(stem: str) -> Callable[[], None]:
    """A scheme of the Paillier family, beside those of its peers that are installed."""

    def action() -> None:
        peers, arguments = ADDITIVE[stem]
        present = ",".join(name for name in peers.split(",") if name and installed(name))
        peer = ["--peer", present] if present else []
        results(stem, "paillier", "--dim", "512", *arguments.split(), *peer)()

    return action


def pictures() -> None:
    """Drawn from what is stored; nothing is measured again."""
    program("bench", "plot", *map(str, sorted(RESULTS.glob("*.json"))), "--csv")()


def fill_tables() -> None:
    call([str(PYTHON), "tools/results.py"])


def lock() -> None:
    install("uv", ["uv"])
    call([str(PYTHON), "-m", "uv", "pip", "compile", "pyproject.toml", "--all-extras", "--group", "dev",
          "--universal", "--upgrade", "--python-version", "3.10", "--no-header", "--no-annotate",
          "--no-emit-index-url", "--no-emit-find-links", "--output-file", str(LOCK)])  # fmt: skip


MACHINE = Step("machine", "look for Python and Rust", look_at_machine, setup=True)
MAKE_VENV = Step("venv", "make .venv", make_venv, setup=True)
DEMO_TOOLS = Step("install", "install what the demo needs", install_demo_tools, setup=True)
TEST_TOOLS = Step("install", "install the pinned test tools", install_test_tools, setup=True)
WHEEL = Step("wheel", "build and install the release wheel", build_wheel, setup=True)

LINTS = [
    Step("rustfmt", "Rust formatting", rust_format),
    Step("clippy", "Rust lints, warnings are errors", clippy),
    Step("ruff", "Python formatting and lints", ruff),
    Step("mypy", "Python types, strict", module("mypy")),
    Step("structure", "no circle between the modules of a crate", structure),
]

TARGETS: dict[str, list[Step]] = {
    "demo": [
        MACHINE,
        MAKE_VENV,
        DEMO_TOOLS,
        WHEEL,
        Step("demo", "the main job on real input", program("demo")),
    ],
    "test": [
        MACHINE,
        MAKE_VENV,
        TEST_TOOLS,
        WHEEL,
        *LINTS,
        Step(
            "stubtest",
            "the typed stub against the native module",
            module("mypy.stubtest", "ciphervec._native"),
        ),
        Step("licences", "every Rust dependency is permissively licensed", licences),
        Step("server-half", "the server builds without any secret key code", server_half),
        Step("cargo-doc", "Rust documentation, warnings are errors", cargo_docs),
        Step("cargo-test", "Rust tests on the default back-end", cargo_test),
        Step("cargo-test-avx2", "arithmetic and scheme tests on AVX2", cargo_test_on("avx2")),
        Step(
            "cargo-test-portable", "arithmetic and scheme tests on portable code", cargo_test_on("portable")
        ),
        Step("pytest", "Python tests, examples, README snippets", module("pytest", "-q")),
        Step("pytest-avx2", "core Python tests on AVX2", pytest_on("avx2")),
        Step("pytest-portable", "core Python tests on portable code", pytest_on("portable")),
    ],
    "lint": [MACHINE, MAKE_VENV, TEST_TOOLS, *LINTS],
    "wheel": [MACHINE, MAKE_VENV, DEMO_TOOLS, WHEEL],
    "bench": [
        MACHINE,
        MAKE_VENV,
        TEST_TOOLS,
        WHEEL,
        Step("one", "one query", bench("search-1-query", *BENCH_COMMON, "--queries", "1")),
        Step("batch", "64 queries at once", bench("search-64-queries", *BENCH_COMMON, "--queries", "64")),
        Step("peers", "install TenSEAL, LightPHE and phe", install_peers),
        Step("tenseal", "TenSEAL on 10,000 rows", bench_tenseal),
        *(Step(stem, f"vectors under {stem}", bench_additive(stem)) for stem in ADDITIVE),
        Step("ckks", "CKKS, operation by operation", results("ckks", "ckks", "--log-n", "14,15,16")),
        Step(
            "pairs",
            "two encrypted vectors, beside TenSEAL",
            reproduce("ckks-similarity", "--layouts", "slots,coefficients"),
        ),
        Step(
            "lookup", "private lookup, strategy by strategy", results("lookup", "lookup", "--strategy", "all")
        ),
        Step("ive-pel", "the study of private lookup, remade", reproduce("ive-pel", "--repeats", "3")),
        Step("server", "a server under load", results("server", "server", "--seconds", "60")),
        Step(
            "server-budget",
            "the same with less memory than rows",
            results("server-budget", "server", "--memory-budget", "200MB", "--seconds", "30"),
        ),
        Step("tables", "fill the documents' tables", fill_tables),
    ],
    "faults": [
        MACHINE,
        MAKE_VENV,
        TEST_TOOLS,
        WHEEL,
        Step("kill", "kill -9, a thousand times", fault("kill", "--turns", "1000")),
        Step("flips", "bits flipped in every file", fault("flips", "--samples", "2000")),
        Step("full-disk", "a disk that runs full", fault("full-disk")),
        Step("soak", "half an hour of steady work", fault("soak", "--minutes", "30")),
        Step("tables", "fill the documents' lists", fill_tables),
    ],
    "pictures": [
        MACHINE,
        MAKE_VENV,
        TEST_TOOLS,
        WHEEL,
        Step("pictures", "a picture and a CSV file of every stored result", pictures),
    ],
    "lock": [MACHINE, MAKE_VENV, Step("lock", "resolve requirements-dev.txt", lock)],
}


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def run(target: str, only: str | None) -> int:
    # One file format and one width wherever the output goes.
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    os.environ.setdefault("PIP_NO_PYTHON_VERSION_WARNING", "1")
    steps = [s for s in TARGETS[target] if only in (None, s.name)]
    if not steps:
        steps = [s for s in TARGETS[target] if str(only) in s.name and not s.setup]
    if not steps:
        print(f"no step of `{target}` has {only!r} in its name", file=sys.stderr)
        return 2
    outcome, start = Run(), time.monotonic()
    for number, step in enumerate(steps, 1):
        head = f"[{number}/{len(steps)}] {step.name}"
        print(f"\n{head}: {step.says}  ({clock(time.monotonic() - start)} so far)", flush=True)
        began = time.monotonic()
        try:
            step.action()
        except StepSkippedError as reason:
            outcome.skipped.append(f"{step.name}: {reason}")
            print(f"{head}: skipped, {reason}", flush=True)
        except StepFailedError as reason:
            print(f"\n{head}: FAILED after {clock(time.monotonic() - began)}\n{reason}", file=sys.stderr)
            print(f"again, this step alone: python3 tools/steps.py {target} {step.name}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print(f"\n{head}: stopped", file=sys.stderr)
            return 130
        else:
            print(f"{head}: ok, {clock(time.monotonic() - began)}", flush=True)
        outcome.times.append((step.name, time.monotonic() - began))
    print(f"\nmake {target}: all {len(steps)} steps done in {clock(time.monotonic() - start)}")
    slowest = sorted(outcome.times, key=lambda pair: -pair[1])[:3]
    print("longest: " + ", ".join(f"{name} {clock(seconds)}" for name, seconds in slowest))
    for line in outcome.skipped:
        print(f"skipped: {line}")
    return 0


def help_text() -> int:
    for line in (ROOT / "Makefile").read_text().splitlines():
        name, mark, says = line.partition("## ")
        if mark and ":" in name:
            print(f"make {name.split(':')[0]:8}{says}")
    print("\nsteps of `make test`:")
    for number, step in enumerate(TARGETS["test"], 1):
        print(f"  {number:2}  {step.name:20}{step.says}")
    return 0


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] == "help":
        return help_text()
    if arguments[0] not in TARGETS or len(arguments) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    return run(arguments[0], arguments[1] if len(arguments) == 2 else None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
