"""Who may see an answer: the owner's own results are typed as such, and what others see of mode
`sealed` is flooded first and counted for good."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import (
    Client,
    Collection,
    EncryptedNearestNeighbors,
    Index,
    InvalidInput,
    Keys,
    Matches,
    Owner,
    OwnerMatches,
    OwnerResult,
    PersistentClient,
    ServerIndex,
    StorageError,
    Writer,
)
from ciphervec.adapters.mteb import CiphervecSearchIndex
from ciphervec.errors import PoolExhausted
from ciphervec.ingest.uses import Use, Uses
from liar import post
from network import Make
from program import Program

D = 8
DELTA = 2**18.7
"""Δx of docs/sealed.md, section 2: a sealed row is Δx times the unit vector, rounded, plus noise."""
Rows = Callable[..., np.ndarray]
Scores = Callable[[Collection, np.ndarray, int], np.ndarray]


def sealed(keys: Keys, rows: np.ndarray, mode: str = "sealed", name: str = "rows", **more: Any) -> Collection:
    made = Client(keys=keys).create_collection(name, rows.shape[1], mode=mode, **more)
    made.add(list(range(len(rows))), rows)
    return made


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_results_of_the_ring_modes_are_the_owners_own_until_an_audience_is_named(
    keys: Keys, vectors: Rows, mode: str
) -> None:
    rows = vectors(5, D)
    items = sealed(keys, rows, mode)
    found = items.query(rows[3], 2)
    assert isinstance(found, OwnerResult) and found.audience == "owner"
    assert found["ids"][0][0] == 3 and set(found) == {"ids", "include", "embeddings", *found["include"]}
    assert "owner's own" in repr(found) and copy.deepcopy(found)["ids"] == found["ids"]
    with pytest.raises(TypeError, match="audience='owner'"):
        pickle.dumps(found)
    with pytest.raises(TypeError, match="OwnerResult"):
        json.dumps(found)
    # What web frameworks make JSON of: a dict of a mapping, or else an object's attributes.
    for made in (lambda: dict(found), lambda: {**found}, found.keys, found.items, found.values):
        with pytest.raises(TypeError, match="audience='owner'"):
            made()
    with pytest.raises(TypeError):
        vars(found)
    assert found.get("scores") == found["scores"] and "ids" in found and found == copy.deepcopy(found)
    named = items.query(rows[3], 2, audience="owner")
    assert isinstance(named, dict) and json.loads(json.dumps(named))["ids"] == found["ids"]
    assert np.abs(np.subtract(named["scores"], found["scores"])).max() < 1e-3

    index = Index(D, mode=mode, secret_keys=keys)
    index.add(None, rows)
    matches = index.search(rows[3], 2)
    assert isinstance(matches, OwnerMatches) and matches.audience == "owner" and "own" in repr(matches)
    assert copy.deepcopy(matches) == matches
    with pytest.raises(TypeError, match="audience"):
        pickle.dumps(matches)
    plain = index.search(rows[3], 2, audience="owner")
    assert type(plain) is Matches and pickle.loads(pickle.dumps(plain)).ids == plain.ids
    for call in (items.query, index.search):
        with pytest.raises(InvalidInput, match="audience must be"):
            call(rows[3], audience="everybody")  # type: ignore[operator]


@pytest.mark.parametrize("mode", ["open", "sealed-index"])
def test_results_of_the_other_modes_are_for_anybody(keys: Keys, vectors: Rows, mode: str) -> None:
    rows = vectors(5, D)
    items = sealed(keys, rows, mode)
    for audience in (None, "owner", "others"):
        found = items.query(rows[3], 2, audience=audience)  # type: ignore[arg-type]
        assert isinstance(found, dict) and json.loads(json.dumps(found))["ids"][0][0] == 3


def test_unsealed_vectors_of_mode_sealed_are_never_for_others(keys: Keys, vectors: Rows) -> None:
    rows = vectors(5, D)
    items = sealed(keys, rows, originals=False)
    own = items.get([1], include=["embeddings"])
    assert isinstance(own, OwnerResult) and own["embeddings"].shape == (1, D)
    with pytest.raises(TypeError):
        pickle.dumps(own)
    assert isinstance(items.get([1], include=["embeddings"], audience="owner"), dict)
    assert isinstance(items.get([1]), dict)
    with pytest.raises(InvalidInput, match=r"vectors of 'rows'.* the key owner's own.*sealed-index"):
        items.get([1], include=["embeddings"], audience="others")
    with pytest.raises(InvalidInput, match="embeddings of 'rows'"):
        items.query(rows[1], include=["embeddings"], audience="others")


def test_others_are_refused_where_a_flood_hides_nothing(
    keys: Keys, vectors: Rows, make: Make, server_url: str
) -> None:
    """The server chooses the rows of `sealed-query`, a writer those it sent."""
    rows = vectors(5, D)
    with pytest.raises(InvalidInput, match="decrypt service"):
        sealed(keys, rows, "sealed-query").query(rows[1], audience="others")
    items = make().create_collection("written", D)
    items.add(range(5), rows)
    with pytest.raises(InvalidInput, match="standard deviation"):
        items.query(rows[1], audience="others", flooding=0.0)
    batch = Writer(items.writer_card("door")).seal(["theirs"], rows[:1])
    assert post(server_url, "written", batch.to_bytes()).status_code == 200
    items.refresh()
    with pytest.raises(InvalidInput, match=r"rows of writers \(door\).*adopt\(\)"):
        items.query(rows[1], audience="others")
    assert items.adopt() == 1
    assert items.query(rows[1], 6, audience="others")["ids"]


def test_what_others_see_is_as_noisy_as_said_and_ranked_by_it(keys: Keys, rng: np.random.Generator) -> None:
    """Scores scatter by the deviation; order and threshold follow the flooded scores."""
    rows = rng.normal(size=(40, D)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    items = sealed(keys, rows)
    deviation = 2.0**-7
    errors = []
    for _ in range(8):
        found = items.query(rows[:5], 40, audience="others", flooding=deviation)
        assert isinstance(found, dict)
        for number in range(5):
            assert found["scores"][number] == sorted(found["scores"][number], reverse=True)  # type: ignore[index]
            errors += list(found["scores"][number] - rows[found["ids"][number]] @ rows[number])  # type: ignore[index]
    kept = np.array(errors)[np.abs(np.array(errors)) < 10 * deviation]
    assert len(kept) == len(errors) == 1600  # but for what is cut at cosine 1
    assert np.std(kept) == pytest.approx(deviation, rel=0.1)
    within = items.query(rows[0], within=0.3, audience="others", flooding=deviation)
    assert max(within["distances"][0]) <= 0.3  # type: ignore[index]


def noise_of(items: Collection, words: np.ndarray, scores: Scores, count: int) -> float:
    """The attack: random queries, least squares over scores; how many coordinates of sealed words come
    out exactly, which with the masks is an equation in the block's secret each."""
    rng = np.random.default_rng(5)
    asked = rng.normal(size=(count, D)).astype(np.float32)
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    found = np.linalg.lstsq(asked.astype(np.float64), scores(items, asked, len(words)), rcond=None)[0].T
    return float(np.mean(np.rint(found * DELTA) == words))


