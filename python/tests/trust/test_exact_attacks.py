"""Attacks on outputs of mode `sealed-index`, with as many queries as it takes. Each opens the segments of release 0.1 that
are kept as fixtures, and gets nowhere with present ones: what these give is the same under every key."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ciphervec
from attacks import Stored, Unsolvable, forged
from ciphervec import IndexSpec, Keys, Owner, Probe, ServerIndex
from ciphervec.collections.results import Matches
from ciphervec.decrypt_service import Matcher
from ciphervec.writer.pending_batch import WrittenBatch

FIXTURES = Path(__file__).parents[1] / "fixtures" / "rounded"
D = 64
ROWS = {"standard": 60, "small": 60, "wide": 90}
Batch = Callable[[np.ndarray], np.ndarray]


def plain(precision: str) -> np.ndarray:
    """The rows that the fixtures were sealed from."""
    return np.random.RandomState(7).standard_normal((ROWS[precision], D)).astype(np.float32)


def unit(rows: np.ndarray) -> np.ndarray:
    exact = rows.astype(np.float64)
    return exact / np.linalg.norm(exact, axis=1, keepdims=True)


class Target:
    """A segment, its owner who answers anything, and what the attacker has of it."""

    def __init__(self, precision: str, kind: str) -> None:
        self.precision, self.rows = precision, ROWS[precision]
        folder = FIXTURES / precision
        spec = IndexSpec.from_bytes((folder / "description").read_bytes())
        self.server = ServerIndex(spec)
        if kind == "old":
            self.owner = Owner(Keys.load(FIXTURES / "owner.key"), spec)
            self.segment = (folder / "segment").read_bytes()
            self.id = self.segment[64:80]
            self.owner.attach(self.id, (folder / "sidecar").read_bytes())
        else:
            self.owner = Owner(Keys.generate(), spec)
            sealed = self.owner.seal(range(self.rows), plain(precision))
            self.id, self.segment = sealed.id, sealed.segment
        self.server.add(self.segment)
        self.stored = Stored(self.segment, self.owner.mask_seed, self.rows, D, precision)
        self.exact = True

    def weights(self, queries: np.ndarray) -> np.ndarray:
        """The whole numbers that a query is sent as, which is in the clear."""
        kind = "<i8" if self.precision == "wide" else "<i4"
        parts = [queries[start : start + 1024] for start in range(0, len(queries), 1024)]
        bodies = [self.owner.query(part).to_bytes()[64 + 19 :] for part in parts]
        return np.frombuffer(b"".join(bodies), kind).reshape(queries.shape).astype(np.float64)

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Scores of every row, as `open` returns them: (queries, rows)."""
        out = np.empty((len(queries), self.rows))
        for start in range(0, len(queries), 1024):
            query = self.owner.query(queries[start : start + 1024])
            found = query.open(self.server.evaluate(query.to_bytes()), self.rows)
            for matches, scores in zip(found, out[start:], strict=False):
                scores[matches.ids] = matches.scores
                self.exact &= matches.exact
        return out

    def break_open(self, known: dict[int, np.ndarray], sure: np.ndarray | None = None) -> float:
        """The largest error of a coordinate of rows that were not among the `known`. Raises Unsolvable."""
        secret = self.stored.secret(known, sure)
        hidden = [row for row in range(self.rows) if row not in known]
        got = np.stack([self.stored.open(row, secret) for row in hidden])
        return float(np.abs(got - unit(plain(self.precision))[hidden]).max())


def resists(target: Target, known: dict[int, np.ndarray]) -> bool:
    """Whether the equations say nothing about the secret: they contradict each other, or what solves them opens nothing."""
    try:
        return target.break_open(known) > 0.1
    except Unsolvable:
        return True


