"""Two towers: a gallery of faces in a cloud, a camera with a plain probe, and the key owner who
says match or no match.

    python examples/two_tower.py

Four programs on this machine, with nothing but HTTP between them. The cloud (`ciphervec serve`)
holds vectors that it cannot read, and vouches for its answers. An enrolment desk adds
people with a writer's card and can read none. The key owner runs the decrypt service: the keys, a
threshold, a budget of queries. The camera has a token and no key; it learns one bit a query.
`docs/devices.md` says who learns what.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import numpy as np

import ciphervec
from ciphervec.decrypt_service import MatchClient, Receipts
from ciphervec.decrypt_service.client import BudgetExhausted
from ciphervec.http import HttpClient, LocalServer

PEOPLE, DIMENSION, WITHIN, BUDGET = 200, 128, 0.35, 40


def main() -> None:
    random = np.random.default_rng(7)
    faces = random.standard_normal((PEOPLE, DIMENSION)).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        os.environ["CIPHERVEC_STATE"] = f"{name}/state"
        receipts = Path(name) / "receipts.key"
        receipts.write_bytes(Receipts.generate_key())
        with LocalServer(f"{name}/cloud", ["--receipt-key", str(receipts)]) as cloud:
            run(Path(name), cloud, faces, random)


def run(folder: Path, cloud: LocalServer, faces: np.ndarray, random: np.random.Generator) -> None:
    # The key owner, once.
    keys = ciphervec.Keys.generate()
    keys.save(folder / "owner.key", allow_plaintext=True)
    with HttpClient(cloud.url, keys=keys) as client:
        gallery = client.create_collection("faces", DIMENSION, mode="sealed-index")
        card, spec = gallery.writer_card("desk"), gallery.spec

    # The enrolment desk: a card, no key.
    desk = ciphervec.Writer(card.to_bytes(), fingerprint=card.fingerprint)
    sent = desk.add_to(cloud.url, [f"person-{i}" for i in range(PEOPLE)], faces)
    print(
        f"{sent.rows} people enrolled in {sent.nbytes:,} sealed bytes, by a desk that can read none of them"
    )

    # What the camera asks of the cloud: encrypted scores, and the cloud's receipt for them.
    def asked(query: bytes) -> tuple[bytes, bytes]:
        reply = httpx.post(f"{cloud.url}/v1/collections/faces/query", content=query, trust_env=False)
        reply.raise_for_status()
        return reply.content, bytes.fromhex(reply.headers["Ciphervec-Receipt"])

    # The camera: a token, the public description, no key.
    with DecryptService(folder, cloud.url) as service:
        probe = ciphervec.Probe(ciphervec.IndexSpec.from_bytes(spec.to_bytes()))
        edge = MatchClient(service.url, service.token)

        def seen(vector: np.ndarray) -> bool:
            query = probe.query(vector)
            answer, receipt = asked(query)
            return edge.match("faces", query, answer, receipt).matched[0]

        known = faces[17:27] + 0.4 * random.standard_normal((10, DIMENSION)).astype(np.float32)
        strangers = random.standard_normal((10, DIMENSION)).astype(np.float32)
        print(f"known people: {sum(map(seen, known))} of 10 match")
        print(f"strangers: {sum(map(seen, strangers))} of 10 match")

        # What a thief of the camera can do with it.
        query = probe.query(faces[3])
        answer, receipt = asked(query)
        shifted = answer[:-1] + bytes([answer[-1] ^ 1])
        try:
            edge.match("faces", query, shifted, receipt)
        except ciphervec.ServerError:
            print("an answer that the edge altered is refused, and costs a query")
        again = 0
        try:
            while True:
                seen(faces[3])
                again += 1
        except BudgetExhausted as error:
            print(f"after {again} more the budget of {BUDGET} is used up; again in {error.retry_after:,} s")


class DecryptService:
    """`ciphervec decrypt-service serve` as a child process, and a token for one principal."""

    def __init__(self, folder: Path, cloud: str) -> None:
        base = [sys.executable, "-m", "ciphervec", "decrypt-service"]
        ledger = str(folder / "ledger.db")
        allow = [*base, "allow", ledger, "camera 1", "faces", "--budget", str(BUDGET), "--json"]
        made = subprocess.run(allow, check=True, capture_output=True)
        self.token: str = json.loads(made.stdout)["token"]
        serve = [*base, "serve", cloud, "faces", "--within", str(WITHIN), "--ledger", ledger]
        serve += ["--keys", str(folder / "owner.key"), "--receipt-key", str(folder / "receipts.key")]
        serve += ["--listen", "127.0.0.1:0", "--audit", str(folder / "audit.jsonl")]
        self._process = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True)
        line = "" if self._process.stderr is None else self._process.stderr.readline()
        self.url = line.split()[-1] if line.startswith("listening on") else ""
        if not self.url:
            raise SystemExit(f"the decrypt service did not start: {line}")

    def __enter__(self) -> DecryptService:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


if __name__ == "__main__":
    main()
