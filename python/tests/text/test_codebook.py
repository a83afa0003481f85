"""Codebooks of matrices: every step is compared with an independent computation of the same thing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ciphervec import CorruptData, InvalidInput
from ciphervec.cli import codebook_table as compare
from ciphervec.codebooks import gumbel, kmeans, refine
from ciphervec.codebooks.adamw import AdamW
from ciphervec.codebooks.codebook import METHODS, Codebook, distortion

Load = Callable[[str], dict[str, np.ndarray]]


def nothing() -> None:
    """A step that tells nobody."""


def clusters(rng: np.random.Generator, n: int, d: int, centres: int = 6) -> np.ndarray:
    """Rows around a few centres: something for k-means to find."""
    means = rng.standard_normal((centres, d)) * 3
    return (means[rng.integers(centres, size=n)] + rng.standard_normal((n, d))).astype(np.float32)


def squared(rows: np.ndarray, codes: np.ndarray, tables: np.ndarray) -> float:
    """Squared error by plain loops over rows and tables."""
    total = 0.0
    for row, line in zip(rows.astype(np.float64), codes, strict=True):
        total += float(((row - sum(tables[j][c].astype(np.float64) for j, c in enumerate(line))) ** 2).sum())
    return total


def test_the_nearest_centroid_is_that_of_all_distances(rng: np.random.Generator) -> None:
    rows, centroids = clusters(rng, 300, 7), clusters(rng, 9, 7)
    codes, distances = kmeans.nearest(rows, centroids)
    exact = ((rows[:, None].astype(np.float64) - centroids[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(codes, exact.argmin(axis=1))
    np.testing.assert_allclose(distances, exact.min(axis=1), rtol=1e-4, atol=1e-4)


def test_k_means_ends_where_every_centroid_is_the_mean_of_its_rows(rng: np.random.Generator) -> None:
    rows = clusters(rng, 200, 4, centres=5)
    codes, centroids = kmeans.kmeans(rows, 5, 60, rng, nothing)
    assert set(codes) == set(range(5))
    for number in range(5):
        np.testing.assert_allclose(centroids[number], rows[codes == number].mean(axis=0), atol=1e-5)


def test_k_means_finds_well_separated_groups(rng: np.random.Generator) -> None:
    centres = np.array([[0, 0], [100, 0], [0, 100], [100, 100]], dtype=np.float32)
    rows = np.repeat(centres, 50, axis=0) + rng.standard_normal((200, 2)).astype(np.float32)
    codes, _ = kmeans.kmeans(rows, 4, 5, rng, nothing)
    assert [len(set(codes[i : i + 50])) for i in range(0, 200, 50)] == [1, 1, 1, 1]
    assert len(set(codes)) == 4


def test_an_empty_centroid_moves_to_the_row_served_worst(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.array([[0], [0], [0], [9], [10]], dtype=np.float32)
    monkeypatch.setattr(kmeans, "seeds", lambda *_: np.zeros((3, 1), np.float32))
    codes, centroids = kmeans.kmeans(rows, 3, 4, rng, nothing)
    assert len(set(codes)) == 3
    assert sorted(centroids[:, 0].tolist()) == [0, 9, 10]


def test_seeds_are_distinct_rows_while_there_are_any(rng: np.random.Generator) -> None:
    rows = np.arange(8, dtype=np.float32)[:, None]
    assert sorted(kmeans.seeds(rows, 8, rng)[:, 0].tolist()) == list(range(8))
    assert np.isfinite(kmeans.seeds(np.ones((3, 2), np.float32), 5, rng)).all()


def test_residual_tables_code_what_is_left(rng: np.random.Generator) -> None:
    rows = clusters(rng, 400, 6)
    codes, tables = kmeans.residual(rows, 8, 3, 10, rng, nothing)
    errors = [squared(rows, codes[:, : j + 1], tables[: j + 1]) for j in range(3)]
    assert errors[0] > errors[1] > errors[2]
    first, _ = kmeans.nearest(rows, tables[0])
    np.testing.assert_array_equal(codes[:, 0], first)


def test_product_tables_share_no_dimension(rng: np.random.Generator) -> None:
    codes, tables = kmeans.product(clusters(rng, 100, 7), 5, 3, 5, rng, nothing)
    used = (tables != 0).any(axis=1)
    np.testing.assert_array_equal(used.sum(axis=0), np.ones(7))
    assert used.sum(axis=1).tolist() == [3, 2, 2]
    assert codes.shape == (100, 3)


def test_fitted_tables_are_the_least_squares_solution(rng: np.random.Generator) -> None:
    rows = clusters(rng, 300, 5)
    codes = rng.integers(0, 6, (300, 3)).astype(np.uint16)
    tables = refine.fit_tables(rows, codes, np.zeros((3, 6, 5), np.float32))
    design = np.zeros((300, 18))
    for j in range(3):
        design[np.arange(300), j * 6 + codes[:, j]] = 1
    best = np.linalg.lstsq(design, rows.astype(np.float64), rcond=None)[0]
    least = float(((design @ best - rows) ** 2).sum())
    assert squared(rows, codes, tables) == pytest.approx(least, rel=1e-6)


def test_no_turn_of_refining_makes_it_worse(rng: np.random.Generator) -> None:
    rows = clusters(rng, 300, 8)
    codes, tables = kmeans.product(rows, 6, 3, 3, rng, nothing)
    errors = [squared(rows, codes, tables)]
    for _ in range(3):
        tables = refine.fit_tables(rows, codes, tables)
        errors.append(squared(rows, codes, tables))
        codes = refine.reassign(rows, codes, tables)
        errors.append(squared(rows, codes, tables))
    assert all(after <= before * (1 + 1e-5) for before, after in itertools.pairwise(errors))
    assert errors[-1] < 0.9 * errors[0]


@pytest.mark.parametrize("method", METHODS)
def test_a_large_matrix_is_coded_whole_and_learned_from_a_sample(
    method: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Learned from half the rows, the other half is coded by the same tables about as well."""
    rows = clusters(rng, 2000, 5)
    for module in (kmeans, refine, gumbel):
        monkeypatch.setattr(module, "SAMPLE_ROWS", 64)
    sizes: list[int] = []
    monkeypatch.setattr(kmeans, "row_sums", lambda *given: sizes.append(len(given[0])) or row_sums(*given))
    row_sums = refine.row_sums
    book = Codebook.train(rows, 16, 2, method, epochs=8, refine_rounds=2)
    assert set(sizes) <= {1024}
    assert book.codes.shape == (2000, 2)
    again = refine.reassign(rows, book.codes, book.tables)
    near = squared(rows, again, book.tables)
    assert squared(rows, book.codes, book.tables) < 1.2 * near
    assert book.error(rows).relative < (0.6 if method == "gumbel" else 0.4)


