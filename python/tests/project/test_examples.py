"""Each example, run as a program, ends well and prints what a person came to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

SAYS = {
    "additive_gallery.py": "matches: [17], as in the clear: [17]",
    "answers_to_users.py": 'ann: 429 {"detail":"ann has asked 5 questions today"}',
    "bootstrapping.py": "as close as planned: True",
    "client_server_split.py": "every question found its row; the server saw sizes and times",
    "embedding_bag.py": "same decision as in the clear: 400 of 400",
    "encrypted_pairs.py": "both orders of closeness agree: 40 of 40",
    "face_verification.py": "same decision as in the clear: 200 of 200",
    "first_minutes.py": "closest: 'heat over the fields'",
    "http_quickstart.py": "bytes hold no name and no vector",
    "identification_digits.py": "same nearest neighbour:",
    "ray_cluster.py": "right answers from the cluster: 10 of 10",
    "routed_collection.py": "a row that came since is found: True; unrouted rows: 1",
    "text_classifier.py": "the halves together:",
    "texts.py": "the right note for 3 of 3 questions",
    "two_tower.py": "known people: 10 of 10 match",
    "late_interaction.py": "the right note for 3 of 3 questions",
    "password_check.py": "right answers: 3 of 3; the server saw that lookups were made, and no password",
    "programs/bag_of_words.py": "same class as in the clear: 5 of 5",
    "programs/chi_squared.py": "genes are in equilibrium at 5%, exact: True",
    "programs/faces.py": "the nearest of 8 is face 3, in the clear 3",
    "programs/hamming.py": "1,024 bits differ in 540 places, in the clear in 540",
    "programs/identification.py": "both answers among 100 people as in the clear",
    "programs/kernel.py": "sharpened 16 × 16 pixels as in the clear: True",
    "programs/location_ads.py": "is shown place 0, in the clear 0",
    "programs/neural_network.py": "same digit as in the clear: 5 of 5",
    "programs/training.py": "the same answer as in the clear: 114 of 114",
}

# What examples share.
HELPERS = {"apps/chat.py", "programs/report.py"}
# What has a test of its own, which runs it.
TESTED = {"apps/agents.py", "apps/mail.py"}

pytestmark = pytest.mark.skipif(not EXAMPLES.exists(), reason="needs the repository, not only the wheel")


def test_every_example_is_listed() -> None:
    assert {
        path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")
    } - HELPERS - TESTED == set(SAYS)


@pytest.mark.parametrize("name", sorted(SAYS))
def test_example(name: str, tmp_path: Path) -> None:
    if name == "ray_cluster.py":
        pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert SAYS[name] in done.stdout
    assert len(done.stdout.splitlines()) >= 5
