"""Makes `.venv` on a bare machine: the pinned tools and a wheel of this tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from .base import (
    BIN,
    PYTHON,
    ROOT,
    VENV,
    Action,
    Command,
    StepFailedError,
    StepSkippedError,
    call,
    quiet,
    say,
    together,
    watched,
)

LOCK = ROOT / "requirements-dev.txt"
RELEASE_LOCK = ROOT / "requirements-release.txt"
COMPAT_LOCK = ROOT / "requirements-compat.txt"
CHROMA_LOCK = ROOT / "requirements-chroma.txt"
RAY_LOCK = ROOT / "requirements-ray.txt"
PEERS_LOCK = ROOT / "requirements-peers.txt"
SITE_LOCK = ROOT / "requirements-site.txt"
FRAMEWORKS = ["haystack", "langchain", "langgraph", "llama-index", "sklearn"]
"""The extras of the adapters."""
SOURCES = ["chroma", "faiss", "lance", "milvus", "parquet", "postgres", "qdrant"]
"""The extras of the vector stores that `ciphervec import` reads."""
WRAPPERS = ["age", "awskms", "azurekv", "gcpkms", "keyring", "pkcs11", "vault"]
"""The extras of the holders of wrapping keys."""
LAB = ROOT / "lab"
"""The package that measures; `make demo` does without."""
WHEELS = ROOT / "dist"
BUILD_PACKAGES = ["maturin"]
DEMO_PACKAGES = ["httpx", "numpy", "rich", "typer", "scikit-learn"]

RELEASE = ["--release"]
"""What ships."""
PORTABLE = ["--zig", "--compatibility", "manylinux_2_28"]
"""On Linux: linked against the glibc of 2018, which zig brings, and not against this machine's. maturin refuses a wheel
that needs more, and names it for what it needs."""
DEMO = ["--profile", "demo", "--no-default-features"]
"""A third of the crates, hardly optimised where it doesn't matter: `make demo` is about the first three minutes."""
TEST = ["--profile", "dev", "--features", "as-tested"]
"""What the Rust tests are compiled like: both need the same 250 crates, and take them from the same folder. Its overflow
and debug assertions are on. The release wheel has a target of its own, `make release`."""


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
    say(f"Python {sys.version.split()[0]}, {rust}, {os.cpu_count()} cores")


def fetch_crates() -> None:
    """The sources of this machine's crates. Whoever is offline and needs one hears of it from the build."""
    host = [line for line in quiet(["rustc", "-vV"]).stdout.splitlines() if line.startswith("host: ")]
    target = ["--target", host[0].removeprefix("host: ")] if host else []
    quiet(["cargo", "fetch", "--locked", *target])