def test_rows_that_no_code_names_stay_where_they_are(rng: np.random.Generator) -> None:
    start = rng.standard_normal((1, 4, 3)).astype(np.float32)
    tables = refine.fit_tables(clusters(rng, 20, 3), np.zeros((20, 1), np.uint16), start)
    np.testing.assert_array_equal(tables[0, 1:], start[0, 1:])


def test_gradients_of_the_gumbel_softmax_are_finite_differences(rng: np.random.Generator) -> None:
    single = gumbel.initial(3, 4, 2, rng)
    parameters = {name: value.astype(np.float64) for name, value in single.items()}
    rows = rng.standard_normal((5, 3))
    noise = rng.gumbel(size=(5, 2, 4))
    _, gradients = gumbel.loss(parameters, rows, noise, 0.7)
    assert set(gradients) == set(parameters)
    step = 1e-6
    for name, value in parameters.items():
        slopes = np.zeros_like(value)
        for at in np.ndindex(value.shape):
            kept = value[at]
            value[at] = kept + step
            above = gumbel.loss(parameters, rows, noise, 0.7)[0]
            value[at] = kept - step
            below = gumbel.loss(parameters, rows, noise, 0.7)[0]
            value[at] = kept
            slopes[at] = (above - below) / (2 * step)
        np.testing.assert_allclose(gradients[name], slopes, atol=1e-7, err_msg=name)


