"""Programs on a server: sends plans, evaluation keys and encrypted inputs, and fetches encrypted answers. The key
holder's side; keys stay in `programs.Client`, and nothing here has any.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInput, ProgramNotFound, ServerError
from ..ingest.naming import check_name
from ..ingest.remarks import Progress
from .problem import Reply, error_of, loses_uploads, uploads_gone, words
from .session import MAX_ANSWER, Session

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..programs import Client, Plan
    from ..programs.kinds import Array

INLINE = 24 << 20
"""Bytes of keys or of an input that go in one request; larger ones are uploaded in pieces."""

_OCTETS = {"Content-Type": "application/octet-stream"}
_PATIENCE = 4.0
"""Times as long as was predicted that a run is waited for."""
_ATTEMPTS = 3  # at what was uploaded and got lost there
_KEPT_NAME = re.compile(r"(?=[^.]|\.+[^.])[A-Za-z0-9._-]{1,64}")
_KEY = re.compile(r"[0-9a-f]{16}")


class ServedProgram:
    """A program on a server, for whoever has encrypted bytes for it and neither its plan nor a key."""

    def __init__(self, session: Session, name: str, on_upload: Callable[[], Progress | None]) -> None:
        """Not for callers: use `HttpDatabase.program`."""
        self._session, self._name = session, name
        self._path = _path(name)
        self._on_upload = on_upload
        self._seconds: float | None = None

    @property
    def name(self) -> str:
        """Its name on the server."""
        return self._name

    def info(self) -> dict[str, Any]:
        """All that the server knows: `plan`, what it takes there; `keys` by id, each with its kept
        `inputs`; `bytes` stored. Raises ProgramNotFound, ServerError."""
        doing = f"cannot describe the program {self._name!r}"
        reply = self._session.call("GET", self._path, doing, ok=(200, 404))
        return self._session.json(self._found(reply, doing), doing)

    def send_keys_bytes(self, keys: bytes) -> None:
        """Bring what `Client.evaluation_keys` made, as `RemoteProgram.send_keys` does."""
        key = key_of(keys)
        self._put(f"/keys/{key}", keys, f"cannot send the keys {key} of {self._name!r}")

    def remove_keys(self, key_id: str) -> None:
        """Remove a client's evaluation keys, and all that is kept under its key. Raises
        ProgramNotFound if there are none."""
        key = _checked_key(key_id)
        self._delete(f"/keys/{key}", f"cannot remove the keys {key} of {self._name!r}")

    def keep_bytes(self, name: str, sealed: bytes) -> None:
        """Keep one input that `Client.encrypt` made, under a name of one's own: 1 to 64 of `A-Z a-z 0-9
        . _ -`. So there may be several galleries, and a run names the one that it is on."""
        path = f"/keys/{key_of(sealed)}/inputs/{_checked_name(name)}"
        self._put(path, sealed, f"cannot keep {name!r} with {self._name!r}")

    def forget(self, client: Client | str, /, *names: str) -> None:
        """Remove kept inputs of a client, or of a key's id. Raises ProgramNotFound for what is not
        there."""
        key = _checked_key(client if isinstance(client, str) else client.key_id)
        for name in names:
            path = f"/keys/{key}/inputs/{_checked_name(name)}"
            self._delete(path, f"cannot remove {name!r} from {self._name!r}")

    def run_bytes(self, sealed: Iterable[bytes], *kept: str, key_id: str | None = None) -> bytes:
        """The encrypted answer to encrypted inputs and kept ones. `key_id` is needed where all inputs
        are kept. Raises as `RemoteProgram.run`."""
        doing = f"cannot run {self._name!r}"
        words = [f"kept={_checked_name(name)}" for name in kept]
        if key_id is not None:
            words.insert(0, f"key={_checked_key(key_id)}")
        query = "?" + "&".join(words) if words else ""
        reply = self._session.call(
            "POST",
            f"{self._path}/run{query}",
            doing,
            body=b"".join(sealed),
            headers=_OCTETS,
            ok=(200, 404),
            limit=MAX_ANSWER,
            longer=_PATIENCE * self._predicted(),
        )
        return self._found(reply, doing).body

    def delete(self) -> None:
        """Remove the program with all keys and inputs. Raises ProgramNotFound."""
        self._delete("", f"cannot delete the program {self._name!r}")

    def _predicted(self) -> float:
        """Seconds that a run is predicted to take there."""
        if self._seconds is None:
            self._seconds = _seconds(self.info(), self._session.url)
        return self._seconds

    def _put(self, path: str, data: bytes, doing: str) -> None:
        """Store bytes, once however often the answer is lost."""
        # A retry of these bytes is known by this key, and answered as the first attempt was.
        headers = {**_OCTETS, "Idempotency-Key": secrets.token_hex(16)}
        whole, ok = self._path + path, (204, 404, 409, 413)
        if len(data) <= INLINE:
            reply = self._session.call("PUT", whole, doing, body=data, headers=headers, ok=ok)
        if (
            len(data) > INLINE or reply.status == 413
        ):  # its operator allows less in one request than others do
            for _ in range(_ATTEMPTS):
                whole = self._uploaded(path, data, doing)
                headers["Idempotency-Key"] = secrets.token_hex(16)
                reply = self._session.call("PUT", whole, doing, headers=headers, ok=ok)
                if not uploads_gone(reply):
                    break
            else:
                raise loses_uploads(doing, self._session.url)
        if reply.status == 409:
            raise InvalidInput(f"{doing}: {self._session.url} refuses it: {words(reply)}.")
        if reply.status == 413:
            raise error_of(reply, doing, self._session.url)
        self._found(reply, doing)

    def _uploaded(self, path: str, data: bytes, doing: str) -> str:
        """The path of a change whose bytes were uploaded."""
        report = self._on_upload()

        def step(offset: int) -> None:
            if report is not None:
                report(offset, len(data))

        upload = self._session.upload(f"{self._path}/uploads", data, doing, step)
        return f"{self._path}{path}?upload={upload}"

    def _delete(self, path: str, doing: str) -> None:
        reply = self._session.call("DELETE", self._path + path, doing, ok=(204, 404))
        # The answer to an attempt that succeeded may have got lost.
        if not reply.failed:
            self._found(reply, doing)

    def _found(self, reply: Reply, doing: str) -> Reply:
        if reply.status == 404:
            raise ProgramNotFound(
                f"{doing}: {self._session.url} has no such program, keys or kept input, or not for this token. "
                "put_program stores a program, send_keys brings keys, keep an input."
            )
        return reply

    def __repr__(self) -> str:
        return f"<ciphervec.http.{type(self).__name__} {self._name!r} on {self._session.url}>"


class RemoteProgram(ServedProgram):
    """A program on a server: a plan, the evaluation keys of any number of clients, and the inputs that
    they keep there.

    The server sees the plan, sizes and times, public inputs with what is computed of them alone, and no
    number of another input or result. What is encrypted names the plan that this client has, so that a
    server with another one can do nothing with it.
    """

    def __init__(
        self,
        session: Session,
        name: str,
        plan: Plan,
        state: dict[str, Any],
        on_upload: Callable[[], Progress | None],
    ) -> None:
        """Not for callers: use `HttpClient.put_program` or `get_program`."""
        super().__init__(session, name, on_upload)
        self._plan = plan
        self._seconds = _seconds(state, session.url)

    @property
    def plan(self) -> Plan:
        """The plan, as this client has it."""
        return self._plan

    def send_keys(self, client: Client) -> None:
        """Bring a client's evaluation keys, once; they are not made where the server has them.

        Large ones go in pieces, and on from where they were after a lost connection; `on_upload` of the
        HttpClient counts them. They belong to the token that brings them: others may run on them, and
        not change what is under them. Raises InvalidInput for a client of another plan,
        AuthenticationError, StorageError, ServerError.
        """
        self._check(client)
        if client.key_id not in self.info().get("keys", {}):
            self.send_keys_bytes(client.evaluation_keys())

    def keep(self, client: Client, /, **inputs: npt.ArrayLike) -> None:
        """Encrypt inputs and keep them on the server, each under its own name, for any number of runs;
        what was kept under the name is replaced. Raises as `Client.encrypt` and `send_keys`."""
        self._check(client)
        for name, sealed in client.encrypt(**inputs).items():
            self.keep_bytes(name, sealed)

    def run(self, client: Client, /, *kept: str, **inputs: npt.ArrayLike) -> Array | tuple[Array, ...]:
        """Encrypt inputs, run the program on them and on kept ones, and decrypt the results, as the
        function returns them.

        `kept` names the kept inputs; left out, those are taken that are kept under the names of the
        inputs not given. A run is waited for as long as other requests, and four times as long as it is
        predicted to take. Raises as `Client.encrypt` and `Client.decrypt`; InvalidInput for inputs that
        are missing or come twice and for a run that the server stops, ServerError where it is busy.
        """
        self._check(client)
        sealed = client.encrypt(**inputs)
        missing = kept or tuple(name for name in self._plan.inputs if name not in inputs)
        return client.decrypt(self.run_bytes(sealed.values(), *missing, key_id=client.key_id))

    def _check(self, client: Client) -> None:
        if client.plan.id != self._plan.id:
            raise InvalidInput(
                f"this client is of plan {client.plan.id}, and {self._name!r} is plan {self._plan.id}; make a client of "
                "its plan."
            )


def put_program(
    session: Session, name: str, plan: Plan, on_upload: Callable[[], Progress | None]
) -> RemoteProgram:
    """Store a plan under a name. Raises InvalidInput for another plan of that name, for one that is beyond
    the server's limits, and for one whose clients would show the server by what they refuse something
    of their keys: a plan for a server is compiled with failure=128."""
    doing = f"cannot store the program {name!r}"
    plan.check_for_others("refusals")
    reply = session.call("PUT", _path(name), doing, body=plan.to_bytes(), headers=_OCTETS, ok=(200, 201, 409))
    if reply.status == 409:
        raise InvalidInput(
            f"{doing}: {session.url} has another plan of that name. Keys and inputs belong to a plan, so choose another "
            "name, or delete_program first."
        )
    return RemoteProgram(session, name, plan, session.json(reply, doing), on_upload)


def get_program(
    session: Session, name: str, plan: Plan, on_upload: Callable[[], Progress | None]
) -> RemoteProgram:
    """A program that is there, which must be this plan. Raises ProgramNotFound, InvalidInput."""
    doing = f"cannot open the program {name!r}"
    plan.check_for_others("refusals")
    reply = session.call("GET", _path(name), doing, ok=(200, 404))
    if reply.status == 404:
        raise ProgramNotFound(
            f"no program {name!r} on {session.url} that this token may see; put_program stores one."
        )
    state = session.json(reply, doing)
    held = state.get("plan")
    found = held.get("id") if isinstance(held, dict) else None
    if found != plan.id:
        raise InvalidInput(
            f"{doing}: {session.url} has plan {str(found)[:40]} under that name, and {plan.id} was given. Take the plan "
            "that is stored there, from whoever stored it."
        )
    return RemoteProgram(session, name, plan, state, on_upload)


def program_rows(session: Session) -> list[dict[str, Any]]:
    """Name, plan, number of keys and bytes of every program. Raises ServerError."""
    doing = "cannot list the programs"
    content = session.json(session.call("GET", "/v1/programs", doing), doing)
    try:
        return [
            {
                "name": check_name(one["name"]),
                "plan": str(one["plan"]),
                "keys": int(one["keys"]),
                "bytes": int(one["bytes"]),
            }
            for one in content["programs"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise ServerError(
            f"{doing}: {session.url} answered in a way that is not understood ({error!r}). "
            "Check the versions on both sides."
        ) from None


def key_of(data: bytes) -> str:
    """The id of the key that evaluation keys or an encrypted input name. Raises InvalidInput."""
    if len(data) < 64 or data[:4] != b"CVEC":
        raise InvalidInput("evaluation keys or an encrypted input expected, as a programs.Client makes them.")
    return data[16:24].hex()


def _path(name: str) -> str:
    return f"/v1/programs/{check_name(name)}"


def _checked_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"a key's id has 16 hexadecimal digits, as Client.key_id; got {key!r}.")
    return key


def _checked_name(name: str) -> str:
    if not _KEPT_NAME.fullmatch(name):
        raise InvalidInput(
            f"a kept input's name has 1 to 64 characters from a-z A-Z 0-9 . _ -, not only dots; got {name!r}. Choose one "
            "with keep_bytes."
        )
    return name


def _seconds(state: dict[str, Any], url: str) -> float:
    """Seconds that a run is predicted to take there."""
    try:
        return max(0.0, min(float(state["plan"]["predicted_ms"]) / 1e3, 86_400.0))
    except (KeyError, TypeError, ValueError):
        raise ServerError(
            f"{url} describes a program in an unknown way. Check the versions on both sides."
        ) from None
