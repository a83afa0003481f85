"""CKKS: vectors that are both encrypted are compared, added and multiplied.

A `Context` is the key owner's: it encrypts and decrypts. `context.public()` is what a server gets:
it computes and reads nothing. Depth is what the parameters have, or without end where arrays are
refreshed (`Context.for_bootstrapping`). Results are approximate, and say how far they are off.
"""

from __future__ import annotations

from .array import CkksArray
from .bootstrapping import Bootstrapper, BootstrappingKeys, BootstrapPlan
from .context import Context, PublicContext, depth_for, load

__all__ = [
    "BootstrapPlan",
    "Bootstrapper",
    "BootstrappingKeys",
    "CkksArray",
    "Context",
    "PublicContext",
    "depth_for",
    "load",
]
