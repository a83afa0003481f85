"""What every test shares: one key, seeded randomness, real vectors where there are any, the float64 oracle, and a server."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import ciphervec
import former
from ciphervec.collections.results import QUERY_DEFAULT
from ciphervec.collections.spec import Choices
from ciphervec.http import LocalServer, retry
from ciphervec.http.transport import Direct
from network import D, Make

settings.register_profile(
    "suite",
    max_examples=int(os.environ.get("CIPHERVEC_TEST_EXAMPLES", "40")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("suite")

# Largest score error at unit length that a test accepts: ten standard deviations of the noise that docs/sealed.md
# derives for the form (1.5e-5 standard, 1.9e-4 small), plus half the step that scores are rounded to, 2^-16. In
# the wide form (1.1e-9) the float32 of vectors and answers is the coarser grid.
SCORE_ERROR = {"standard": 10 * 1.5e-5 + 2**-17, "small": 10 * 1.9e-4 + 2**-17, "wide": 3e-7}
MODES = ("open", "sealed-index", "sealed-query", "sealed")
METRICS = ("cosine", "ip", "l2", "hamming")


class Oracle:
    """Plain float64 numpy: what an answer has to be, up to the stated error."""

    modes = MODES
    metrics = METRICS

    @staticmethod
    def distances(metric: str, rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
        """Exact distances, (queries, rows), as the package defines them."""
        x, q = rows.astype(np.float64), queries.astype(np.float64)
        if metric == "cosine":
            x = x / np.linalg.norm(x, axis=1, keepdims=True)
            q = q / np.linalg.norm(q, axis=1, keepdims=True)
            return 1 - q @ x.T
        if metric == "ip":
            return 1 - q @ x.T
        if metric == "l2":
            return np.stack([((x - one) ** 2).sum(axis=1) for one in q])
        return np.stack([(x != one).sum(axis=1) for one in q]).astype(np.float64)

    @staticmethod
    def tolerance(
        metric: str, precision: str, rows: np.ndarray, queries: np.ndarray, error: float | None = None
    ) -> np.ndarray:
        """Largest error of each distance, (queries, rows): the unit-length error, the precision's unless given, times
        the lengths involved."""
        if metric == "hamming":
            return np.zeros((len(queries), len(rows)))
        error = SCORE_ERROR[precision] if error is None else error
        if metric == "cosine":
            return np.full((len(queries), len(rows)), error + 2e-7)
        lengths = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(rows, axis=1))
        squares = np.add.outer((queries**2).sum(axis=1), (rows**2).sum(axis=1))
        # The sidecar's norms are float32, and so is the answer; under ip it is one minus the product.
        exact = 4e-7 * squares + (1.2e-7 if metric == "ip" else np.finfo(np.float32).tiny)
        return lengths * error * (2 if metric == "l2" else 1) + exact

    @classmethod
    def check(
        cls,
        metric: str,
        precision: str,
        rows: np.ndarray,
        queries: np.ndarray,
        ids: Sequence[Any],
        answers: Sequence[tuple[Sequence[Any], Sequence[float]]],
        count: int,
        centre: np.ndarray | float = 0.0,
    ) -> None:
        """Every distance is right to within the error, in order, and no row left out was clearly closer. `centre` is what
        vectors are taken less."""
        exact = cls.distances(metric, rows, queries)
        slack = cls.tolerance(metric, precision, rows - centre, queries - centre)
        place = {name: i for i, name in enumerate(ids)}
        assert len(answers) == len(queries)
        for line, error, (found, distances) in zip(exact, slack, answers, strict=True):
            assert len(found) == len(distances) == min(count, len(rows))
            at = [place[name] for name in found]
            assert len(set(at)) == len(at)
            got = np.asarray(distances, dtype=np.float64)
            worst = np.max(np.abs(got - line[at]) - error[at], initial=-1.0)
            assert worst <= 0, f"distance off by {worst + error.max():.3g}, allowed {error.max():.3g}"
            assert np.all(np.diff(got) >= 0), "not closest first"
            left_out = np.setdiff1d(np.arange(len(rows)), at)
            if len(at) and len(left_out):
                closest = np.min(line[left_out] + error[left_out] * 2)
                assert line[at[-1]] - error[at[-1]] * 2 <= closest + 1e-12, "a closer row was left out"


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Counts and pins go to a folder of the run's own, those of child processes too."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("state")
        patch.setenv("CIPHERVEC_STATE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    return Oracle


@pytest.fixture(scope="session")
def keys() -> ciphervec.Keys:
    return ciphervec.Keys.generate()


@pytest.fixture(scope="session")
def session_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """A real server in its own process, open to this machine."""
    with LocalServer(tmp_path_factory.mktemp("server") / "db") as server:
        yield server


@pytest.fixture
def server_url(session_server: LocalServer) -> Iterator[str]:
    """Its address; collections that a test makes are gone afterwards."""
    yield session_server.url
    with ciphervec.HttpClient(session_server.url, state=None) as client:
        for name in client.list_collections():
            client.delete_collection(name)


@pytest.fixture
def http_client(
    server_url: str, tmp_path: Path, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ciphervec.HttpClient]:
    """A client that includes by default what the embedded ones include, so that the same tests suit it."""
    monkeypatch.setattr(ciphervec.http.HttpCollection, "_query_default", QUERY_DEFAULT)
    with ciphervec.HttpClient(server_url, keys=keys, state=tmp_path / "state") as client:
        yield client


@pytest.fixture
def make(
    server_url: str, keys: ciphervec.Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """Clients of the server, each with a state folder of its own unless told otherwise. They don't wait for long."""
    monkeypatch.setattr(retry, "_FIRST", 0.01)
    monkeypatch.setattr(Direct, "sleep", lambda _, seconds: time.sleep(min(seconds, 0.01)))
    made: list[ciphervec.HttpClient] = []

    def client(*, state: Any = "own", transport: Any = None, **more: Any) -> ciphervec.HttpClient:
        folder = tmp_path / f"state{len(made)}" if state == "own" else state
        given = {"keys": keys, "retries": 3, **more}
        made.append(ciphervec.HttpClient(server_url, state=folder, transport=transport, **given))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collections are made as release 0.1 made them: no incarnation, no state."""

    def as_before(client: ciphervec.Client, choices: Choices, *_: int) -> ciphervec.Collection:
        former.create(client, choices)
        return client._get(choices.spec.collection, allow_open=True)

    monkeypatch.setattr(ciphervec.Client, "_create", as_before)


@pytest.fixture(params=["folder", "server"])
def old(
    request: pytest.FixtureRequest, tmp_path: Path, keys: ciphervec.Keys, made_before: None
) -> Callable[[], ciphervec.Client]:
    """Opens a database of such collections."""
    if request.param == "folder":
        return lambda: ciphervec.PersistentClient(tmp_path / "db", keys)
    url = request.getfixturevalue("server_url")
    return lambda: ciphervec.HttpClient(url, keys=keys, state=tmp_path / "state")


@pytest.fixture
def rows(vectors: Callable[..., np.ndarray]) -> np.ndarray:
    """Vectors for the collections of those clients."""
    return vectors(40, D)


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    """Where a client keeps its state, or nowhere."""
    return tmp_path / "state" if request.param == "folder" else None


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Seeded by the test's own name, so that a failure repeats and tests don't share vectors."""
    return np.random.default_rng(list(request.node.name.encode()))


