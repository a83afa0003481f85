"""More products than the parameters have levels: a server squares numbers six times under encryption
and refreshes them in between, with keys that it reads from a file.

    python examples/bootstrapping.py

The owner encrypts and decrypts; the server has a public context, a file of keys and no secret. Half
a minute on one core at most, and a gigabyte of memory.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from ciphervec import ckks

SQUARINGS = 6


def main() -> None:
    owner = ckks.Context.for_bootstrapping(15)
    plan = owner.bootstrapper().plan()
    print(plan.explain())

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "refresh.keys")
        began = time.perf_counter()
        owner.bootstrapping_keys(progress=True).save(path)
        print(f"{path.stat().st_size / 1e6:,.0f} MB of keys in {time.perf_counter() - began:.1f} s")
        # The server's half.
        server = ckks.PublicContext.from_bytes(owner.public().to_bytes())
        keys = ckks.BootstrappingKeys.load(path, 15)

    numbers = np.linspace(-1, 1, plan.slots)
    x = server.array_from_bytes(owner.encrypt(numbers).to_bytes())
    for squaring in range(SQUARINGS):
        if x.level == plan.lowest_level:
            began = time.perf_counter()
            x = x.refresh(keys)
            print(f"refreshed after {squaring} squarings, in {time.perf_counter() - began:.1f} s")
        x = x * x
    answer = x.to_bytes()

    # The owner.
    found = owner.decrypt(owner.array_from_bytes(answer))
    error = np.abs(found - numbers ** (2**SQUARINGS)).max()
    print(
        f"x^{2**SQUARINGS} of {plan.slots:,} numbers within {error:.1e}, as close as planned: {error < 2**-8}"
    )


if __name__ == "__main__":
    main()
