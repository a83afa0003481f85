"""Measures the most memory that a server needs to refresh a spent array, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ciphervec.ckks import Bootstrapper, BootstrappingKeys, CkksArray, Context, PublicContext

from . import machine


@dataclass(frozen=True)
class Peak:
    """Bytes. `before`: resident when parameters and matrices were made and no keys read. `keys`: of the keys in memory.
    `peak`: the most that was resident up to the end of the refreshing."""

    before: int
    keys: int
    peak: int


def peak(owner: Context, keys: BootstrappingKeys, spent: CkksArray) -> Peak | None:
    """Refreshes `spent` on one thread of a process of its own. None where the system has no /proc."""
    if machine.most_resident() is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / name for name in ("context", "keys", "array")]
        parts[0].write_bytes(owner.public().to_bytes())
        keys.save(parts[1])
        parts[2].write_bytes(spent.to_bytes())
        name = keys.bootstrapper.name
        set_name = (name.log_n, name.slots, int(name.precise))
        command = [sys.executable, "-m", __name__, *map(str, parts), *map(str, set_name)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603, this module
    return Peak(**json.loads(done.stdout))


def main(context: str, keys_file: str, array: str, log_n: str, slots: str, precise: str) -> None:
    """Prints the figures of this process."""
    with machine.threads(1):
        server = PublicContext.from_bytes(Path(context).read_bytes())
        bootstrapper = Bootstrapper(int(log_n), slots=int(slots), precise=precise == "1")
        before = machine.resident(os.getpid())
        keys = BootstrappingKeys.load(keys_file, bootstrapper)
        server.array_from_bytes(Path(array).read_bytes()).bounded(1.0).refresh(keys)
    sys.stdout.write(json.dumps({"before": before, "keys": keys.memory, "peak": machine.most_resident()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
