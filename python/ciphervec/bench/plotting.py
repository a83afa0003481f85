"""Nothing enters, matplotlib's pyplot leaves, ready to write files without a display. Either side."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidInput


def pyplot() -> Any:
    """Raises InvalidInput with the command that installs matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise InvalidInput(
            "--plot needs matplotlib, which is not installed; pip install 'ciphervec[bench]'"
        ) from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt
