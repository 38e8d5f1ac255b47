from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse import InputError
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import auc, roc
from glasshouse.evaluation.difference import (
    Resampling,
    _paired_samples,
    _percentiles,
    _places,
    _resampled,
    auc_difference,
    tpr_difference,
)
from glasshouse.evaluation.intervals import tpr_estimates
from tests.strategies import scores_and_members

RESAMPLINGS: tuple[Resampling, ...] = ("paired", "unpaired", "opposed")


def small(seed: int, members: int = 3, others: int = 3) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Two runs on the same few records, without ties."""
    random = np.random.default_rng(seed)
    mask = random.permutation(members + others) < members
    first = random.normal(size=members + others) + mask
    return first, first + random.normal(size=members + others), mask


def rate(scores: FloatArray, mask: BoolArray, allowed: int) -> float:
    """TPR as it is defined: members above the first non-member that may not be accused."""
    threshold = np.sort(scores[~mask])[::-1][allowed]
    return float(np.mean(scores[mask] > threshold))


def every_sample(
    first: FloatArray, second: FloatArray, mask: BoolArray, allowed: int
) -> dict[tuple[float, float], float]:
    """The whole bootstrap distribution of both TPRs, by drawing every possible sample once."""
    inside, outside = np.flatnonzero(mask), np.flatnonzero(~mask)
    found: Counter[tuple[float, float]] = Counter()
    for drawn in itertools.product(outside, repeat=len(outside)):
        for taken in itertools.product(inside, repeat=len(inside)):
            rows = np.array([*taken, *drawn])
            kind = np.arange(len(rows)) < len(taken)
            found[rate(first[rows], kind, allowed), rate(second[rows], kind, allowed)] += 1
    total = found.total()
    return {pair: count / total for pair, count in found.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("allowed", [0, 1])
def test_paired_samples_have_the_distribution_of_all_possible_samples(seed: int, allowed: int) -> None:
    first, second, mask = small(seed)
    exact: Counter[int] = Counter()
    for (one, other), weight in every_sample(first, second, mask, allowed).items():
        exact[round(3 * (other - one))] += weight  # type: ignore[assignment]
    ties = np.zeros(len(mask))
    placed = [_places(first, mask, ties), _places(second, mask, ties)]
    draws = _paired_samples(placed, allowed, 40_000, np.random.default_rng(0))
    for value in range(-3, 4):
        share = float(np.mean(np.rint(3 * draws) == value))
        assert abs(share - exact[value]) < 5 * np.sqrt(0.25 / len(draws)), value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("allowed", [0, 1])
def test_unpaired_samples_have_the_distribution_of_all_possible_samples(seed: int, allowed: int) -> None:
    first, second, mask = small(seed)
    exact: Counter[int] = Counter()
    for (one, _), weight in every_sample(first, second, mask, allowed).items():
        exact[round(3 * one)] += weight  # type: ignore[assignment]
    draws = _resampled(*_places(first, mask, np.zeros(len(mask))), allowed, 40_000, np.random.default_rng(0))
    for value in range(4):
        share = float(np.mean(np.rint(3 * draws) == value))
        assert abs(share - exact[value]) < 5 * np.sqrt(0.25 / len(draws)), value


def test_larger_paired_samples_agree_with_a_bootstrap_written_out() -> None:
    """Here the tail is a small part of the records, and most members are settled."""
    random = np.random.default_rng(3)
    mask = np.arange(3000) < 1000
    first = random.normal(size=3000) + 2 * mask
    second = first + random.normal(size=3000)
    ties = np.zeros(3000)
    placed = [_places(first, mask, ties), _places(second, mask, ties)]
    draws = _paired_samples(placed, 20, 2000, np.random.default_rng(0))
    slow = []
    for _ in range(1000):
        rows = np.concatenate([random.integers(1000, size=1000), 1000 + random.integers(2000, size=2000)])
        slow.append(rate(second[rows], mask, 20) - rate(first[rows], mask, 20))
    assert draws.mean() == pytest.approx(np.mean(slow), abs=4 * np.std(slow) * np.sqrt(1 / 1000 + 1 / 2000))
    assert draws.std() == pytest.approx(np.std(slow), rel=0.12)


@given(st.integers(0, 1000), st.sampled_from([0.05, 0.1, 0.34, 0.5]), st.sampled_from(RESAMPLINGS))
@settings(max_examples=25, deadline=None)
def test_the_difference_is_that_of_the_measured_figures(seed: int, fpr: float, drawn: Resampling) -> None:
    first, second, mask = small(seed, members=25, others=30)
    found = tpr_difference((first, mask), (second, mask), fpr=fpr, resampling=drawn, draws=200)
    shown = [tpr_estimates(roc(scores, mask), [fpr])[0] for scores in (first, second)]
    assert found.value == pytest.approx(shown[1] - shown[0])
    area = auc_difference((first, mask), (second, mask), resampling=drawn)
    assert area.value == pytest.approx(auc(second, mask) - auc(first, mask))


@given(scores_and_members(), st.sampled_from([0.05, 0.3, 0.9]))
@settings(max_examples=25, deadline=None)
def test_a_run_does_not_differ_from_itself_however_its_scores_are_tied(
    run: tuple[FloatArray, BoolArray], fpr: float
) -> None:
    few = min(run[1].sum(), (~run[1]).sum()) < 10
    expected = (0.0, (-1.0, 1.0) if few else (0.0, 0.0), 1.0)
    assert tpr_difference(run, run, fpr=fpr, resampling="paired", draws=200)[:3] == expected
    assert auc_difference(run, run, resampling="paired")[:3] == expected


def test_nothing_is_shown_by_a_handful_of_members() -> None:
    mask = np.arange(209) < 9
    apart, together = mask + np.arange(209) / 1000, np.random.default_rng(0).normal(size=209)
    assert not tpr_difference((apart, mask), (together, mask), fpr=0.01, resampling="paired").shown
    assert not auc_difference((apart, mask), (together, mask), resampling="paired").shown
    mask = np.arange(209) < 10
    assert tpr_difference((mask + apart, mask), (together, mask), fpr=0.01, resampling="paired").shown


@given(st.lists(st.integers(-3, 3), min_size=50, max_size=300), st.sampled_from([0.05, 0.0125, 0.2]))
@settings(deadline=None)
def test_p_is_below_the_error_exactly_if_zero_is_outside_the_interval(values: list[int], error: float) -> None:
    interval, p_value = _percentiles(np.array(values, dtype=np.float64), error)
    if 2 / (len(values) + 1) < error:  # else no sample is extreme enough
        assert (p_value < error) == (interval.low > 0 or interval.high < 0)


def test_more_comparisons_widen_the_interval_and_raise_p() -> None:
    first, second, mask = small(1, members=400, others=400)
    alone, among = (
        tpr_difference((first, mask), (second, mask), fpr=0.05, resampling="paired", comparisons=n) for n in (1, 4)
    )
    assert among.interval.low < alone.interval.low
    assert among.interval.high > alone.interval.high
    assert among.p_value == min(1.0, 4 * alone.p_value)


def test_the_same_seed_gives_the_same_figures() -> None:
    first, second, mask = small(1, members=100, others=100)
    one, again, other = (
        tpr_difference((first, mask), (second, mask), fpr=0.05, resampling="unpaired", seed=seed) for seed in (0, 0, 1)
    )
    assert one == again != other


def test_other_members_cannot_be_paired() -> None:
    first, second, mask = small(1)
    with pytest.raises(InputError, match="do not have the same records and members"):
        tpr_difference((first, mask), (second, ~mask), fpr=0.4, resampling="paired")


def test_delong_of_a_difference_agrees_with_the_spread_over_samples() -> None:
    random = np.random.default_rng(0)
    mask = np.arange(600) < 300
    reach = []
    values: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(200):
        noise = random.normal(size=600)
        first, second, apart = (
            noise + mask,
            noise + mask + 0.5 * random.normal(size=600),
            random.normal(size=600) + mask,
        )
        paired = auc_difference((first, mask), (second, mask), resampling="paired")
        unpaired = auc_difference((first, mask), (apart, mask), resampling="unpaired")
        values[True].append(paired.value)
        values[False].append(unpaired.value)
        reach.append([one.interval.high - one.interval.low for one in (paired, unpaired)])
    for at, kind in enumerate((True, False)):
        assert np.mean(reach, axis=0)[at] / (2 * 1.96) == pytest.approx(np.std(values[kind]), rel=0.15)


def test_opposed_runs_get_the_widest_interval() -> None:
    first, second, mask = small(2, members=300, others=300)
    alone, worst = (
        tpr_difference((first, mask), (second, mask), fpr=0.05, resampling=drawn) for drawn in RESAMPLINGS[1:]
    )
    assert worst.interval.low < alone.interval.low
    assert worst.interval.high > alone.interval.high
    areas = [auc_difference((first, mask), (second, mask), resampling=drawn).interval for drawn in RESAMPLINGS]
    widths = [one.high - one.low for one in areas]
    assert widths == sorted(widths)
