"""Collections under the additively homomorphic schemes: every verb, persistence, damage, and scores
against float64."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from ciphervec import (
    Client,
    Collection,
    CorruptData,
    EncryptedNearestNeighbors,
    Index,
    IndexSpec,
    InvalidInput,
    Keys,
    Owner,
    PersistentClient,
    ServerIndex,
    UnsupportedVersion,
    WrongKey,
)
from program import Program

D = 16
LANGS = ("en", "de", "fr")


class Choice(NamedTuple):
    """One scheme, and the largest error of a cosine that its precision allows with probability
    below 2^-64."""

    scheme: str
    bits: int | None
    precision: str
    error: float


# √(…) of similarity/additive/grid.rs, times 9.5: the deviations at standard and small are at most 2.23e-5 and
# 1.39e-4.
STANDARD, SMALL, WIDE = 9.5 * 2.23e-5, 9.5 * 1.39e-4, 1e-12
CHOICES = (
    Choice("paillier", 2048, "standard", STANDARD),
    Choice("damgard-jurik", 2048, "standard", STANDARD),
    Choice("okamoto-uchiyama", 2048, "small", SMALL),
    Choice("elgamal", None, "small", SMALL),
)


def make(client: Client, name: str, choice: Choice, **more: Any) -> Collection:
    chosen = {"mode": "sealed-index", "precision": choice.precision, **more}
    return client.create_collection(name, D, scheme=choice.scheme, bits=choice.bits, **chosen)


def fill(collection: Collection, rows: np.ndarray) -> None:
    """A segment of lanes, a few rows, a single one."""
    for start, stop in ((0, 20), (20, 29), (29, 30)):
        part = range(start, stop)
        collection.add(
            [f"id{i}" for i in part],
            rows[start:stop],
            metadatas=[{"lang": LANGS[i % 3], "n": i} for i in part],
            documents=[f"page {i}" for i in part],
        )


@pytest.fixture(params=CHOICES, ids=lambda choice: choice.scheme)
def choice(request: pytest.FixtureRequest) -> Choice:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def rows(vectors: Any) -> np.ndarray:
    return vectors(30, D)  # type: ignore[no-any-return]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("where", ["memory", "server"])
def test_every_verb(
    choice: Choice, where: str, keys: Keys, rows: np.ndarray, request: pytest.FixtureRequest
) -> None:
    client = Client(keys=keys) if where == "memory" else request.getfixturevalue("http_client")
    collection = make(client, "books", choice, filterable=["lang"])
    fill(collection, rows)
    assert collection.scheme == collection.spec.scheme == choice.scheme
    assert (collection.count(), len(collection), "id3" in collection) == (30, 30, True)
    assert collection.info()["segments"] == 3 and collection.info()["scheme"] == choice.scheme

    found = collection.query(rows[[4, 25, 29]], 3)
    assert [ids[0] for ids in found["ids"]] == ["id4", "id25", "id29"]
    assert found["documents"] is not None and found["documents"][1][0] == "page 25"
    assert collection.query(rows[4], 30, where={"lang": "de"})["ids"][0][0] == "id4"
    assert len(collection.query(rows[4], 30, where={"lang": "de"})["ids"][0]) == 10
    assert collection.query(rows[4], 30, where={"n": {"$lt": 3}})["ids"][0] == [
        f"id{i}" for i in np.argsort(-(unit(rows[:3]) @ rows[4]))
    ]
    everything = collection.query(rows[7], 30)["distances"]
    assert everything is not None
    radius = (everything[0][12] + everything[0][13]) / 2
    assert len(collection.query(rows[7], within=radius)["ids"][0]) == 13

    got = collection.get(ids=["id29", "id2", "gone"], include=["embeddings", "metadatas"])
    assert got["ids"] == ["id29", "id2"] and got["embeddings"] is not None
    np.testing.assert_array_equal(got["embeddings"], rows[[29, 2]])
    assert collection.peek(2)["ids"] == ["id0", "id1"]

    collection.update("id2", metadatas={"n": -2})
    collection.update("id3", embeddings=rows[4])
    collection.upsert(["id4", "new"], rows[[3, 0]], documents=["swapped", "another"])
    assert set(collection.query(rows[4], 1)["ids"][0]) == {"id3"}
    assert collection.get("id2")["metadatas"] == [{"lang": "fr", "n": -2}]
    assert collection.query(rows[2], 1)["ids"] == [["id2"]]
    assert collection.delete(["id0"]) == 1 and collection.delete(where={"lang": "fr"}) == 10
    assert collection.count() == 20
    assert collection.query(rows[0], 1)["ids"] == [["new"]]
    before = collection.query(rows, 20)
    assert collection.info()["deleted"] > 0
    collection.optimize()
    after = collection.query(rows, 20)
    assert collection.info()["segments"] == 1 and collection.info()["deleted"] == 0
    assert collection.count() == 20 and after["documents"] is not None
    assert sorted(after["ids"][0], key=str) == sorted(before["ids"][0], key=str)
    np.testing.assert_allclose(after["distances"], before["distances"], atol=2 * choice.error)
    assert collection.query(rows[0], 1)["documents"] == [["another"]]
    assert collection.verify() and not collection.refresh()
    assert choice.scheme in repr(collection) and choice.scheme in repr(collection.spec)


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "hamming"])
def test_scores_are_those_of_float64(
    choice: Choice, keys: Keys, vectors: Any, oracle: Any, metric: str
) -> None:
    rows, queries = vectors(30, D, metric), vectors(3, D, metric)
    collection = make(Client(keys=keys), "books", choice, metric=metric)
    fill(collection, rows)
    found = collection.query(queries, 30, include=["distances"])
    exact = oracle.distances(metric, rows, queries)
    # Norms are float32 in the sidecar, rows and queries at the door.
    lengths = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(rows, axis=1))
    scale = {"cosine": 1, "ip": lengths, "l2": 2 * lengths, "hamming": 0}[metric]
    slack = np.broadcast_to(choice.error * scale + (0 if metric == "hamming" else 1e-5), exact.shape)
    for ids, distances, line, error in zip(found["ids"], found["distances"] or [], exact, slack, strict=True):
        at = [int(str(name)[2:]) for name in ids]
        assert np.all(np.abs(np.array(distances) - line[at]) <= error[at])
        assert np.all(np.diff(distances) >= 0)
    assert len(found["ids"]) == 3


def test_the_wide_precision_is_exact_to_twelve_digits(keys: Keys, vectors: Any) -> None:
    rows, queries = vectors(5, D), vectors(2, D)
    collection = make(Client(keys=keys), "books", Choice("paillier", 2048, "wide", WIDE))
    collection.add(list(range(5)), rows)
    found = collection.query(queries, 5, include=["scores"])
    exact = unit(queries.astype(np.float64)) @ unit(rows.astype(np.float64)).T
    assert found["scores"] is not None
    for ids, scores, line in zip(found["ids"], found["scores"], exact, strict=True):
        assert np.max(np.abs(np.array(scores) - line[[int(i) for i in ids]])) <= WIDE


def test_a_folder_is_what_was_acknowledged(
    choice: Choice, keys: Keys, tmp_path: Path, rows: np.ndarray
) -> None:
    with PersistentClient(tmp_path, keys=keys) as client:
        fill(make(client, "books", choice, filterable=["lang"]), rows)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "books").rglob("*") if path.is_file())
    assert b"page 7" not in stored and rows[7, :2].tobytes() not in stored
    with PersistentClient(tmp_path, keys=keys) as client:
        collection = client.get_collection("books")
        assert collection.scheme == choice.scheme and collection.spec.bits == choice.bits
        assert collection.query(rows[[8, 29]], 1)["ids"] == [["id8"], ["id29"]]
        collection.delete("id8")
        collection.add("more", rows[8])
    reader = PersistentClient(tmp_path, keys=keys, read_only=True).get_collection("books")
    assert reader.query(rows[8], 1)["ids"] == [["more"]]
    with PersistentClient(tmp_path, keys=keys) as client:
        client.get_collection("books").delete("more")
        client.get_collection("books").optimize()
    reader.refresh()
    assert reader.query(rows[8], 1)["ids"] != [["more"]] and reader.count() == 29
    with (
        PersistentClient(tmp_path, keys=Keys.generate()) as client,
        pytest.raises(WrongKey, match="sealed under"),
    ):
        client.get_collection("books")


def test_another_process_searches(keys: Keys, tmp_path: Path, rows: np.ndarray) -> None:
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        fill(make(client, "books", CHOICES[3]), rows)
    np.save(tmp_path / "rows.npy", rows)
    program = """
