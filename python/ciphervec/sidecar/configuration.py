"""Configuration of Chroma's collections, for the key owner: the schema that is kept of what a client asks for, and what it
says of metrics and indexes.

Parameters of approximate indexes are kept and told, and mean nothing here: every question is compared with
every vector.
"""

from __future__ import annotations

import copy
from typing import Any, Literal

from .problem import Problem, invalid

SPACES = ("l2", "cosine", "ip")
EMBEDDING, DOCUMENT = "#embedding", "#document"
_HNSW: dict[str, Any] = {
    "space": "l2",
    "ef_construction": 100,
    "ef_search": 100,
    "max_neighbors": 16,
    "resize_factor": 1.2,
    "sync_threshold": 1000,
}
_THREADS = {"num_threads": 2, "batch_size": 100}
_BY_METADATA = {
    "hnsw:space": "space",
    "hnsw:construction_ef": "ef_construction",
    "hnsw:search_ef": "ef_search",
    "hnsw:M": "max_neighbors",
    "hnsw:num_threads": "num_threads",
    "hnsw:batch_size": "batch_size",
    "hnsw:sync_threshold": "sync_threshold",
    "hnsw:resize_factor": "resize_factor",
}
_DEFAULT_FUNCTION = {"type": "known", "name": "default", "config": {}}
_SPANN = ("space", "search_nprobe", "write_nprobe", "ef_construction", "ef_search", "max_neighbors",
          "reassign_neighbor_count", "split_threshold", "merge_threshold")  # fmt: skip
_INDEXES = {
    "string": ("fts_index", "string_inverted_index"),
    "float_list": ("vector_index",),
    "sparse_vector": ("sparse_vector_index",),
    "int": ("int_inverted_index",),
    "float": ("float_inverted_index",),
    "bool": ("bool_inverted_index",),
}


def describe(
    metadata: dict[str, Any] | None, configuration: dict[str, Any] | None, schema: dict[str, Any] | None
) -> dict[str, Any]:
    """The schema of a new collection, from which `told` and `space` read. Raises Problem."""
    given = _part(configuration, "configuration")
    index = _index(metadata, given)
    function = given.get("embedding_function")
    if schema is None:
        return _defaults(index, function)
    plain = _defaults({**_HNSW, **_THREADS}, None)
    made = _laid_over(plain, _part(schema, "schema"))
    if made == plain:
        return _defaults(index, function)
    if index != {**_HNSW, **_THREADS} or function not in (None, _DEFAULT_FUNCTION):
        raise invalid(
            "Failed to reconcile schema: Cannot set both collection config and schema simultaneously"
        )
    _check_keys(made)
    return made


def told(schema: dict[str, Any]) -> dict[str, Any]:
    """The configuration as clients read it."""
    vector = _vector(schema)
    hnsw = {"space": vector.get("space", "l2")}
    hnsw |= {name: vector["hnsw"].get(name, default) for name, default in _HNSW.items() if name != "space"}
    return {"hnsw": hnsw, "spann": None, "embedding_function": vector.get("embedding_function")}


def space(schema: dict[str, Any]) -> Literal["l2", "cosine", "ip"]:
    """The metric."""
    found: Literal["l2", "cosine", "ip"] = _vector(schema).get("space", "l2")
    return found


def sparse_index(schema: dict[str, Any]) -> tuple[str, bool] | None:
    """The field whose sparse vectors rows are ranked by, and whether rare indices weigh more there."""
    for key, kinds in schema["keys"].items():
        index = kinds.get("sparse_vector", {}).get("sparse_vector_index")
        if index is not None and index["enabled"]:
            return key, index["config"].get("bm25") is True
    return None


def changed(schema: dict[str, Any], configuration: Any) -> dict[str, Any]:
    """The schema after a client changed the configuration; the metric stays. Raises Problem."""
    given = _part(configuration, "new_configuration")
    made = copy.deepcopy(schema)
    hnsw = _part(given.get("hnsw"), "new_configuration.hnsw")
    _check_hnsw(hnsw, "new_configuration.hnsw")
    if hnsw.get("space") not in (None, space(schema)):
        raise invalid("the distance function of a collection can't be changed once it is made.")
    for part in (made["defaults"]["float_list"], made["keys"][EMBEDDING]["float_list"]):
        config = part["vector_index"]["config"]
        config["hnsw"].update({n: v for n, v in hnsw.items() if v is not None and n != "space"})
        if given.get("embedding_function") is not None:
            config["embedding_function"] = given["embedding_function"]
    return made


