"""What `make` runs: every step in order, numbered and timed. Standard library only: it runs on a bare machine.

`python3 tools/steps.py test` runs all steps of a target; `python3 tools/steps.py test clippy` that one;
and `python3 tools/steps.py test avx2` those with "avx2" in their name. What a step does is in tools/actions/.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from functools import partial

from actions import (
    arm,
    browser,
    chroma,
    compat,
    deploy,
    hsm,
    measure,
    ray_cluster,
    rust,
    setup,
    site,
    timing,
    wasm,
    web,
)
from actions.base import ROOT, Step, StepFailedError, StepSkippedError, say, together
from actions.measure import bench, fault, reproduce, results
from actions.python import module, on_backend, program, pytest, ruff, script


def clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@dataclass
class Run:
    """The steps of a target: a line is printed as each ends, and outcomes are counted."""

    target: str
    count: int
    start: float = field(default_factory=time.monotonic)
    skipped: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    times: list[tuple[str, float]] = field(default_factory=list)

    def clock(self) -> str:
        return clock(time.monotonic() - self.start)

    def attempt(self, number: int, step: Step) -> None:
        head = f"[{number}/{self.count}] {step.name}"
        say(f"\n{head}: {step.says}  ({self.clock()} so far)")
        began = time.monotonic()
        try:
            step.action()
        except StepSkippedError as reason:
            self.skipped.append(f"{step.name}: {reason}")
            say(f"{head}: skipped, {reason}")
        except StepFailedError as reason:
            self.failed.append(
                f"\n{head}: FAILED after {clock(time.monotonic() - began)}\n{reason}\n"
                f"again, this step alone: python3 tools/steps.py {self.target} {step.name}"
            )
        else:
            say(f"{head}: ok, {clock(time.monotonic() - began)}")
        self.times.append((step.name, time.monotonic() - began))


BEGIN = [
    Step("machine", "look for Python and Rust", setup.look_at_machine, setup=True),
    Step("venv", "make .venv, fetch the crates", setup.begin, setup=True),
]
DEMO_WHEEL = Step(
    "wheel", "build a quick wheel without the server", setup.wheel(setup.DEMO, setup.install_demo_tools), True
)
TEST_WHEEL = Step(
    "wheel",
    "build a wheel like the Rust tests, with its assertions",
    setup.wheel(setup.TEST, setup.install_test_tools),
    True,
)
WHEEL = Step(
    "wheel", "build and install the release wheel", setup.wheel(setup.RELEASE, setup.install_test_tools), True
)

LINTS = [
    Step("rustfmt", "Rust formatting", rust.format_check),
    Step("ruff", "Python formatting and lints", ruff, beside=True),
    Step("mypy", "Python types, strict", module("mypy"), beside=True),
    Step("structure", "no circle between the modules of a crate", script("tools/structure.py"), beside=True),
    Step("clippy", "Rust lints, warnings are errors", rust.clippy),
]

PAIRS = Step(
    "pairs",
    "two encrypted vectors, beside TenSEAL",
    reproduce("ckks-similarity", "--layouts", "slots,coefficients"),
)
IVE_PEL = Step("ive-pel", "the study of private lookup, remade", reproduce("ive-pel", "--repeats", "3"))
CHROMA = Step("chroma", "install Chroma in .venv-chroma", chroma.install, True)
CHROMA_API = Step("chroma-api", "Chroma's own suite against the sidecar", chroma.suite(chroma.API))
WASM = Step("wasm", "compile the key holder's half to WebAssembly", wasm.build)
NPM = Step("npm", "install what js/package-lock.json names", web.install, True)
NEON = Step(
    "neon", "arithmetic tests on ARM's NEON, in QEMU where this is another processor", arm.test_kernels
)
MUTANTS = Step("mutants", "each check taken out, and the tests that must notice", script("tools/mutants.py"))
CHROMIUM = Step("chromium", "install Debian's browser, as root", browser.chromium)
CONSOLE = [
    WASM,
    NPM,
    Step("console", "the page that the wheel's server shows", web.with_wasm(web.npm("build"))),
]
COMPAT = [
    Step("frameworks", "install the frameworks and the wheel in .venv-compat", compat.install, True),
    Step("suites", "frameworks' own suites over collections", compat.suites),
    CHROMA,
    CHROMA_API,
]
RAY = [
    Step("ray", "install Ray and the wheel in .venv-ray", ray_cluster.install, True),
    Step("cluster", "sealing, scanners and the front on clusters of this machine", ray_cluster.suite),
    Step("example", "a cluster by one command", ray_cluster.example),
]
WEB = [
    WASM,
    Step("wasm-kernels", "arithmetic tests in WebAssembly with SIMD", wasm.test_kernels),
    NPM,
    Step("model", "what the demo page embeds with, written by Python", browser.model),
    Step("lint", "TypeScript formatting and lints", web.npm("lint")),
    Step("build", "what npm packages and pages are made of", web.with_wasm(web.npm("build"))),
    Step("types", "TypeScript types, strict", web.with_wasm(web.npm("types"))),
    Step("units", "TypeScript unit tests", web.with_wasm(web.npm("test:unit"))),
    Step("e2e", "the client beside Python, against a real server", web.against_server(web.npm("test:e2e"))),
    Step("browser", "the client and the demo page in Chromium", browser.suite),
    Step("console", "the console's pages in Chromium", browser.console),
]
SITE = [
    Step("generator", "install the site's generator in .venv-site", site.install, True),
    Step("openapi", "the server's own description of its endpoints", site.openapi),
    Step("typedoc", "the reference of the client for browsers", site.typedoc),
    Step("pictures", "pictures of the stored results", site.pictures),
    Step("site", "pages, references and notebooks as static files, links checked", site.build),
]
TARGETS: dict[str, list[Step]] = {
    "demo": [*BEGIN, DEMO_WHEEL, Step("demo", "the main job on real input", program("demo"))],
    "check": [
        *BEGIN,
        TEST_WHEEL,
        *LINTS,
        Step("unit-tests", "Rust unit tests", rust.test("--lib")),
        Step(
            "pytest-quick",
            "the core of the Python tests, without the slow ones",
            pytest("-m", "core and not slow"),
        ),
    ],
    "test": [
        *BEGIN,
        TEST_WHEEL,
        *LINTS,
        Step(
            "stubtest",
            "the typed stub against the native module",
            module("mypy.stubtest", "ciphervec._native"),
            beside=True,
        ),
        Step("licences", "every Rust dependency is permissively licensed", script("tools/licences.py")),
        Step("halves", "each half builds without what it must not have", rust.halves),
        Step("cargo-doc", "Rust documentation, warnings are errors", rust.docs),
        Step("cargo-test", "Rust tests on the default back-end", rust.test()),
        Step("cargo-test-avx2", "arithmetic and scheme tests on AVX2", on_backend("avx2", rust.test_again)),
        Step(
            "cargo-test-portable",
            "arithmetic and scheme tests on portable code",
            on_backend("portable", rust.test_again),
        ),
        NEON,
        Step("softhsm", "install Debian's SoftHSM, as root", hsm.install, True),
        Step("pytest", "Python tests, examples, README snippets", pytest()),
        Step("pytest-avx2", "core Python tests on AVX2", on_backend("avx2", pytest("-m", "core"))),
    ],
    "release": [
        *BEGIN,
        *CONSOLE,
        WHEEL,
        Step("glibc", "the wheel runs on systems as old as it says", setup.check_wheel),
        Step("pytest", "the core of the Python tests on what ships", pytest("-m", "core")),
    ],
    "compat": [*BEGIN, WHEEL, *COMPAT],
    "compat-chroma": [
        *BEGIN,
        WHEEL,
        CHROMA,
        CHROMA_API,
        Step("chroma-properties", "the suite's property tests", chroma.suite(chroma.PROPERTIES)),
    ],
    "ray": [*BEGIN, WHEEL, *RAY],
    "web": WEB,
    "site": SITE,
    "console": [*BEGIN, *CONSOLE],
    "pages": [CHROMIUM, *WEB, *SITE],
    "nightly": [
        *BEGIN,
        WHEEL,
        Step(
            "liar",
            "10,000 operations beside a server that tells lies of every kind",
            pytest("python/tests/trust/test_random_liar.py", CIPHERVEC_LIES="10000"),
        ),
        Step(
            "fuzz",
            "random operations over the public API beside NumPy and a dictionary, others every day",
            pytest(
                "python/tests/fuzz", CIPHERVEC_FUZZ="60", CIPHERVEC_FUZZ_SEED=str(int(time.time()) // 86_400)
            ),
        ),
        Step(
            "bounds",
            "every stated error over inputs that are chosen against it",
            pytest("python/tests/index/test_bounds.py", CIPHERVEC_BOUNDS="5000"),
        ),
        Step(
            "honest",
            "millions of honest answers' checks",
            pytest("python/tests/trust/test_honest_answers.py", CIPHERVEC_BLOCKS="500000"),
        ),
        Step(
            "programs",
            "100,000 answers of a function whose registers have errors in common",
            pytest("python/tests/programs/test_programs_noise.py", CIPHERVEC_ANSWERS="100000"),
        ),
        Step(
            "extremes",
            "1,000 programs of wide integers at the ends of their ranges, and deep ones encrypted",
            pytest("python/tests/programs/test_programs_extremes.py", CIPHERVEC_EXTREMES="1000"),
        ),
        Step(
            "pytest-portable",
            "core Python tests on portable code",
            on_backend("portable", pytest("-m", "core")),
        ),
        Step("sets", "Rust tests of sizes to be used", rust.test("--release", "--", "--ignored")),
        NEON,
        Step("timing", "that the time of what touches secrets does not depend on them", timing.run),
        Step("timing-avx2", "the same on AVX2", on_backend("avx2", timing.run)),
        Step("timing-portable", "the same on portable code", on_backend("portable", timing.run)),
        *COMPAT,
        *RAY,
        Step("compose", "the compose file, as docker compose reads it", deploy.compose),
        Step("chart", "the chart: helm's lint, and every branch rendered", deploy.chart),
        NPM,
        MUTANTS,
        Step("peers", "install the libraries beside which it is tested", measure.install_peers),
        Step(
            "beside",
            "tests beside these libraries",
            pytest(
                "python/tests/additive/test_additive.py",
                "python/tests/ckks/test_ckks.py",
                "python/tests/adapters/test_migration.py",
                "python/tests/adapters/test_deepface.py",
                "lab/tests",
            ),
        ),
    ],
    "mutants": [
        *BEGIN,
        Step("install", "install the pinned test tools", setup.install_test_tools, True),
        NPM,
        MUTANTS,
    ],
    "chromium": [CHROMIUM],
    "demo-web": [
        *BEGIN,
        WHEEL,
        WASM,
        NPM,
        Step("model", "write passages and model for the page", browser.model),
        Step("client", "build the client", web.npm("build", "--workspace", "client")),
        Step("page", "build the page", web.npm("build", "--workspace", "demo")),
        Step("demo", "a server, and the page in front of it", browser.demo),
    ],
    "bench-web": [
        *BEGIN,
        WHEEL,
        WASM,
        NPM,
        Step("client", "build the client", web.npm("build", "--workspace", "client")),
        Step("figures", "the client in Chromium beside the native module", browser.bench),
        Step("tables", "fill the documents' tables", measure.fill_tables),
    ],
    "lint": [
        *BEGIN,
        Step("install", "install the pinned test tools", setup.install_test_tools, True),
        *LINTS,
    ],
    "wheel": [
        *BEGIN,
        Step(
            "wheel",
            "build and install the release wheel",
            setup.wheel(setup.RELEASE, setup.install_demo_tools),
        ),
    ],
    "wheels": [
        *BEGIN,
        WHEEL,
        *(Step(target, f"the release wheel for {target}", setup.cross(target)) for target in setup.CROSS),
        Step("windows", "the release wheel for Windows", setup.cross_windows),
    ],
    "bench": [
        *BEGIN,
        WHEEL,
        Step("one", "one query", bench("search-1-query", *measure.BENCH_COMMON, "--queries", "1")),
        Step(
            "batch",
            "64 queries at once",
            bench("search-64-queries", *measure.BENCH_COMMON, "--queries", "64"),
        ),
        Step(
            "avx2-one",
            "one query on AVX2",
            measure.on_avx2(bench("search-1-query-avx2", *measure.BENCH_COMMON, "--queries", "1")),
        ),
        Step(
            "avx2-batch",
            "64 queries at once on AVX2",
            measure.on_avx2(bench("search-64-queries-avx2", *measure.BENCH_COMMON, "--queries", "64")),
        ),
        Step("peers", "install TenSEAL, OpenFHE, LightPHE, phe and DeepFace", measure.install_peers),
        Step("tenseal", "TenSEAL on 10,000 rows", measure.bench_tenseal),
        *(Step(stem, f"vectors under {stem}", measure.bench_additive(stem)) for stem in measure.ADDITIVE),
        Step(
            "avx2-paillier",
            "Paillier on AVX2",
            measure.on_avx2(measure.bench_additive("paillier-2048", "-avx2")),
        ),
        Step("ckks", "CKKS, operation by operation", results("ckks", "ckks", "--log-n", "14,15,16")),
        Step(
            "avx2-ckks", "CKKS on AVX2", measure.on_avx2(results("ckks-avx2", "ckks", "--log-n", "14,15,16"))
        ),
        PAIRS,
        Step(
            "lookup", "private lookup, strategy by strategy", results("lookup", "lookup", "--strategy", "all")
        ),
        IVE_PEL,
        Step("programs", "functions on encrypted arrays", measure.bench_programs),
        Step("bootstrapping", "ciphertexts refreshed, beside OpenFHE", measure.bench_bootstrapping),
        Step("faces", "faces in DeepFace's database", measure.bench_faces("faces")),
        Step("photographs", "faces of photographs", measure.bench_photographs),
        Step("server", "a server under load", results("server", "server", "--seconds", "60")),
        Step(
            "server-budget",
            "the same with less memory than rows",
            results("server-budget", "server", "--memory-budget", "200MB", "--seconds", "30"),
        ),
        Step("tables", "fill the documents' tables", measure.fill_tables),
    ],
    "reproduce": [
        *BEGIN,
        WHEEL,
        Step("peers", "install the libraries beside which it is measured", measure.install_peers),
        Step("phe-similarity", "the study of Paillier and its kin, remade", reproduce("phe-similarity")),
        Step("precompute", "the study of precomputations, remade", reproduce("paillier-precompute")),
        PAIRS,
        IVE_PEL,
        Step("marble", "the study of compiled programs, remade", reproduce("marble")),
        Step("tables", "fill the documents' tables", measure.fill_tables),
    ],
    "faults": [
        *BEGIN,
        WHEEL,
        Step("kill", "kill -9, a thousand times", fault("kill", "--turns", "1000")),
        Step("kill-bucket", "kill -9 over a bucket, 250 times", measure.fault_bucket("--turns", "250")),
        Step("flips", "bits flipped in every file", fault("flips", "--samples", "2000")),
        Step("full-disk", "a disk that runs full", fault("full-disk")),
        Step("soak", "half an hour of steady work", fault("soak", "--minutes", "30")),
        Step("tables", "fill the documents' lists", measure.fill_tables),
    ],
    "pictures": [
        *BEGIN,
        WHEEL,
        Step("pictures", "a picture and a CSV file of every stored result", measure.pictures),
    ],
    "lock": [
        *BEGIN,
        Step(
            "lock",
            "resolve requirements-dev.txt, -release.txt, -site.txt, -compat.txt, -chroma.txt, -ray.txt and -peers.txt",
            setup.lock,
        ),
    ],
}


def run(target: str, only: str | None) -> int:
    # One file format and one width wherever the output goes.
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    os.environ.setdefault("PIP_NO_PYTHON_VERSION_WARNING", "1")
    if target != "check" and not (ROOT / "target" / "debug" / "incremental").exists():
        # A first build has nothing to go on from, and would only write down what it did.
        os.environ.setdefault("CARGO_INCREMENTAL", "0")
    steps = [s for s in TARGETS[target] if only in (None, s.name)]
    if not steps:
        steps = [s for s in TARGETS[target] if str(only) in s.name and not s.setup]
    if not steps:
        print(f"no step of `{target}` has {only!r} in its name", file=sys.stderr)
        return 2
    running = Run(target, len(steps))
    waiting: list[tuple[int, Step]] = []
    for number, step in enumerate(steps, 1):
        waiting.append((number, step))
        if step.beside and number < len(steps):
            continue
        *others, front = [partial(running.attempt, *one) for one in waiting]
        waiting = []
        try:
            together(front, *others)
        except KeyboardInterrupt:
            print(f"\n{step.name}: stopped", file=sys.stderr)
            return 130
        if running.failed:
            print("\n".join(running.failed), file=sys.stderr)
            return 1
    print(f"\nmake {target}: all {len(steps)} steps done in {running.clock()}")
    slowest = sorted(running.times, key=lambda pair: -pair[1])[:3]
    print("longest: " + ", ".join(f"{name} {clock(seconds)}" for name, seconds in slowest))
    for line in running.skipped:
        print(f"skipped: {line}")
    return 0


def help_text() -> int:
    for line in (ROOT / "Makefile").read_text().splitlines():
        name, mark, says = line.partition("## ")
        if mark and ":" in name:
            print(f"make {name.split(':')[0]:10}{says}")
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
