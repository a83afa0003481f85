"""A `LocalServer` is there for the length of its program: however that ends, the server does, and the next run works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ciphervec import Keys
from ciphervec.http import LocalServer

PROGRAM = """
import os, signal, subprocess, sys, time
import ciphervec, numpy
from ciphervec.http import LocalServer
server = LocalServer("db")
client = ciphervec.HttpClient(server.url, keys=ciphervec.Keys.load("k"), state="state")
print(server.pid, flush=True)
docs = client.get_or_create_collection("docs", 4)
docs.upsert(["a"], numpy.ones((1, 4)))
print("done", docs.count(), flush=True)
"""

ENDINGS = {
    "return": ("", 0),
    "exception": ("raise ValueError('a fault of the program')", 1),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL); time.sleep(60)", -9),
}

posix = pytest.mark.skipif(os.name == "nt", reason="signals and forks")


def run(folder: Path, ending: str) -> tuple[int, list[str]]:
    """The program with this end, and what it printed: the server's process first."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + ending], capture_output=True, text=True, cwd=folder, timeout=100
    )
    assert "done 1" in done.stdout, done.stderr
    return done.returncode, done.stdout.split()


def gone(pid: int, within: float = 20.0) -> bool:
    """Whether a process ends in time. A zombie has: nobody waits for it where the parent was killed."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
            if (state := Path(f"/proc/{pid}/stat")).exists() and state.read_text().rsplit(")", 1)[1].split()[
                0
            ] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


@posix
@pytest.mark.parametrize("how", ENDINGS)
def test_it_ends_with_its_program(tmp_path: Path, keys: Keys, how: str) -> None:
    keys.save(tmp_path / "k", allow_plaintext=True)
    ending, code = ENDINGS[how]
    returned, words = run(tmp_path, ending)
    assert returned == code
    assert gone(int(words[0]))
    begun = time.monotonic()
    returned, words = run(tmp_path, ending)  # the folder is free
    assert returned == code and time.monotonic() - begun < 30
    assert gone(int(words[0]))


@posix
def test_what_the_program_leaves_behind_does_not_keep_it(tmp_path: Path, keys: Keys) -> None:
    """A program that it started and a fork of it are there after it was killed, and the server is not."""
    keys.save(tmp_path / "k", allow_plaintext=True)
    left = """
other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, close_fds=False)
fork = os.fork()
if fork == 0:
    for number in (0, 1, 2):
        os.close(number)
    time.sleep(60)
    os._exit(0)
print(other.pid, fork, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    _, words = run(tmp_path, left)
    server, others = int(words[0]), [int(word) for word in words[3:]]
    try:
        assert gone(server)
        for one in others:
            os.kill(one, 0)
    finally:
        for one in others:
            os.kill(one, signal.SIGKILL)


@posix
def test_a_fork_does_not_end_its_parents_server(tmp_path: Path) -> None:
    with LocalServer(tmp_path / "db") as server:
        script = os.fork()
        if script == 0:
            try:
                server.stop()
                server.kill()
            finally:
                os._exit(0)
        os.waitpid(script, 0)
        time.sleep(0.2)
        assert server._process.poll() is None
    assert server._process.poll() == 0


def test_a_server_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    with pytest.raises(FileNotFoundError):
        LocalServer(tmp_path / "db", prefix=["no-such-program"])
    after = len(list(Path("/proc/self/fd").iterdir())) if before else 0
    assert after == before