import ciphervec, numpy as np
with ciphervec.PersistentClient("db", ciphervec.Keys.load("my.key")) as client:
    books = client.get_collection("books")
    books.delete("id1")
    print(books.query(np.load("rows.npy")[[0, 1]], 1)["ids"], books.count())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.startswith("[['id0'], [") and done.stdout.split()[-1] == "29"
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        assert client.get_collection("books").count() == 29


def test_choices_are_checked_and_compared(keys: Keys) -> None:
    client = Client(keys=keys)
    for mode in ("sealed", "sealed-query", "open"):
        with pytest.raises(
            InvalidInput, match=r"mode must be sealed-index.*scheme lattice to encrypt them too"
        ):
            client.create_collection("a", D, mode=mode, scheme="paillier")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"scheme": "rsa"}, "scheme must be one of lattice, paillier"),
        ({"scheme": "paillier", "precision": "high"}, "precision must be one of standard, small, wide"),
        ({"scheme": "elgamal", "precision": "wide"}, "standard or small under elgamal"),
        ({"scheme": "paillier", "bits": 1024}, "2048..=8192"),
        ({"scheme": "paillier", "bits": 2050}, "a multiple of 64"),
        ({"scheme": "elgamal", "bits": 3072}, "keys of elgamal have one length"),
        ({"scheme": "lattice", "bits": 3072}, "keys of lattice have one length"),
        ({"scheme": "paillier", "bits": "long"}, "bits must be a whole number"),
    ]
    for choices, message in refused:
        with pytest.raises(InvalidInput, match=message):
            client.create_collection("a", D, mode="sealed-index", **choices)
    assert client.list_collections() == []
    make(client, "books", CHOICES[3])
    same = {"mode": "sealed-index", "precision": "small"}
    assert client.get_or_create_collection("books", D, scheme="elgamal", **same).scheme == "elgamal"
    with pytest.raises(InvalidInput, match="scheme='elgamal', not 'lattice'"):
        client.get_or_create_collection("books", D, **same)
    made = client.get_or_create_collection("more", D, mode="sealed-index", scheme="paillier", bits=2048)
    assert made.spec.bits == 2048 and IndexSpec.from_bytes(made.spec.to_bytes()) == made.spec
    with pytest.raises(InvalidInput, match="bits=2048, not 3072"):
        client.get_or_create_collection("more", D, mode="sealed-index", scheme="paillier")
    security = made.spec.security()
    assert (security["bits"], security["log_modulus"], security["post_quantum"]) == (112, 2048, False)
    assert security["leakage"].startswith("the queries")
    with pytest.raises(InvalidInput, match="queries are plain"):
        made.rotate_query_key()
    with pytest.raises(InvalidInput, match=r"owner.evaluation\(\)"):
        keys.evaluation(made)


