"""Chroma's own test suite, as its wheel has it, run against `ciphervec sidecar` and counted."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from .base import PYTHON, ROOT, Action, StepFailedError, call, quiet, say, together
from .compat import counted
from .setup import CHROMA_LOCK as LOCK
from .setup import patiently

CHROMA = ROOT / ".venv-chroma"
CHROMA_PYTHON = CHROMA / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
_SCHEMA = "api/test_schema_e2e.py"
SEARCH = [
    "api/test_search_api.py",
    f"{_SCHEMA}::test_sparse_vector_source_key_and_index_constraints",
    f"{_SCHEMA}::test_search_embeds_string_knn_queries",
    f"{_SCHEMA}::test_search_embeds_string_knn_queries_with_sparse_embedding_function",
    f"{_SCHEMA}::test_search_embeds_string_queries_in_nested_ranks",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_document_source_no_metadata",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_document_source_and_metadata",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_metadata_source_key",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_mixed_metadata_none_and_filled",
    f"{_SCHEMA}::test_sparse_auto_embedding_skips_existing_values",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_missing_source_field",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_string_inverted_index",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_update_and_upsert",
    f"{_SCHEMA}::test_sparse_auto_embedding_persistence_across_client_reload",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_batch_operations",
    f"{_SCHEMA}::test_sparse_auto_embedding_with_empty_documents",
    f"{_SCHEMA}::test_dense_and_sparse_auto_embeddings_together",
    f"{_SCHEMA}::test_sparse_vector_index_config_with_key_types",
    f"{_SCHEMA}::test_search_api_uses_embedded_searches_with_sparse_embeddings",
    f"{_SCHEMA}::test_fts_disabled_search_api_blocks_document_filter",
    f"{_SCHEMA}::test_server_validates_schema_with_special_keys",
    f"{_SCHEMA}::test_server_validates_invalid_source_key_in_sparse_vector_config",
]
"""What Chroma itself runs against its cluster alone, which has the search API and sparse indexes. Texts are embedded by their
hash, see `hashed_model.py`."""
API = [
    ["test_api.py"],
    ["api", "client", "configurations", "data_loader", "test_multithreaded.py", "stress"],
    SEARCH,
]
"""Below chromadb/test: what runs at the same time, each part with a sidecar of its own."""
LEFT_OUT = [
    # Opens a Chroma in the test's own process, and talks to no server.
    "test_api.py::test_persist_index_loading_params",
    # That a server has no sparse indexes.
    "api/test_schema_e2e.py::test_sparse_vector_not_allowed_locally",
    # A zero vector under cosine, which has no direction: it is refused.
    "test_api.py::test_index_params",
    # These embed texts with a model that they download.
    "test_api.py::test_collection_query_with_invalid_collection_throws",
    "test_api.py::test_collection_update_with_invalid_collection_throws",
    "api/test_schema_e2e.py::test_schema_defaults_enable_indexed_operations",
    "api/test_schema_e2e.py::test_get_or_create_and_get_collection_preserve_schema",
    "api/test_schema_e2e.py::test_schema_persistence_with_custom_overrides",
    "api/test_schema_e2e.py::test_schema_delete_index_and_restore",
    "api/test_schema_e2e.py::test_schema_discovers_new_keys_after_compaction",
    "api/test_schema_e2e.py::test_schema_rejects_conflicting_discoverable_key_types",
    "api/test_schema_e2e.py::test_schema_precedence_for_overrides_discoverables_and_defaults",
    "api/test_schema_e2e.py::test_fts_disabled_blocks_where_document_queries",
    "api/test_schema_e2e.py::test_fts_enabled_by_default_where_document_works",
    "api/test_schema_e2e.py::test_fts_disabled_schema_persistence",
    "api/test_schema_e2e.py::test_fts_disabled_documents_still_stored",
    "api/test_schema_e2e.py::test_fts_disabled_then_new_collection_with_fts_enabled",
]
"""Below chromadb/test; counted in docs/integrations.md."""
HASHED = ROOT / "tools" / "hashed_model.py"
PROPERTIES = [
    ["property/test_embeddings.py"],
    [
        "property/test_add.py",
        "property/test_collections.py",
        "property/test_collections_with_database_tenant.py",
        "property/test_filtering.py",
        "property/test_fork.py",
        "property/test_schema.py",
    ],
]


def install() -> None:
    """Chroma and what its tests need, as they are locked."""
    state = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    mark = CHROMA / ".installed"
    if mark.exists() and mark.read_text() == state:
        return
    shutil.rmtree(CHROMA, ignore_errors=True)
    if quiet([sys.executable, "-m", "venv", str(CHROMA)]).returncode != 0:
        raise StepFailedError("this Python cannot make a virtual environment")
    patiently(CHROMA_PYTHON, "--requirement", str(LOCK))
    mark.write_text(state)


def suite(parts: list[list[str]]) -> Action:
    """These files, of each the tests that talk to a server; then, by file, what passed and what did not."""

    def action() -> None:
        failures: list[str] = []
        reports = [CHROMA / f"report-{number}.xml" for number in range(len(parts))]
        runs = [partial(_run, files, report, failures) for files, report in zip(parts, reports, strict=True)]
        together(*runs)
        for report in reports:
            if report.exists():
                say(counted(report))
        if failures:
            raise StepFailedError("; ".join(failures))

    return action


def _run(files: list[str], report: Path, failures: list[str]) -> None:
    report.unlink(missing_ok=True)
    found = quiet([str(CHROMA_PYTHON), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    library = Path(found.stdout.strip())
    for name in LEFT_OUT:
        file, _, test = name.partition("::")
        if f"def {test}(" not in (library / "chromadb" / "test" / file).read_text(encoding="utf-8"):
            raise StepFailedError(f"LEFT_OUT names {name}, which is not in the suite; take the line away")
    left_out = [argument for name in LEFT_OUT for argument in ("--deselect", f"chromadb/test/{name}")]
    with tempfile.TemporaryDirectory() as folder, _sidecar(Path(folder)) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        cluster = files is SEARCH
        environment = {
            "CHROMA_CLUSTER_TEST_ONLY" if cluster else "CHROMA_INTEGRATION_TEST_ONLY": "1",
            "CHROMA_SERVER_HOST": f"{host}:{port}" if cluster else host,  # as the suite reads each
            "CHROMA_SERVER_HTTP_PORT": port,
            "ANONYMIZED_TELEMETRY": "False",
            "HYPOTHESIS_STORAGE_DIRECTORY": folder,
        }
        chosen = ["-k", "integration"]
        if cluster:
            chosen, environment["PYTHONPATH"] = ["-p", HASHED.stem], str(HASHED.parent)
        # Neither this repository's configuration of pytest nor its root are the suite's.
        configuration = Path(folder) / "pytest.ini"
        configuration.write_text("[pytest]\n")
        try:
            call([str(CHROMA_PYTHON), "-m", "pytest", f"--config-file={configuration}",
                  f"--rootdir={library}", f"--confcutdir={library}", "-q", "-p", "no:cacheprovider", "-W", "ignore", "-r", "fE",
                  "--import-mode=importlib", *chosen, f"--junitxml={report}", *left_out,
                  *(f"chromadb/test/{file}" for file in files)],
                 cwd=library, environment=environment)  # fmt: skip
        except StepFailedError as error:
            failures.append(str(error))


@contextmanager
def _sidecar(folder: Path) -> Iterator[str]:
    """The address of a sidecar over a folder, as the command starts it."""
    environment = {
        **os.environ,
        "CIPHERVEC_PASSPHRASE": "the key of a test",
        "CIPHERVEC_STATE": str(folder / "state"),
        "RAYON_NUM_THREADS": "2",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    program = [str(PYTHON), "-m", "ciphervec"]
    key = folder / "my.key"
    subprocess.run([*program, "keygen", str(key)], env=environment, check=True, stdout=subprocess.DEVNULL)
    serving = [
        *program,
        "sidecar",
        "--upstream",
        str(folder / "db"),
        "--keys",
        str(key),
        "--listen",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(
        [*serving, "--allow-reset"], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        if not line.startswith("listening on "):
            raise StepFailedError(f"the sidecar did not start: {line}{process.stderr.read()}")
        yield line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        process.communicate()