def discovered(schema: dict[str, Any], kinds: dict[str, set[str]]) -> dict[str, Any] | None:
    """The schema with fields that rows have now, by the kinds of their values; None if it knows them all."""
    made = None
    for name, of in kinds.items():
        for kind in of - schema["keys"].get(name, {}).keys():
            made = copy.deepcopy(schema) if made is None else made
            made["keys"].setdefault(name, {})[kind] = copy.deepcopy(schema["defaults"][kind])
    return made


def indexed(schema: dict[str, Any], field: str, kind: str) -> bool:
    """Whether this field may be asked about by values of this kind."""
    index = "fts_index" if field == DOCUMENT else f"{kind}_inverted_index"
    for held in (schema["keys"].get(field, {}), schema["defaults"]):
        if index in held.get(kind, {}):
            return bool(held[kind][index].get("enabled", True))
    return True


def _index(metadata: dict[str, Any] | None, given: dict[str, Any]) -> dict[str, Any]:
    """HNSW's parameters and the metric: the configuration's, else those of the metadata."""
    hnsw = _part(given.get("hnsw"), "configuration.hnsw")
    spann = _part(given.get("spann"), "configuration.spann")
    if hnsw and spann:
        raise invalid("Multiple vector index configurations provided")
    _check_hnsw(hnsw, "configuration.hnsw")
    for name in spann:
        if name not in _SPANN:
            raise Problem(422, f"configuration.spann.{name}: expected one of {', '.join(_SPANN)}.")
    by_metadata = _by_metadata(metadata)
    asked = {name: value for name, value in hnsw.items() if value is not None}
    if spann.get("space") is not None:
        asked["space"] = _space(spann["space"], "configuration.spann.space")
    if any(value != {**_HNSW, **_THREADS}[name] for name, value in asked.items()) or spann.get("space"):
        by_metadata = {}
    return {**_HNSW, **_THREADS, **asked, **by_metadata}


def _by_metadata(metadata: dict[str, Any] | None) -> dict[str, Any]:
    found = {}
    for name, value in (metadata or {}).items():
        if name.startswith("hnsw:"):
            if name not in _BY_METADATA:
                raise invalid(f"Failed to parse hnsw parameters from segment metadata: there is no {name!r}.")
            found[_BY_METADATA[name]] = value
    try:
        _check_hnsw(found, "metadata")
    except Problem as problem:
        raise invalid(f"Failed to parse hnsw parameters from segment metadata: {problem}") from None
    return found


def _check_hnsw(hnsw: dict[str, Any], where: str) -> None:
    for name, value in hnsw.items():
        if name == "space":
            if value is not None:
                _space(value, f"{where}.space")
            continue
        if name not in _HNSW and name not in _THREADS:
            raise Problem(422, f"{where}.{name}: unknown field, expected one of {', '.join(_HNSW)}.")
        kinds = (int, float) if name == "resize_factor" else (int,)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or value < 0):
            raise Problem(422, f"{where}.{name}: expected a number of at least 0, got {value!r}.")


def _space(value: Any, where: str) -> str:
    if value not in SPACES:
        raise Problem(422, f"{where}: unknown variant `{value}`, expected one of `l2`, `cosine`, `ip`")
    return str(value)


def _defaults(index: dict[str, Any], function: Any) -> dict[str, Any]:
    hnsw = {name: value for name, value in index.items() if name != "space"}
    config: dict[str, Any] = {"space": index["space"], "hnsw": hnsw}
    if function is not None:
        config["embedding_function"] = function
    sparse = {"embedding_function": {"type": "unknown"}, "bm25": False}
    on, off = {"enabled": True, "config": {}}, {"enabled": False, "config": {}}
    return copy.deepcopy(
        {
            "defaults": {
                "string": {"fts_index": off, "string_inverted_index": on},
                "float_list": {"vector_index": {"enabled": False, "config": config}},
                "sparse_vector": {"sparse_vector_index": {"enabled": False, "config": sparse}},
                "int": {"int_inverted_index": on},
                "float": {"float_inverted_index": on},
                "bool": {"bool_inverted_index": on},
            },
            "keys": {
                EMBEDDING: {
                    "float_list": {
                        "vector_index": {"enabled": True, "config": {**config, "source_key": DOCUMENT}}
                    }
                },
                DOCUMENT: {"string": {"fts_index": on, "string_inverted_index": off}},
            },
        }
    )