def words_of(keys: Keys, folder: Path, items: Collection) -> np.ndarray:
    """What is sealed, as its owner unseals it."""
    store, owner = native.Store.open_read_only(str(folder / items.name)), Owner(keys, items.spec)
    ((segment, *_),) = store.segments()
    owner.attach(segment, store.read(segment, "sidecar"))
    return np.rint(owner.unseal(store.read(segment, "rows")).astype(np.float64) * DELTA)


def table(found: Any, rows: int) -> np.ndarray:
    scores = np.zeros((len(found["ids"]), rows))
    for line, ids, values in zip(scores, found["ids"], found["scores"], strict=True):
        line[ids] = values
    return scores


def owners_scores(items: Collection, asked: np.ndarray, rows: int) -> np.ndarray:
    return table(items.query(asked, rows, include=["scores"], audience="owner"), rows)


def others_scores(flooding: float) -> Scores:
    """Of what others may be asked about: under another query key whenever one hides no more."""

    def scores(items: Collection, asked: np.ndarray, rows: int) -> np.ndarray:
        found: list[np.ndarray] = []
        while asked.size:
            some = items.flooding_plan(flooding).rows_left // rows
            if not some:
                items.rotate_query_key()
                continue
            now, asked = asked[:some], asked[some:]
            answer = items.query(now, rows, include=["scores"], audience="others", flooding=flooding)
            found.append(table(answer, rows))
        return np.concatenate(found)

    return scores


