"""The bench of DeepFace's database: through it is found what is found in the clear."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec_lab.bench import faces as bench
from ciphervec_lab.bench import faces_report
from ciphervec_lab.bench.additive_peers import minmax
from program import Program

INSTALLED = importlib.util.find_spec("deepface") is not None
D = 64


class FakePeer:
    """LightPHE without its encryption: what is made of embeddings can be computed beside it."""

    name, scheme = "lightphe", "paillier"

    def keygen(self) -> None:
        pass

    def prepare(self, vector: np.ndarray) -> np.ndarray:
        return minmax(vector)

    def encrypt(self, vector: np.ndarray) -> np.ndarray:
        assert vector.min() >= 0
        return vector

    def dot(self, sealed: np.ndarray, probe: np.ndarray) -> float:
        return float(sealed @ probe) + 0.25

    def decrypt(self, answer: float) -> float:
        return answer

    def size(self, sealed: Any) -> int:
        return np.asarray(sealed).nbytes

    def key_sizes(self) -> tuple[int, int]:
        return 12, 34


def test_the_bench_finds_what_is_found_in_the_clear(deepface_adapter: ModuleType) -> None:
    def database(client: ciphervec.Client, mode: str) -> Any:
        return deepface_adapter.CiphervecDatabase({"mode": mode}, client)

    found = bench.made_up(12, 5, D, seed=1)
    settings = bench.Settings(questions=15, repeats=1, peer_dim=16, threshold=0.4)
    outcome = bench.run(found, settings, database, peer=FakePeer())
    clear, sealed, index, peer = outcome.records
    task = bench.divide(found, 15)
    assert (len(task.known), len(task.asked)) == (45, 15) and set(task.asked_people) == set(range(12))
    cosines = task.asked @ task.known.T
    same = task.asked_people[:, None] == task.known_people
    assert clear["nearest_right"] == np.mean(task.known_people[cosines.argmax(1)] == task.asked_people)
    assert clear["own_refused"] == np.mean(cosines[same] < 0.6)
    for ours in (sealed, index):
        assert [ours[name] for name in ("nearest_right", "own_refused", "strangers_accepted")] == [
            clear[name] for name in ("nearest_right", "own_refused", "strangers_accepted")
        ]
        assert 0 < ours["error"] < 2e-3 and ours["face_bytes"] > 8 * D
    assert not sealed["question_in_clear"] and index["question_in_clear"]
    # Sixteen of sixty-four numbers were measured: four times that, and an answer a face.
    assert (peer["estimated_from"], peer["face_bytes"], peer["answer_bytes"]) == (16, 4 * 16 * 8, 45 * 8)
    assert peer["error"] == pytest.approx(0.25)
    moved = np.array([[minmax(a) @ minmax(b) for b in task.known] for a in task.asked])
    assert peer["strangers_accepted"] == np.mean(moved[~same] >= 0.6) > 0.9 > clear["strangers_accepted"]
    lines = faces_report.lines(outcome.records)
    assert (
        lines[0][1:5] == ["–"] * 4 and lines[3][0].endswith("est.") and "in the clear, 360 B" in lines[3][4]
    )
    assert "scaled: est." in outcome.notes[-1]


def test_made_up_faces_are_as_far_apart_as_photographs() -> None:
    found = bench.made_up(100, 6, 512)
    cosines = found.embeddings @ found.embeddings.T
    same = np.equal.outer(found.people, found.people)
    others = cosines[~same]
    own = cosines[same & ~np.eye(600, dtype=bool)]
    assert np.mean(own) == pytest.approx(0.63, abs=0.03) and np.std(own) == pytest.approx(0.15, abs=0.02)
    assert np.mean(others) == pytest.approx(0, abs=0.02) and np.std(others) == pytest.approx(0.144, abs=0.01)


@pytest.mark.usefixtures("deepface_adapter")
def test_the_bench_as_a_command(tmp_path: Path, load_data: Callable[[str], dict[str, np.ndarray]]) -> None:
    program, file = Program(tmp_path), tmp_path / "faces.npz"
    np.savez(file, **{k: v for k, v in load_data("faces_facenet512_5ids.npz").items() if k != "names"})
    options = (
        "--questions",
        40,
        "--repeats",
        1,
        "--json",
        tmp_path / "a.json",
        "--markdown",
        tmp_path / "a.md",
    )
    done = program("bench", "faces", "--embeddings", file, *options)
    assert "160 faces registered and 40 others looked for" in done.stdout
    clear, *ours = json.loads((tmp_path / "a.json").read_text())
    assert clear["nearest_right"] >= 0.9 and len(ours) == 2
    for one in ours:
        assert one["nearest_right"] == clear["nearest_right"]
        assert one["own_refused"] == pytest.approx(clear["own_refused"], abs=1e-3)
    assert "| ciphervec, sealed |" in (tmp_path / "a.md").read_text()
    np.savez(file, embeddings=np.zeros((4, 3)), identity=np.zeros(4))
    assert "none of them zero" in program("bench", "faces", "--embeddings", file, code=2).stderr
    (tmp_path / "text.npz").write_text("no archive")
    assert (
        "no .npz archive" in program("bench", "faces", "--embeddings", tmp_path / "text.npz", code=2).stderr
    )
    few = ("--people", 2, "--photographs", 2, "--questions", 3)
    assert "without a registered face" in program("bench", "faces", *few, code=2).stderr


@pytest.mark.skipif(INSTALLED, reason="DeepFace is installed")
def test_the_bench_without_deepface(tmp_path: Path) -> None:
    done = Program(tmp_path)("bench", "faces", "--people", 3, "--questions", 3, code=2)
    assert "needs deepface" in done.stderr and "models are not needed" in done.stderr
