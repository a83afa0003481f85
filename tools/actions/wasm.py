"""Builds crates/wasm to the modules of js/client: those that are shipped, and those that tests take apart."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from pathlib import Path

from .base import ROOT, StepFailedError, StepSkippedError, call, quiet, say, together
from .web import need_node

TARGET = "wasm32-unknown-unknown"
PROFILE = "wasm"
OUT = ROOT / "js" / "client" / "src" / "wasm"
PARTS = ROOT / "js" / "client" / "tests" / "wasm"
"""Where the modules are that tests and benches take apart; no page loads them."""
SIMD = {"RUSTFLAGS": "-C target-feature=+simd128"}
"""A module with SIMD is a build of its own: in WebAssembly nothing can ask what runs it."""
PROGRAMS = "wasm32-wasip1"
"""The target of programs that Node runs by itself: tests and benches."""
MOST = {"ciphervec_bg.wasm": 1_120_000, "ciphervec_search_bg.wasm": 830_000}
"""Bytes of a module, gzipped, at most: a page loads one of these, or the same with SIMD."""
CLOSURE = re.compile(rb"function (wasm_bindgen__convert__closures_+invoke__h([0-9a-f]{16}))\(([^)]*)\)")
"""What runs a closure for a promise; its name ends with a hash that the compiler made."""
SHIM = re.compile(rb"(?m)^( *// Cast intrinsic for .*shim_idx: )\d+")
"""The place of such a one in its module's table, in a comment; it differs with SIMD, too."""
TOOL = ROOT / "tools" / "bindgen"
TOOLS = ROOT / "target" / "tools"


def need_target(target: str = TARGET) -> None:
    """Adds what compiles to WebAssembly; raises what a step without it says."""
    have = quiet(["rustc", "--print", "target-libdir", "--target", target]).stdout.strip()
    if have and Path(have).is_dir():
        return
    if shutil.which("rustup") is not None:
        say(f"{target} is missing: rustup target add {target}")
        if quiet(["rustup", "target", "add", target]).returncode == 0:
            return
    message = f"the target {target} is not installed and could not be added; `rustup target add {target}`"
    raise StepFailedError(message) if os.environ.get("CI") else StepSkippedError(message)


def locked(lock: Path, package: str) -> str:
    """The version of a package in a lock file."""
    found = re.search(rf'name = "{package}"\nversion = "([^"]+)"', lock.read_text())
    if found is None:
        raise StepFailedError(f"{lock} does not name {package}")
    return found[1]


def bindgen() -> Path:
    """The tool that makes the JavaScript, of the very version that the module was made with."""
    module = locked(ROOT / "Cargo.lock", "wasm-bindgen")
    tool = locked(TOOL / "Cargo.lock", "wasm-bindgen-cli-support")
    if module != tool:
        raise StepFailedError(
            f"Cargo.lock has wasm-bindgen {module} and tools/bindgen/Cargo.lock {tool}: they must be the same; set the "
            f"version in tools/bindgen/Cargo.toml to ={module} and run `cargo update` there"
        )
    call(["cargo", "build", "--release", "--locked", "--manifest-path", str(TOOL / "Cargo.toml"),
          "--target-dir", str(TOOLS)])  # fmt: skip
    return TOOLS / "release" / "bindgen"


def compiled(features: str, folder: Path, environment: dict[str, str] | None = None) -> Path:
    """The crate with these features, as cargo leaves it."""
    call(["cargo", "build", "--package", "ciphervec-wasm", "--lib", "--no-default-features", "--features", features,
          "--target", TARGET, "--profile", PROFILE, "--locked", "--target-dir", str(folder)],
         environment=environment)  # fmt: skip
    return folder / TARGET / PROFILE / "ciphervec_wasm.wasm"


def name_closures(out: Path, name: str) -> None:
    """Names what runs closures by its arguments: a hash differs with SIMD, and one JavaScript serves both modules."""
    files = {
        file: file.read_bytes() for file in out.glob(f"{name}*") if file.suffix in (".js", ".ts", ".wasm")
    }
    named: dict[bytes, bytes] = {}
    for _, old, arguments in CLOSURE.findall(files[out / f"{name}.js"]):
        new = b"%016d" % len(arguments.split(b","))
        if named.setdefault(new, old) != old:
            raise StepFailedError("two closures have as many arguments; tell them apart in name_closures")
    for file, text in files.items():
        for new, old in named.items():
            text = text.replace(b"invoke__h" + old, b"invoke__h" + new)
        file.write_bytes(text if file.suffix == ".wasm" else SHIM.sub(rb"\g<1>0", text))


def build() -> None:
    """The modules, and what is around them: the whole client, searching alone, and the tests' parts, with SIMD and without;
    and private lookup."""
    need_target()
    tool = bindgen()
    simd = ROOT / "target" / "simd"

    def bound(
        features: str, target: Path, out: Path, name: str, environment: dict[str, str] | None = None
    ) -> None:
        out.mkdir(parents=True, exist_ok=True)
        call([str(tool), str(compiled(features, target, environment)), str(out), name])
        name_closures(out, name)

    def plain() -> None:
        bound("lookup", ROOT / "target", OUT, "ciphervec_lookup")
        bound("write", ROOT / "target", OUT, "ciphervec")
        bound("search", ROOT / "target", OUT, "ciphervec_search")
        bound("parts", ROOT / "target", PARTS, "ciphervec")

    def with_simd() -> None:
        bound("write", simd, simd / "write", "ciphervec", SIMD)
        bound("search", simd, simd / "search", "ciphervec_search", SIMD)
        bound("parts", simd, simd / "parts", "ciphervec", SIMD)

    # Linking takes most of the time, and one core.
    together(plain, with_simd)
    for made, name, out in (
        (simd / "write", "ciphervec", OUT),
        (simd / "search", "ciphervec_search", OUT),
        (simd / "parts", "ciphervec", PARTS),
    ):
        if (made / f"{name}.js").read_bytes() != (out / f"{name}.js").read_bytes():
            raise StepFailedError(
                "the modules with and without SIMD need different JavaScript; they must be called alike"
            )
        shutil.copyfile(made / f"{name}_bg.wasm", out / f"{name}_simd_bg.wasm")
    for module in sorted(OUT.glob("*.wasm")):
        size, packed = module.stat().st_size, len(gzip.compress(module.read_bytes(), 9))
        say(f"{module.name}, {size / 1e3:,.0f} kB, {packed / 1e3:,.0f} kB gzipped")
        if packed > (most := MOST.get(module.name, packed)):
            raise StepFailedError(
                f"{module.name} has {packed:,} bytes gzipped, and {most:,} are the most: every page that uses it loads them. "
                "Find what came in, or say in tools/actions/wasm.py that it is worth more"
            )


def test_kernels() -> None:
    """The arithmetic crate's tests in a module with SIMD, every kernel beside the portable one."""
    need_node()
    need_target(PROGRAMS)
    runner = f"CARGO_TARGET_{PROGRAMS.upper().replace('-', '_')}_RUNNER"
    call(["cargo", "test", "--package", "ciphervec-arith", "--lib", "--test", "suite", "--target", PROGRAMS,
          "--locked", "--", "--quiet"],
         environment={**SIMD, runner: f"node --no-warnings {ROOT / 'tools' / 'run_wasi.mjs'}"})  # fmt: skip