def test_averaging_reads_the_words_of_sealed_rows_but_not_through_a_flood(
    keys: Keys, rng: np.random.Generator, tmp_path: Path
) -> None:
    """Four thousand queries by who sees the owner's own results, the weakened fixture: rounding hides
    nothing. For others the same queries give noise; as many as there may be, too. Scores of fewer rows
    carry no noise: the owner knows them."""
    rows = rng.normal(size=(140, D)).astype(np.float32)
    with PersistentClient(tmp_path, keys) as client:
        items = client.create_collection("rows", D)
        items.add(range(140), rows / np.linalg.norm(rows, axis=1, keepdims=True))
        words = words_of(keys, tmp_path, items)
        assert noise_of(items, words, owners_scores, 4096) > 0.9
        assert noise_of(items, words, others_scores(2.0**-8), 4096) < 0.1
        items.optimize(reseal=True)
        # As many as the rows' noise hides: fewer, but better ones.
        narrow = 2.0**-12
        left = items.flooding_plan(narrow).queries_left
        assert 200 < left < 300
        # Chance gives one in fifty: a coordinate is known to within eighteen steps then, and there are 48.
        assert noise_of(items, words_of(keys, tmp_path, items), others_scores(narrow), left) < 0.2
        for _ in range(2):
            with pytest.raises(PoolExhausted, match=r"Seal them again with optimize\("):
                items.query(rows[:1], audience="others", flooding=narrow)


def test_the_plan_says_what_is_allowed_and_left(keys: Keys, vectors: Rows) -> None:
    """About four thousand at 2^-10 and sixty-four thousand at 2^-8, as the derivation has it."""
    rows = vectors(50, 512)
    items = sealed(keys, rows, name="plans")
    assert 4_000 < items.flooding_plan(2**-10).queries < 4_500
    plan = items.flooding_plan()
    assert 64_000 < plan.queries < 70_000 and plan.queries_left == plan.queries
    assert plan.rows_an_epoch == plan.rows_left > 10_000
    items.query(rows[:3], 2, audience="others", flooding=2**-8)
    after = items.flooding_plan()
    assert (after.queries - after.queries_left, after.rows_an_epoch - after.rows_left) == (3, 150)
    items.query(rows[:1], 2, {"n": 1}, audience="others", flooding=2**-8)  # a filter ranks fewer, here none
    assert items.flooding_plan() == after
    items.query(rows[:1], 2, audience="others", flooding=2**-4)
    assert after.rows_left - items.flooding_plan().rows_left in (0, 1)  # 50 scores of a 256th each
    items.rotate_query_key()
    renewed = items.flooding_plan()
    assert renewed.rows_left == plan.rows_left and renewed.queries_left < plan.queries
    items.optimize(reseal=True)
    assert items.flooding_plan() == plan
    with pytest.raises(InvalidInput, match="sealed-query"):
        sealed(keys, rows, "sealed-query").flooding_plan()


def test_an_owner_and_a_collection_count_in_one_place(keys: Keys, vectors: Rows, tmp_path: Path) -> None:
    """What one shows of a row the other has not left."""
    rows = vectors(50, 64)
    with PersistentClient(tmp_path, keys) as client:
        items = client.create_collection("twice", 64)
        items.add(range(50), rows)
        narrow = 2.0**-11
        plan = items.flooding_plan(narrow)
        store, owner, server = native.Store.open_read_only(str(tmp_path / "twice")), *halves(keys, items)
        ((segment, *_),) = store.segments()
        owner.attach(segment, store.read(segment, "sidecar"))
        server.add(store.read(segment, "rows"))
        query = owner.query(rows[:3])
        assert query.open(server.evaluate(query.to_bytes()), 2, audience="others", flooding=narrow)[0].ids
        both = items.flooding_plan(narrow), owner.flooding_plan(narrow)
        assert both[0].queries_left == plan.queries_left - 3
        assert both[1].rows_left == both[1].rows_an_epoch - 150
        # An owner's query key does not follow another by itself.
        assert both[1].queries_left == both[1].rows_left // 50
        with pytest.raises(PoolExhausted, match="rotate_query_key"):
            for _ in range(both[1].queries_left + 1):
                query = owner.query(rows[:1])
                query.open(server.evaluate(query.to_bytes()), 2, audience="others", flooding=narrow)


