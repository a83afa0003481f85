"""What `LocalServer` starts: the program, until the other end of a pipe is closed, which the system does for whoever
held it, however that process ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from . import main

GRACE = 10.0
"""Seconds for requests in flight; then it ends as a crash would, which loses nothing acknowledged."""


def _watch() -> None:
    """Wait until the parent's end of standard input is closed, and end this process then."""
    # The descriptor itself: a buffered reader would hold a lock that the interpreter wants when it ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    sys.argv[0] = "ciphervec"
    threading.Thread(target=_watch, name="ciphervec-tether", daemon=True).start()
    main()