def test_few_rows_are_small_and_segments_are_cut(keys: Keys, vectors: Any) -> None:
    client = Client(keys=keys)
    collection = make(client, "books", CHOICES[0])
    rows = vectors(126, D)
    collection.add("alone", rows[0])
    alone = collection.info()["bytes"]["rows"]
    assert alone < 1000, "one row in one ciphertext of 512 bytes, and headers"
    collection.add(list(range(126)), rows)
    assert collection.info()["bytes"]["rows"] - alone < 2 * D * 512 + 1000, "two blocks of 63 lanes"
    many = vectors(4_100, 2)
    collection = client.create_collection("many", 2, mode="sealed-index", scheme="elgamal", precision="small")
    steps: list[tuple[int, int]] = []
    collection.add(range(4_100), many, progress=lambda *step: steps.append(step))
    assert steps == [(4_096, 4_100), (4_100, 4_100)] and collection.info()["segments"] == 2


@pytest.fixture
def folder(keys: Keys, tmp_path: Path, rows: np.ndarray) -> Path:
    with PersistentClient(tmp_path, keys=keys) as client:
        fill(make(client, "books", CHOICES[3]), rows)
        fill(make(client, "other", CHOICES[3]), rows)
    return tmp_path


def attach(folder: Path, **blobs: bytes) -> None:
    """What an attacker with the folder could write: whole, checksummed attachments."""
    store = native.Store.open(str(folder / "books"))
    store.commit(attachments={name.replace("_", "-"): blob for name, blob in blobs.items()})
    store.close()


def attachments(folder: Path, name: str) -> tuple[bytes, bytes]:
    store = native.Store.open_read_only(str(folder / name))
    return store.attachment("evaluation"), store.attachment("key-pair")