def halves(keys: Keys, items: Collection) -> tuple[Owner, ServerIndex]:
    owner, server = Owner(keys, items.spec), ServerIndex(items.spec)
    server.set_evaluation_keys(owner.evaluation().to_bytes())
    return owner, server


def test_what_clients_counted_before_the_core_did_counts_still(
    keys: Keys, vectors: Rows, tmp_path: Path
) -> None:
    """As they wrote it down: by names, in a ledger of the user's state folder, in scores with noise of 2^-4."""
    rows = vectors(50, 64)
    with PersistentClient(tmp_path, keys) as client:
        items = client.create_collection("ledger", 64)
        items.add(range(50), rows)
        before = items.flooding_plan(2.0**-8)
        ((segment, *_),) = native.Store.open_read_only(str(tmp_path / "ledger")).segments()
        owner, server = halves(keys, items)
        store = native.Store.open_read_only(str(tmp_path / "ledger"))
        owner.attach(segment, store.read(segment, "sidecar"))
        server.add(store.read(segment, "rows"))
        index = hashlib.sha256(items.spec.to_bytes()).hexdigest()[:16]
        of_key = f"flooded scores under the query key of 'ledger' {index} of key {keys.key_id}, epoch 0"
        of_other = f"flooded scores under the query key of 'ledger' {'0' * 16} of key {keys.key_id}, epoch 0"
        everything = 1 << 40
        Uses().reserve(
            {
                f"flooded scores of rows of segment {segment.hex()}": Use(7 * 256, everything, ""),
                f"flooded scores of rows of segment {bytes(16).hex()}": Use(9 * 256, everything, ""),
                of_key: Use(1000 * 256, everything, ""),
                of_other: Use(2000 * 256, everything, ""),
            }
        )
        assert items.flooding_plan(2.0**-8).queries_left == before.queries_left - 7
        plan = owner.flooding_plan(2.0**-8)
        assert plan.rows_left == plan.rows_an_epoch - 1000
        items.query(rows[:2], 1, audience="others", flooding=2.0**-8)
        assert items.flooding_plan(2.0**-8).queries_left == before.queries_left - 9
        Uses().reserve({of_key: Use(plan.rows_left * 256, everything, "")})
        query = owner.query(rows[:1])
        with pytest.raises(PoolExhausted, match="query key of this epoch"):
            query.open(server.evaluate(query.to_bytes()), 1, audience="others", flooding=2.0**-8)


CHILD = """
import sys
import numpy as np
import ciphervec
from ciphervec.errors import PoolExhausted
keys = ciphervec.Keys.load(sys.argv[1])
with ciphervec.PersistentClient(sys.argv[2], keys=keys, read_only=True) as client:
    items = client.get_collection("items")
    try:
        while True:
            items.query(np.eye(4, dtype=np.float32)[:1], 1, audience="others", flooding=2.0**-12)
            print("answered", flush=True)
    except PoolExhausted:
        pass
"""


