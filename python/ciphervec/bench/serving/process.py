"""A data folder enters, a running `ciphervec serve` and its address leave. For measuring and testing a server."""

from __future__ import annotations

import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from ...errors import CiphervecError

_LISTENING = re.compile(r"listening on (https?)://(\S+):(\d+)")
_KEPT_LINES = 50


class ServerProcess:
    """One server in a process of its own, on a free port of loopback.

    `with ServerProcess(folder) as server: ciphervec.HttpClient(server.url, keys=keys)`. It can be killed and started again
    on the same folder, which is what the fault harness does all day.
    """

    def __init__(
        self, data: Path, *options: str, prefix: Sequence[str] = (), start_within: float = 60.0
    ) -> None:
        """`options` go to `ciphervec serve`; `prefix` is put before the command, such as a wrapper with a limit."""
        self.data = data
        self._options, self._prefix, self._start_within = options, list(prefix), start_within
        self._process: subprocess.Popen[str] | None = None
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._ready = threading.Event()
        self.scheme, self.host, self.port = "http", "127.0.0.1", 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """Of the running process. Raises CiphervecError when there is none."""
        if self._process is None:
            raise CiphervecError("the server was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> ServerProcess:
        """Returns once it listens. Raises CiphervecError with its last lines when it ends or is silent instead."""
        command = [*self._prefix, sys.executable, "-m", "ciphervec", "serve", "--data", os.fspath(self.data),
                   "--listen", "127.0.0.1:0", *self._options]  # fmt: skip
        self._ready.clear()
        self._lines.clear()
        self._process = subprocess.Popen(  # noqa: S603, our own command
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        assert self._process.stderr is not None
        threading.Thread(target=self._read, args=(self._process.stderr,), daemon=True).start()
        deadline = time.monotonic() + self._start_within
        while not self._ready.wait(0.005):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise CiphervecError(f"the server did not start; its last lines:\n{self.log()}")
        return self

    def stop(self, within: float = 60.0) -> int:
        """Asks it to end gracefully; returns its exit code. One that does not end is killed."""
        if self._process is None:
            return 0
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise CiphervecError(
                f"the server did not end within {within:.0f} s; its last lines:\n{self.log()}"
            ) from None

    def kill(self) -> None:
        """Ends it as a power cut would, as far as one process goes: SIGKILL, nothing is flushed."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """The last lines it wrote."""
        return "\n".join(self._lines)

    def memory(self) -> int:
        """Resident bytes now; 0 where the system does not tell."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def _read(self, pipe: IO[str]) -> None:
        with pipe:
            for line in pipe:
                self._lines.append(line.rstrip())
                found = _LISTENING.search(line)
                if found:
                    self.scheme, self.host, self.port = found[1], found[2].strip("[]"), int(found[3])
                    self._ready.set()

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
