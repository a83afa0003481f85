"""Pictures of measurements, for commands that draw some: they need no display, and nothing in them is secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..ingest.extras import needed


def pyplot() -> Any:
    """Raises InvalidInput with the command that installs matplotlib."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise needed("--plot", "matplotlib", "plot") from error
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def save(plt: Any, figure: Any, path: Path) -> None:
    """Writes and closes a figure. Raises InvalidInput for a file name that ends in no picture
    format."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in known:
        raise InvalidInput(
            f"--plot writes {', '.join(sorted(known))}; give {path.name} one of these endings."
        )
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