def test_as_many_queries_of_all_rows_are_answered_as_the_plan_says(keys: Keys, vectors: Rows) -> None:
    """Keys are renewed between them, rows are not: none are left where one query is more than a key hides."""
    rows = vectors(400, 64)
    items = sealed(keys, rows, name="whole")
    plan = items.flooding_plan(2.0**-12)
    assert plan.rows_an_epoch < len(rows) and plan.queries == plan.queries_left == 0
    with pytest.raises(PoolExhausted, match="Rank fewer rows"):
        items.query(rows[:1], 1, audience="others", flooding=2.0**-12)
    narrow = 2.0**-11
    left = items.flooding_plan(narrow).queries_left
    assert left > 3 * items.flooding_plan(narrow).rows_an_epoch // len(rows) > 0
    for asked in range(left):
        items.query(rows[asked % 400 :][:1], 1, audience="others", flooding=narrow)
    assert items.flooding_plan(narrow).queries_left == 0
    with pytest.raises(PoolExhausted, match=r"optimize\("):
        items.query(rows[:1], 1, audience="others", flooding=narrow)


@pytest.mark.slow
def test_restarts_processes_and_kills_give_nothing_back(keys: Keys, tmp_path: Path) -> None:
    """The folder is opened again, by processes that are killed while they ask, and by two at once."""
    keys.save(tmp_path / "key", allow_plaintext=True)
    one = np.eye(4, dtype=np.float32)[:1]
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        items = client.create_collection("items", 4)
        items.add([0], one)
        # All but twenty-five are used up already.
        left = items.flooding_plan(2**-12).queries_left
        items.query(np.repeat(one, left - 25, axis=0), 1, audience="others", flooding=2.0**-12)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "key"), str(tmp_path / "db")]
    answered = 0
    for _ in range(2):
        killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert killed.stdout is not None and killed.stdout.readline() == "answered\n"
        killed.kill()
        answered += 1 + killed.communicate()[0].count("answered")
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answered += sum(child.communicate()[0].count("answered") for child in both)
    assert 23 <= answered <= 25, "each kill may cost one that was counted"
    with PersistentClient(tmp_path / "db", keys=keys, read_only=True) as client, pytest.raises(PoolExhausted):
        client.get_collection("items").query(one, 1, audience="others", flooding=2.0**-12)


def test_where_nothing_can_be_counted_nothing_is_shown(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = np.eye(4, dtype=np.float32)[:1]
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("items", 4).add([0], one)
    (tmp_path / "no folder").touch()
    monkeypatch.delenv("CIPHERVEC_STATE")
    for variable in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "no folder"))
    with PersistentClient(tmp_path / "db", keys=keys, read_only=True) as client:
        items = client.get_collection("items")
        assert items.query(one, 1)["ids"] == [[0]]
        with pytest.raises(StorageError, match=r"count|kept there"):
            items.query(one, 1, audience="others", flooding=2**-8)


def test_what_is_counted_stays_when_the_file_is_shared_by_threads(tmp_path: Path) -> None:
    from ciphervec.ingest.uses import Use

    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    use = Use(1, 3, "{used} of {allowed} are used.")
    assert Uses(paths).reserve({"one": use, "two": use}) == {"one": 1, "two": 1}
    paths[0].unlink()
    assert Uses(paths[::-1]).reserve({"one": use}) == {"one": 2}
    with pytest.raises(PoolExhausted, match="2 of 3 are used"):
        Uses(paths).reserve({"two": use, "one": use._replace(more=2)})
    assert [tuple(one) for one in Uses(paths).list()] == [("one", 2, 3), ("two", 1, 3)]  # all or none


def test_more_rows_than_an_epoch_allows_are_refused_as_that(keys: Keys, vectors: Rows) -> None:
    rows = vectors(400, D)
    items = sealed(keys, rows)
    most = items.flooding_plan(2.0**-12).rows_an_epoch
    assert most < 400
    with pytest.raises(PoolExhausted, match=rf"rank 400 rows for others.* hides {most} in all\. Rank fewer"):
        items.query(rows[1], audience="others", flooding=2.0**-12)


def test_neighbours_are_flooded_for_others(keys: Keys, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(30, D)).astype(np.float32)
    near = EncryptedNearestNeighbors(3, metric="cosine", keys=keys, audience="others").fit(rows)
    first, second = near.kneighbors(rows[:2])[0], near.kneighbors(rows[:2])[0]
    assert np.abs(first - second).max() > 1e-4
    assert near.get_params()["audience"] == "others"
    own = EncryptedNearestNeighbors(3, metric="cosine", keys=keys).fit(rows)
    assert np.abs(own.kneighbors(rows[:2])[0] - own.kneighbors(rows[:2])[0]).max() < 1e-4


