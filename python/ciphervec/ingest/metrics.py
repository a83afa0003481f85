"""What vectors of each metric are, and how its scores read.

A new metric is a row here: whatever treats metrics differently asks for one of these properties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

MetricName: TypeAlias = Literal["cosine", "ip", "l2", "hamming"]


@dataclass(frozen=True)
class Metric:
    """What sets a metric apart for whoever checks vectors or reads scores.

    `similar`: the native score is a similarity, which is 1 − distance; otherwise the distance
    itself. `sized`: lengths of vectors count, so they are kept beside the directions. `bits`:
    vectors are bits, as -1 and +1.
    """

    similar: bool
    sized: bool
    bits: bool = False

    @property
    def directed(self) -> bool:
        """Whether nothing but the direction counts: a zero vector has none, and scores are
        cosines."""
        return self.similar and not self.sized

    @property
    def centred(self) -> bool:
        """Whether values stay as they are when one vector is taken off all rows and queries."""
        return self.sized and not self.similar

    @property
    def below_zero(self) -> bool:
        """Whether distances may be negative."""
        return self.similar and self.sized


METRIC_NAMES: tuple[MetricName, ...] = ("cosine", "ip", "l2", "hamming")
METRICS = {
    "cosine": Metric(similar=True, sized=False),
    "ip": Metric(similar=True, sized=True),
    "l2": Metric(similar=False, sized=True),
    "hamming": Metric(similar=False, sized=False, bits=True),
}
