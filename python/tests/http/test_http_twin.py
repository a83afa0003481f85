"""The asynchronous client against the blocking one it is made from: the same methods, arguments,
defaults and text."""

from __future__ import annotations

import inspect

import pytest

from ciphervec import AsyncHttpClient, Collection, HttpClient
from ciphervec.http import (
    AsyncHttpCollection,
    AsyncRemoteProgram,
    AsyncRemoteTable,
    HttpCollection,
    RemoteProgram,
    RemoteTable,
)

# An asynchronous program does these with the blocking client: they are the owner's rare work, or
# `async with` does it.
LEFT_OUT = {
    "adopt",
    "discard",
    "evaluate",
    "evaluation",
    "knows_card",
    "make_query",
    "members",
    "on_upload",
    "open_answer",
    "rotate_keys",
    "writer_card",
}
TWINS = [
    (HttpCollection, AsyncHttpCollection),
    (HttpClient, AsyncHttpClient),
    (RemoteProgram, AsyncRemoteProgram),
    (RemoteTable, AsyncRemoteTable),
]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(("blocking", "twin"), TWINS)
def test_every_method_has_its_twin(blocking: type, twin: type) -> None:
    assert public(blocking) - public(twin) <= LEFT_OUT
    assert public(twin) - public(blocking) <= {"contains"}, "which is `in`"


@pytest.mark.parametrize(("blocking", "twin"), TWINS)
def test_twins_agree(blocking: type, twin: type) -> None:
    for name in sorted(public(blocking) & public(twin)):
        one, other = inspect.getattr_static(blocking, name), inspect.getattr_static(twin, name)
        if isinstance(one, property):
            assert isinstance(other, property) and one.fset is other.fset is None
            returned = [inspect.signature(part.fget).return_annotation for part in (one, other)]
            assert returned[0] == returned[1], name
            continue
        assert inspect.iscoroutinefunction(other), name
        wanted, found = inspect.signature(one), inspect.signature(other)
        assert wanted.parameters == found.parameters, name
        made = {
            "Collection": "AsyncHttpCollection",
            "RemoteProgram": "AsyncRemoteProgram",
            "RemoteTable": "AsyncRemoteTable",
        }
        result = made.get(wanted.return_annotation, wanted.return_annotation)
        assert found.return_annotation == result, name
        if name != "close":
            assert other.__doc__ == one.__doc__, name


def test_they_are_made_with_the_same() -> None:
    wanted, found = inspect.signature(HttpClient).parameters, inspect.signature(AsyncHttpClient).parameters
    assert list(wanted) == list(found)
    for name, one in wanted.items():
        if name == "transport":
            assert one.annotation.replace("BaseTransport", "AsyncBaseTransport") == found[name].annotation
        else:
            assert one == found[name]


def test_a_collection_has_nothing_that_only_a_server_has() -> None:
    assert public(HttpCollection) == public(Collection)
