"""`ciphervec import` of other vector stores: files of FAISS and Pinecone; Weaviate and Elasticsearch by a server that keeps to
their documented cursors; what is refused, what is asked, what a killed run leaves. Engines with clients of their own are in
compat/test_engines.py."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from ciphervec.cli import sources
from ciphervec.cli.row_table import Columns
from ciphervec.cli.sources.agreement import Agreement, one_by_one
from ciphervec.cli.sources.source import Address
from ciphervec.cli.sources.survey import Rows
from ciphervec.errors import InvalidInput
from other_stores import (
    DIMENSION,
    ROWS,
    answers_as,
    distances,
    document,
    metadata,
    moved,
    program,
    refused,
    stored,
    vectors,
)
from program import Program

X = vectors()
Answer = Callable[[str, str, dict[str, list[str]], Any], Any]


@pytest.fixture
def run(tmp_path: Path) -> Program:
    return program(tmp_path)


def lines(rows: range = range(ROWS), **more: Any) -> str:
    made = [
        {"id": f"v{i}", "values": X[i].tolist(), "metadata": {**metadata(i), "text": document(i)}, **more}
        for i in rows
    ]
    return "".join(json.dumps(one) + "\n" for one in made)


@pytest.fixture
def pinecone(tmp_path: Path) -> Path:
    path = tmp_path / "pinecone.jsonl"
    path.write_text(lines())
    return path


def two(i: int) -> Any:
    """The vectors of a row that has two."""
    return np.stack([X[i], X[i, ::-1]])


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """HOST:PORT of a server that answers JSON by this function of method, path, query and body."""

    class Handler(BaseHTTPRequestHandler):
        def handle(self) -> None:
            self.protocol_version = "HTTP/1.1"
            super().handle()

        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, found = (
                200,
                answer(self.command, parts.path, parse_qs(parts.query), json.loads(body or b"null")),
            )
            if self.headers.get("Authorization", "").endswith("wrong"):
                status, found = 401, {}
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815, the library's names

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class FakeWeaviate:
    """GET /v1/schema, GET /v1/objects with `class`, `limit`, `after` and `include`, and GraphQL's count."""

    def __init__(self, distance: str = "l2-squared", named: bool = False) -> None:
        configuration = {"distance": distance}
        several = {"enabled": True}
        described: dict[str, Any] = {"class": "Article", "properties": [{"name": "n", "dataType": ["int"]},
                                                                        {"name": "body", "dataType": ["text"]}]}  # fmt: skip
        if named:
            described["vectorConfig"] = {
                "main": {"vectorIndexConfig": configuration},
                "colbert": {"vectorIndexConfig": {**configuration, "multivector": several}},
            }
        else:
            described["vectorIndexConfig"] = configuration
        self.described, self.named = described, named
        self.ids = sorted(f"{i:08x}-0000-4000-8000-{i * 7 % ROWS:012x}" for i in range(ROWS))

    def __call__(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        if path == "/v1/schema":
            return {"classes": [self.described]}
        if path == "/v1/graphql":
            assert body["query"] == "{Aggregate{Article{meta{count}}}}"
            return {"data": {"Aggregate": {"Article": [{"meta": {"count": ROWS}}]}}}
        assert (method, path) == ("GET", "/v1/objects")
        assert query["class"] == ["Article"]
        assert query["include"] == ["vector"]
        first = self.ids.index(query["after"][0]) + 1 if "after" in query else 0
        rows = range(first, min(first + int(query["limit"][0]), ROWS))
        return {"objects": [self.row(i) for i in rows]}

    def row(self, i: int) -> dict[str, Any]:
        properties = {"n": i, "body": document(i)}
        if self.named:
            return {"id": self.ids[i], "properties": properties,
                    "vectors": {"main": X[i].tolist(), "colbert": two(i).tolist()}}  # fmt: skip
        return {"id": self.ids[i], "properties": properties, "vector": X[i].tolist()}


class FakeElasticsearch:
    """The scroll interface; from 9.2 on, vectors come only where they are not excluded."""

    def __init__(self, version: str, **field: Any) -> None:
        self.version = version
        self.field = {"type": "dense_vector", "dims": DIMENSION, **field}
        self.extra: dict[str, Any] = {}
        self.scrolls: dict[str, int] = {}
        self.hidden = False
        self.size = 0

    def __call__(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        if path == "/":
            return {"version": {"number": self.version}}
        if path == "/_mapping":
            properties = {"vector": self.field, "n": {"type": "long"}, "body": {"type": "text"}, **self.extra}
            return {"docs": {"mappings": {"properties": properties}}, ".security": {"mappings": {}}}
        if path == "/docs/_count":
            return {"count": ROWS}
        if path == "/docs/_search":
            assert query["scroll"] == ["5m"]
            newer = tuple(map(int, self.version.split(".")[:2])) >= (9, 2)
            assert newer == ("exclude_vectors" in body["_source"]), (
                "older versions refuse a name that they don't know"
            )
            self.hidden = newer and body["_source"]["exclude_vectors"]
            self.size = 128
            self.scrolls["s0"] = 0
            return self.part("s0")
        assert path == "/_search/scroll"
        if method == "DELETE":
            for one in body["scroll_id"]:
                del self.scrolls[one]
            return {"succeeded": True}
        return self.part(body["scroll_id"])

    def part(self, scroll: str) -> dict[str, Any]:
        first = self.scrolls.pop(scroll)
        following = f"s{first + self.size}"
        self.scrolls[following] = first + self.size
        many = "colbert" in self.extra
        hits = [{"_id": f"e{i}", "_source": {"vector": X[i].tolist(), "n": i, "body": document(i),
                                             **({"colbert": two(i).tolist()} if many else {})}}
                for i in range(first, min(first + self.size, ROWS))]  # fmt: skip
        return {"_scroll_id": following, "hits": {"hits": hits}}


def test_pinecone(run: Program, pinecone: Path) -> None:
    told = moved(run, "docs", pinecone, "--metric", "ip", "--document-column", "text")
    assert (told["added"], told["there"], told["count"]) == (ROWS, 0, ROWS)
    assert told["check"]["asked"] == ROWS
    rows = stored(run)
    assert len(rows) == ROWS
    for i in range(ROWS):
        assert rows[f"v{i}"] == {
            "id": f"v{i}",
            "document": document(i),
            "metadata": metadata(i),
            "embedding": X[i].tolist(),
        }
    answers_as(run, "ip", [f"v{i}" for i in range(ROWS)], X)


@pytest.mark.parametrize(
    ("kind", "metric"), [("Flat", "l2"), ("Flat", "ip"), ("IVF8,Flat", "l2"), ("IDMap,Flat", "ip")]
)
def test_faiss(run: Program, tmp_path: Path, kind: str, metric: str) -> None:
    faiss = pytest.importorskip("faiss")
    index = faiss.index_factory(
        DIMENSION, kind, faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
    )
    index.train(X)
    numbered = kind.startswith("IDMap")
    if numbered:
        index.add_with_ids(X, np.arange(ROWS) * 3 + 1)
    else:
        index.add(X)
    faiss.write_index(index, str(tmp_path / "x.faiss"))
    told = moved(run, "docs", "faiss:x.faiss")
    assert told["source"]["metric"] == metric
    assert told["check"]["searched"] == ROWS
    names = [3 * i + 1 if numbered else i for i in range(ROWS)]
    assert list(stored(run)) == names
    answers_as(run, metric, names, X)


def test_faiss_with_ids_and_metadata_in_files(run: Program, tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlatIP(DIMENSION)
    index.add(X)
    faiss.write_index(index, str(tmp_path / "x.faiss"))
    (tmp_path / "ids.txt").write_text("".join(f"doc {i}\n" for i in range(ROWS)))
    beside = [{"document": document(i), **metadata(i)} for i in range(ROWS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in beside))
    moved(run, "docs", "faiss:x.faiss?ids=ids.txt&metadata=rows.jsonl")
    assert stored(run)["doc 7"] == {
        "id": "doc 7",
        "document": document(7),
        "metadata": metadata(7),
        "embedding": X[7].tolist(),
    }
    (tmp_path / "ids.txt").write_text("one\n")
    assert "300 vectors, and 1 ids" in refused(run, "few", "faiss:x.faiss?ids=ids.txt")


def test_faiss_refuses_a_metric_that_ranks_otherwise(run: Program, tmp_path: Path) -> None:
    faiss = pytest.importorskip("faiss")
    index = faiss.IndexFlat(DIMENSION, faiss.METRIC_L1)
    index.add(X)
    faiss.write_index(index, str(tmp_path / "x.faiss"))
    assert "--metric NAME" in refused(run, "docs", "faiss:x.faiss")
    told = moved(run, "docs", "faiss:x.faiss", "--metric", "l2")
    assert told["check"]["searched"] == 0


@pytest.mark.parametrize(("distance", "metric"), [("l2-squared", "l2"), ("dot", "ip"), ("cosine", "cosine")])
def test_weaviate(run: Program, distance: str, metric: str) -> None:
    fake = FakeWeaviate(distance)
    with serving(fake) as host:
        told = moved(run, "docs", f"weaviate://{host}", "--document-column", "body")
    assert told["added"] == ROWS
    assert stored(run)[fake.ids[9]] == {"id": fake.ids[9], "document": document(9), "metadata": {"n": 9},
                                        "embedding": X[9].tolist()}  # fmt: skip
    answers_as(run, metric, fake.ids, X)


def test_weaviate_several_vectors_are_asked_about(run: Program) -> None:
    fake = FakeWeaviate("dot", named=True)
    with serving(fake) as host:
        said = refused(run, "docs", f"weaviate://{host}")
        assert "'colbert' would be lost" in said
        assert "--leave-out colbert" in said
        asked = refused(run, "docs", f"weaviate://{host}", "--embedding-column", "colbert")
        assert "Name it with --multi-column" in asked
        assert moved(run, "docs", f"weaviate://{host}", "--leave-out", "colbert")["added"] == ROWS
        many = ("--multi-column", "colbert")
        assert "'main' would be lost" in refused(run, "pages", f"weaviate://{host}", *many)
        assert moved(run, "pages", f"weaviate://{host}", *many, "--leave-out", "main")["added"] == ROWS
        kept = np.array(stored(run, "pages")[fake.ids[9]]["multi_embedding"])
        assert np.allclose(kept, two(9), atol=np.abs(X[9]).max() / 250)
    with serving(FakeWeaviate("manhattan")) as host:
        said = refused(run, "other", f"weaviate://{host}")
        assert "'manhattan', which ranks as none of cosine, ip, l2, hamming" in said


@pytest.mark.parametrize(
    ("version", "similarity", "metric"),
    [("8.15.0", "l2_norm", "l2"), ("9.2.1", "max_inner_product", "ip"), ("9.0.0", "cosine", "cosine")],
)
def test_elasticsearch(run: Program, version: str, similarity: str, metric: str) -> None:
    fake = FakeElasticsearch(version, similarity=similarity)
    with serving(fake) as host:
        told = moved(run, "docs", f"elasticsearch://{host}", "--document-column", "body")
    assert told["added"] == ROWS
    assert not fake.scrolls, "every scroll was ended"
    assert stored(run)["e9"] == {
        "id": "e9",
        "document": document(9),
        "metadata": {"n": 9},
        "embedding": X[9].tolist(),
    }
    answers_as(run, metric, [f"e{i}" for i in range(ROWS)], X)


def test_elasticsearch_asks_what_is_not_said(run: Program) -> None:
    fake = FakeElasticsearch("8.15.0", index=False)
    fake.extra = {
        "tokens": {"type": "sparse_vector"},
        "parts": {"properties": {"v": {"type": "dense_vector", "dims": 3}}},
    }
    with serving(fake) as host:
        said = refused(run, "docs", f"elasticsearch://{host}")
        assert "'tokens', 'parts.v' would be lost" in said
        left = ("--leave-out", "tokens", "--leave-out", "parts.v")
        assert "is not indexed" in refused(run, "docs", f"elasticsearch://{host}", *left)
        assert moved(run, "docs", f"elasticsearch://{host}", *left, "--metric", "cosine")["added"] == ROWS


def test_elasticsearch_rank_vectors(run: Program) -> None:
    fake = FakeElasticsearch("8.18.0")
    fake.extra = {"colbert": {"type": "rank_vectors", "dims": DIMENSION}}
    with serving(fake) as host:
        left = ("--leave-out", "vector", "--multi-column", "colbert")
        assert moved(run, "docs", f"elasticsearch://{host}", *left)["added"] == ROWS
    kept = np.array(stored(run)["e9"]["multi_embedding"])
    assert np.allclose(kept, two(9), atol=np.abs(X[9]).max() / 250)


def test_pinecone_sparse_values(run: Program, tmp_path: Path) -> None:
    rows = [{"id": f"v{i}", "values": X[i].tolist(), "sparse_values": {"indices": [i, i + 9], "values": [0.5, 2.0]}}
            for i in range(9)]  # fmt: skip
    (tmp_path / "p.pinecone.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert moved(run, "docs", "p.pinecone.jsonl", "--metric", "ip")["added"] == 9
    found = stored(run)
    assert [found[one["id"]]["sparse_embedding"] for one in rows] == [one["sparse_values"] for one in rows]


def test_a_wrong_token_is_said(run: Program, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("wrong\n")
    with serving(FakeWeaviate()) as host:
        said = refused(run, "docs", f"weaviate://{host}", "--source-token-file", "token", code=8)
    assert "refuses the token (401)" in said
    over = refused(run, "docs", "weaviate://db.example", "--source-token-file", "token")
    assert "weaviate+https://" in over


def test_the_schema_is_shown_and_asked_about(run: Program, pinecone: Path) -> None:
    asked = run("import", "db", "docs", pinecone, "--metric", "cosine", "--leave-out", "half", code=2)
    assert "300 rows, 24 dimensions, cosine" in asked.stdout
    shown = {tuple(line.split()[-1:] + line.split()[:1]) for line in asked.stdout.splitlines()[2:]}
    assert ("metadata", "lang") in shown
    assert "left out" in next(line for line in asked.stdout.splitlines() if line.split()[:1] == ["half"])
    assert "Pass --yes" in asked.stderr
    assert not (pinecone.parent / "db" / "docs").exists()
    assert "--metric cosine, ip" in refused(run, "docs", pinecone)


def test_what_a_collection_cannot_hold_is_named_and_nothing_written(run: Program, pinecone: Path) -> None:
    rows = [json.loads(line) for line in lines().splitlines()]
    for i in (5, 250, 299):
        rows[i]["values"] = [0.0] * DIMENSION
    rows[7]["values"] = X[7, :5].tolist()
    rows[8]["values"][3] = 1e60
    rows[20]["metadata"]["text"] = rows[21]["metadata"]["text"] = 5
    rows[30]["metadata"]["$bad"] = 1
    rows[40]["id"] = 1.5
    pinecone.write_text("".join(json.dumps(one) + "\n" for one in rows))
    said = refused(run, "docs", pinecone, "--metric", "cosine", "--document-column", "text")
    for part in (
        "vector (zero): 3 rows, first 'v5'",
        "vector (of another length): 1 row, first 'v7'",
        "vector (beyond float32): 1 row, first 'v8'",
        "document (int): 2 rows, first 'v20'",
        "metadata '$bad' (int): 1 row, first 'v30'",
        "id (float): 1 row, first 1.5",
    ):
        assert part in said
    assert run("list", "db", code=None).stdout == ""


def test_zero_vectors_can_be_left_out(run: Program, pinecone: Path) -> None:
    rows = [json.loads(line) for line in lines(range(50)).splitlines()]
    rows[5]["values"] = rows[6]["values"] = [0.0] * DIMENSION
    pinecone.write_text("".join(json.dumps(one) + "\n" for one in rows))
    told = moved(run, "docs", pinecone, "--metric", "cosine", "--on-zero", "skip")
    assert (told["added"], told["left_out"]) == (48, 2)


def test_a_name_that_nothing_has_is_not_left_out(run: Program, pinecone: Path) -> None:
    said = refused(run, "docs", pinecone, "--metric", "l2", "--leave-out", "lagn")
    assert "has no 'lagn', which --leave-out names" in said
    said = refused(run, "docs", pinecone, "--metric", "l2", "--document-column", "txet")
    assert "has no 'txet', which --document-column names; it has n, half, even, lang, text" in said


def test_ids_that_occur_twice_are_refused(run: Program, pinecone: Path) -> None:
    pinecone.write_text(lines(range(9)) + lines(range(3, 4)))
    said = refused(run, "docs", pinecone, "--metric", "l2", code=5)
    assert "1 row whose id another has: 'v3'" in said


def test_again_adds_nothing_and_what_differs_is_said(run: Program, pinecone: Path) -> None:
    given = ("docs", pinecone, "--metric", "l2")
    moved(run, *given)
    again = moved(run, *given)
    assert (again["added"], again["there"], again["count"]) == (0, ROWS, ROWS)
    rows = [json.loads(line) for line in lines().splitlines()]
    rows[3]["metadata"]["n"] = 33
    rows[4]["values"][0] += 1
    pinecone.write_text("".join(json.dumps(one) + "\n" for one in rows))
    said = refused(run, *given, code=5)
    assert "2 rows with an id of the source's and something else in it: v3, v4" in said
    assert moved(run, *given, "--upsert")["added"] == 2
    assert stored(run)["v3"]["metadata"]["n"] == 33
    said = refused(run, "docs", pinecone, "--metric", "cosine")
    assert "with metric l2, and the source's is cosine" in said


def test_rows_of_others_stay_and_are_not_asked_about(run: Program, pinecone: Path, tmp_path: Path) -> None:
    near = [{"id": f"own {i}", "embedding": (X[i] * 1.0001).tolist()} for i in range(100)]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(one) + "\n" for one in near))
    run("import", "db", "docs", "own.jsonl", "--metric", "l2", "--mode", "sealed-index")
    told = moved(run, "docs", pinecone, "--metric", "l2")
    assert (told["added"], told["count"]) == (ROWS, ROWS + 100)


_KILLED = """
import os, signal, sys
from ciphervec.cli import app, moving
from ciphervec.collections.collection import Collection

moving._COMMIT = 4 * {dimension} * 70
real, commits = Collection.add, []

def add(self, *given, **more):
    if len(commits) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    commits.append(real(self, *given, **more))

Collection.add = add
app(sys.argv[1:])
"""


def test_a_killed_run_is_gone_on_with(run: Program, pinecone: Path, tmp_path: Path) -> None:
    given = ["import", "db", "docs", str(pinecone), "--metric", "l2", "--mode", "sealed-index", "--yes"]
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED.format(dimension=DIMENSION), *given], cwd=tmp_path, capture_output=True, timeout=120,
        env={"CIPHERVEC_KEYS": "my.key", "CIPHERVEC_STATE": str(tmp_path / "state"), "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert len(stored(run)) == 140
    told = moved(run, "docs", pinecone, "--metric", "l2")
    assert (told["added"], told["there"], told["count"]) == (ROWS - 140, 140, ROWS)
    assert sorted(stored(run)) == sorted(f"v{i}" for i in range(ROWS))


def test_a_source_larger_than_memory_allows_is_read_twice(
    run: Program, pinecone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources.survey, "_KEPT", 10_000)
    assert moved(run, "docs", pinecone, "--metric", "l2")["added"] == ROWS
    assert len(stored(run)) == ROWS


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("mysql://x/y", "mysql:// is no source that is known"),
        ("postgres://me:secret@db/app?table=t", "holds a password"),
        ("qdrant+ftp://x", r"with TLS it is qdrant\+https"),
        ("weaviate://", "names no host"),
        ("weaviate://h:99999", "no address of a source"),
    ],
)
def test_addresses_that_are_none(address: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as found:
        sources.is_source(address)
        Address.of(address)
    assert "secret" not in str(found.value)


def test_addresses() -> None:
    assert not sources.is_source("rows.jsonl")
    assert sources.is_source("export.pinecone.jsonl.gz")
    found = Address.of("qdrant+https://[::1]:6333?collection=a%20b", "t")
    assert (found.url(1), found.choices) == ("https://[::1]:6333", {"collection": "a b"})
    assert Address.of("lance:./a%20b?table=t").path == "./a b"
    with pytest.raises(InvalidInput, match="'tabel' is not known; known are table"):
        Address.of("lance:x?tabel=t").only("table")


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_rows_compared_one_by_one_are_ranked_as_numpy_ranks_them(metric: str) -> None:
    parts = [
        Rows([*range(a, b)], X[a:b], [None] * (b - a), [None] * (b - a))
        for a, b in ((0, 7), (7, 200), (200, ROWS))
    ]
    queries = vectors(20, seed=8)
    for query, (names, found) in zip(queries, one_by_one(parts, queries, metric), strict=True):
        exact = distances(metric, X, query)
        assert names == np.argsort(exact)[:10].tolist()
        assert np.allclose(found, np.sort(exact)[:10], rtol=1e-12)


def test_other_answers_are_told_from_near_ones() -> None:
    found = Agreement(0)
    found.see((["a", "b"], [0.0, 0.5]), (["b", "a"], [0.0, 0.5]), 1.0)
    found.see((["a", "b"], [0.0, 50]), (["a", "c"], [0.0, 50.01]), 100.0)
    found.see((["a", "b"], [0.0, 0.5]), (["a", "c"], [0.0, 0.501]), 1.0)
    found.see((["a", "b"], [0.0, 0.5]), (["a"], [0.0]), 1.0)
    assert (found.asked, found.same, found.near, found.different) == (4, 1, 1, 2)


def test_without_a_client_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "chroma.sqlite3").touch()
    (tmp_path / "x" / "f").touch()
    clients = {"chroma": ("chromadb", "x"), "qdrant": ("qdrant_client", "x"), "milvus": ("pymilvus", "x/f"),
               "lance": ("lancedb", "x"), "faiss": ("faiss", "x/f"), "postgres": ("asyncpg", "//h/d")}  # fmt: skip
    for scheme, (module, path) in clients.items():
        monkeypatch.setitem(sys.modules, module, None)
        place = path if path.startswith("//") else tmp_path / path
        with pytest.raises(InvalidInput, match=rf"pip install 'ciphervec\[{scheme}\]'"):
            sources.opened(f"{scheme}:{place}", Columns(), None, None)
