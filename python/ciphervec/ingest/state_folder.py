"""State folder: the environment enters; where a user's pins, marks and counts are kept leaves. Key
owner's side."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .files import at_home

STATE_VARIABLE = "CIPHERVEC_STATE"


def user_folder() -> Path:
    """Where state is kept unless the caller says where: CIPHERVEC_STATE, else a folder among the
    user's data."""
    named = os.environ.get(STATE_VARIABLE)
    if named:
        return Path(at_home(named))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ciphervec"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ciphervec"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ciphervec"


__all__ = ["STATE_VARIABLE", "user_folder"]