@pytest.fixture
def vectors(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """Random rows that suit a metric: Gaussian of varied length, or ±1."""

    def make(n: int, d: int, metric: str = "cosine") -> np.ndarray:
        if metric == "hamming":
            return rng.choice([-1.0, 1.0], size=(n, d)).astype(np.float32)
        scale = rng.uniform(0.5, 2.0, size=(n, 1))
        return (rng.normal(size=(n, d)) * scale).astype(np.float32)

    return make


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Real vectors: the .npz files of the folder that CIPHERVEC_TEST_DATA names, or of a `data` folder that lies
    one level deep beside the repository."""
    named = os.environ.get("CIPHERVEC_TEST_DATA")
    beside = Path(__file__).resolve().parents[1].glob("*/data/vec_bigann10k_u8_128.npz")
    folder = Path(named) if named else next((path.parent for path in beside), None)
    if folder is None or not folder.is_dir():
        pytest.skip("skipped: no data")
    return folder


@pytest.fixture(scope="session")
def load_data(data_folder: Path) -> Callable[[str], dict[str, np.ndarray]]:
    """The arrays of one .npz file of the data folder, or a skip where the file is not there."""

    def load(name: str) -> dict[str, np.ndarray]:
        path = data_folder / name
        if not path.is_file():
            pytest.skip("skipped: no data")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}

    return load


@pytest.fixture
def deepface_adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """DeepFace's database over collections: beside DeepFace, or beside its interface alone where it isn't."""
    installed = importlib.util.find_spec("deepface") is not None
    if not installed:
        for name in ("deepface", "deepface.modules", "deepface.modules.database"):
            monkeypatch.setitem(sys.modules, name, ModuleType(name))
        types, inventory = (ModuleType(f"deepface.modules.database.{one}") for one in ("types", "inventory"))
        types.Database = type("Database", (), {})  # type: ignore[attr-defined]
        inventory.database_inventory = {}  # type: ignore[attr-defined]
        for module in (types, inventory):
            monkeypatch.setitem(sys.modules, module.__name__, module)
    yield importlib.import_module("ciphervec.adapters.deepface")
    if not installed:
        sys.modules.pop("ciphervec.adapters.deepface")
