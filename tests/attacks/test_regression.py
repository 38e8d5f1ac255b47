from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from glasshouse import InputError
from glasshouse.attacks.regressed import Example, LinearGaussian, fit_sides, record_folds

RECORDS, SIGNALS, QUERIES = 60, 3, 2


def examples(seed: int = 0, targets: int = 4) -> list[Example]:
    random = np.random.default_rng(seed)
    return [
        Example(
            random.normal(size=(RECORDS, SIGNALS)), random.normal(size=(RECORDS, QUERIES)), random.random(RECORDS) < 0.5
        )
        for _ in range(targets)
    ]


def plain(rows: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The normal equations, written out."""
    x = np.concatenate([np.column_stack([np.ones(len(signals)), signals]) for signals, _ in rows])
    y = np.concatenate([margins for _, margins in rows])
    b = np.linalg.inv(x.T @ x) @ x.T @ y
    return b, (y - x @ b).T @ (y - x @ b) / (len(x) - x.shape[1])


def test_a_density_is_that_of_a_gaussian_around_a_line() -> None:
    random = np.random.default_rng(0)
    root = random.normal(size=(QUERIES, QUERIES))
    line = LinearGaussian(coefficients=random.normal(size=(1 + SIGNALS, QUERIES)), covariance=root @ root.T)
    signals, margins = random.normal(size=(5, SIGNALS)), random.normal(size=(5, QUERIES))
    for v, found in enumerate(line.log_density(signals, margins)):
        mean = line.coefficients[0] + signals[v] @ line.coefficients[1:]
        assert found == pytest.approx(multivariate_normal(mean, line.covariance).logpdf(margins[v]))


def test_one_fold_is_least_squares_over_all_rows() -> None:
    given = examples()
    fit = fit_sides(given, np.zeros(RECORDS, dtype=np.intp))
    for side, found in ((True, fit.inside[0]), (False, fit.outside[0])):
        rows = [(one.signals[one.members == side], one.margins[one.members == side]) for one in given]
        coefficients, covariance = plain(rows)
        np.testing.assert_allclose(found.coefficients, coefficients, atol=1e-10)
        np.testing.assert_allclose(found.covariance, covariance, rtol=1e-7, atol=1e-8)


def test_a_folds_numbers_come_from_the_other_folds() -> None:
    given, folds = examples(), record_folds(RECORDS, folds=3, seed=1)
    fit = fit_sides(given, folds)
    for fold in range(3):
        at = folds != fold
        rows = [(one.signals[at & one.members], one.margins[at & one.members]) for one in given]
        np.testing.assert_allclose(fit.inside[fold].coefficients, plain(rows)[0], atol=1e-10)
    changed = [one._replace(margins=np.where((folds == 1)[:, None], 1e6, one.margins)) for one in given]
    np.testing.assert_array_equal(
        fit_sides(changed, folds).log_ratio(given[0].signals, given[0].margins)[folds == 1],
        fit.log_ratio(given[0].signals, given[0].margins)[folds == 1],
    )


def test_folds_are_of_about_equal_size_and_repeat() -> None:
    folds = record_folds(103, folds=5, seed=0)
    assert set(np.bincount(folds)) == {20, 21}
    assert (folds == record_folds(103, folds=5, seed=0)).all()
    assert (folds != record_folds(103, folds=5, seed=1)).any()
    with pytest.raises(InputError, match="give 2 or more"):
        record_folds(1, folds=2, seed=0)


def test_queries_that_say_the_same_are_no_trouble() -> None:
    given = [one._replace(margins=np.repeat(one.margins[:, :1], 2, axis=1)) for one in examples()]
    single = [one._replace(margins=one.margins[:, :1]) for one in given]
    folds = np.zeros(RECORDS, dtype=np.intp)
    both, once = fit_sides(given, folds), fit_sides(single, folds)
    np.testing.assert_allclose(
        both.log_ratio(given[0].signals, given[0].margins),
        once.log_ratio(given[0].signals, single[0].margins),
        atol=0.2,  # the floor under the variance of their difference differs a little between the sides
    )


def test_records_it_was_not_fitted_to_and_sides_without_rows_are_refused() -> None:
    fit = fit_sides(examples(), np.zeros(RECORDS, dtype=np.intp))
    with pytest.raises(InputError, match="2 records, but the attack was fitted to 60"):
        fit.log_ratio(np.zeros((2, SIGNALS)), np.zeros((2, QUERIES)))
    nobody = [one._replace(members=np.zeros(RECORDS, dtype=np.bool_)) for one in examples()]
    with pytest.raises(InputError, match="to learn from"):
        fit_sides(nobody, np.zeros(RECORDS, dtype=np.intp))


def test_a_signal_that_varies_by_rounding_alone_does_not_count() -> None:
    """Members of a forest without bootstrap have one margin; its mean over three models and over four may differ."""
    random = np.random.default_rng(0)
    signals = np.column_stack([2.6 + 1e-13 * random.integers(-1, 2, size=200), random.normal(size=200)])
    members = np.arange(200) < 100
    margins = np.where(members, 2.6, signals[:, 1] + random.normal(size=200))[:, None]
    fit = fit_sides([Example(signals, margins, members)], np.zeros(200, dtype=np.intp))
    for side in (*fit.inside, *fit.outside):
        assert np.abs(side.coefficients).max() < 10
