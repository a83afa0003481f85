"""Two processes with a pipe between them: the owner holds the keys, the server holds the index.
Prints every byte count.

    python examples/client_server_split.py

Replace the pipe by HTTP, a queue or a file: both halves speak bytes.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import numpy as np

from ciphervec import IndexSpec, Keys, Owner, ServerIndex

ROWS, DIMENSION, QUESTIONS = 5_000, 256, 3


def serve(pipe: Connection) -> None:
    """The server's process. No key ever reaches it: look at what it receives."""
    index = ServerIndex(IndexSpec.from_bytes(pipe.recv_bytes()))
    index.set_evaluation_keys(pipe.recv_bytes())
    index.add(pipe.recv_bytes())
    while query := pipe.recv_bytes():
        pipe.send_bytes(index.evaluate(query))


def send(pipe: Connection, what: str, data: bytes) -> None:
    print(f"  owner → server  {what:16} {len(data):>12,} bytes   {data[-8:].hex(' ')}")
    pipe.send_bytes(data)


def main() -> None:
    random = np.random.default_rng(7)
    vectors = random.standard_normal((ROWS, DIMENSION)).astype(np.float32)
    wanted = random.choice(ROWS, QUESTIONS, replace=False)
    questions = vectors[wanted] + 0.4 * random.standard_normal((QUESTIONS, DIMENSION)).astype(np.float32)

    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there,), daemon=True)
    server.start()

    spec = IndexSpec("split", DIMENSION, metric="cosine", mode="sealed")
    owner = Owner(Keys.generate(), spec)
    print(f"sealing {ROWS:,} vectors of {DIMENSION} numbers; {vectors.nbytes:,} bytes in the clear")
    segment = owner.seal(range(ROWS), vectors)
    send(here, "description", spec.to_bytes())
    send(here, "evaluation keys", owner.evaluation().to_bytes())
    send(here, "sealed vectors", segment.segment)
    print(f"  stays with the owner: key {owner.key_id}, sidecar of {len(segment.sidecar):,} bytes")

    for question, row in zip(questions, wanted, strict=True):
        print(f"a noisy copy of row {row}")
        query = owner.query(question)
        send(here, "query", query.to_bytes())
        response = here.recv_bytes()
        print(f"  server → owner  {'response':16} {len(response):>12,} bytes   {response[-8:].hex(' ')}")
        best = query.open(response, count=3)[0]
        print(
            "  opened: "
            + ", ".join(
                f"row {name} at {score:.3f}" for name, score in zip(best.ids, best.scores, strict=True)
            )
        )
        if best.ids[0] != row:
            raise SystemExit(f"expected row {row} first")
    here.send_bytes(b"")
    server.join(timeout=10)
    print("every question found its row; the server saw sizes and times")


if __name__ == "__main__":
    main()
