"""Members of a collection, for those who opened it: owners change the list, everybody reads it. The core does the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, cast

import ciphervec._native as _native

from .._native import MemberCard
from ..errors import InvalidInput
from ..ingest.files import StrPath
from .keys import Identity, read_card

Role = Literal["owner", "member", "reader"]


class Member(NamedTuple):
    """One who is on the list of a collection."""

    name: str
    """As the person wrote it."""
    fingerprint: str
    """32 hexadecimal digits that name the person's keys: compare them with their holder by another way."""
    role: Role
    """owner: changes the list and the keys, and commits; member: commits; reader: reads."""


class MemberChange(NamedTuple):
    """One change of the list."""

    what: Literal["founded", "added", "removed", "rekeyed"]
    who: str | None
    """Whom it is about; None where the keys alone were changed."""
    role: Role | None
    by: str
    """Who signed it."""
    time: int
    """Seconds since 1970, by that person's word."""


class Members:
    """The members of a collection, `collection.members`.

    An owner changes the list, each change is signed, and clients refuse a list that does not go on
    from the one they saw. In a collection with members every commit is signed by its author, whom
    `info()["author"]` names.

        docs.members.found(alice)              # alice = ciphervec.Identity.load("alice.key", …)
        docs.members.add("bob.card")           # which bob made: bob.member_card.to_bytes()
        docs.members.remove("bob")             # new keys from now on, without bob
    """

    def __init__(
        self,
        opened: Callable[..., AbstractContextManager[_native.Collection]],
        host: _native.CallHost,
        changed: Callable[[Identity], None],
    ) -> None:
        """Not for callers: use `collection.members`."""
        self._opened, self._host, self._changed = opened, host, changed

    def found(self, by: Identity) -> None:
        """Begin the list, with this person as its owner, who signs from then on; clients made with
        the keys go on reading until the keys are changed (`remove`, `rotate_keys`). Raises InvalidInput
        where there is a list, in mode `open`, and for collections of release 0.1 before `upgrade()`."""
        if not isinstance(by, Identity):
            raise InvalidInput(f"by must be ciphervec.Identity, got {type(by).__name__}.")
        with self._opened(write=True) as native:
            _native.Members(native).found(self._host, by._native)
            self._changed(by)

    def add(self, card: MemberCard | bytes | StrPath, role: Role = "member") -> Member:
        """Add the holder of a card, or its file; somebody who is on the list gets this role. Compare
        the fingerprint with its holder first. Raises InvalidInput for anybody but an owner, for a
        name that another member has, and where no owner would be left; CorruptData for what is no
        member's card."""
        with self._opened(write=True) as native:
            return _member(_native.Members(native).add(self._host, read_card(card), role))

    def appoint(self, who: str, role: Role) -> Member:
        """Give a member, by name or fingerprint, another role. Raises InvalidInput, as `add`."""
        with self._opened(write=True) as native:
            return _member(_native.Members(native).appoint(self._host, who, role))

    def remove(self, who: str) -> None:
        """Remove a member, by name or fingerprint. The same commit gives the collection new keys,
        which that person does not get: nothing sealed from then on opens for them. What is older
        stays under the keys before until `reseal`. Raises InvalidInput, as `add`."""
        with self._opened(write=True) as native:
            _native.Members(native).remove(self._host, who)

    def reseal(self) -> None:
        """Seal what is still under the keys before a removal again, each segment in a commit of its
        own; an interrupted call goes on with the next. Nothing where there is none."""
        with self._opened(write=True) as native:
            _native.Members(native).reseal(self._host)

    def list(self) -> Sequence[Member]:
        """Who is on the list now; nobody where there is none."""
        with self._opened() as native:
            return [_member(one) for one in _native.Members(native).members(self._host)]

    def changes(self) -> Sequence[MemberChange]:
        """Every change of the list, the oldest first."""
        with self._opened() as native:
            found: Sequence[Any] = _native.Members(native).changes(self._host)
            return [MemberChange(*one) for one in found]


def _member(found: tuple[str, str, str]) -> Member:
    name, fingerprint, role = found
    return Member(name, fingerprint, cast("Role", role))
