"""The bandwidth and latency that rows are packed for. Key owner's side."""

from __future__ import annotations

from typing import NamedTuple

from ..errors import InvalidInput


class Network(NamedTuple):
    """What answers travel over, from the server to whoever asks. In modes `sealed` and `sealed-query` rows are packed
    for it: a slow one is worth more time at the server for a shorter answer."""

    megabits: float = 1000.0
    """A second."""
    latency_ms: float = 0.5
    """There and back."""

    @property
    def native(self) -> tuple[float, float]:
        """Bytes a second, seconds there and back."""
        return self.megabits * 125e3, self.latency_ms / 1e3


DEFAULT = Network()


def check_network(network: object) -> Network:
    """Raises InvalidInput unless it is a `Network` of numbers that there are."""
    if not isinstance(network, Network):
        raise InvalidInput(
            f"network must be a ciphervec.Network, e.g. Network(megabits=100, latency_ms=30); got {network!r}."
        )
    for name, value, least in (
        ("megabits", network.megabits, 0.01),
        ("latency_ms", network.latency_ms, 0.0),
    ):
        number: object = value
        if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= 1e6:
            raise InvalidInput(f"{name} of a network must be a number from {least:g} to 1e6, got {value!r}.")
    return Network(float(network.megabits), float(network.latency_ms))
