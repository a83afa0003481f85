"""What to write instead of what a program cannot do: the ends of errors of tracing."""

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
    "array": "Write PLAIN.dot(x) as PLAIN @ x, np.maximum.reduce([a, b]) as np.max([a, b]), and np.array where `from "
    "numpy import array` is written. For TABLE[index] with a table from outside, write "
    "ciphervec.programs.take(TABLE, index); parts of an array are set by np.where or np.concatenate.",
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
    "table": "Of integers of few values it works, by a table: declare fewer, or do it before encrypting.",
    "bits": "Declare the bits as booleans of their own, or take them of integers of few values by (x >> k) & 1.",
    "reals": "No polynomial is there for it. Write it in + - * / and np.exp, np.log, np.sqrt, np.tanh, np.sin, np.cos "
    "or np.arctan; or declare integers, or step=, of few values, for which a table is made.",
    "matrices": "Do it before encrypting, or write it in sums and products; on public arrays it works.",
    "scan": "A loop over a fixed range works, and ciphervec.fold(f, x) for an associative function.",
}
_SAME = {
    "shape": "nonzero argwhere flatnonzero compress extract unique unique_values unique_counts unique_inverse "
    "unique_all trim_zeros intersect1d union1d setdiff1d setxor1d histogram_bin_edges",
    "sorted": "argpartition lexsort nanmedian nanquantile nanpercentile sort sort_complex",
    "bits": "packbits unpackbits",
    "matrices": "inv solve slogdet svd svdvals eig eigh eigvals eigvalsh cholesky qr lstsq pinv fft ifft corrcoef",
    "scan": "apply_over_axes",
    "setitem": "put place copyto putmask fill_diagonal put_along_axis add.at fill itemset sort_inplace resize",
    "round": "modf",
}
_BY_FUNCTION = {name: key for key, names in _SAME.items() for name in names.split()}
_OTHERS = (
    "docs/programs.md lists the functions that programs may use; + - * / ** @, comparisons, np.where, sums, "
    "np.min, np.sort, exp, log, tanh and sqrt write most others."
)


def idiom(name: str) -> str:
    """What to write instead of the function or the conversion `name`."""
    return _IDIOMS.get(_BY_FUNCTION.get(name, name), _OTHERS)