def dithered(target: Target, rows: int, count: int) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """Chosen queries: nearly along one axis, the rest of it small and varied, so that a rounded score steps where the number
    on the axis says. Rows with their noise in units of 2^-drop, and which numbers of them are sure."""
    random, scale, drop = np.random.default_rng(6), target.stored.scale, 2.0**target.stored.drop
    near = unit(plain(target.precision))[:rows] * scale * drop
    low, high = np.full((rows, D), -np.inf), np.full((rows, D), np.inf)
    for axis in range(D):
        queries = random.integers(-20, 21, (count, D)) * (random.random((count, D)) < 40 / D)
        queries[:, axis] = 0
        queries[:, axis] = np.rint(np.sqrt(scale**2 - (queries.astype(np.float64) ** 2).sum(axis=1)))
        asked = target.weights(queries.astype(np.float32))
        scores = target.scores(queries.astype(np.float32))[:, :rows]
        known = asked @ near.T - asked[:, [axis]] * near[:, axis][None]
        bounds = [(scores + side * 2.0**-17) * scale**2 * drop - known for side in (-1, 1)]
        low[:, axis] = (bounds[0] / asked[:, [axis]]).max(axis=0) - 0.15
        high[:, axis] = (bounds[1] / asked[:, [axis]]).min(axis=0) + 0.15
    first = np.ceil(low)
    return dict(enumerate(first.astype(np.int64))), first == np.floor(high)


def test_chosen_queries_open_the_old_kind_and_not_the_new() -> None:
    old, new = Target("standard", "old"), Target("standard", "new")
    known, sure = dithered(old, 45, 64)
    assert not old.exact and sure.mean() > 0.8
    assert old.break_open(known, sure) < 1e-3
    known, sure = dithered(new, 45, 64)
    assert new.exact
    assert resists(new, known)
    # What it did get is the rows that it knew, rounded once, and nothing of their noise.
    rounded = np.rint(unit(plain("standard"))[:45] * new.stored.scale) * 32
    assert np.abs(np.stack([known[row] for row in range(45)]) - rounded).max() <= 32


def least_squares(target: Target, count: int) -> tuple[dict[int, np.ndarray], float]:
    """Random queries: rows with their noise, and how far from whole numbers the estimates were."""
    queries = np.random.default_rng(7).standard_normal((count, D)).astype(np.float32)
    scale, unit_size = target.stored.scale, target.stored.scale * 2.0**target.stored.drop
    found, *_ = np.linalg.lstsq(
        target.weights(queries) / scale, target.scores(queries) * unit_size, rcond=None
    )
    whole = np.rint(found)
    return dict(enumerate(whole.T.astype(np.int64))), float(np.abs(found - whole).max())


def test_random_queries_open_the_old_kind_at_wide_precision_and_not_the_new() -> None:
    old, new = Target("wide", "old"), Target("wide", "new")
    known, off = least_squares(old, 64 * D)
    assert off < 0.45
    assert old.break_open({row: known[row] for row in range(68)}) < 1e-6
    known, off = least_squares(new, 64 * D)
    assert off < 0.45 and new.exact
    assert resists(new, {row: known[row] for row in range(68)})
    rounded = np.rint(unit(plain("wide")) * new.stored.scale)
    assert all((known[row] == rounded[row]).all() for row in range(90)), "the rows, without their noise"


def whole(vectors: np.ndarray, target: Target) -> dict[int, np.ndarray]:
    """Decrypted rows in units of 2^-drop."""
    values = np.rint(vectors.astype(np.float64) * target.stored.scale * 2.0**target.stored.drop)
    return dict(enumerate(values.astype(np.int64)))


@pytest.mark.parametrize("precision", ["standard", "small"])
def test_a_few_vectors_open_the_old_kind_and_not_the_new(precision: str) -> None:
    """Release 0.1 showed rows with their noise; what it showed of the old segments is kept beside them."""
    old, new = Target(precision, "old"), Target(precision, "new")
    once = np.frombuffer((FIXTURES / precision / "shown").read_bytes(), "<f4").reshape(40, D)
    assert old.break_open(whole(once, old)) < (1e-3 if precision == "standard" else 1e-2)
    for target in (old, new):  # what is shown today of either
        assert resists(target, whole(target.owner.unseal(target.segment, range(40)), target))