def test_swapped_and_damaged_keys_are_refused(keys: Keys, folder: Path) -> None:
    public, pair = attachments(folder, "books")
    other_public, other_pair = attachments(folder, "other")

    def refused(kind: type[Exception] | tuple[type[Exception], ...], message: str) -> None:
        with PersistentClient(folder, keys=keys) as client, pytest.raises(kind, match=message):
            client.get_collection("books")

    replaced = (CorruptData, ciphervec.errors.RollbackDetected)

    attach(folder, evaluation=other_public)
    refused(replaced, "another evaluation|not the one of its key pair")
    attach(folder, evaluation=other_public, key_pair=other_pair)
    refused(replaced, "another key-pair|another evaluation|the key pair of an index does not open")
    attach(folder, evaluation=public[:-1] + bytes([public[-1] ^ 1]), key_pair=pair)
    refused(replaced, "another evaluation|not the one of its key pair")
    for at in (12, 40, len(pair) - 1):
        attach(folder, evaluation=public, key_pair=pair[:at] + bytes([pair[at] ^ 1]) + pair[at + 1 :])
        refused(replaced, "another key-pair|does not open")
    attach(folder, key_pair=pair[:8] + b"\2\0\0\0" + pair[12:])
    refused((UnsupportedVersion, *replaced), "another key-pair|version 2")
    attach(folder, key_pair=b"")
    refused(replaced, "another key-pair|the key pair of an index")
    attach(folder, evaluation=public, key_pair=pair)
    with PersistentClient(folder, keys=keys) as client:
        assert client.get_collection("books").count() == 30


