"""Runs a command beside an S3 server of this machine with one bucket, `bucket`; AWS_* variables say where that is. Ends
with the command's exit code. For tests and `make faults`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from moto.server import ThreadedMotoServer

BUCKET = "bucket"


@contextmanager
def bucket() -> Iterator[dict[str, str]]:
    """A server with an empty bucket, until the block ends; the variables that lead to it."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request otherwise
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        httpx.put(f"{url}/{BUCKET}", trust_env=False).raise_for_status()
        yield {
            "AWS_ENDPOINT": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
    finally:
        server.stop()


if __name__ == "__main__":
    with bucket() as variables:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **variables}, check=False).returncode)
