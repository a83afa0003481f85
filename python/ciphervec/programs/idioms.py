"""Idioms: the name of what a program cannot do enters; what works instead leaves, as the end of an
error. Runs wherever a program is traced."""

from __future__ import annotations

_IDIOMS = {
    "bool": "`if`, `while`, `and`, `or` and `not` would have to look at it: write np.where(condition, x, y), & | ~ for "
    "and, or, not, and a loop over a fixed range with np.where inside. Python's min, max and sorted are np.min, "
    "np.maximum and np.sort.",
    "int": "Integers stay arrays: count and compute with them as they are; range() and shapes need public numbers.",
    "float": "Numbers stay arrays: compute with them as they are, and use np where math was used. For z[i] = x, put the "
    "numbers together by np.stack.",
    "index": "table[index] works if the table is an argument of the program, too: declare it public(table), or write "
    "ciphervec.programs.take(table, index). range() and shapes need public numbers.",
    "array": "np.array and np.asarray are not needed for arguments and cannot hold them: np.stack puts arrays "
    "together. For TABLE[index] with a table from outside, write ciphervec.programs.take(TABLE, index); parts of an "
    "array are set by np.where or np.concatenate. PLAIN.dot(x) is PLAIN @ x.",
    "item": "Use the array of one number itself; only the client sees its value, after decryption.",
    "format": "Only the client sees its value, after decryption: format it there.",
    "tolist": "Loop over the array itself: its rows are arrays.",
    "in": "Write np.any(x == value).",
    "setitem": "Write x = np.where(mask, value, x) with a public or secret mask, np.concatenate or np.stack of the "
    "parts, or total = total + x.",
    "option": "Arguments such as where=, initial= and out= have no place here: np.where(mask, x, 0) before a sum does "
    "what where= does.",
    "round": "Round before encrypting and declare step=; or compare with thresholds: (x[..., None] >= edges).sum(-1).",
    "shape": "Its result has a shape that depends on secret values: keep the shape by np.where(mask, x, 0), "
    "count by np.sum(mask).",
    "sorted": "np.sort, np.argsort and ciphervec.programs.topk_mask(x, k) work.",
    "integers": "On public arrays it works. For a secret integer of few values look it up: "
    "ciphervec.programs.take(np.arange(n) // 3, x).",
    "bits": "Declare the bits as booleans of their own; arithmetic reaches no bits of an encrypted integer.",
    "angle": "For a secret integer of few values look it up: ciphervec.programs.take(np.sin(np.arange(n)), x); else "
    "write a polynomial in x.",
    "matrices": "Do it before encrypting, or write it in sums and products; on public arrays it works.",
    "scan": "A loop over a fixed range works, and ciphervec.fold(f, x) for an associative function.",
}
_SAME = {
    "shape": "nonzero argwhere flatnonzero compress extract unique unique_values unique_counts unique_inverse "
    "unique_all delete trim_zeros intersect1d union1d setdiff1d setxor1d select piecewise",
    "sorted": "partition argpartition lexsort quantile percentile nanmedian searchsorted digitize sort "
    "sort_complex",
    "integers": "floor_divide remainder mod fmod divmod gcd lcm bincount histogram isin in1d choose",
    "bits": "left_shift right_shift packbits unpackbits bitwise_count",
    "angle": "sin cos tan arcsin arccos arctan arctan2 sinh cosh arcsinh arccosh arctanh cbrt sinc",
    "matrices": "inv solve det slogdet svd svdvals eig eigh eigvals eigvalsh cholesky qr lstsq pinv matrix_power fft "
    "ifft convolve correlate cov corrcoef cross",
    "scan": "add.accumulate multiply.accumulate maximum.accumulate minimum.accumulate apply_along_axis "
    "apply_over_axes vectorize cumprod",
    "setitem": "put place copyto putmask fill_diagonal put_along_axis add.at fill itemset sort_inplace resize",
    "bool": "allclose array_equal array_equiv isclose",
    "round": "around fix modf",
}
_BY_FUNCTION = {name: key for key, names in _SAME.items() for name in names.split()}
_OTHERS = (
    "docs/programs.md lists the functions that programs may use; + - * / ** @, comparisons, np.where, sums, "
    "np.min, np.sort, exp, log, tanh and sqrt write most others."
)


def idiom(name: str) -> str:
    """What to write instead of the function or the conversion `name`."""
    return _IDIOMS.get(_BY_FUNCTION.get(name, name), _OTHERS)
