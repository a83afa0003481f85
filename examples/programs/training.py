"""Logistic regression is trained on encrypted rows: 100 rounds of gradient descent on 455 patients of the
Wisconsin breast cancer data, whose values and labels nobody but the key holder sees.

    python examples/programs/training.py

Each round takes five levels, so that a run has hundreds. The plan refreshes registers where levels
end, as seldom as it can, and says where. Without `--full` a quarter of the rounds run in the simulator,
which adds the noise that is forecast for every step to plain numbers; with it all of them run encrypted,
for minutes, beside the same rounds in the clear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import ciphervec
from ciphervec import programs, secret

ROUNDS = 100 if FULL else 25
PATIENTS, FEATURES = 455, 30
STEP = 2.0**-11


@ciphervec.program
def trained(rows: Any) -> Any:
    """Weights, of rows that were multiplied by their label, 1 or -1."""
    weights = np.zeros(FEATURES)
    for _ in range(ROUNDS):
        # How far each patient is on the right side, and the slope of the loss there: 5 - z + z³/1024 is ten
        # times 1/(1 + e^z) to a few hundredths, as far as z goes here.
        sides = programs.within(rows @ weights, -16, 16)
        slopes = 5 - (sides - sides * sides * sides / 1024)
        weights = programs.within(weights + STEP * (rows.T @ slopes), -2, 2)
    return weights


def main() -> None:
    values, labels = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(values))
    first, held = order[:PATIENTS], order[PATIENTS:]
    mean, spread = values[first].mean(0), values[first].std(0)
    unsigned = np.clip((values - mean) / spread, -2, 2) / 2
    rows = unsigned * np.where(labels == 1, 1, -1)[:, None]

    plan = analysed(
        trained.compile(rows=secret((PATIENTS, FEATURES), low=-1, high=1, real=True), precision=6)
    )
    print(f"  {plan.explain().splitlines()[0]}")

    if FULL:
        found = np.asarray(evaluated(plan, rows=rows[first]).encrypted)
    else:
        found = np.asarray(plan.simulate(1, rows=rows[first]))
    plain = trained(rows[first])
    usual = LogisticRegression(fit_intercept=False).fit(unsigned[first], labels[first])
    print(f"  weights are off by up to {np.abs(found - plain).max():.0e}")

    right = {name: rows[held] @ weights > 0 for name, weights in (("encrypted", found), ("clear", plain))}
    scikit = usual.predict(unsigned[held]) == labels[held]
    same = int((right["encrypted"] == right["clear"]).sum())
    print(
        f"  right for {right['encrypted'].mean():.1%} of {len(held)} other patients, {right['clear'].mean():.1%} in "
        f"the clear, {scikit.mean():.1%} by scikit-learn"
    )
    print(f"the same answer as in the clear: {same} of {len(held)}")


if __name__ == "__main__":
    main()
