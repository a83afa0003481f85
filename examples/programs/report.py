"""What the examples beside this file print: the analysis of a plan, and its evaluation in the clear and encrypted."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from ciphervec.programs import Evaluation, Plan

FULL = "--full" in sys.argv[1:]
"""Whether the sizes of the study were asked for, which take longer."""


def analysed(plan: Plan) -> Plan:
    """Before any key is made."""
    found = plan.analyse()
    print(
        f"{found.program}: {found.levels} levels, ring of degree 2^{found.log_degree}, {found.security[:8]}"
    )
    print(
        f"  keys {found.key_bytes / 1e6:.1f} MB, query {found.query_bytes / 1e6:.2f} MB, answer "
        f"{found.answer_bytes / 1e6:.2f} MB, predicted {found.milliseconds:.1f} ms"
    )
    for one in found.operations:
        if one.milliseconds > 0.2 * found.milliseconds:
            print(f"  most for {one.operation} at {one.where}, {one.milliseconds:.1f} ms")
    return plan


def evaluated(plan: Plan, **inputs: npt.ArrayLike) -> Evaluation:
    """Plain and encrypted, side by side."""
    done = plan.evaluate(**inputs)
    error = done.largest_error
    print(
        f"  ran in {done.milliseconds['run']:.1f} ms, {'as in the clear' if error == 0 else f'off by {error:.0e}'}"
    )
    if error > max(one.allowed for one in plan.analyse().outputs):
        raise SystemExit("the results are further off than the analysis allows")
    return done


def in_halves(plan: Plan, **inputs: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """The same as two parties do it, with nothing but bytes between them."""
    client = plan.client()
    sent = [plan.to_bytes(), client.evaluation_keys(), *client.encrypt(**inputs).values()]

    # The server, which has neither the program nor a key.
    at_server = Plan.from_bytes(sent[0]).server(sent[1])
    answer = at_server.run(sent[2:])

    print(f"  in halves: {sum(map(len, sent)):,} bytes up with plan and keys, {len(answer):,} back")
    found = client.decrypt(answer)
    assert not isinstance(found, tuple)
    return found
