"""The web bench serves answers that its native half opens to their hits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ciphervec import InvalidInput
from ciphervec_lab.bench import web


def test_answers_are_served_and_the_native_half_is_measured(tmp_path: Path) -> None:
    with web.Evaluator(tmp_path, 600, 16) as evaluator:
        threading.Thread(target=evaluator.serve_forever, daemon=True).start()
        found = web.measure(evaluator.url, 1)
        evaluator.shutdown()
    for mode in web.MODES:
        assert found[mode]["ms_open"] > 0
        assert found[mode]["response_bytes"] > 600
        assert found[mode]["vectors_per_second"] > 0


def test_it_asks_this_machine_only() -> None:
    with pytest.raises(InvalidInput, match="evaluator on this machine"):
        web.measure("http://example.org", 1)
