"""LangGraph: a store for an agent's long-term memory, which finds items in a collection by namespace, key, filter and
meaning. Key owner's side.

    store = CiphervecStore(client.get_or_create_collection("memories", 384, embedding_function="default"))
    graph = builder.compile(store=store)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeAlias

import numpy as np

from ..collections.audience import Audience, check_audience
from ..collections.collection import Collection
from ..collections.results import Fetch, check_fetch
from ..errors import InvalidInput
from ..ingest.arrays import FloatArray
from .support import missing

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        tokenize_path,
    )
except ModuleNotFoundError as error:
    raise missing("langgraph-checkpoint", "langgraph") from error

Place: TypeAlias = tuple[tuple[str, ...], str]
"""A namespace and a key."""

_WHOLE = "$"


class CiphervecStore(BaseStore):
    """A `BaseStore` over an encrypted collection that embeds texts: in memory, in a folder or on a server.

    Namespace and key make a row's id, so that whoever keeps the collection learns neither, and not which items share a
    namespace. An item has one vector, of the texts of all its indexed fields. Filters run here, after decryption. Items do
    not expire by themselves; `ciphervec.memory.Memory` has that.
    """

    __slots__ = ("_audience", "_collection", "_fetch", "_fields")

    def __init__(
        self,
        collection: Collection,
        *,
        fields: Sequence[str] = (_WHOLE,),
        audience: Audience = "owner",
        fetch: Fetch | None = "collection",
    ) -> None:
        """`fields` are the paths in an item's value whose texts are embedded, unless `put` names others: LangGraph's own
        syntax, "$" for all of the value. `audience` as of `Collection.query`. `fetch` is what a server may see of the items
        that are read: unless told, that some are, since each is fetched once, hit or not."""
        check_fetch(fetch)
        self._collection, self._fields, self._fetch = collection, list(fields), fetch
        self._audience = check_audience(audience) or "owner"

    @property
    def collection(self) -> Collection:
        """Where items are kept."""
        return self._collection

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do these; what is read is read before anything is written, and of two writes to a key the last counts."""
        results: list[Result] = []
        puts: dict[str, PutOp] = {}
        for op in ops:
            found: Result = None
            if isinstance(op, GetOp):
                found = self._items([_id(op.namespace, op.key)]).get((op.namespace, op.key))
            elif isinstance(op, SearchOp):
                found = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                found = self._namespaces(op)
            elif isinstance(op, PutOp):
                puts[_id(op.namespace, op.key)] = op
            else:
                raise InvalidInput(f"an operation of LangGraph's was expected, got {type(op).__name__}.")
            results.append(found)
        self._write(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _write(self, puts: dict[str, PutOp]) -> None:
        gone = [name for name, op in puts.items() if op.value is None]
        if gone:
            self._collection.delete(gone, missing_ok=True)
        kept = {name: op for name, op in puts.items() if op.value is not None}
        if not kept:
            return
        before = self._items(list(kept))
        now = datetime.now(timezone.utc)
        texts = {name: self._text(op) for name, op in kept.items()}
        vectors = self._embedded(texts)
        self._collection.upsert(
            list(kept),
            np.array([vectors[name] for name in kept]),
            [
                {
                    "value": dict(op.value or {}),
                    "created": (
                        now if (old := before.get((op.namespace, op.key))) is None else old.created_at
                    ).isoformat(),
                    "updated": now.isoformat(),
                    "indexed": bool(texts[name]),
                }
                for name, op in kept.items()
            ],
        )

    def _embedded(self, texts: Mapping[str, str]) -> dict[str, FloatArray]:
        """A vector for each; what has no text has a stand-in, which no search returns."""
        stand_in = np.eye(1, self._collection.dimension, dtype=np.float32)[0]
        vectors = dict.fromkeys(texts, stand_in)
        some = [name for name, text in texts.items() if text]
        if some:
            made = self._collection._embedded(None, None, [texts[name] for name in some])[1]
            vectors.update(zip(some, np.asarray(made, np.float32), strict=True))
        return vectors

    def _text(self, op: PutOp) -> str:
        """What of an item is embedded; nothing of one that is not to be found by meaning."""
        if op.index is False:
            return ""
        paths = self._fields if op.index is None else op.index
        found = [text for path in paths for text in get_text_at_path(op.value, tokenize_path(path))]
        return "\n".join(text for text in found if text.strip())

    def _search(self, op: SearchOp) -> list[SearchItem]:
        among = [
            name for name, (namespace, _) in self._places().items() if _begins(namespace, op.namespace_prefix)
        ]
        start, end = op.offset, op.offset + op.limit
        if not op.query and not op.filter:
            return [_scored(item) for item in self._items(among[start:end]).values()]
        found = self._rows(among)
        rows = {name: row for name, row in found.items() if _passes(row[0].value, op.filter)}
        if not op.query:
            return [_scored(item) for item, _ in list(rows.values())[start:end]]
        near = [name for name, (_, indexed) in rows.items() if indexed]
        scores: dict[Any, float] = {}
        if near:
            answer = self._collection.query(
                query_texts=op.query, n_results=end, include=["scores"], ids=near, audience=self._audience
            )
            scores = dict(zip(answer["ids"][0], (answer["scores"] or [[]])[0], strict=True))
        nearest = [_scored(rows[name][0], score) for name, score in list(scores.items())[start:]]
        others = [_scored(item) for item, indexed in rows.values() if not indexed]
        return nearest + others[: max(0, op.limit - len(nearest))]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {
            namespace[: op.max_depth]
            for namespace, _ in self._places().values()
            if all(_matches(condition, namespace) for condition in op.match_conditions or ())
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _places(self) -> dict[str, Place]:
        """All that there are, by id, which reads no record; rows of other programs are none."""
        found = {}
        for name in self._collection.get(include=[])["ids"]:
            place = _place(name)
            if place is not None:
                found[str(name)] = place
        return found

    def _items(self, ids: Sequence[str]) -> dict[Place, Item]:
        return {(item.namespace, item.key): item for item, _ in self._rows(ids).values()}

    def _rows(self, ids: Sequence[str]) -> dict[str, tuple[Item, bool]]:
        """Items, and whether meaning finds them, in the order of the ids, those that are there."""
        if not ids:
            return {}
        found = self._collection.get(ids, include=["metadatas"], fetch=self._fetch)
        rows = {}
        for name, row in zip(found["ids"], found["metadatas"] or (), strict=True):
            place = _place(name)
            if place is not None and row is not None and "value" in row:
                item = Item(
                    value=row["value"],
                    key=place[1],
                    namespace=place[0],
                    created_at=row["created"],
                    updated_at=row["updated"],
                )
                rows[str(name)] = (item, row["indexed"])
        return rows


def _id(namespace: tuple[str, ...], key: str) -> str:
    return json.dumps([*namespace, key], ensure_ascii=False, separators=(",", ":"))


def _place(name: object) -> Place | None:
    try:
        parts = json.loads(name) if isinstance(name, str) else None
    except ValueError:
        return None
    if not isinstance(parts, list) or not parts or not all(isinstance(one, str) for one in parts):
        return None
    return tuple(parts[:-1]), parts[-1]


def _begins(namespace: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    return namespace[: len(prefix)] == tuple(prefix)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", one) for one, wanted in zip(part, path, strict=True))


def _passes(value: Any, filter: Mapping[str, Any] | None) -> bool:
    """LangGraph's own filters: of fields, nested ones and lists too, by equality or operators."""
    return all(_equals(value.get(field), wanted) for field, wanted in (filter or {}).items())


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(field).startswith("$") for field in wanted):
            return all(_compares(value, operator, other) for operator, other in wanted.items())
        return isinstance(value, Mapping) and _passes(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple) and len(value) == len(wanted) and all(map(_equals, value, wanted))
        )
    return bool(value == wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == other) is (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise InvalidInput(f"a filter's operator is $eq, $ne, $gt, $gte, $lt or $lte, got {operator!r:.40}.")
    try:
        left, right = float(value), float(other)
    except (TypeError, ValueError):  # what is no number is neither above nor below
        return False
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[operator]


def _scored(item: Item, score: float | None = None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)