def test_adamw_takes_the_steps_of_its_paper(rng: np.random.Generator) -> None:
    """Against the update written for one number, in float64 (Loshchilov & Hutter 2019, algorithm
    2)."""
    value = rng.standard_normal(3).astype(np.float32)
    gradients = rng.standard_normal((6, 3)).astype(np.float32)
    want = value.astype(np.float64)
    mean, square = np.zeros(3), np.zeros(3)
    optimizer = AdamW({"value": value}, 0.1, 0.05)
    for number, gradient in enumerate(gradients, 1):
        optimizer.step({"value": gradient})
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient.astype(np.float64) ** 2
        want -= 0.1 * 0.05 * want
        want -= 0.1 * (mean / (1 - 0.9**number)) / (np.sqrt(square / (1 - 0.999**number)) + 1e-8)
    np.testing.assert_allclose(value, want, rtol=1e-4)


def test_adamw_leaves_rows_without_a_gradient_alone(rng: np.random.Generator) -> None:
    value = rng.standard_normal((4, 2)).astype(np.float32)
    before = value.copy()
    AdamW({"value": value}, 0.1, 0.5).step(
        {"value": np.ones((2, 2), np.float32)}, {"value": np.array([0, 3])}
    )
    np.testing.assert_array_equal(value[1:3], before[1:3])
    assert (value[[0, 3]] < before[[0, 3]]).any(axis=1).all()


@pytest.mark.parametrize("method", METHODS)
def test_training_is_the_same_under_a_seed_and_better_than_the_mean(
    method: str, rng: np.random.Generator
) -> None:
    rows = clusters(rng, 400, 6)
    told: list[tuple[int, int]] = []
    book, again, other = (
        Codebook.train(rows, 16, 2, method, seed=seed, epochs=5, progress=lambda *at: told.append(at))
        for seed in (1, 1, 2)
    )
    assert book.to_bytes() == again.to_bytes() != other.to_bytes()
    assert book.codes.shape == (400, 2)
    assert book.tables.shape == (2, 16, 6)
    assert book.error(rows).rms < rows.std(axis=0).mean() / 2
    ends = [done for done, total in told if done == total]
    assert len(ends) >= 3
    assert all(0 < done <= total for done, total in told)
    assert len(book.history) == (5 if method == "gumbel" else 0)


def test_gumbel_training_lowers_the_error_of_rows_it_does_not_see(rng: np.random.Generator) -> None:
    book = Codebook.train(clusters(rng, 600, 6), 8, 2, "gumbel", epochs=40, refine_rounds=0)
    assert min(book.history) < 0.6 * book.history[0]


def test_a_reconstruction_is_the_sum_of_the_rows_named() -> None:
    tables = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    book = Codebook([[0, 2], [1, 1], [2, 0]], tables)
    want = [[0 + 10, 1 + 11], [2 + 8, 3 + 9], [4 + 6, 5 + 7]]
    np.testing.assert_array_equal(book.reconstruct(), want)
    np.testing.assert_array_equal(book.reconstruct([2, 0, 2]), [want[2], want[0], want[2]])
    assert book.reconstruct([]).shape == (0, 2)
    assert len(book) == 3
    assert "3 rows: 2 tables of 3 × 2" in repr(book)


def test_distortion_is_that_of_its_definition() -> None:
    found = distortion(np.array([[3, 4], [0, 0]], np.float32), np.array([[4, 3], [0, 1]], np.float32))
    assert found.rms == pytest.approx((3 / 4) ** 0.5)
    assert found.relative == pytest.approx(3**0.5 / 5)
    assert found.cosine == pytest.approx(24 / 25)


def test_a_saved_codebook_comes_back(tmp_path: Path, rng: np.random.Generator) -> None:
    book = Codebook.train(clusters(rng, 60, 5), 8, 3)
    book.save(tmp_path / "book.npz")
    same = Codebook.load(tmp_path / "book.npz")
    np.testing.assert_array_equal(same.codes, book.codes)
    np.testing.assert_array_equal(same.tables, book.tables)
    with np.load(tmp_path / "book.npz", allow_pickle=False) as plain:
        np.testing.assert_array_equal(plain["codes"], book.codes)
    assert not same.codes.flags.writeable
    assert not same.tables.flags.writeable