def test_the_command_line_asks_for_whom_json_is(tmp_path: Path, keys: Keys) -> None:
    keys.save(tmp_path / "key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("items", 4).add([0, 1], np.eye(4, dtype=np.float32)[:2])
    program, asked = Program(tmp_path), ("query", "db", "items", "--vector", "[1, 0, 0, 0]", "--keys", "key")
    refused = program(*asked, "--json", code=2)
    assert "--audience owner" in json.loads(refused.stdout)["error"]["message"]
    others = ("--json", "--audience", "others", "--flooding", "0.03")
    flooded = json.loads(program(*asked, *others).stdout)
    assert flooded["ids"] == [[0, 1]] and abs(flooded["scores"][0][1]) > 2**-14


@pytest.mark.slow
def test_how_much_recall_a_flood_leaves_of_real_vectors(
    keys: Keys,
    load_data: Callable[[str], dict[str, np.ndarray]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Sentence embeddings, 700 rows of 1,024 numbers. docs/sealed.md prints the table."""
    rows = load_data("vec_cohere_ml3_i8_1024.npz")["vectors"].astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    probes = np.arange(0, 700, 10)
    exact = rows[probes] @ rows.T
    exact[np.arange(len(probes)), probes] = -2  # itself
    best = np.argsort(-exact, axis=1)[:, :10]
    items = sealed(keys, rows, name="recall")
    recall = {}
    for bits in (10, 9, 8, 7, 6):
        order = np.argsort(-others_scores(2.0**-bits)(items, rows[probes], 700), axis=1)[:, :11]
        lists = [
            [one for one in ids if one != probe][:10]
            for probe, ids in zip(probes, order.tolist(), strict=True)
        ]
        share = np.mean([len(set(ids) & set(right)) / 10 for ids, right in zip(lists, best, strict=True)])
        recall[bits] = (
            round(float(share), 2),
            round(float(np.mean([a[0] == b[0] for a, b in zip(lists, best, strict=True)])), 2),
        )
    with capsys.disabled():
        print("\nrecall@10, recall@1 by -log2 of the flood:", recall)
    for bits, least in {10: 0.95, 8: 0.88, 6: 0.7}.items():
        assert recall[bits][0] > least


def test_whoever_hands_on_plain_floats_says_for_whom(keys: Keys, vectors: Rows) -> None:
    """One rule for estimators and backends, whose results carry no type: the owner unless others are named, for whom hits
    are ranked by their vectors, or refused."""
    rows = vectors(20, D)

    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def off(client: Client, **more: Any) -> float:
        """By how much the scores of the furthest rows are not the cosines that they stand for."""
        backend = CiphervecSearchIndex("cosine", client=client, **more)
        backend.add_documents(rows, [str(i) for i in range(len(rows))])
        scores, places = backend.search(rows[:1], len(rows))
        return float(np.abs(scores[0] - units[places[0]] @ units[0])[-8:].max())

    with Client(keys=keys) as client:
        own, theirs = off(client), off(client, audience="others")
        assert theirs < 1e-6 < own < 1e-4, "no noise is in what others see"
        with pytest.raises(InvalidInput, match="sealed-query"):
            off(client, mode="sealed-query", audience="others")
        with pytest.raises(InvalidInput, match="audience must be"):
            CiphervecSearchIndex("cosine", client=client, audience="everybody")  # type: ignore[arg-type]
    far = np.sort(1 - units @ units.T, axis=1)[:, -4:]
    for audience in ("owner", "others"):
        distances, _ = (
            EncryptedNearestNeighbors(len(rows), keys=keys, audience=audience).fit(rows).kneighbors(rows)
        )
        assert (np.abs(distances[:, -4:] - far).max() < 1e-4) == (audience == "owner")
    assert EncryptedNearestNeighbors().get_params()["audience"] == "owner"
    with pytest.raises(InvalidInput, match="sealed-query"):
        EncryptedNearestNeighbors(2, mode="sealed-query", audience="others").fit(rows).kneighbors(rows)
