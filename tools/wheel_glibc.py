"""Wheels in; an error for one that needs a newer glibc than its name promises, or than we do, out. Runs in `make
release`, beside the check that maturin makes for itself."""

from __future__ import annotations

import re
import sys
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

PROMISED = (2, 28)
"""Debian 10, RHEL 8, Ubuntu 18.10, and whatever came after them."""
LIBRARIES = re.compile(r"(lib(c|m|dl|pthread|rt|util|gcc_s)|ld-linux[\w-]*)\.so\.\d+")
"""What a wheel may load: glibc's parts, and the one library beside it that every system has."""
_VERSION = re.compile(r"GLIBC_(\d+(?:\.\d+)+)")
_TAG = re.compile(r"-manylinux_(\d+)_(\d+)_")

Version = tuple[int, ...]


def needs(library: bytes) -> tuple[set[Version], set[str]]:
    """The versions of glibc whose symbols a shared library asks for, and the libraries that it loads."""
    elf = ELFFile(BytesIO(library))
    versions: set[Version] = set()
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            names = [one.name for _, asked in section.iter_versions() for one in asked]
            found = [match[1] for name in names if (match := _VERSION.fullmatch(name))]
            versions.update(tuple(map(int, version.split("."))) for version in found)
    dynamic = elf.get_section_by_name(".dynamic")
    loaded = dynamic.iter_tags("DT_NEEDED") if isinstance(dynamic, DynamicSection) else ()
    return versions, {tag.needed for tag in loaded}  # type: ignore[attr-defined]


def complaints(wheel: Path) -> tuple[list[str], Version]:
    """What is wrong with a wheel, and the newest glibc that something in it asks for."""
    tag = _TAG.search(wheel.name)
    named = None if tag is None else (int(tag[1]), int(tag[2]))
    found = [] if named == PROMISED else [f"its name says manylinux {named}, not {PROMISED}"]
    newest: Version = ()
    with ZipFile(wheel) as archive:
        libraries = [name for name in archive.namelist() if ".so" in Path(name).name]
        for name in libraries:
            versions, loaded = needs(archive.read(name))
            newest = max(newest, *versions, ())
            found += [
                f"{name} asks for GLIBC_{'.'.join(map(str, version))}"
                for version in sorted(versions)
                if version > PROMISED
            ]
            found += [
                f"{name} loads {one}, which a system may not have"
                for one in sorted(loaded)
                if not LIBRARIES.fullmatch(one)
            ]
    return found if libraries else [*found, "there is no shared library in it"], newest


def main(paths: list[str]) -> int:
    wheels = [Path(path) for path in paths] or sorted(Path("dist").glob("ciphervec-*.whl"))
    if not wheels:
        print("there is no wheel in dist/; build one: make release", file=sys.stderr)
        return 1
    wrong = False
    for wheel in wheels:
        found, newest = complaints(wheel)
        print(f"{wheel.name}: GLIBC_{'.'.join(map(str, newest))} is the newest that it asks for")
        for line in found:
            print(f"{wheel.name}: {line}", file=sys.stderr)
        wrong = wrong or bool(found)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
