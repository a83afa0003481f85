"""The writer: seals rows under a card into segments that it can't decrypt, for a folder or a server. Without a
secret."""

from __future__ import annotations

from .._native import WriterCard
from .pending_batch import WrittenBatch
from .writer import Writer, read_card

__all__ = ["Writer", "WriterCard", "WrittenBatch", "read_card"]