def _laid_over(plain: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as it was given, with everything else as it is by default."""
    made = copy.deepcopy(plain)
    for kind, indexes in _part(schema.get("defaults"), "schema.defaults").items():
        made["defaults"][kind] = _indexes(kind, indexes, made["defaults"].get(kind, {}))
    for key, kinds in _part(schema.get("keys"), "schema.keys").items():
        held = made["keys"].setdefault(key, {})
        for kind, indexes in _part(kinds, f"schema.keys.{key}").items():
            held[kind] = _indexes(kind, indexes, held.get(kind, {}))
    return made


def _indexes(kind: str, given: Any, before: dict[str, Any]) -> dict[str, Any]:
    """The indexes of one kind of value, given over those that were there."""
    if kind not in _INDEXES:
        raise Problem(422, f"schema: unknown kind of values {kind!r}, expected one of {', '.join(_INDEXES)}.")
    made = copy.deepcopy(before)
    for name, index in _part(given, f"schema {kind}").items():
        if index is None:
            continue
        if name not in _INDEXES[kind]:
            raise Problem(422, f"schema: {kind} has no index {name!r}.")
        config = {k: v for k, v in _part(index.get("config"), f"schema {name}").items() if v is not None}
        held = made.get(name, {}).get("config", {})
        if name == "vector_index":
            hnsw = _part(config.get("hnsw"), "schema hnsw")
            _check_hnsw(hnsw, "schema hnsw")
            if "space" in config:
                _space(config["space"], "schema space")
            config["hnsw"] = {**held.get("hnsw", {}), **{k: v for k, v in hnsw.items() if v is not None}}
            config.pop("spann", None)
            if config.get("embedding_function") == _DEFAULT_FUNCTION:
                del config["embedding_function"]
        made[name] = {"enabled": bool(index.get("enabled", True)), "config": {**held, **config}}
    return made


def _check_keys(schema: dict[str, Any]) -> None:
    """That names are not reserved ones, and at most one field has an index of sparse vectors."""
    default = schema["defaults"].get("sparse_vector", {}).get("sparse_vector_index", {})
    if default.get("enabled"):
        raise _schema(
            "Sparse vector index cannot be enabled by default. Please enable sparse vector index on specific keys."
        )
    indexed = []
    for key, kinds in schema["keys"].items():
        if key.startswith("#") and key not in (EMBEDDING, DOCUMENT):
            raise _schema(
                f"key cannot begin with '#'. Keys starting with '#' are reserved for system use: {key}"
            )
        index = kinds.get("sparse_vector", {}).get("sparse_vector_index", {"config": {}, "enabled": False})
        source = index["config"].get("source_key")
        if source and str(source).startswith("#") and source != DOCUMENT:
            raise _schema(
                "source_key cannot begin with '#'. The only valid key starting with '#' is Key.DOCUMENT or '#document'."
            )
        if index["enabled"]:
            if key.startswith("#"):
                raise _schema(f"Field {key} cannot have a sparse vector index")
            if source and "embedding_function" not in index["config"]:
                raise _schema(
                    "If source_key is provided then embedding_function must also be provided since there is no default "
                    "embedding function."
                )
            indexed.append(key)
    if len(indexed) > 1:
        raise _schema(
            f"At most one sparse vector index is allowed for the collection, got {', '.join(indexed)}"
        )


def _schema(reason: str) -> Problem:
    return invalid(f"Validation error: schema: {reason}")


def _part(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Problem(422, f"{where} must be an object, got {type(value).__name__}.")
    return value


def _vector(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = schema["keys"][EMBEDDING]["float_list"]["vector_index"]["config"]
    return found