def test_one_row_of_one_block_gives_its_noise_away_in_the_old_kind_only() -> None:
    """Random queries about one row: the average of many tells its noise."""
    rounded = np.rint(unit(plain("standard"))[:1] * 2**15.4)[0]
    queries = np.random.default_rng(8).standard_normal((6_000, D)).astype(np.float32)
    residues = {}
    for kind in ("old", "new"):
        target = Target("standard", kind)
        target.owner.forget(range(1, target.rows))
        asked = target.weights(queries) / target.stored.scale
        found, *_ = np.linalg.lstsq(asked, target.scores(queries)[:, 0] * target.stored.scale, rcond=None)
        residues[kind] = found - rounded
    # Noise of 3.2/32 and the stored rounding; the present kind is the row to a thousandth.
    assert np.abs(residues["old"]).std() > 0.05
    assert np.abs(residues["new"]).max() < 1e-3


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "hamming"])
@pytest.mark.parametrize("precision", ["standard", "small", "wide"])
def test_everything_shown_is_the_same_bits_under_other_keys(precision: str, metric: str) -> None:
    """Whatever somebody asks, and however often: his answers are no function of the key, the nonce or the noise."""
    random = np.random.default_rng(9)
    rows = random.standard_normal((150, D)).astype(np.float32)
    queries = np.concatenate([random.standard_normal((40, D)), np.eye(D)[:20], rows[:20] + 1e-4]).astype(
        np.float32
    )
    if metric == "hamming":
        rows, queries = np.sign(rows), np.where(queries >= 0, 1, -1).astype(np.float32)
    seen = []
    for _ in range(2):
        collection = ciphervec.Client().create_collection(
            "c", D, metric, mode="sealed-index", precision=precision
        )
        collection.add(list(range(100)), rows[:100])
        collection.add(list(range(100, 150)), rows[100:])
        collection.delete([3, 120])
        shown: list[object] = [
            collection.query(queries, n_results=count, include=["scores", "distances"])
            for count in (1, 10, 148)
        ]
        for within in (0.3, 0.9, 20.0):
            query = collection.make_query(queries)
            found = collection.open_answer(query, collection.evaluate(query.to_bytes()), None, within=within)
            assert all(matches.exact for matches in found)
            shown.append([(matches.ids, matches.scores.tobytes()) for matches in found])
        shown.append(collection.get(list(range(40, 70)), include=["embeddings"])["embeddings"].tobytes())
        collection.optimize()
        shown.append(collection.get(list(range(40, 70)), include=["embeddings"])["embeddings"].tobytes())
        seen.append(shown)
    assert seen[0] == seen[1]


def bisected(target: Target, row: int) -> float:
    """A score, read from whether the row passes a threshold while its sum is shifted, as a server could see it."""
    probe = np.random.default_rng(10).standard_normal((1, D)).astype(np.float32)
    query = target.owner.read_query(Probe(target.owner.spec).query(probe))
    answer = target.server.evaluate(query.to_bytes())
    at = len(answer) - 4 * (target.rows - row)
    word = int.from_bytes(answer[at : at + 4], "little")
    low, high = -(2**29), 2**29
    while high - low > 1:
        shift = (low + high) // 2
        answer = forged(answer, at, ((word + shift) % 2**32).to_bytes(4, "little"))
        found = target.owner.open(query, answer, None, within=0.9)[0]
        low, high = (low, shift) if row in found.ids else (shift, high)
    return float(0.1 - high / target.stored.scale**2)


def test_shifted_answers_read_scores_of_the_old_kind_and_are_refused_by_the_new() -> None:
    probe = np.random.default_rng(10).standard_normal((1, D)).astype(np.float32)
    truth = float((unit(probe) @ unit(plain("standard"))[5])[0])
    assert abs(bisected(Target("standard", "old"), 5) - truth) < 1e-4
    with pytest.raises(ciphervec.errors.MismatchedAnswer):
        bisected(Target("standard", "new"), 5)