def make_venv() -> None:
    wanted = "{}.{}".format(*sys.version_info[:2])
    if PYTHON.exists():
        has = quiet([str(PYTHON), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.strip()
        if has == wanted:
            say(f".venv is there (Python {has})")
            return
        shutil.rmtree(VENV)
    result = quiet([sys.executable, "-m", "venv", str(VENV)])
    if result.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        raise StepFailedError(
            "this Python cannot make a virtual environment (on Debian and Ubuntu: "
            f"apt install python3-venv)\n{result.stdout}{result.stderr}"
        )


def install(stamp: str, arguments: Command, lock: Path = LOCK) -> None:
    """pip install, skipped when the lock file and the arguments are those of the last time."""
    mark = VENV / f".{stamp}"
    state = hashlib.sha256(lock.read_bytes() + "\0".join(arguments).encode()).hexdigest()
    if mark.exists() and mark.read_text() == state:
        say(f"already installed: {' '.join(arguments)}")
        return
    call([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet",
          "--progress-bar", "off", *arguments])  # fmt: skip
    mark.write_text(state)


def patiently(python: Path, *arguments: str) -> None:
    """pip install of much, from a registry that may be slow: what has come stays in pip's cache, and a second try goes on
    from there."""
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet",
               "--progress-bar", "off", "--retries", "8", "--timeout", "120", *arguments]  # fmt: skip
    try:
        call(command)
    except StepFailedError as error:
        say(f"{error}; once more")
        call(command)


def install_build_tools() -> None:
    """What cargo is called by; the rest is installed while it works."""
    make_venv()
    install("build-tools", ["--constraint", str(LOCK), *BUILD_PACKAGES])


def install_demo_tools() -> None:
    install("demo-tools", ["--constraint", str(LOCK), *DEMO_PACKAGES])


def install_test_tools() -> None:
    """As they are locked; and the lab of this tree, for which nothing is compiled."""
    install("test-tools", ["--requirement", str(LOCK)])
    call([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-deps",
          "--no-build-isolation", "--force-reinstall", str(LAB)])  # fmt: skip


def links_portably() -> bool:
    """Whether this is a Linux with glibc, whose versions a wheel can need."""
    return any(line.startswith("host: ") and line.endswith("-linux-gnu")
               for line in quiet(["rustc", "-vV"]).stdout.splitlines())  # fmt: skip


def install_release_tools() -> None:
    """zig, which brings what to link against."""
    try:
        install("release-tools", ["--requirement", str(RELEASE_LOCK)], RELEASE_LOCK)
    except StepFailedError as error:
        raise StepFailedError(
            f"{error}\nThe release wheel runs on older systems than this one, because zig links it: a package of PyPI, "
            f"100 MB, at the version in {RELEASE_LOCK.name}, which could not be installed. Run this again when PyPI, or "
            "the mirror that pip is set up for, answers. `make test` and `make demo` do without."
        ) from error


def begin() -> None:
    together(install_build_tools, fetch_crates)


def wheel(options: Command, tools: Action = lambda: None) -> Action:
    """Builds a wheel while `tools` installs what else is needed, and installs it."""

    def action() -> None:
        for old in WHEELS.glob("ciphervec-*.whl"):
            old.unlink()
        portable = options == RELEASE and links_portably()
        if portable:
            install_release_tools()
        build = [str(PYTHON), "-m", "maturin", "build", *options, *(PORTABLE if portable else []), "--locked",
                 "--out", str(WHEELS), "--interpreter", str(PYTHON)]  # fmt: skip
        # Where zig is looked for; otherwise in whatever Python is first on the PATH.
        zig = {"CARGO_ZIGBUILD_PYTHON_PATH": str(PYTHON)}
        together(lambda: watched(build, environment=zig), tools)
        wheels = list(WHEELS.glob("ciphervec-*.whl"))
        if len(wheels) != 1 or "-abi3-" not in wheels[0].name:
            raise StepFailedError(f"expected one abi3 wheel in {WHEELS}, found {[w.name for w in wheels]}")
        call([str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet",
              "--no-deps", "--force-reinstall", str(wheels[0])])  # fmt: skip
        say(f"{wheels[0].name}, {wheels[0].stat().st_size / 1e6:.1f} MB, installed in .venv")

    return action


CROSS = {
    "aarch64-unknown-linux-gnu": PORTABLE,
    "x86_64-unknown-linux-musl": ["--zig", "--compatibility", "musllinux_1_2"],
    "aarch64-unknown-linux-musl": ["--zig", "--compatibility", "musllinux_1_2"],
}
"""Systems that zig links for from any other; macOS takes Apple's own files, and is built where those are."""
WINDOWS = "x86_64-pc-windows-gnu"


def cross(target: str) -> Action:
    """Builds a wheel for another system into dist/, and says its size. What it is not is tried there."""

    def action() -> None:
        if f"host: {target}" in quiet(["rustc", "-vV"]).stdout:
            raise StepSkippedError("that is this machine, whose wheel is built first")
        if shutil.which("rustup") is None:
            raise StepSkippedError(
                "rustup is not installed, which brings the standard library of another system"
            )
        call(["rustup", "target", "add", target])
        install_release_tools()
        before = set(WHEELS.glob("*.whl"))
        build = [str(PYTHON), "-m", "maturin", "build", *RELEASE, *CROSS[target], "--target", target, "--locked",
                 "--out", str(WHEELS)]  # fmt: skip
        watched(build, environment={"CARGO_ZIGBUILD_PYTHON_PATH": str(PYTHON)})
        for made in sorted({*WHEELS.glob("*.whl")} - before):
            say(f"{made.name}, {made.stat().st_size / 1e6:.1f} MB")

    return action


def cross_windows() -> None:
    """The same for Windows; its Python files are those of this machine's wheel."""
    if shutil.which("rustup") is None:
        raise StepSkippedError("rustup is not installed, which brings the standard library of another system")
    ours = [one for one in WHEELS.glob("ciphervec-*.whl") if "-win_" not in one.name]
    if not ours:
        raise StepFailedError(f"no wheel in {WHEELS} to take the Python files from; run the step wheel first")
    call(["rustup", "target", "add", WINDOWS])
    install_release_tools()
    build = [
        str(BIN / "cargo-zigbuild"),
        "build",
        "--release",
        "--locked",
        "--target",
        WINDOWS,
        "-p",
        "ciphervec-python",
    ]
    watched(
        build,
        environment={
            "CARGO_PROFILE_RELEASE_STRIP": "symbols",  # as maturin does with the others
            "CARGO_ZIGBUILD_PYTHON_PATH": str(PYTHON),
            "PYO3_NO_PYTHON": "1",
        },
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    library = target / WINDOWS / "release" / "_native.dll"
    call([str(PYTHON), "tools/wheel_windows.py", str(ours[0]), str(library)])


def check_wheel() -> None:
    """That the wheel in dist/ asks for no newer glibc than its name says."""
    if not links_portably():
        raise StepSkippedError("a wheel that is not for Linux with glibc")
    call([str(PYTHON), "tools/wheel_glibc.py"])


def lock() -> None:
    """What `make test` needs, what a release does, the site, `make compat`, Chroma's suite, Ray, and the libraries beside
    which benches measure; the last six are not for everybody."""
    install("uv", ["uv"])
    project = ["pyproject.toml"]  # the package's own needs; the tools of a release have none of them
    lab = ["lab/pyproject.toml", "--no-emit-package", "ciphervec"]  # which is the wheel of this tree
    sets: list[tuple[Path, list[str], list[str], str]] = [
        (LOCK, [*project, *lab], ["all", *WRAPPERS], "dev"),
        (RELEASE_LOCK, [], [], "release"),
        (SITE_LOCK, [], [], "site"),
        (COMPAT_LOCK, project, [*FRAMEWORKS, *SOURCES], "compat"),
        (CHROMA_LOCK, project, [], "chroma"),
        (RAY_LOCK, project, ["ray"], "ray"),
        (PEERS_LOCK, [], [], "peers"),
    ]
    for file, source, extras, group in sets:
        oldest = "3.11" if group == "site" else "3.10"
        chosen = [argument for extra in extras for argument in ("--extra", extra)]
        call([str(PYTHON), "-m", "uv", "pip", "compile", *source, *chosen, "--group", group,
              "--universal", "--upgrade", "--python-version", oldest, "--no-header", "--no-annotate",
              "--no-emit-index-url", "--no-emit-find-links", "--output-file", str(file)])  # fmt: skip
