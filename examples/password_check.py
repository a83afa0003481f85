"""Was a password in a breach? A server has a hundred thousand breached ones, and does not learn which password is asked
about, nor whether it is among them.

    python examples/password_check.py

The publisher hashes passwords before they go into the table, so that the file shows none to whoever copies it. The client
holds the table's fingerprint from the publisher: a server that shows it another table is found out.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path

from ciphervec import HttpClient, PrivateTable
from ciphervec.http import LocalServer

BREACHED = 100_000


def digest(password: str) -> bytes:
    return hashlib.sha256(password.encode()).digest()


def main() -> None:
    print(f"publisher: a table of {BREACHED:,} made-up passwords, with how often each was seen")
    seen = {digest(f"password{number}"): str(1 + number % 97) for number in range(BREACHED)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "breached.table"
        table = PrivateTable.build(seen, path=file)
        print(f"{table!r}, {table.info()['bytes'] / 1e6:.1f} MB; fingerprint {table.fingerprint[:16]}…")
        with LocalServer(Path(folder) / "db") as server, HttpClient(server.url, state=None) as client:
            client.put_table("breached", file)
            breached = client.get_table("breached", table.fingerprint)
            breached.get(digest("the first lookup brings the keys"))
            right = 0
            for password, expected in (
                ("password31337", True),
                ("correct horse battery staple", False),
                ("password99999", True),
            ):
                began = time.perf_counter()
                count = breached.get(digest(password))
                took = time.perf_counter() - began
                says = "is not there" if count is None else f"was seen {count.decode()} times"
                print(f"{password!r} {says} ({took * 1e3:.0f} ms)")
                right += (count is not None) == expected
            many = breached.get_many(
                [digest(f"password{number}") for number in range(0, 2 * BREACHED, BREACHED // 4)]
            )
            print(f"of {len(many)} passwords at once {sum(one is not None for one in many)} are there")
    print(f"right answers: {right} of 3; the server saw that lookups were made, and no password")


if __name__ == "__main__":
    main()