def test_a_device_that_sends_two_queries_reads_words_of_the_old_kind_only() -> None:
    """One query for the cloud, another for the decrypt service: the difference of their scores is a masked word."""
    random = np.random.default_rng(11)
    opened = {"old": 0, "new": 0}
    for kind in opened:
        target = Target("standard", kind)
        probe = Probe(target.owner.spec)
        for _ in range(200):
            one, other = (probe.query(random.standard_normal((1, D)).astype(np.float32)) for _ in range(2))
            try:
                target.owner.open(target.owner.read_query(one), target.server.evaluate(other), 1)
                opened[kind] += 1
            except ciphervec.errors.CorruptData as error:
                assert kind == "old" or isinstance(error, ciphervec.errors.MismatchedAnswer)
        few = Target(
            "standard", kind
        )  # deleted rows are no way around, as long as the server keeps their words
        few.owner.forget(list(range(1, few.rows)))
        for _ in range(50):
            one, other = (probe.query(random.standard_normal((1, D)).astype(np.float32)) for _ in range(2))
            try:
                few.owner.open(few.owner.read_query(one), few.server.evaluate(other), 1)
                opened[kind] += 1
            except ciphervec.errors.CorruptData:
                pass
    assert opened["old"] > 20 and opened["new"] == 0


def test_a_writers_random_words_cost_its_segment_and_nothing_else(tmp_path: Path, keys: Keys) -> None:
    random = np.random.default_rng(12)
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(list(range(50)), plain("standard")[:50])
        card = faces.writer_card("door")
    writer = ciphervec.Writer(card)
    [segment] = writer.seal(list(range(50, 60)), plain("standard")[50:]).segments
    words = segment.blobs["rows"]
    words = forged(words, 128, random.bytes(len(words) - 128))
    writer.send(tmp_path / "db", WrittenBatch([segment._replace(blobs={**segment.blobs, "rows": words})]))
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        faces = client.get_collection("faces")
        assert faces.count() == 60
        probe = Probe(faces.spec)
        for _ in range(20):
            read = faces._read_query(probe.query(random.standard_normal((1, D)).astype(np.float32)))
            [found], passed_over = faces._opened_answer(read, faces.evaluate(read.to_bytes()), 60, None, None)
            assert len(found) == 50 and found.exact and passed_over == [segment.id]
        assert faces.info()["quarantine"] == [], "somebody else's query condemns nobody"
        with pytest.warns(UserWarning, match="'door' failed its check"):
            assert [matches.ids for matches in asked(faces, plain("standard")[:1], 1)] == [[0]]
        assert faces.info()["quarantine"] == [segment.id.hex()]


def asked(faces: ciphervec.Collection, rows: np.ndarray, count: int) -> list[Matches]:
    query = faces.make_query(rows)
    return faces.open_answer(query, faces.evaluate(query.to_bytes()), count)


def test_a_folder_of_release_0_1_reads_as_it_did_and_optimize_makes_it_exact(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "db", tmp_path / "db")
    rows = plain("standard")
    with ciphervec.PersistentClient(tmp_path / "db", keys=Keys.load(FIXTURES / "owner.key")) as client:
        faces = client.get_collection("faces")
        info = faces.info()
        assert len(info["old_kind"]) == 2 and info["unchecked_blocks"] == 2 and info["quarantine"] == []
        before = asked(faces, rows[:3], 5)
        assert not any(matches.exact or matches.checked for matches in before)
        with pytest.raises(
            ciphervec.InvalidInput, match=r"2 segments of 'faces' have no check sums.*optimize"
        ):
            Matcher(faces, 0.3)
        assert all((np.rint(matches.scores * 2**16) == matches.scores * 2**16).all() for matches in before)
        faces.add([60], rows[:1] + 0.5)
        mixed = asked(faces, rows[:3], 1)
        assert [matches.ids for matches in mixed] == [[0], [1], [2]]
        assert not any(matches.exact for matches in mixed), (
            "a segment of the old kind was ranked with the rest"
        )
        faces.optimize()
        assert faces.info()["old_kind"] == [] and faces.info()["unchecked_blocks"] == 0
        after = asked(faces, rows[:3], 5)
        assert all(matches.exact and matches.checked for matches in after)
        assert Matcher(faces, 0.3).held == 0
        truth = unit(rows[:3]) @ unit(np.concatenate([rows, rows[:1] + 0.5])).T
        for matches, scores in zip(after, truth, strict=True):
            np.testing.assert_allclose(matches.scores, scores[matches.ids], atol=1.5e-4)
