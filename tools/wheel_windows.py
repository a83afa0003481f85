"""Makes a wheel for Windows from a wheel of this machine and a library for Windows. Both are of one abi3 module, so
that they differ in the library and in what names the system alone.

maturin can't build it here: towards GNU's Windows it exports a name with a dot, and from every library in the tree.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

TAG = "cp310-abi3-win_amd64"


def packed(wheel: Path, library: Path) -> Path:
    """The wheel for Windows, beside the other."""
    made = wheel.with_name(re.sub(r"-cp310-abi3-.*\.whl$", f"-{TAG}.whl", wheel.name))
    record: list[str] = []
    with ZipFile(wheel) as old, ZipFile(made, "w", ZIP_DEFLATED) as new:

        def put(name: str, content: bytes) -> None:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")
            new.writestr(name, content)

        for name in old.namelist():
            content = old.read(name)
            if name.endswith(".so"):
                name, content = "ciphervec/_native.pyd", library.read_bytes()
            elif name.endswith(".dist-info/WHEEL"):
                content = re.sub(rb"(?m)^Tag: .*$", f"Tag: {TAG}".encode(), content)
            if not name.endswith((".dist-info/RECORD", "/")):
                put(name, content)
        [where] = [name for name in old.namelist() if name.endswith(".dist-info/RECORD")]
        new.writestr(where, "\n".join([*record, f"{where},,", ""]))
    return made


if __name__ == "__main__":
    print(packed(Path(sys.argv[1]), Path(sys.argv[2])))
