"""Decrypt service of the key owner: says of an edge device's query and a cloud's encrypted answer whether they match.

It alone has the keys. The threshold is the owner's, every principal has a budget of queries that is
charged before anything is opened, and what it opens must be the cloud's answer to that very query:
see `docs/devices.md`.
"""

from __future__ import annotations

from .audit import Audit
from .client import MatchClient
from .ledger import Exhausted, Ledger, Principal, Unknown
from .matcher import Held, Matcher, Mismatched, Outcome, Refused
from .receipts import Receipts

__all__ = [
    "Audit",
    "Exhausted",
    "Held",
    "Ledger",
    "MatchClient",
    "Matcher",
    "Mismatched",
    "Outcome",
    "Principal",
    "Receipts",
    "Refused",
    "Unknown",
]
