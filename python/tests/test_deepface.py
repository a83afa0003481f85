"""DeepFace's database, beside its own one in SQLite where DeepFace is installed, and beside its
interface alone where it isn't; and the bench of it."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import InvalidInput, Keys
from ciphervec.lab.bench import faces as bench
from ciphervec.lab.bench import faces_report
from ciphervec.lab.bench.additive_peers import minmax
from program import Program

INSTALLED = importlib.util.find_spec("deepface") is not None
CRITERIA: dict[str, Any] = {"model_name": "Facenet512", "detector_backend": "skip", "aligned": True}
D = 64


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    if not INSTALLED:
        for name in ("deepface", "deepface.modules", "deepface.modules.database"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        types, inventory = (ModuleType(f"deepface.modules.database.{one}") for one in ("types", "inventory"))
        types.Database = type("Database", (), {})  # type: ignore[attr-defined]
        inventory.database_inventory = {}  # type: ignore[attr-defined]
        for module in (types, inventory):
            monkeypatch.setitem(sys.modules, module.__name__, module)
    yield importlib.import_module("ciphervec.adapters.deepface")
    if not INSTALLED:
        sys.modules.pop("ciphervec.adapters.deepface")


def faces(rows: np.ndarray, l2_normalized: bool) -> list[dict[str, Any]]:
    """Records as DeepFace makes them of photographs."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True) if l2_normalized else rows
    return [
        {
            "id": None,
            "img_name": f"photo{i}.jpg",
            "img_index": i,
            "face": np.full((4, 4, 3), i / 255),
            "embedding": row.astype(np.float64).tolist(),
            "l2_normalized": l2_normalized,
            **CRITERIA,
        }
        for i, row in enumerate(units)
    ]


@pytest.mark.parametrize("l2_normalized", [False, True])
@pytest.mark.parametrize("place", ["memory", "server"])
def test_faces_are_found_as_in_the_clear(
    adapter: ModuleType,
    request: pytest.FixtureRequest,
    vectors: Callable[..., np.ndarray],
    place: str,
    l2_normalized: bool,
) -> None:
    client = ciphervec.Client() if place == "memory" else request.getfixturevalue("http_client")
    database, rows = adapter.CiphervecDatabase(connection=client), vectors(40, D)
    criteria = {**CRITERIA, "l2_normalized": l2_normalized}
    records = faces(rows, l2_normalized)
    stored = np.array([one["embedding"] for one in records])
    database.initialize_database(**criteria)
    assert database.fetch_all_embeddings(**criteria) == []
    assert database.search_by_vector(records[0]["embedding"], **criteria) == []
    assert database.insert_embeddings(records, batch_size=15) == 40
    assert database.insert_embeddings(records[:3]) == 3
    (name,) = client.list_collections()
    assert client.get_collection(name).mode == "sealed"
    assert client.get_collection(name).count() == 40
    everything = database.fetch_all_embeddings(**criteria)
    by_name = {one["img_name"]: one for one in everything}
    np.testing.assert_array_equal(
        [by_name[f"photo{i}.jpg"]["embedding"] for i in range(40)], stored.astype(np.float32)
    )
    question = stored[7] + 0.1 * stored[8]
    found = database.search_by_vector(question.tolist(), limit=5, **criteria)
    if l2_normalized:
        exact = 1 - stored @ (question / np.linalg.norm(question))
    else:
        exact = np.linalg.norm(stored - question, axis=1)
    at = [int(one["img_name"].removeprefix("photo").removesuffix(".jpg")) for one in found]
    assert at == np.argsort(exact)[:5].tolist()
    np.testing.assert_allclose([one["distance"] for one in found], np.sort(exact)[:5], atol=2e-3 * D)
    one = database.fetch_embedding(found[0]["id"], **criteria)
    assert one == {**by_name["photo7.jpg"], **criteria}
    assert database.fetch_embedding("nobody", **criteria) is None
    assert database.fetch_embedding(found[0]["id"], **{**criteria, "aligned": False}) is None
    database.close()
    assert client.get_collection(name).count() == 40, "a connection that was given stays open"


