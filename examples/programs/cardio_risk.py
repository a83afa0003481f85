"""How many risk factors of the heart a patient has, from encrypted answers to ten questions; one of
the programs by which a study of compilers for encrypted computation compares them.

    python examples/programs/cardio_risk.py

Comparisons of many patients cost what one patient's do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated

import ciphervec
from ciphervec import secret

PATIENTS = 4096 if FULL else 100
FLAGS = ("man", "smoking", "diabetic", "pressure")
# The least and the largest of what is answered.
NUMBERS = {
    "age": (18, 99), "hdl": (20, 100), "height": (140, 210), "weight": (40, 160), "activity": (0, 120), "drinks": (0, 9)
}  # fmt: skip


@ciphervec.program
def risk(
    man: Any, smoking: Any, diabetic: Any, pressure: Any, age: Any, hdl: Any, height: Any, weight: Any, activity: Any,
    drinks: Any,
) -> Any:  # fmt: skip
    woman = ~man
    return (
        0
        + (man & (age > 50))
        + (woman & (age > 60))
        + smoking
        + diabetic
        + pressure
        + (hdl < 40)
        + (weight > height - 90)
        + (activity < 30)
        + (man & (drinks > 3))
        + (woman & (drinks > 2))
    )


def main() -> None:
    random = np.random.default_rng(6)
    answers = {name: random.integers(0, 2, PATIENTS).astype(np.bool_) for name in FLAGS} | {
        name: random.integers(low, high + 1, PATIENTS) for name, (low, high) in NUMBERS.items()
    }
    declared: dict[str, Any] = {name: secret(PATIENTS, boolean=True) for name in FLAGS} | {
        name: secret(PATIENTS, low=low, high=high) for name, (low, high) in NUMBERS.items()
    }
    plan = analysed(risk.compile(**declared))
    found = np.asarray(evaluated(plan, **answers).encrypted)
    right = int(np.sum(found == risk(**answers)))
    print(f"  factors: {np.bincount(found).tolist()} patients with 0, 1, 2, …")
    print(f"the count is right for {right} of {PATIENTS} patients")


if __name__ == "__main__":
    main()
