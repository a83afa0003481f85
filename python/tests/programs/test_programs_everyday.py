"""Programs as people write them are right encrypted, or refused with their line and what to write instead.

Those that take seconds run if CIPHERVEC_EVERYDAY says how many seconds of a run, as predicted, are not too long.
"""

from __future__ import annotations

import os

import pytest

import ciphervec
import everyday

_SECONDS = float(os.environ.get("CIPHERVEC_EVERYDAY", "0"))

SHORT = (
    "matmul16",
    "matmul_real_then_trace",
    "conv2d",
    "two_convs",
    "linear_regression",
    "logistic_step",
    "least_squares_two_steps",
    "poly_mlp_logits",
    "pca_residual",
    "sigmoid_asymmetric",
    "svm_rbf",
    "batch_norm",
    "layer_norm",
    "matrix_power",
    "variance_int",
    "covariance",
    "moving_average",
    "moving_average_cumsum",
    "ema",
    "histogram_codes",
    "bincount",
    "np_histogram",
    "weighted_mean",
    "rank_of",
    "searchsorted_public",
    "digitize_by_hand",
    "digitize",
    "compound_interest",
    "sine_refused",
    "group_by_sum",
    "invoice",
    "net_present_value",
    "daily_returns",
    "budget_by_category",
    "shop_discount",
    "round_to_five_cents",
    "coins",
    "portfolio_risk",
    "parts_of_the_largest",
    "day_of_year",
    "shift_length",
    "night_rate",
    "count_vowels",
    "caesar",
    "scrabble",
    "key_value",
    "cross_table",
    "left_join",
    "drop_worst_mark",
    "columns_in_order",
    "pivot_totals",
    "chained_updates",
    "filtered",
    "power_spectrum",
    "cosine_transform",
    "zero_crossings",
    "local_peaks",
    "median_filter",
    "root_mean_square",
    "correlation_at_lags",
    "detrended",
    "double_exponential",
    "dilated",
    "brightness_histogram",
    "grey",
    "pooled",
    "picture_transposed_and_mirrored",
    "blended",
    "distance_matrix",
    "cross_entropy",
    "classes",
    "standardised",
    "ripple_adder",
    "odd_ones",
    "substituted",
    "determinant",
    "two_steps_of_a_chain",
    "affine_point",
    "polynomial",
    "circle",
    "reachable",
    "is_sorted",
    "fold_of_maxima",
)
REFUSED = {
    # Reals are compared, and may be as close as they like.
    "perceptron_sign": "compile(gap=2**-10)",
    "recommender": "compile(gap=2**-10)",
    # A deviation of thirtieths, squared: told apart more finely than any sign does.
    "outliers": "compile(gap=2**-10)",
    # A root of what may be a 3,900th of what it is at most, times what nothing says to be small there.
    "pearson": "compile(reveal=…)",
    # A root of what may be 0, where it is steepest.
    "log_returns_deviation": "compile(precision=8)",
    # Sums of 30 bits; of inputs alone digits would tell.
    "active_last_week": "compile(gap=2**-10)",
    "elu_and_softplus": "compile(gap=2**-10)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_it_is_right_encrypted(name: str) -> None:
    found = everyday.outcome(name, runs=2)
    assert found.state == everyday.RIGHT, found.said


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_the_line_and_a_remedy(name: str) -> None:
    function, declared, options = everyday.cases()[name]
    with pytest.raises(ciphervec.ProgramError) as caught:
        ciphervec.program(function).compile(**declared, **options)
    first = function.__code__.co_firstlineno
    assert caught.value.file == function.__code__.co_filename
    assert first <= caught.value.line <= first + 12
    assert REFUSED[name] in str(caught.value)
    for word in ("Sign::", "expected, got", "register", "operation"):
        assert word not in str(caught.value)


def test_at_most_one_in_ten_is_refused() -> None:
    assert set(SHORT) | set(REFUSED) <= set(everyday.cases())
    assert len(REFUSED) < len(everyday.cases()) / 10


@pytest.mark.skipif(not _SECONDS, reason="hours, and keys of gigabytes: see CIPHERVEC_EVERYDAY")
@pytest.mark.parametrize("name", sorted(set(everyday.cases()) - set(SHORT) - set(REFUSED)))
def test_it_is_right_or_too_long(name: str) -> None:
    found = everyday.outcome(name, most_ms=1e3 * _SECONDS)
    assert found.state in (everyday.RIGHT, everyday.LONG), found.said
