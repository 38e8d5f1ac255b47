from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, norm

from glasshouse import InputError
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.evaluation import ROC, clopper_pearson, delong, roc, tpr_intervals
from glasshouse.evaluation.intervals import balanced_accuracy_interval, ratio_bound, tpr_estimates
from tests.strategies import scores_and_members


@pytest.mark.parametrize(("rate", "trials"), [(0.01, 50), (0.1, 100), (0.5, 30), (0.97, 200)])
def test_clopper_pearson_covers_the_truth_at_least_as_often_as_it_says(rate: float, trials: int) -> None:
    """By simulation, and exactly by adding up the binomial probabilities of the outcomes whose interval misses."""
    drawn = np.random.default_rng(0).binomial(trials, rate, size=4000)
    intervals = [clopper_pearson(k, trials, confidence=0.9) for k in range(trials + 1)]
    covered = np.array([interval.low <= rate <= interval.high for interval in intervals])
    assert covered[drawn].mean() >= 0.9 - 3 * np.sqrt(0.09 / 4000)
    assert binom.pmf(np.arange(trials + 1), trials, rate)[covered].sum() >= 0.9


@given(st.integers(1, 200), st.data())
def test_its_ends_are_the_rates_whose_tails_hold_the_allowed_error(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    low, high = clopper_pearson(successes, trials)
    if successes:
        assert binom.sf(successes - 1, trials, low) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0.0
    if successes < trials:
        assert binom.cdf(successes, trials, high) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1.0


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="is not a rate"):
        clopper_pearson(3, 2)


@given(scores_and_members())
def test_delongs_interval_stays_inside_and_holds_the_area(pair: tuple[FloatArray, BoolArray]) -> None:
    scores, members = pair
    low, high = delong(scores, members)
    inside, outside = scores[members][:, None], scores[~members][None, :]
    area = (inside > outside).mean() + (inside == outside).mean() / 2
    assert 0.0 <= low <= area + 1e-12
    assert area - 1e-12 <= high <= 1.0


def test_delongs_interval_is_that_of_all_pairs_written_out() -> None:
    """Few records, where it matters whether variances are divided by n or by n - 1."""
    scores = np.array([0.9, 0.4, 0.7, 0.2, 0.5, 0.5, 0.1, 0.3])
    members = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    wins = np.array([[1.0 if a > b else 0.5 if a == b else 0.0 for b in scores[~members]] for a in scores[members]])
    area, spread = wins.sum() / 16, 0.0
    for placements in (wins.sum(axis=1) / 4, wins.sum(axis=0) / 4):
        spread += sum((one - area) ** 2 for one in placements) / (4 - 1) / 4
    reach = norm.ppf(0.975) * np.sqrt(spread) / (area * (1 - area))
    centre = np.log(area / (1 - area))
    expected = [1 / (1 + np.exp(-(centre + sign * reach))) for sign in (-1, 1)]
    assert delong(scores, members) == pytest.approx(expected)


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.5])
def test_delongs_interval_covers_the_true_area(shift: float) -> None:
    random = np.random.default_rng(0)
    truth = norm.cdf(shift / np.sqrt(2))
    members = np.arange(150) < 70
    hits = 0
    for _ in range(400):
        low, high = delong(random.normal(size=150) + shift * members, members, confidence=0.9)
        hits += low <= truth <= high
    assert 0.85 < hits / 400 < 0.95


def plain_tpr_interval(scores: FloatArray, members: BoolArray, fpr: float) -> tuple[float, float]:
    """The same written out from the scores, by a fine grid: every J, and each tie with all of its members."""
    inside, outside = scores[members], np.sort(scores[~members])[::-1]
    grid = np.linspace(0, 1, 20_001)
    total = np.zeros_like(grid)
    for above in range(len(outside) + 1):
        # a threshold cannot divide a tie: the most non-members, at most so many, that some threshold accuses
        accused = max((wrong for t in [*outside, np.inf] if (wrong := int((outside >= t).sum())) <= above), default=0)
        fewest = int((inside >= outside[accused - 1]).sum()) if accused else 0
        most = int((inside > outside[accused]).sum()) if accused < len(outside) else len(inside)
        # Clopper and Pearson's two distributions: where the rate is if so many of the members were found
        low = beta.cdf(grid, fewest, len(inside) - fewest + 1) if fewest else np.ones_like(grid)
        high = beta.cdf(grid, most + 1, len(inside) - most) if most < len(inside) else (grid >= 1) * 1.0
        total += binom.pmf(above, len(outside), fpr) * (low + high) / 2
    return float(grid[np.argmax(total >= 0.025)]), float(grid[np.argmax(total >= 0.975 - 1e-12)])


@settings(max_examples=30, deadline=None)
@given(scores_and_members(), st.sampled_from([0.05, 0.2, 0.5, 0.9]))
def test_a_tprs_interval_is_the_one_written_out(pair: tuple[FloatArray, BoolArray], fpr: float) -> None:
    (found,) = tpr_intervals(roc(*pair), [fpr])
    assert found == pytest.approx(plain_tpr_interval(*pair, fpr), abs=2e-4)


