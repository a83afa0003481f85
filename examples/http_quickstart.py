"""A server in a process of its own, and the key owner in this one: add, query, and look at what the
server has.

    python examples/http_quickstart.py

The server listens on a free port of this machine, without TLS and tokens; `ciphervec serve --help`
has both.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import numpy as np

from ciphervec import AsyncHttpClient, HttpClient, Keys
from ciphervec.http import LocalServer

ROWS, DIMENSION = 2_000, 128


def stored_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def ask_at_once(url: str, keys: Keys, questions: np.ndarray) -> list[object]:
    """Several questions on their way at the same time."""
    async with AsyncHttpClient(url, keys=keys, state=None) as client:
        faces = await client.get_collection("faces")
        found = await asyncio.gather(*(faces.query(question, 1) for question in questions))
        return [one["ids"][0][0] for one in found]


def main() -> None:
    random = np.random.default_rng(5)
    vectors = random.standard_normal((ROWS, DIMENSION)).astype(np.float32)
    names = [f"person {i}" for i in range(ROWS)]
    wanted = [7, 700, 1_234]
    questions = vectors[wanted] + 0.3 * random.standard_normal((3, DIMENSION)).astype(np.float32)
    keys = Keys.generate()

    with tempfile.TemporaryDirectory() as folder, LocalServer(f"{folder}/db") as server:
        print(f"the server listens on {server.url}, process {server.pid}")
        with HttpClient(server.url, keys=keys, state=f"{folder}/state") as client:
            faces = client.create_collection("faces", DIMENSION)
            faces.add(names, vectors, documents=[f"notes on {name}" for name in names])
            print(
                f"added {faces.count():,} vectors of {DIMENSION} numbers, {faces.info()['bytes_total']:,} bytes sealed"
            )
            found = faces.query(questions, 3)
            for ids, scores in zip(found["ids"], found["scores"] or [], strict=True):
                print(
                    "  closest: "
                    + ", ".join(f"{name} {score:.3f}" for name, score in zip(ids, scores, strict=True))
                )
            assert [ids[0] for ids in found["ids"]] == [names[i] for i in wanted]
            notes = faces.get(found["ids"][0][0])["documents"]
            print(f"  a document, fetched with those of its whole segment: {notes}")

        at_once = asyncio.run(ask_at_once(server.url, keys, questions))
        assert at_once == [names[i] for i in wanted]
        print(f"three questions at once: {', '.join(map(str, at_once))}")

        stored = stored_bytes(Path(folder) / "db")
        assert b"person 7" not in stored and vectors[7, :4].tobytes() not in stored
        print(f"the server's {len(stored):,} bytes hold no name and no vector")
    print("the server has stopped")


if __name__ == "__main__":
    main()
