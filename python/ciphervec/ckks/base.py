"""What the owner's and the server's context of CKKS share: sizes, security and plans. Holds no secret."""

from __future__ import annotations

from typing import Any

import ciphervec._native as _native

from ..errors import InvalidInput
from .bootstrapping import Bootstrapper, SetName


class BaseContext:
    """What the owner's and the server's context share: sizes, security, reading arrays, what they
    are for."""

    __slots__ = ("_server",)
    _server: _native.CkksServer

    @property
    def key_id(self) -> str:
        """The public name of the key, in hexadecimal. Everything encrypted under it carries it."""
        return self._server.key_id

    @property
    def degree(self) -> int:
        """The ring degree N: coefficients of a ciphertext."""
        return self._server.degree

    @property
    def slots(self) -> int:
        """Numbers that a ciphertext has room for in layout "slots"."""
        return self._server.slots

    @property
    def depth(self) -> int:
        """How many products in a row a fresh array has room for. After `for_bootstrapping` the last
        of them leave an array that can't be refreshed any more, see `BootstrapPlan.lowest_level`."""
        return self._server.fresh_level

    def bootstrapper(self) -> Bootstrapper:
        """What refreshes arrays of this context, and its plan; after `for_bootstrapping`. Raises
        InvalidInput."""
        name = _native.CkksBootstrapper.named_by(self._server)
        if name is None:
            raise InvalidInput(
                "the parameters of this context have no levels for bootstrapping; make it with "
                "Context.for_bootstrapping."
            )
        return Bootstrapper.named(SetName(*name))

    @property
    def operation(self) -> str | None:
        """What the parameters were chosen for by `for_similarity`; None after `for_depth`."""
        purpose = self._server.purpose
        return purpose[0] if purpose else None

    @property
    def layout(self) -> str:
        """How arrays lie unless `encrypt` is told otherwise."""
        purpose = self._server.purpose
        return purpose[1] if purpose else "slots"

    @property
    def error_bound(self) -> float | None:
        """What the error of the planned result, before any root, stays within (six standard
        deviations)."""
        purpose = self._server.purpose
        return purpose[3] if purpose else None

    def key_sizes(self) -> dict[str, int]:
        """Bytes of the evaluation keys that a server gets: relinearisation, rotations, and the
        sum."""
        relinearise, rotations = self._server.key_bytes()
        return {"relinearise": relinearise, "rotations": rotations, "total": relinearise + rotations}

    def explain(self) -> str:
        """What was chosen and why, in words."""
        return self._server.explain()

    def security(self) -> dict[str, Any]:
        """Bits of security and the table they are from, the assumption, and `post_quantum`; what the
        cheapest attack costs as `core_svp`, `guidelines` and `quantum_core_svp`, with the `model`."""
        return self._server.security()

    def _options(
        self, layout: str | None, role: str, spread: str, normalise: bool | None
    ) -> tuple[tuple[str, str, str], bool, float | None]:
        """How `encrypt` lays out rows: what it was told, or else what the parameters were chosen
        for."""
        purpose = self._server.purpose
        scaled = (purpose is not None and purpose[0] == "cosine") if normalise is None else bool(normalise)
        magnitude = purpose[2] if purpose and not scaled else None
        if self._server.bootstraps and not scaled:
            magnitude = 1.0
        return (layout or self.layout, role, spread), scaled, magnitude
