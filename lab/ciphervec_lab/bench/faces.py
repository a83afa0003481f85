"""Times registering and finding faces through DeepFace's database over an encrypted collection, beside LightPHE's way.
Plays key owner and server.

LightPHE's way is that of its authors, who are DeepFace's: each embedding is encrypted, number by
number; to find a face, the machine without the key multiplies every template with its embedding in
the clear, and the key owner decrypts a cosine a template.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ciphervec import Client, InvalidInput

from . import machine
from .additive_peers import AdditivePeer, LightPhe, minmax
from .data import Doubles
from .timing import Job, Notify, one_core, take_turns

Record = dict[str, Any]
Open = Callable[[Client, str], Any]

MODES = ("sealed", "sealed-index")
CRITERIA: dict[str, Any] = {
    "model_name": "Facenet512",
    "detector_backend": "skip",
    "aligned": True,
    "l2_normalized": True,
}
THRESHOLD = 0.30
"""DeepFace's own for cosine distances of Facenet512 (deepface/config/threshold.py)."""

DIRECTIONS, SPREAD, UNEVEN = 48, 0.7, 0.4
"""Of made-up faces: in how many directions they differ; how far photographs lie about their person, in
its own length, in the median; and the deviation of the logarithm of that. Cosines are then those of
Facenet512's embeddings of photographs: one person's 0.64 ± 0.15, of two people 0 ± 0.14."""


