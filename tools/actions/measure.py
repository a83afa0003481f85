"""What is measured, and where its records go: benches/results/, and the documents' tables made of them."""

from __future__ import annotations

import os
from pathlib import Path

from .base import PYTHON, ROOT, Action, StepFailedError, StepSkippedError, call, quiet
from .python import on_backend, program
from .setup import PEERS_LOCK, install

RESULTS = ROOT / "benches" / "results"
BENCH_COMMON = ["--rows", "200000", "--dim", "512", "--threads", "1"]
PEERS = {
    "tenseal": ["tenseal"],
    "openfhe": ["openfhe"],
    "lightphe": ["lightphe"],
    "phe": ["phe", "gmpy2"],
    # For its database; what its models need is a thousand times as much.
    "deepface": ["--no-deps", "deepface", "gdown", "opencv-python-headless", "requests", "tqdm"],
}
PHOTOGRAPHS = "faces_facenet512_5ids.npz"
"""Facenet512's embeddings, which are not the project's to give away."""
ADDITIVE = {
    "paillier-2048": ("lightphe,phe", "--bits 2048"),
    "paillier-3072": ("lightphe,phe", "--peer-dim 64"),
    "paillier-3072-high": ("lightphe,phe", "--peer-dim 64 --precision high"),
    "damgard-jurik-3072": ("lightphe", "--peer-dim 32 --scheme damgard-jurik"),
    "okamoto-uchiyama-3072": ("lightphe", "--peer-dim 64 --scheme okamoto-uchiyama"),
    "elgamal": ("", "--scheme elgamal"),
}
"""Result files of the Paillier family: peers that have the scheme, and what `bench paillier` is asked for."""


def results(stem: str, *arguments: str) -> Action:
    base = str(RESULTS / stem)
    return program("bench", *arguments, "--json", f"{base}.json", "--markdown", f"{base}.md")


def reproduce(study: str, *arguments: str) -> Action:
    base = str(RESULTS / study)
    return program("reproduce", study, *arguments, "--json", f"{base}.json", "--markdown", f"{base}.md")


def fault(kind: str, *arguments: str) -> Action:
    return program("bench", "faults", kind, *arguments, "--json", str(RESULTS / f"faults-{kind}.json"))


def fault_bucket(*arguments: str) -> Action:
    """The same over a bucket of moto's server, which lives as long as the run."""

    def action() -> None:
        command = [str(PYTHON), "-m", "ciphervec", "bench", "faults", "kill", "--bucket", "s3://bucket/kill"]
        call([str(PYTHON), "tools/with_bucket.py", *command, *arguments,
              "--json", str(RESULTS / "faults-kill-bucket.json")])  # fmt: skip

    return action


def bench(stem: str, *arguments: str) -> Action:
    return results(stem, "search", *arguments)


def on_avx2(action: Action) -> Action:
    """All on AVX2, ours and the plaintext peers. On a processor with AVX-512 that stands in for one without."""
    return on_backend("avx2", action, FAISS_SIMD_LEVEL="AVX2", OPENBLAS_CORETYPE="Haswell")


def install_peers() -> None:
    """Each on its own, since one without a wheel for this Python should not keep the others away."""
    failed = []
    for name, packages in PEERS.items():
        try:
            install(f"peer-{name}", ["--constraint", str(PEERS_LOCK), *packages], PEERS_LOCK)
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


def bench_programs() -> None:
    """Beside the peers that are there; some can be installed where they cannot be imported."""
    present = ",".join(name for name in ("openfhe", "tenseal", "concrete") if installed(name))
    results("programs", "programs", *(["--peer", present] if present else []))()


def bench_bootstrapping() -> None:
    """Beside OpenFHE, in the Python that CIPHERVEC_PEER_PYTHON names: its wheels are for 3.10."""
    results("bootstrapping", "bootstrapping", "--peer", "openfhe",
            "--peer-python", os.environ.get("CIPHERVEC_PEER_PYTHON", str(PYTHON)))()  # fmt: skip


def bench_additive(stem: str, suffix: str = "") -> Action:
    """A scheme of the Paillier family, beside those of its peers that are installed."""

    def action() -> None:
        peers, arguments = ADDITIVE[stem]
        present = ",".join(name for name in peers.split(",") if name and installed(name))
        peer = ["--peer", present] if present else []
        results(stem + suffix, "paillier", "--dim", "512", *arguments.split(), *peer)()

    return action


def bench_faces(stem: str, *arguments: str) -> Action:
    """Through DeepFace's database, beside LightPHE where it is installed."""

    def action() -> None:
        if not installed("deepface.modules.database.inventory"):
            raise StepSkippedError("DeepFace is not installed")
        peer = ["--peer"] if installed("lightphe") else []
        results(stem, "faces", *arguments, *peer)()

    return action


def bench_photographs() -> None:
    """The same of real photographs, in the folder that CIPHERVEC_TEST_DATA names or in one beside the repository."""
    named = os.environ.get("CIPHERVEC_TEST_DATA")
    found = [Path(named) / PHOTOGRAPHS] if named else sorted(ROOT.parent.glob(f"*/data/{PHOTOGRAPHS}"))
    if not any(file.is_file() for file in found):
        raise StepSkippedError(f"there is no {PHOTOGRAPHS}")
    bench_faces("faces-photographs", "--embeddings", str(found[0]))()


def pictures() -> None:
    """Drawn from what is stored; nothing is measured again."""
    program("bench", "plot", *map(str, sorted(RESULTS.glob("*.json"))), "--csv")()


def fill_tables() -> None:
    call([str(PYTHON), "tools/results.py"])
