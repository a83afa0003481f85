"""When a failed request is sent again, and when the client gives up. Key owner's side.

The pause before attempt k is uniform between 0 and min(5 s, 0.2 s · 2^k), so that clients who
failed together don't come back together. Where the server says how long to wait (Retry-After), that
is waited at least.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

RETRY_STATUS = frozenset({429, 502, 503, 504})
"""Answers after which the same request may succeed."""

_FIRST, _LONGEST = 0.2, 5.0  # seconds


class Attempts:
    """The attempts of one request: `retries` of them after the first, and `timeout` seconds for all
    together."""

    def __init__(self, timeout: float, retries: int, sleep: Callable[[float], None]) -> None:
        self._ends = time.monotonic() + timeout
        self._retries = retries
        self._sleep = sleep
        self.failed = 0
        """Attempts that have failed."""

    @property
    def left(self) -> float:
        """Seconds left, at least a little: a request with none would fail for the wrong reason."""
        return max(0.05, self._ends - time.monotonic())

    def again(self, wait: float | None = None) -> bool:
        """Count a failure and wait; False when there is no attempt left. A server that says how
        long to `wait` is busy, not broken: those attempts end with the time, not with their
        number."""
        self.failed += 1
        pause = random.uniform(0, min(_LONGEST, _FIRST * 2**self.failed))  # noqa: S311, no secret
        if wait is not None:
            pause += wait
        elif self.failed > self._retries:
            return False
        if time.monotonic() + pause >= self._ends:
            return False
        self._sleep(pause)
        return True


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that `Retry-After` asks for, as a number or a date; None without it, or when it is
    neither."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(min(int(text[:9]), 86_400))
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return max(0.0, (when - datetime.now(timezone.utc)).total_seconds())