@dataclass(frozen=True)
class Faces:
    """Embeddings of unit length, (n, d), whose each is, and a sentence on where they come from."""

    embeddings: Doubles
    people: npt.NDArray[np.int64]
    origin: str


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench faces` was asked for."""

    modes: tuple[str, ...] = MODES
    peer: bool = False
    bits: int = 2048
    peer_dim: int = 64
    peer_seconds: float = 20.0
    questions: int = 100
    threshold: float = THRESHOLD
    repeats: int = 5


@dataclass
class Outcome:
    """The records, what was measured, and what a reader has to know beside it."""

    records: list[Record]
    settings: Settings
    faces: Faces
    versions: dict[str, str]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """Faces that are registered, and others that are looked for."""

    known: Doubles
    known_people: npt.NDArray[np.int64]
    asked: Doubles
    asked_people: npt.NDArray[np.int64]

    @property
    def same(self) -> npt.NDArray[np.bool_]:
        """Whether a face that is asked for (a row) and a known one (a column) are one person's."""
        return np.equal.outer(self.asked_people, self.known_people)


def made_up(people: int, photographs: int, dim: int, seed: int = 0) -> Faces:
    """People, and photographs about each of them, some nearer than others."""
    random = np.random.default_rng(seed)
    count = min(DIRECTIONS, dim)
    centres = random.standard_normal((people, 1, count))
    spread = SPREAD * np.exp(UNEVEN * random.standard_normal((people, photographs, 1)))
    found = centres + spread * random.standard_normal((people, photographs, count))
    directions = np.linalg.qr(random.standard_normal((dim, count)))[0]
    rows = found.reshape(people * photographs, count) @ directions.T
    whose = np.repeat(np.arange(people), photographs)
    return Faces(
        _unit(rows), whose, f"made-up embeddings: {photographs} photographs of each of {people} people"
    )


def load(path: Path) -> Faces:
    """An .npz with `embeddings`, (n, d), and `identity`, (n,). Raises InvalidInput."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            rows, whose = archive["embeddings"].astype(np.float64), archive["identity"]
    except (OSError, KeyError, ValueError) as error:
        raise InvalidInput(
            f"{path} is no .npz archive with arrays `embeddings` and `identity`: {error}"
        ) from None
    if rows.ndim != 2 or whose.shape != rows.shape[:1] or not np.linalg.norm(rows, axis=1).all():
        raise InvalidInput(
            f"{path}: expected embeddings of shape (n, d), none of them zero, and n identities, got {rows.shape} and "
            f"{whose.shape}"
        )
    people = np.unique(whose, return_inverse=True)[1].astype(np.int64)
    return Faces(_unit(rows), people, f"embeddings of {path.name}, of {people.max() + 1} people")


def divide(faces: Faces, questions: int) -> Task:
    """Of every person the last photograph, and more of their last ones if `questions` is more than
    there are people, are asked for; the others are registered. Raises InvalidInput."""
    count = len(faces.people)
    order = np.lexsort((np.arange(count), faces.people))
    sizes = np.bincount(faces.people)
    # How many photographs of the same person come after each.
    left = np.concatenate([np.arange(size)[::-1] for size in sizes])
    asked = order[np.argsort(left, kind="stable")][:questions]
    known = np.setdiff1d(np.arange(count), asked)
    if not len(known) or set(faces.people[asked]) - set(faces.people[known]):
        raise InvalidInput(
            f"{questions} questions leave some person without a registered face; ask fewer, or bring more photographs"
        )
    return Task(faces.embeddings[known], faces.people[known], faces.embeddings[asked], faces.people[asked])


def run(
    faces: Faces,
    settings: Settings,
    open_database: Open,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    peer: AdditivePeer | None = None,
) -> Outcome:
    """Every way, on one thread. `open_database` makes DeepFace's database over a client's collections
    in a mode. `peer` stands in for LightPHE. Raises InvalidInput."""
    task = divide(faces, settings.questions)
    exact = 1 - task.asked @ task.known.T
    records = [judged({"way": "in the clear"}, exact, task, settings)]
    notes: list[str] = []
    with machine.threads(1), one_core():
        for mode in settings.modes:
            records.append(ours(task, mode, settings, exact, open_database, notify))
            step()
        if settings.peer or peer is not None:
            notify(f"LightPHE: making a key of {settings.bits} bits")
            records.append(lightphe(task, settings, peer or LightPhe("paillier", settings.bits), notify))
            notes += peer_notes(task, settings)
            step()
    return Outcome(records, settings, faces, machine.versions("deepface", "lightphe"), notes)


def ours(
    task: Task, mode: str, settings: Settings, exact: Doubles, open_database: Open, notify: Notify
) -> Record:
    """DeepFace's database over an encrypted collection in memory."""
    picture = np.zeros((160, 160, 3))  # what an embedding is made of, and an id is hashed from
    rows = [
        {**CRITERIA, "img_name": str(i), "face": picture, "embedding": row}
        for i, row in enumerate(task.known.tolist())
    ]
    made: list[tuple[Client, Any]] = []

    def register() -> None:
        client = Client()
        made.append((client, open_database(client, mode)))
        made[-1][1].insert_embeddings(rows)
        for old, _ in made[:-1]:
            old.close()

    turns = iter(range(10**9))

    def search() -> Any:
        face = task.asked[next(turns) % len(task.asked)]
        return made[-1][1].search_by_vector(face.tolist(), **CRITERIA, limit=1)

    times = take_turns(
        [Job("register", register, len(rows)), Job("search", search)],
        settings.repeats,
        lambda message: notify(f"{mode}: {message}"),
    )
    client, database = made[-1]
    (name,) = client.list_collections()
    collection = client.get_collection(name, allow_open=mode == "open")
    query = collection.make_query(task.asked[:1].astype(np.float32)).to_bytes()
    distances = np.empty_like(exact)
    for i, face in enumerate(task.asked):
        for hit in database.search_by_vector(face.tolist(), **CRITERIA, limit=len(rows)):
            distances[i, int(hit["img_name"])] = hit["distance"]
    record = {
        "way": f"ciphervec, {mode}",
        "register_ms": times["register"].ms,
        "search_ms": times["search"].ms,
        "face_bytes": collection.info()["bytes_total"] / len(rows),
        "question_bytes": len(query),
        "question_in_clear": mode in ("sealed-index", "open"),
        "answer_bytes": len(collection.evaluate(query)),
        "error": float(np.abs(distances - exact).max()),
    }
    client.close()
    return judged(record, distances, task, settings)


def lightphe(task: Task, settings: Settings, peer: AdditivePeer, notify: Notify) -> Record:
    """One template and one question, as often as `peer_seconds` allow; all others cost the same. What
    its cosines are is computed in the clear, and compared with the one that was decrypted."""
    dim = min(settings.peer_dim, task.known.shape[1])
    scale = task.known.shape[1] / dim
    template, face = peer.prepare(task.known[0, :dim]), peer.prepare(task.asked[0, :dim])
    state: dict[str, Any] = {}

    def register() -> None:
        state["template"] = peer.encrypt(template)

    def multiply() -> None:
        state["answer"] = peer.dot(state["template"], face)

    times = take_turns(
        [
            Job("register", register, budget=settings.peer_seconds),
            Job("multiply", multiply, budget=settings.peer_seconds),
            Job("decrypt", lambda: peer.decrypt(state["answer"]), budget=settings.peer_seconds),
        ],
        settings.repeats,
        lambda message: notify(f"LightPHE: {message}"),
    )
    distances = (
        1 - np.array([minmax(row) for row in task.asked]) @ np.array([minmax(r) for r in task.known]).T
    )
    count = len(task.known)
    record = {
        "way": f"LightPHE, Paillier {settings.bits}",
        "estimated_from": None if scale == 1 else dim,
        "register_ms": times["register"].ms * scale,
        "search_ms": count * (times["multiply"].ms * scale + times["decrypt"].ms),
        "face_bytes": peer.size(state["template"]) * scale,
        "question_bytes": 8 * task.known.shape[1],
        "question_in_clear": True,
        "answer_bytes": count * peer.size(state["answer"]),
        "error": abs(times["decrypt"].result - float(template @ face)),
    }
    return judged(record, distances, task, settings)


def judged(record: Record, distances: Doubles, task: Task, settings: Settings) -> Record:
    """The record with what the distances, (asked, known), lead to: whose the nearest face is, and
    whom the threshold takes for whom."""
    nearest = task.known_people[distances.argmin(axis=1)]
    within = distances <= settings.threshold
    return {
        "estimated_from": None,
        "register_ms": None,
        "search_ms": None,
        "face_bytes": None,
        "question_bytes": None,
        "question_in_clear": None,
        "answer_bytes": None,
        "error": None,
        **record,
        "faces": len(task.known),
        "dim": int(task.known.shape[1]),
        "questions": len(task.asked),
        "nearest_right": float(np.mean(nearest == task.asked_people)),
        "own_refused": float(np.mean(~within[task.same])),
        "strangers_accepted": float(np.mean(within[~task.same])) if (~task.same).any() else None,
    }


def peer_notes(task: Task, settings: Settings) -> list[str]:
    """What LightPHE's figures cannot say."""
    lines = [
        "LightPHE takes no negative number in a product, so it gets min-max normalised embeddings, which is what its "
        "authors do: its cosines are those of other vectors, to which DeepFace's threshold does not apply.",
        "LightPHE's time of a search is that of one template, times the templates; its bytes are those of its distinct "
        "integers.",
    ]
    if settings.peer_dim < task.known.shape[1]:
        lines.append(
            f"LightPHE was measured on {settings.peer_dim} of {task.known.shape[1]} numbers, and scaled: est."
        )
    return lines


def _unit(rows: Doubles) -> Doubles:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float64)