@pytest.mark.parametrize(
    ("codes", "tables", "says"),
    [
        ([[0, 1]], np.zeros((1, 2, 3)), "column for each of 1 tables"),
        ([[2]], np.zeros((1, 2, 3)), "below 2"),
        ([[-1]], np.zeros((1, 2, 3)), "from 0 to 65535"),
        ([[0.5]], np.zeros((1, 2, 3)), "whole numbers"),
        ([0], np.zeros((1, 2, 3)), "whole numbers"),
        ([[0]], np.zeros((2, 3)), "tables must be"),
        ([[0]], np.full((1, 2, 3), np.nan), "not a finite number"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(codes: object, tables: np.ndarray, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Codebook(codes, tables)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("matrix", "options", "says"),
    [
        (np.zeros(5), {}, "matrix must have shape"),
        (np.zeros((0, 5)), {}, "matrix must have shape"),
        (np.full((9, 2), np.inf), {"rows": 2}, "not a finite number"),
        (np.zeros((9, 2)), {"rows": 10}, "at most 9"),
        (np.zeros((9, 2)), {"rows": 0}, "rows must be"),
        (np.zeros((9, 2)), {"rows": 2, "tables": 3, "method": "product"}, "too many"),
        (np.zeros((9, 2)), {"rows": 2, "tables": 65}, "too many"),
        (np.zeros((9, 2)), {"rows": 2, "method": "opq"}, "residual, product, gumbel"),
        (np.zeros((9, 2)), {"rows": 2, "refine_rounds": -1}, "refine_rounds"),
        (np.zeros((9, 2)), {"rows": 2, "epochs": 0}, "epochs"),
    ],
)
def test_bad_requests_are_refused(matrix: np.ndarray, options: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Codebook.train(matrix, **options)  # type: ignore[arg-type]


def test_a_matrix_of_one_row_and_one_of_zeros_can_be_compressed() -> None:
    assert Codebook.train(np.ones((1, 3)), 1, 1).error(np.ones((1, 3))).rms == 0
    for method in METHODS:
        zeros = np.zeros((8, 4), np.float32)
        found = Codebook.train(zeros, 2, 2, method, epochs=2).error(zeros)
        assert found.rms < 1e-3
        assert np.isfinite(found.relative)


def test_bad_ids_are_refused() -> None:
    book = Codebook([[0], [1]], np.zeros((1, 2, 3)))
    for ids in ([2], [-1], [0.5], [[0]], ["0"]):
        with pytest.raises(InvalidInput, match="ids must be"):
            book.reconstruct(ids)
    with pytest.raises(InvalidInput, match="matrix must have shape"):
        book.error(np.zeros((2, 4)))


@given(
    hnp.arrays(np.float32, (12, 3), elements=st.floats(-1e3, 1e3, width=32)),
    st.sampled_from(["residual", "product"]),
)
def test_any_matrix_is_coded_no_worse_than_by_zero(matrix: np.ndarray, method: str) -> None:
    book = Codebook.train(matrix, 4, 2, method, epochs=3, refine_rounds=1)
    assert book.error(matrix).relative <= 1 + 1e-3


def test_neighbours_and_use_of_rows(rng: np.random.Generator) -> None:
    rows = clusters(rng, 50, 4)
    assert compare.neighbours(rows, rows * 2) == 1
    assert compare.neighbours(rows[:1], rows[:1]) == 1
    assert compare.neighbours(rows, rng.standard_normal(rows.shape).astype(np.float32)) < 0.6
    book = Codebook([[0, 1], [1, 1], [2, 1], [3, 1]], np.zeros((2, 4, 2)))
    assert compare.used(book) == [4, 1]
    assert compare.entropy(book) == pytest.approx([2, 0])


def test_words_keep_their_neighbours(load_data: Load) -> None:
    """GloVe, 4 tables of 64 rows: of the ten nearest words more stay than by product k-means
    without refining."""
    words = load_data("glove6B_50d_9163.npz")["vectors"][:3000]
    plain = Codebook.train(words, 64, 4, "product", epochs=8, refine_rounds=0)
    refined = Codebook.train(words, 64, 4, "residual", epochs=8)
    assert refined.error(words).relative < 0.5 < plain.error(words).relative
    assert compare.neighbours(words, refined.reconstruct()) > compare.neighbours(words, plain.reconstruct())


def test_files_of_another_kind_are_named_as_such() -> None:
    for data in (b"", b"not a zip", b"PK\x03\x04"):
        with pytest.raises(CorruptData, match="codebook"):
            Codebook.from_bytes(data)
