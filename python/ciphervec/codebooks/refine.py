"""Brings codes and tables closer to the rows they stand for. Runs where the matrix is, before anything is encrypted.

A sum of table rows can be improved whatever found it, by turns: with the codes fixed the best
tables are a least-squares problem, and with the tables fixed each row's codes are chosen again one
table at a time, the others held (Babenko & Lempitsky 2014). No turn makes the squared error larger.
Of a large matrix the turns are over a sample.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .kmeans import SAMPLE_ROWS, Codes, Floats, Step, nearest, row_sums

# Of the mean count of a table's rows. The normal equations are singular (a constant can move from
# one table to the next); it keeps what they leave open, and unused rows, where they are.
_RIDGE = 1e-4


def refine(
    rows: Floats, codes: Codes, tables: Floats, rounds: int, random: np.random.Generator, step: Step
) -> tuple[Codes, Floats]:
    """`rounds` turns of least squares and reassignment, then least squares once more. `step` is
    called after each turn."""
    if not rounds:
        return codes, tables
    most = SAMPLE_ROWS * tables.shape[1]
    large = len(rows) > most
    chosen = np.sort(random.choice(len(rows), most, replace=False)) if large else np.arange(len(rows))
    some, some_codes = (rows[chosen], codes[chosen]) if large else (rows, codes)
    for _ in range(rounds):
        tables = fit_tables(some, some_codes, tables)
        some_codes = reassign(some, some_codes, tables)
        step()
    codes = reassign(rows, codes, tables) if large else some_codes
    return codes, fit_tables(rows, codes, tables)


def reconstruct(codes: Codes, tables: Floats) -> Floats:
    """(n, d): for each row the sum of the table rows that its codes name."""
    total = tables[0][codes[:, 0]]
    for table in range(1, len(tables)):
        total += tables[table][codes[:, table]]
    return np.asarray(total, dtype=np.float32)


def fit_tables(rows: Floats, codes: Codes, tables: Floats) -> Floats:
    """The tables that minimise the squared error for these codes, by a step from `tables`.

    Solves (HᵀH + λI) Δ = Hᵀ(X − H·tables), H being the (n, tables·size) matrix of ones at the
    codes.
    """
    count, size, dimension = tables.shape
    left = rows - reconstruct(codes, tables)
    normal = np.empty((count * size, count * size))
    wanted = np.empty((count * size, dimension))
    for i in range(count):
        block = slice(i * size, (i + 1) * size)
        wanted[block] = row_sums(left, codes[:, i], size)
        for j in range(i, count):
            pairs = codes[:, i].astype(np.int64) * size + codes[:, j]
            together = np.bincount(pairs, minlength=size * size).reshape(size, size)
            other = slice(j * size, (j + 1) * size)
            normal[block, other] = together
            normal[other, block] = together.T
    normal[np.diag_indices_from(normal)] += _RIDGE * max(1.0, len(rows) / size)
    moved: npt.NDArray[np.float64] = np.linalg.solve(normal, wanted)
    return np.asarray(tables + moved.reshape(tables.shape), dtype=np.float32)


def reassign(rows: Floats, codes: Codes, tables: Floats) -> Codes:
    """Every row's codes chosen again, one table after the other."""
    codes = codes.copy()
    left = rows - reconstruct(codes, tables)
    for table in range(len(tables)):
        left += tables[table][codes[:, table]]
        codes[:, table], _ = nearest(left, tables[table])
        left -= tables[table][codes[:, table]]
    return codes