def test_a_place_is_opened_and_closed(
    adapter: ModuleType, tmp_path: Path, vectors: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    Keys.generate().save(tmp_path / "my.key", passphrase="correct horse battery")
    monkeypatch.setenv("CIPHERVEC_PASSPHRASE", "correct horse battery")
    monkeypatch.setenv("CIPHERVEC_KEYS", str(tmp_path / "my.key"))
    records = faces(vectors(5, D), False)
    for details in ({"place": str(tmp_path / "db"), "mode": "sealed-index"}, str(tmp_path / "db")):
        database = adapter.CiphervecDatabase(details)
        database.insert_embeddings(records) if isinstance(details, dict) else None
        assert len(database.fetch_all_embeddings(**CRITERIA, l2_normalized=False)) == 5
        database.close()
    monkeypatch.setenv("DEEPFACE_CIPHERVEC_PLACE", str(tmp_path / "db"))
    adapter.CiphervecDatabase().close()
    monkeypatch.delenv("DEEPFACE_CIPHERVEC_PLACE")
    with pytest.raises(InvalidInput, match="DEEPFACE_CIPHERVEC_PLACE"):
        adapter.CiphervecDatabase()
    with pytest.raises(InvalidInput, match="must be a ciphervec client"):
        adapter.CiphervecDatabase(connection="a string")
    database = adapter.CiphervecDatabase(connection=ciphervec.Client())
    with pytest.raises(InvalidInput, match="no embeddings"):
        database.insert_embeddings([])
    with pytest.raises(InvalidInput, match="batch_size"):
        database.insert_embeddings(records, batch_size=0)


@pytest.mark.parametrize("method", ["ann", "exact"])
def test_deepface_registers_and_searches_real_faces(
    adapter: ModuleType,
    load_data: Callable[[str], dict[str, np.ndarray]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    """Embeddings that Facenet512 made of photographs of five people; models themselves are downloads,
    so their place is taken. The same people as from DeepFace's own database in the clear."""
    datastore = pytest.importorskip("deepface.modules.datastore", reason="needs deepface")
    data = load_data("faces_facenet512_5ids.npz")
    embeddings, people = data["embeddings"], data["identity"]
    monkeypatch.setattr(
        datastore,
        "represent",
        lambda img_path, **_: [
            {
                "embedding": embeddings[int(one)].tolist(),
                "face": np.full((2, 2, 3), int(one)),
                "img_index": i,
                "facial_area": {},
            }
            for i, one in enumerate(img_path if isinstance(img_path, list) else [img_path])
        ],
    )
    adapter.install()
    known, asked = range(0, 200, 2), range(1, 200, 8)
    given: dict[str, Any] = {"model_name": "Facenet512", "detector_backend": "skip"}
    client = ciphervec.Client()
    places: dict[str, dict[str, Any]] = {
        "ciphervec": {"connection": client},
        "sqlite": {"connection_details": str(tmp_path / "faces.db")},
    }
    for kind, place in places.items():
        for one in known:
            datastore.register(str(one), img_name=f"{one}.jpg", database_type=kind, **given, **place)
    right = 0
    for one in asked:
        searched = {
            kind: datastore.search(
                str(one),
                database_type=kind,
                search_method=method if kind == "ciphervec" else "exact",
                distance_metric="euclidean",
                similarity_search=True,
                k=5,
                return_type="dict",
                **given,
                **place,
            )[0]
            for kind, place in places.items()
        }
        ours, theirs = searched["ciphervec"], searched["sqlite"]
        assert [
            hit["verified"] if "verified" in hit else hit["distance"] <= hit["threshold"] for hit in ours
        ] == [hit["distance"] <= hit["threshold"] for hit in theirs]
        np.testing.assert_allclose(
            [hit["distance"] for hit in ours], [hit["distance"] for hit in theirs], rtol=5e-3
        )
        right += people[int(ours[0]["img_name"].removesuffix(".jpg"))] == people[one]
        assert ours[0]["img_name"] == theirs[0]["img_name"]
    assert right >= 0.9 * len(asked)


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


def test_the_bench_finds_what_is_found_in_the_clear(adapter: ModuleType) -> None:
    def database(client: ciphervec.Client, mode: str) -> Any:
        return adapter.CiphervecDatabase({"mode": mode}, client)

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


@pytest.mark.usefixtures("adapter")
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