def test_flipped_bytes_on_disk_are_found(keys: Keys, folder: Path, rows: np.ndarray) -> None:
    files = [path for path in sorted((folder / "books").rglob("*")) if path.is_file() and path.stat().st_size]
    for path in files:
        whole = path.read_bytes()
        for at in {0, len(whole) // 3, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            with PersistentClient(folder, keys=keys) as client:
                try:
                    collection = client.get_collection("books")
                    found = collection.query(rows[3], 1, include=["documents"])
                    # Where the older of two manifests was hit, nothing that is read has changed.
                    assert found["ids"] == [["id3"]] and found["documents"] == [["page 3"]]
                except (CorruptData, UnsupportedVersion, ciphervec.StorageError):
                    pass
        path.write_bytes(whole)
    with PersistentClient(folder, keys=keys) as client:
        assert client.get_collection("books").query(rows[3], 1)["ids"] == [["id3"]]


def test_the_lattice_scheme_by_the_name_of_release_0_1(tmp_path: Path, keys: Keys) -> None:
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        with pytest.warns(DeprecationWarning, match='scheme="lattice"'):
            collection = client.create_collection("old", D, scheme="sealed")
        assert collection.scheme == "lattice"
    # On disk it keeps the old name: release 0.1 opens what is written now.
    meta = native.Store.open_read_only(str(tmp_path / "db" / "old")).meta
    assert json.loads(meta)["scheme"] == "sealed"
    for name, code in (("sealed", 0), ("rsa", 2)):
        arguments = ["keygen", str(tmp_path / f"{name}.key"), "--scheme", name, "--no-passphrase"]
        program = [sys.executable, "-m", "ciphervec", *arguments]
        made = subprocess.run(program, capture_output=True, text=True, check=False)
        assert made.returncode == code, made.stderr
        assert "lattice" in made.stderr


def test_a_description_names_its_scheme(keys: Keys, folder: Path) -> None:
    described = json.loads(native.Store.open_read_only(str(folder / "books")).meta)
    assert described["format"] == 4 and described["scheme"] == "elgamal"
    for change in ({"scheme": "paillier"}, {"scheme": "sealed"}, {"format": 1}, {"scheme": None}):
        store = native.Store.open(str(folder / "books"))
        store.commit(meta=json.dumps({**described, **change}).encode())
        store.close()
        with PersistentClient(folder, keys=keys) as client, pytest.raises(CorruptData, match="damaged"):
            client.get_collection("books")


def test_the_halves_apart(choice: Choice, keys: Keys, rows: np.ndarray) -> None:
    """The server's half gets bytes and a public key; the owner's starts again from what it
    sealed."""
    spec = IndexSpec("split", D, "cosine", "sealed-index", choice.precision, choice.scheme, choice.bits)
    owner, server = Owner(keys, spec), ServerIndex(IndexSpec.from_bytes(spec.to_bytes()))
    with pytest.raises(InvalidInput, match="key pair of its own"):
        owner.seal([1], rows[:1])
    owner.generate_key_pair()
    with pytest.raises(InvalidInput, match="holds a key pair already"):
        owner.generate_key_pair()
    sealed = owner.seal(list(range(30)), rows)
    with pytest.raises(InvalidInput, match="no public key"):
        server.add(sealed.segment)
    evaluation = owner.evaluation()
    assert type(evaluation).from_bytes(evaluation.to_bytes()).key_id == evaluation.key_id
    server.set_evaluation_keys(evaluation.to_bytes())
    server.add(sealed)
    query = owner.query(rows[[3, 4]])
    response = server.evaluate(query.to_bytes())
    assert [found.ids[0] for found in query.open(response)] == [3, 4]
    assert server.timings()["scan_ms"] > 0 and server.segment(sealed.id) == sealed.segment
    np.testing.assert_allclose(owner.unseal(sealed.segment, [5, 0]), unit(rows[[5, 0]]), atol=2e-4)

    again = Owner(keys, spec)
    again.open_key_pair(owner.sealed_key_pair())
    again.attach(sealed.id, sealed.sidecar)
    copy = pickle.loads(pickle.dumps(server))
    query = again.query(rows[9])
    assert query.open(copy.evaluate(query.to_bytes()))[0].ids[0] == 9
    stranger = Owner(Keys.generate(), spec)
    with pytest.raises(CorruptData, match="does not open"):
        stranger.open_key_pair(owner.sealed_key_pair())
    stranger.generate_key_pair()
    with pytest.raises(WrongKey):
        server.evaluate(stranger.query(rows[9]).to_bytes())
    with pytest.raises(WrongKey):
        stranger.unseal(sealed.segment)


def test_a_bare_index_and_nearest_neighbours(
    choice: Choice, keys: Keys, rows: np.ndarray, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"mode": "sealed-index", "precision": choice.precision}
    chosen: dict[str, Any] = {**more, "scheme": choice.scheme, "bits": choice.bits}
    index = Index(D, secret_keys=keys, **chosen)
    index.add(None, rows)
    index.save(tmp_path / "rows.cvix")
    loaded = Index.load(tmp_path / "rows.cvix")
    with pytest.raises(WrongKey):
        loaded.search(rows[5])
    with pytest.raises(WrongKey):
        loaded.unlock(Keys.generate())
    loaded.unlock(keys)
    found = loaded.search(rows[5], 3)
    assert isinstance(found, ciphervec.Matches) and found.ids[0] == 5
    loaded.remove(5)
    loaded.add([77], rows[5] * 2)
    again = loaded.search(rows[5], 1)
    assert isinstance(again, ciphervec.Matches) and again.ids == [77]
    neighbours = EncryptedNearestNeighbors(n_neighbors=2, **chosen).fit(rows)
    distances, at = neighbours.kneighbors(rows[:4])
    assert at[:, 0].tolist() == [0, 1, 2, 3] and np.all(np.abs(distances[:, 0]) <= choice.error)
    assert neighbours.get_params()["scheme"] == choice.scheme


def test_the_command_line(tmp_path: Path, rows: np.ndarray) -> None:
    np.save(tmp_path / "rows.npy", rows)
    program = Program(tmp_path)

    def run(*arguments: object, code: int = 0) -> str:
        done = program(*arguments, code=code)
        return done.stdout + done.stderr

    run("keygen", "my.key", "--no-passphrase")
    key = ("--keys", "my.key")
    chosen = ("--mode", "sealed-index", "--scheme", "paillier", "--bits", 2048)
    assert "by paillier" in run("create", "db", "items", "--dim", D, *chosen, *key)
    run("add", "db", "items", "rows.npy", *key)
    hits = json.loads(run("query", "db", "items", "rows.npy", "-n", 1, "--json", *key))
    assert hits["ids"] == [[i] for i in range(30)]
    described = json.loads(run("info", "db", "items", "--json"))
    assert (described["scheme"], described["bits"], described["security"]["bits"]) == ("paillier", 2048, 112)
    assert "sealed-index paillier" in run("info", "db")
    assert "sound" in run("verify", "db")
    assert "mode must be sealed-index" in run(
        "create", "db", "b", "--dim", D, "--scheme", "elgamal", *key, code=2
    )


def test_mode_sealed_index_differs_by_one_word(keys: Keys, vectors: Any) -> None:
    """The same program with and without the word: the same answers, each within its error."""
    rows, queries = vectors(40, D), vectors(4, D)
    answers: list[Any] = []
    client = Client(keys=keys)
    for scheme in ("lattice", "elgamal"):
        collection = client.create_collection(scheme, D, mode="sealed-index", scheme=scheme)
        collection.add(list(range(40)), rows)
        answers.append(collection.query(queries, 40)["scores"])
    np.testing.assert_allclose(answers[0], answers[1], atol=STANDARD + 10 * 1.5e-5)
