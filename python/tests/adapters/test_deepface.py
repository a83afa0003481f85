"""DeepFace's database, beside its own one in SQLite where DeepFace is installed, and beside its
interface alone where it isn't."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import InvalidInput, Keys

INSTALLED = importlib.util.find_spec("deepface") is not None
CRITERIA: dict[str, Any] = {"model_name": "Facenet512", "detector_backend": "skip", "aligned": True}
D = 64


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
    deepface_adapter: ModuleType,
    request: pytest.FixtureRequest,
    vectors: Callable[..., np.ndarray],
    place: str,
    l2_normalized: bool,
) -> None:
    client = ciphervec.Client() if place == "memory" else request.getfixturevalue("http_client")
    database, rows = deepface_adapter.CiphervecDatabase(connection=client), vectors(40, D)
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
    deepface_adapter: ModuleType,
    tmp_path: Path,
    vectors: Callable[..., np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Keys.generate().save(tmp_path / "my.key", passphrase="correct horse battery")
    monkeypatch.setenv("CIPHERVEC_PASSPHRASE", "correct horse battery")
    monkeypatch.setenv("CIPHERVEC_KEYS", str(tmp_path / "my.key"))
    records = faces(vectors(5, D), False)
    for details in ({"place": str(tmp_path / "db"), "mode": "sealed-index"}, str(tmp_path / "db")):
        database = deepface_adapter.CiphervecDatabase(details)
        database.insert_embeddings(records) if isinstance(details, dict) else None
        assert len(database.fetch_all_embeddings(**CRITERIA, l2_normalized=False)) == 5
        database.close()
    monkeypatch.setenv("DEEPFACE_CIPHERVEC_PLACE", str(tmp_path / "db"))
    deepface_adapter.CiphervecDatabase().close()
    monkeypatch.delenv("DEEPFACE_CIPHERVEC_PLACE")
    with pytest.raises(InvalidInput, match="DEEPFACE_CIPHERVEC_PLACE"):
        deepface_adapter.CiphervecDatabase()
    with pytest.raises(InvalidInput, match="must be a ciphervec client"):
        deepface_adapter.CiphervecDatabase(connection="a string")
    database = deepface_adapter.CiphervecDatabase(connection=ciphervec.Client())
    with pytest.raises(InvalidInput, match="no embeddings"):
        database.insert_embeddings([])
    with pytest.raises(InvalidInput, match="batch_size"):
        database.insert_embeddings(records, batch_size=0)


@pytest.mark.parametrize("method", ["ann", "exact"])
def test_deepface_registers_and_searches_real_faces(
    deepface_adapter: ModuleType,
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
    deepface_adapter.install()
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
