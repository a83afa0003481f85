"""Whether the time of what touches secrets depends on them, for the night: dudect's test of `benches/timing`, judged.

A leak is told by two runs that agree, since another program on the machine can make one of them look like it.
"""

from __future__ import annotations

import re

from .base import ROOT, StepFailedError, quiet, say

BENCH = ROOT / "benches" / "timing"
CONTROL = "control_"
"""Of benches that leak on purpose."""
LEAKS = 10.0
"""|t| from which on it is one. Without a leak it stays below 5; dudect's authors say "definitely" from 10 on."""
RUNS = 2
_LINE = re.compile(r"bench (\w+)\b.*?max t = ([+-][\d.]+|NaN)", re.DOTALL)


def largest(output: str) -> dict[str, float]:
    """|t| of each bench of a run."""
    return {name: abs(float(value)) for name, value in _LINE.findall(output)}


def complaints(runs: list[dict[str, float]]) -> list[str]:
    """What the runs agree on that should not be."""
    found = []
    for name in runs[0]:
        least = min(run.get(name, 0.0) for run in runs)
        if name.startswith(CONTROL) and least < LEAKS:
            found.append(f"{name} leaks on purpose, and the test did not see it: |t| = {least:.1f}")
        elif not name.startswith(CONTROL) and not least < LEAKS:
            found.append(f"the time of {name} depends on its secret: |t| = {least:.1f} or more in each run")
    return found


def run() -> None:
    """Builds it once, and runs it as often as a leak has to be seen."""
    runs = []
    for number in range(RUNS):
        done = quiet(["cargo", "run", "--release", "--locked", "--manifest-path", str(BENCH / "Cargo.toml")])
        if done.returncode != 0:
            raise StepFailedError(f"{done.stdout}{done.stderr}")
        runs.append(largest(done.stdout))
        say(f"run {number + 1}: " + ", ".join(f"{name} {value:.1f}" for name, value in runs[-1].items()))
    if not any(name.startswith(CONTROL) for name in runs[0]) or len({frozenset(run) for run in runs}) != 1:
        raise StepFailedError(f"the runs had other benches than expected: {runs}")
    if found := complaints(runs):
        raise StepFailedError("\n".join(found))
