"""Bounds on ε: against linear programs, binomials and mechanisms whose privacy is known."""

from __future__ import annotations

import itertools
import re
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog
from scipy.special import expit, logit
from scipy.stats import binom

from glasshouse import InputError
from glasshouse.evaluation import (
    GaussianBound,
    Guesses,
    PrivacyClaim,
    PrivacyVerdict,
    clopper_pearson,
    epsilon_lower_bound,
    gaussian_epsilon,
    judge_claim,
    mu_if_independent,
    mu_lower_bound,
    posterior_bound,
)
from glasshouse.evaluation.privacy.bounds import (
    Design,
    count_right,
    delta_shown,
    gaussian_delta,
    gaussian_trade_off,
    shares_right,
)


@given(st.floats(0, 20), st.floats(0.01, 0.99))
def test_no_private_mechanism_beats_the_posterior_bound(epsilon: float, prior: float) -> None:
    """Randomised response reaches it exactly, by Bayes' rule."""
    honest = expit(epsilon)
    posterior = prior * honest / (prior * honest + (1 - prior) * (1 - honest))
    assert posterior_bound(epsilon, prior=prior) == pytest.approx(posterior)


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.2]))
def test_without_delta_the_bound_is_clopper_pearsons_turned_into_epsilon(
    made: int, data: st.DataObject, prior: float
) -> None:
    correct = data.draw(st.integers(0, made))
    low = clopper_pearson(correct, made, confidence=0.9).low  # one-sided 95 %
    expected = max(0.0, float(logit(low) - logit(prior))) if low > 0 else 0.0
    found = epsilon_lower_bound(Guesses(correct, made, made, prior))
    assert found == pytest.approx(expected, abs=1e-6)


def most_likely(correct: int, made: int, records: int, *, epsilon: float, delta: float) -> float:
    """The largest chance of so many right guesses that the inequalities for all sets of counts allow, by enumeration.

    Over chances of 0 … made right guesses, and one slack per count: the worst set is where the slack is positive.
    """
    counts = np.arange(1, made + 1)
    rows = np.zeros((made + 1, 2 * made + 1))
    for row, count in enumerate(counts):
        rows[row, count] = count / records
        rows[row, count - 1] = -np.exp(epsilon) * (made - count + 1) / records
        rows[row, made + count] = -1.0
    rows[made, made + 1 :] = 1.0
    limits = np.append(np.zeros(made), delta)
    goal = np.where((np.arange(2 * made + 1) >= correct) & (np.arange(2 * made + 1) <= made), -1.0, 0.0)
    whole = np.where(np.arange(2 * made + 1) <= made, 1.0, 0.0)[None]
    solved = linprog(goal, A_ub=rows, b_ub=limits, A_eq=whole, b_eq=[1.0], bounds=(0, None), method="highs")
    return float(-solved.fun)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 20), st.data(), st.floats(0.0, 2.5), st.sampled_from([1e-4, 1e-3, 5e-3]))
def test_the_closed_form_is_the_optimum_of_a_linear_program(
    made: int, data: st.DataObject, epsilon: float, delta: float
) -> None:
    correct = data.draw(st.integers(1, made))
    records = data.draw(st.sampled_from([made, 3 * made]))
    success = expit(epsilon)
    tail, at = binom.sf(correct - 1, made, success), binom.pmf(correct, made, success)
    closed = tail + records * delta * tail * (1 - tail) / (correct * at)
    found = most_likely(correct, made, records, epsilon=epsilon, delta=delta)
    if closed < 0.3:  # above, chances would have to be negative, and the closed form is only an upper bound
        assert found == pytest.approx(closed, rel=1e-5, abs=1e-9)
    assert found <= closed + 1e-7


def steinke(correct: int, made: int, records: int, *, epsilon: float, delta: float) -> float:
    """The chance that Theorem 5.2 of Steinke, Nasr and Jagielski (2023) allows."""
    steps = np.arange(1, correct + 1)
    lost = np.cumsum(binom.pmf(correct - steps, made, expit(epsilon)))
    return float(binom.sf(correct - 1, made, expit(epsilon)) + 2 * records * delta * (lost / steps).max())


