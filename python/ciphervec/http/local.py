"""Runs a server of a folder in a child process on this machine, for tests, examples and trying things out."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TypeVar

from ..errors import ServerError
from ..ingest.files import StrPath, at_home

P = TypeVar("P", bound="LocalProcess")
_LISTENING = re.compile(r"listening on (https?://\S+)")
_STARTED: weakref.WeakSet[LocalProcess] = weakref.WeakSet()


class LocalProcess:
    """A command of `ciphervec` that listens on this machine, until the block ends, or else this process, however
    it does."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        wait: float = 30.0,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`prefix` stands before the program, another one that runs it under a limit say; `environment` is added to
        that of this process. Returns when it is ready. Raises ServerError with its last words when it
        isn't within `wait` seconds."""
        self._last: deque[str] = deque(maxlen=50)
        self._ready = threading.Event()
        self.url = ""
        """Where it listens."""
        self._pid = os.getpid()
        # The child runs for as long as this end of a pipe is open. Programs that this process starts don't inherit
        # it, and forks of it close it, so that the system closes it when this process ends, be it by SIGKILL.
        read, self._tether = os.pipe()
        _STARTED.add(self)
        try:
            self._process = subprocess.Popen(  # noqa: S603, this very program
                [*prefix, sys.executable, "-m", "ciphervec.cli.tethered", *arguments],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=None if environment is None else {**os.environ, **environment},
            )
        except BaseException:
            self._release()
            raise
        finally:
            os.close(read)
        name = f"ciphervec-{arguments[0]}"
        self._reader = threading.Thread(target=self._read, name=name, daemon=True)
        self._reader.start()
        if not self._ready.wait(wait) or not self.url:
            self.kill()
            raise ServerError(
                f"`ciphervec {' '.join(arguments)}` did not start: {self.log.strip() or 'it said nothing'}"
            )

    @property
    def log(self) -> str:
        """The last lines that it printed."""
        return "\n".join(self._last)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def stop(self) -> None:
        """Ask it to end and wait until it has. A server that is stopped loses nothing that it
        acknowledged; nor does one that is killed."""
        if self._pid != os.getpid():
            return  # a fork: it is its parent's
        if self._process.poll() is None:
            if os.name == "nt":
                self._process.terminate()
            else:
                self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join()
        self._release()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._pid != os.getpid():
            return
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._release()

    def _release(self) -> None:
        """Close this end of the pipe, once: its number may be somebody else's afterwards."""
        _STARTED.discard(self)
        tether, self._tether = self._tether, -1
        if tether >= 0:
            with contextlib.suppress(OSError):
                os.close(tether)

    def _read(self) -> None:
        if self._process.stderr is not None:
            with self._process.stderr as lines:
                for line in lines:
                    self._last.append(line.rstrip("\n"))
                    found = _LISTENING.search(line)
                    if found and not self.url:
                        self.url = found[1]
                        self._ready.set()
        self._ready.set()

    def __enter__(self: P) -> P:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<ciphervec.http.{type(self).__name__} at {self.url}>"


def _stop_all() -> None:
    """The interpreter ends: so do they, before it is gone, so that the next run of the program finds their folders free."""
    for one in list(_STARTED):
        one.stop()


def _release_all() -> None:
    """In a forked child, which may outlive its parent."""
    for one in list(_STARTED):
        one._release()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_all)


class LocalServer(LocalProcess):
    """`ciphervec serve` on a free port of this machine, until the block ends; without a block, until this process
    does, in whatever way.

    with LocalServer("db") as server:
        client = HttpClient(server.url, keys=keys)
    """

    def __init__(
        self,
        data: StrPath,
        arguments: Sequence[str] = (),
        *,
        listen: str = "127.0.0.1:0",
        wait: float = 30.0,
        prefix: Sequence[str] = (),
    ) -> None:
        """`data` is made if it isn't there; `arguments` are further ones of `ciphervec serve`; the rest
        as of `LocalProcess`. Raises ServerError."""
        serve = ["serve", "--data", at_home(data), "--listen", listen, *arguments]
        super().__init__(serve, wait=wait, prefix=prefix)