@pytest.mark.parametrize(("area", "fpr"), [(0.5, 0.02), (0.8, 0.02), (0.95, 0.01)])
def test_a_tprs_interval_holds_the_truth_although_the_threshold_is_read_from_the_sample(
    area: float, fpr: float
) -> None:
    """benchmarks/statistics/intervals.py measures many more cases."""
    random, shift = np.random.default_rng(0), np.sqrt(2) * norm.ppf(area)
    truth, members = norm.sf(norm.isf(fpr) - shift), np.arange(1000) < 500
    hits = 0
    for _ in range(400):
        ((low, high),) = tpr_intervals(roc(random.normal(size=1000) + shift * members, members), [fpr])
        hits += low <= truth <= high
    assert 0.93 <= hits / 400 <= 0.999


def test_a_sample_of_the_values_above_the_threshold_changes_no_printed_digit() -> None:
    members = np.arange(40_000) < 20_000
    curve = roc(np.random.default_rng(0).normal(size=40_000) + members, members)
    (few,), (all_,) = tpr_intervals(curve, [0.3]), tpr_intervals(curve, [0.3], nodes=100_000)
    assert few == pytest.approx(all_, abs=2e-4)


@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
def test_the_interval_of_the_best_balanced_accuracy_holds_the_truth(shift: float) -> None:
    random, members = np.random.default_rng(0), np.arange(600) < 300
    hits = 0
    for _ in range(400):
        low, high = balanced_accuracy_interval(roc(random.normal(size=600) + shift * members, members))
        hits += low <= norm.cdf(shift / 2) <= high
    assert hits / 400 >= 0.93


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_a_tpr_with_one_allowed_false_positive_is_as_often_too_high_as_too_low(shift: float) -> None:
    """600 samples of Gaussian scores: the sample's own rate is too high by a third or more in the median."""
    random = np.random.default_rng(1)
    truth = float(norm.sf(norm.isf(0.01) - shift))
    members = np.arange(200) < 100
    curves = [roc(random.normal(shift * members, 1.0), members) for _ in range(600)]
    rates = [evaluate_rate(curve) for curve in curves]
    own, shown = np.array(rates).T
    assert np.median(own) > 1.33 * truth
    assert 0.42 < np.mean(shown < truth) < 0.58
    assert np.median(shown) == pytest.approx(truth, rel=0.2)


def evaluate_rate(curve: ROC) -> tuple[float, float]:
    """The sample's TPR at 1 %, and the estimate."""
    return float(curve.tpr[curve.point_at(0.01)]), tpr_estimates(curve, [0.01])[0]


@given(scores_and_members())
def test_an_estimate_lies_in_every_interval_and_is_exact_at_both_ends(pair: tuple[FloatArray, BoolArray]) -> None:
    curve = roc(*pair)
    (shown,) = tpr_estimates(curve, [0.5])
    for confidence in (0.1, 0.95):
        low, high = tpr_intervals(curve, [0.5], confidence=confidence)[0]
        assert low - 1e-9 <= shown <= high + 1e-9
    perfect = roc(np.arange(40.0), np.arange(40) >= 20)
    assert tpr_estimates(perfect, [0.1]) == [1.0]
    assert tpr_estimates(roc(-np.arange(40.0), np.arange(40) >= 20), [0.1]) == [0.0]


def test_a_bound_on_the_ratio_is_the_one_of_drawn_rates() -> None:
    """20 of 40 members above all of 60 others, and 40 of these below all but none of the members: drawn, not summed."""
    curve = roc(np.repeat([2.0, 1.0, 1.0, 0.0], [20, 20, 20, 40]), np.repeat([1, 1, 0, 0], [20, 20, 20, 40]))
    found, random = ratio_bound(curve, error=0.05), np.random.default_rng(0)
    chances = []
    for reached, size, others in ((20, 40, 60), (40, 60, 40)):
        rates = np.minimum(1.0, found * random.beta(1, others, size=200_000))
        chances.append(float((random.binomial(size, rates) >= reached).mean()))
    assert min(chances) == pytest.approx(0.025, abs=0.002)
    assert max(chances) > 0.03


@pytest.mark.parametrize("upside_down", [False, True])
def test_a_bound_on_the_ratio_is_seldom_above_the_truth(upside_down: bool) -> None:
    """Members have one of the highest scores five times as often as others, at every threshold among these."""
    random, wrong = np.random.default_rng(0), 0
    for _ in range(200):
        members = random.permutation(300) < 120
        scores = random.random(300) + (random.random(300) < np.where(members, 0.5, 0.1))
        if upside_down:
            members, scores = ~members, -scores
        wrong += ratio_bound(roc(scores, members), error=0.2) > 5.0
    assert 0.02 < wrong / 200 < 0.2  # half of the error is spent on the other end


@given(scores_and_members(), st.integers(2, 6))
@settings(max_examples=30)
def test_the_same_proportions_in_more_records_do_not_lower_the_bound_on_the_ratio(
    pair: tuple[FloatArray, BoolArray], copies: int
) -> None:
    once, more = (ratio_bound(roc(*(np.tile(one, many) for one in pair)), error=0.01) for many in (1, copies))
    assert more >= once * (1 - 1e-9)