@given(st.integers(5, 400), st.data(), st.sampled_from([1e-6, 1e-5, 1e-3]), st.sampled_from([1, 10, 100]))
def test_it_is_at_least_as_tight_as_steinkes_bound(made: int, data: st.DataObject, delta: float, times: int) -> None:
    correct = data.draw(st.integers(made // 2 + 1, made))
    found = epsilon_lower_bound(Guesses(correct, made, made * times), delta=delta)
    assert steinke(correct, made, made * times, epsilon=found + 1e-6, delta=delta) >= 0.05 - 1e-6


@given(st.integers(5, 300), st.data())
def test_what_is_shown_at_a_delta_and_what_is_shown_at_an_epsilon_agree(made: int, data: st.DataObject) -> None:
    guesses = Guesses(data.draw(st.integers(1, made)), made, 3 * made)
    for delta in (1e-6, 1e-3):
        epsilon = epsilon_lower_bound(guesses, delta=delta)
        if epsilon > 0:
            below, above = delta_shown(np.array([epsilon - 1e-6, epsilon + 1e-6]), guesses)
            assert below >= delta >= above


def test_a_huge_number_of_guesses_stays_finite_and_falls_with_epsilon() -> None:
    shown = delta_shown(np.linspace(0, 3, 50), Guesses(900_000, 1_000_000, 1_000_000))
    assert np.isfinite(shown).all()
    assert (np.diff(shown) <= 1e-12).all()
    assert 2.1 < epsilon_lower_bound(Guesses(900_000, 1_000_000, 1_000_000), delta=1e-5) < logit(0.9)


def test_delta_only_loosens_the_bound() -> None:
    guesses = Guesses(95, 100, 1000)
    bounds = [epsilon_lower_bound(guesses, delta=delta) for delta in (0.0, 1e-6, 1e-4, 1e-2, 0.5)]
    assert all(first >= second for first, second in itertools.pairwise(bounds))
    assert bounds[-1] == 0.0


def test_nothing_called_or_everything_right_are_fine() -> None:
    assert epsilon_lower_bound(Guesses(0, 0, 10)) == 0.0
    assert epsilon_lower_bound(Guesses(0, 5, 10), delta=0.01) == 0.0
    assert 3 < epsilon_lower_bound(Guesses(100, 100, 100)) < 4
    assert mu_lower_bound(Guesses(0, 5, 10)) == mu_if_independent(Guesses(1, 5, 10)) == 0.0
    with pytest.raises(InputError, match="is impossible"):
        Guesses(5, 3, 10)


def test_gaussian_delta_is_the_distance_of_two_normal_distributions() -> None:
    """Φ(…) − e^ε Φ(…) against the integral of what one density exceeds e^ε times the other by."""
    at = np.linspace(-12, 14, 400_001)
    for mu, epsilon in ((0.5, 0.3), (1.0, 2.0), (2.0, 5.0)):
        with_, without = (np.exp(-((at - mean) ** 2) / 2) / np.sqrt(2 * np.pi) for mean in (mu, 0.0))
        integral = np.maximum(0.0, with_ - np.exp(epsilon) * without).sum() * (at[1] - at[0])
        assert float(gaussian_delta(epsilon, mu)) == pytest.approx(integral, rel=1e-4)
        assert gaussian_epsilon(mu, integral) == pytest.approx(epsilon, abs=1e-3)
    assert gaussian_epsilon(1.0, 0.0) == np.inf
    assert gaussian_trade_off(np.array([0.3]), 0.0) == pytest.approx(0.7)


@given(st.integers(20, 500), st.data())
def test_gaussian_privacy_is_contradicted_where_one_of_its_pairs_is(made: int, data: st.DataObject) -> None:
    guesses = Guesses(data.draw(st.integers(1, made)), made, 2 * made)
    mu = mu_lower_bound(guesses)
    for delta in (1e-5, 1e-3):  # μ says more than each pair of it
        assert gaussian_epsilon(mu, delta) >= epsilon_lower_bound(guesses, delta=delta) - 0.02


def chances_add_up(guesses: Guesses, mu: float, tail: float) -> bool:
    """Whether p_j exist that give ``tail`` to the count that was reached, by the inequalities of upper sets as written.

    From that count down, each p_i is the smallest that its inequality allows, found by halving, with every sum anew.
    """
    normal, odds = NormalDist(), guesses.prior / (1 - guesses.prior)
    chances = np.zeros(guesses.made + 1)
    counts = np.arange(guesses.made + 1)
    chances[guesses.correct] = tail
    for count in range(guesses.correct - 1, -1, -1):

        def allowed(chance: float, count: int = count) -> bool:
            tried = np.where(counts == count, chance, chances)
            right = (counts * tried)[counts > count].sum() / guesses.possible
            wrong = odds * ((guesses.made - counts) * tried)[counts >= count].sum() / guesses.possible
            return bool(wrong >= 1 or right <= normal.cdf(normal.inv_cdf(max(wrong, 1e-300)) + mu))

        if not allowed(2.0):
            return False
        low, high = 0.0, 2.0
        while high - low > 1e-10 and not allowed(low):
            low, high = (low, (low + high) / 2) if allowed((low + high) / 2) else ((low + high) / 2, high)
        chances[count] = low if allowed(low) else high
        if chances.sum() > 1:
            return False
    return True


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 20), st.data(), st.sampled_from([0.5, 0.3, 0.8]), st.sampled_from([0.9, 0.95, 0.99]))
def test_the_recursion_is_the_inequalities_of_upper_sets_solved_one_by_one(
    made: int, data: st.DataObject, prior: float, confidence: float
) -> None:
    correct = data.draw(st.integers(made // 2, made))
    guesses = Guesses(correct, made, data.draw(st.sampled_from([made, 5 * made])), prior)
    mu = mu_lower_bound(guesses, confidence=confidence)
    assert chances_add_up(guesses, mu + 1e-6, 1 - confidence)  # nothing more is contradicted by them
    epsilons = np.linspace(0.0, 12.0, 20_001)
    by_pairs = (gaussian_delta(epsilons, mu - 1e-4) < delta_shown(epsilons, guesses, confidence=confidence)).any()
    assert mu < 1e-4 or by_pairs or not chances_add_up(guesses, mu - 1e-4, 1 - confidence)


@pytest.mark.parametrize(
    ("correct", "made", "possible", "before", "now"),
    [(19, 20, 200, 1.83, 1.98), (95, 100, 1000, 3.12, 3.32), (190, 200, 1000, 3.74, 3.92)],
)
def test_gaussian_privacy_shows_more_than_its_pairs_one_at_a_time(
    correct: int, made: int, possible: int, before: float, now: float
) -> None:
    """By 5 to 8 % of ε at δ = 1e-5; the former figures are those of the best pair (ε, δ(ε)) alone."""
    guesses = Guesses(correct, made, possible)
    epsilons = np.linspace(0.0, epsilon_lower_bound(guesses), 4096, endpoint=False)
    shown = delta_shown(epsilons, guesses)
    pairs = brentq(lambda mu: float((gaussian_delta(epsilons, mu) - shown).min()), 1e-3, 5.0)
    assert gaussian_epsilon(pairs, 1e-5) == pytest.approx(before, abs=0.01)
    assert gaussian_epsilon(mu_lower_bound(guesses), 1e-5) == pytest.approx(now, abs=0.01)


def test_a_bound_for_many_guesses_is_not_below_that_of_the_pairs() -> None:
    """There the upper sets alone say less (μ ≥ 0.3581) than the best pair, whose sets are free."""
    assert mu_lower_bound(Guesses(14_000, 20_000, 20_000)) == pytest.approx(0.3589, abs=1e-4)


def test_gaussian_bounds_are_rarely_above_the_truth_of_the_sharpest_mechanism() -> None:
    """300 targets under noise that is exactly μ-private, with the best guesses; and where answers come together."""
    random = np.random.default_rng(5)
    above = np.zeros((300, 2))
    for row in above:
        members = random.random(200) < 0.5
        scores = 0.7 * members + random.normal(size=200)
        row[0] = mu_lower_bound(count_right(scores, members, Design(0.1, 0.1))) > 0.7
        together = random.random() < 0.1  # δ(ε) of this mechanism is that of μ = 1 or less, as another test shows
        honest = np.where(random.random(200) < (0.9 if together else 0.5), members, ~members)
        row[1] = mu_lower_bound(count_right(honest + 0.0, members, Design(0.1, 0.1))) > 1.0
    assert (above.mean(axis=0) <= 0.05).all()


def members_and_scores(random: np.random.Generator, records: int, mu: float) -> tuple[np.ndarray, np.ndarray]:
    members = random.random(records) < 0.5
    return members, mu * members + random.normal(size=records)


@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_bounds_are_below_the_truth_and_reach_what_is_promised(mu: float) -> None:
    """Sixty targets of 1 000 records with Gaussian noise; benchmarks/statistics/epsilon.md has more of them."""
    random = np.random.default_rng(1)
    true = gaussian_epsilon(mu, 1e-5)
    known = np.mean([shares_right(*members_and_scores(random, 1000, mu)[::-1]) for _ in range(8)], axis=0)
    verdicts = []
    for _ in range(60):
        members, scores = members_and_scores(random, 1000, mu)
        verdicts.append(judge_claim(None, {"a": scores}, members=members, practice={"a": tuple(known.tolist())}))
    for name in ("epsilon", "gaussian", "independent"):
        values = [value if isinstance(value := getattr(one, name), float) else value.epsilon for one in verdicts]
        assert np.mean(np.array(values) > true + 1e-9) <= 0.134  # 5 %, and three standard deviations of 60 runs
        least = {"epsilon": 1.4, "gaussian": 2.0, "independent": 3.4}[name]
        assert mu == 0.0 or np.mean(values) > least


def test_only_the_bound_that_assumes_independence_breaks_without_it() -> None:
    """With a chance of one tenth every record is answered honestly in 90 %, else nothing is said at all."""
    random = np.random.default_rng(0)
    members = random.random(1000) < 0.5
    answers = np.where(random.random(1000) < 0.9, members, ~members).astype(np.float64)
    verdict = judge_claim(None, {"a": answers}, members=members)
    pure, mu = float(logit(0.9)), 1.0  # of the mechanism; that μ covers it, as the next line shows
    grid = np.linspace(0, pure, 200)
    assert (gaussian_delta(grid, mu) >= 0.1 * np.maximum(0.0, 0.9 - np.exp(grid) * 0.1)).all()
    assert verdict.pure < pure
    assert verdict.gaussian.mu < mu
    assert verdict.independent.mu > 2


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_other_shares_of_members_cry_wolf_as_rarely(share: float) -> None:
    random = np.random.default_rng(2)
    alarms = []
    for _ in range(150):
        members = random.random(600) < share
        verdict = judge_claim(None, {"a": random.normal(size=600)}, members=members)
        alarms.append((verdict.pure > 0, verdict.independent.mu > 0))
    assert (np.mean(alarms, axis=0) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 150)).all()


@pytest.mark.parametrize(("epsilon", "contradicted"), [(1.0, True), (8.0, False)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_claim_is_judged_at_its_own_delta(epsilon: float, delta: float, contradicted: bool) -> None:
    scores = np.arange(1000.0)
    verdict = judge_claim(PrivacyClaim(epsilon=epsilon, delta=delta), {"a": scores}, members=scores >= 500)
    assert verdict.contradicted is contradicted
    assert ("is contradicted" in verdict.sentence()) is contradicted
    assert ("does not prove" in verdict.sentence()) is not contradicted
    assert verdict.delta == (delta or 1e-5)
    assert verdict.shown == (verdict.epsilon if delta else verdict.pure)


def test_the_sentence_holds_both_deltas_the_unit_and_what_it_needs() -> None:
    record = PrivacyVerdict(pure=1.72, epsilon=1.70).sentence()
    assert "No guarantee was claimed" in record
    assert "ε ≥ 1.70 at δ = 1e-05 (≥ 1.72 at δ = 0)" in record
    assert "if members were drawn at random" in record
    assert "node" not in record
    node = PrivacyVerdict(pure=1.72, epsilon=1.70, unit="node").sentence()
    assert "node-level ε ≥ 1.70" in node
    assert "one node with all its edges" in node
    none = PrivacyVerdict().sentence()
    assert "no ε above 0 (at δ = 0 and at δ = 1e-05)" in none
    assert PrivacyVerdict().gaussian_sentence() == ""


def test_gaussian_bounds_are_said_with_their_assumptions() -> None:
    said = PrivacyVerdict(gaussian=GaussianBound(0.6, 2.4), independent=GaussianBound(0.85, 3.6)).gaussian_sentence()
    assert "Under Gaussian privacy" in said
    assert "independently" in said
    assert said.index("2.40") < said.index("3.60")


@pytest.mark.parametrize(
    ("free", "gaussian", "independent", "kept"),
    [
        (1.0, 2.0, 3.0, ["2.00", "3.00"]),
        (1.0, 2.0, 1.5, ["2.00"]),
        (1.0, 0.9, 3.0, ["3.00"]),
        (2.5, 2.0, 2.2, []),
        (2.0, 2.0, 2.0, []),
    ],
)
def test_a_bound_that_assumes_more_and_shows_less_is_left_out(
    free: float, gaussian: float, independent: float, kept: list[str]
) -> None:
    first, second = GaussianBound(0.5, gaussian), GaussianBound(0.7, independent)
    verdict = PrivacyVerdict(pure=free, epsilon=free, gaussian=first, independent=second)
    said = verdict.gaussian_sentence()
    assert re.findall(r"ε ≥ (\d\.\d\d)", said) == kept
    assert [f"{one.epsilon:.2f}" for one in (verdict.gaussian, verdict.independent) if one.mu > 0] == kept
    assert ("two" in said, "independently" in said) == (len(kept) == 2, "3.00" in kept)
    assert f"ε ≥ {free:.2f}" in verdict.sentence()


def test_few_records_that_leak_much_show_more_than_guesses_about_every_record() -> None:
    """100 of 2 000 records are known for sure: guesses about all of them, though assumed independent, show less."""
    random = np.random.default_rng(0)
    members = random.permutation(2000) < 1000
    scores = random.normal(size=2000)
    scores[:100] += np.where(members[:100], 20.0, -20.0)
    verdict = judge_claim(None, {"a": scores}, members=members)
    assert verdict.gaussian.epsilon > verdict.epsilon > 1.0
    assert verdict.independent == GaussianBound()


def test_a_withheld_epsilon_shows_no_number() -> None:
    scores = np.arange(1000.0)
    verdict = judge_claim(None, {"a": scores}, members=scores >= 500, withheld="members were not drawn at random.")
    assert verdict.sentence() == "ε is withheld: members were not drawn at random."
    assert verdict.gaussian_sentence() == ""
    assert (verdict.pure, verdict.epsilon, verdict.independent) == (0.0, 0.0, GaussianBound())


def test_no_leak_means_no_epsilon() -> None:
    scores = np.arange(1000.0)
    verdict = judge_claim(PrivacyClaim(epsilon=0.0), {"a": scores}, members=scores >= 500, leak=False)
    assert (verdict.pure, verdict.epsilon, verdict.gaussian.mu, verdict.contradicted) == (0.0, 0.0, 0.0, False)


def test_a_claim_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="epsilon ≥ 0"):
        PrivacyClaim(epsilon=-1.0)
