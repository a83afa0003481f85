"""Installs SoftHSM, a PKCS #11 device in software, for the tests of keys that a device wraps."""

from __future__ import annotations

import shutil

from .base import from_debian, say


def install() -> None:
    """Debian's, where it is missing and this may install it."""
    if shutil.which("softhsm2-util") is None:
        from_debian("no SoftHSM", "softhsm2")
    else:
        say("already there")
