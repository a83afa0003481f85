"""Report of `bench faults`: a sentence for each record, and a list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Record = dict[str, Any]


def sentence(record: Record) -> str:
    """What was done to the server, and how it held."""
    return _SENTENCES[record["run"]](record)


def summary(records: Sequence[Record]) -> str:
    """A list of sentences, and where they were measured."""
    where = records[0]["machine"]
    points = "\n".join(f"- {sentence(record)}." for record in records)
    return f"{points}\n\nOn {where['cpu']}, {where['cores']} cores."


def _kill(record: Record) -> str:
    share = record["unknown_done_share"]
    done = "" if share is None else f" ({share:.0%} of them done)"
    where = " over a bucket" if record["run"] == "kill-bucket" else ""
    return (
        f"`kill -9`{where}, {record['turns']:,} times in {record['seconds']:,.0f} s: "
        f"{record['acknowledged_commits']:,} commits acknowledged, none lost; "
        f"{record['unknown_batches']:,} cut short, none half done{done}; "
        f"{record['compared_queries']:,} answers right; back in {record['median_start_ms']:,.0f} ms (median), "
        f"{record['max_start_ms']:,.0f} ms at most"
    )


def _flips(record: Record) -> str:
    return f"flipped bits, one at a time: {record['flips']:,} in {record['files']} files, all noticed"


def _full_disk(record: Record) -> str:
    return (
        f"a full disk: refused at {record['rows_until_full']:,} rows, answered meanwhile, made room, went on, restarted; "
        f"{record['rows_after_restart']:,} rows expected and there"
    )


def _soak(record: Record) -> str:
    return (
        f"{record['minutes']:.1f} minutes of {record['clients']} clients and a writer on {record['rows']:,} × {record['dim']} "
        f"vectors: memory {record['rss_mb']:,.0f} MB, drift {100 * record['memory_drift']:+.1f}%; median latency drift "
        f"{100 * record['latency_drift']:+.1f}%; {record['errors']} errors"
    )


_SENTENCES: dict[str, Callable[[Record], str]] = {
    "kill": _kill,
    "kill-bucket": _kill,
    "flips": _flips,
    "full disk": _full_disk,
    "soak": _soak,
}
