"""Tests, intervals and evidence under a declared draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from glasshouse import Evaluation, audit_evidence
from glasshouse.core.arrays import FloatArray
from glasshouse.data import Units
from glasshouse.data.design import BySite, Draw, TimeSplit, UnitsAtRandom, WithinStrata
from glasshouse.evaluation import evaluate, leak_test
from glasshouse.evaluation.declared import Coins
from glasshouse.evaluation.metrics import _variance_of_mean
from glasshouse.evaluation.risk import unit_risk
from glasshouse.evidence import Evidence
from glasshouse.report.decision.conclusion import concluded


def sites(random: np.random.Generator, count: int = 24, size: int = 15) -> tuple[FloatArray, Draw]:
    """Scores that have much in common within a site."""
    of = np.repeat(np.arange(count), size)
    scores = random.normal(size=count)[of] + 0.5 * random.normal(size=len(of))
    return np.asarray(scores, dtype=np.float64), BySite(by=of).drawn(len(of), None, {})


def test_a_null_by_site_is_alarmed_for_as_often_as_said_and_a_test_of_records_is_not() -> None:
    random, alarms, wrong = np.random.default_rng(0), 0, 0
    for number in range(200):
        scores, draw = sites(random)
        inside = np.zeros(24, dtype=np.bool_)
        inside[random.permutation(24)[:12]] = True
        members = inside[draw.clusters]
        options = {"fprs": [0.1], "permutations": 99, "seed": number}
        alarms += leak_test({"a": scores}, members, draw=draw, **options).leak  # type: ignore[arg-type]
        wrong += leak_test({"a": scores}, members, **options).leak  # type: ignore[arg-type]
    assert alarms <= 18  # 5 % of 200, with a chance of 0.6 % to be above
    assert wrong > 60


def test_intervals_of_sites_cover_what_those_of_single_units_miss() -> None:
    random, covered, narrow = np.random.default_rng(1), 0, 0
    for _ in range(150):
        scores, draw = sites(random)
        members = (np.arange(24) % 2 == 0)[draw.clusters]
        wide, single = (evaluate(scores, members, fprs=[0.1], draw=each) for each in (draw, None))
        covered += wide.auc_interval.low <= 0.5 <= wide.auc_interval.high
        narrow += single.auc_interval.low <= 0.5 <= single.auc_interval.high
        assert wide.rates[0].interval.low <= single.rates[0].interval.low
    assert covered >= 135
    assert narrow < 90


def test_a_plain_draw_changes_nothing() -> None:
    scores, members = np.random.default_rng(2).normal(size=300), np.arange(300) < 150
    draw = UnitsAtRandom().drawn(300, None, {})
    assert leak_test({"a": scores}, members, draw=draw) == leak_test({"a": scores}, members)
    plain, drawn = evaluate(scores, members, fprs=[0.1]), evaluate(scores, members, fprs=[0.1], draw=draw)
    assert drawn.rates == plain.rates
    assert drawn.auc_interval == pytest.approx(plain.auc_interval, abs=0.002)  # placements of noise are nearly even
    assert evaluate(scores, members, fprs=[0.1]).auc_interval == plain.auc_interval


def test_intervals_of_units_are_wider_where_a_few_carry_the_variance() -> None:
    """Of an AUC near 1, by the truth of the two distributions."""
    random, covered, narrow = np.random.default_rng(8), 0, 0
    members = np.arange(200) < 100
    truth = 0.96 * ndtr(4 / math.sqrt(2)) + 0.04 * ndtr(-1 / math.sqrt(2))
    for _ in range(300):
        hard = members & (random.random(200) < 0.04)
        scores = random.normal(size=200) + np.where(hard, -1.0, 4.0 * members)
        wide, plain = (evaluate(scores, members, fprs=[], units=each).auc_interval for each in (True, False))
        covered += wide.low <= truth <= wide.high
        narrow += plain.low <= truth <= plain.high
    assert covered >= 276  # 92 % of 300
    assert narrow <= covered - 6


def test_the_variance_of_a_mean_of_clusters_is_that_of_leaving_each_out() -> None:
    random = np.random.default_rng(9)
    clusters = np.repeat(np.arange(9), random.integers(1, 30, size=9))
    values = random.normal(size=len(clusters)) + random.normal(size=9)[clusters]
    without = np.array([values[clusters != one].mean() for one in range(9)])
    found, uncertainty = _variance_of_mean(values, clusters)
    assert found == pytest.approx(8 / 9 * ((without - values.mean()) ** 2).sum())  # the jackknife
    assert uncertainty > 0


def test_a_leak_within_strata_is_found_though_strata_differ_by_more() -> None:
    random = np.random.default_rng(3)
    towns = np.arange(600) % 3
    members = random.random(600) < 0.5
    scores = np.asarray(10.0 * towns + members, dtype=np.float64)
    draw = WithinStrata(by=towns).drawn(600, None, {})
    assert leak_test({"a": scores}, members, draw=draw).p_value == 0.0005


def test_coins_of_a_site_are_sites_and_small_strata_have_none() -> None:
    scores, draw = sites(np.random.default_rng(4))
    members = (np.arange(24) % 2 == 0)[draw.clusters]
    coins = Coins.of(draw, {"a": scores}, members, practice={}, unit="person")
    assert (coins.unit, len(coins.members), int(coins.members.sum())) == ("site", 24, 12)
    pairs = WithinStrata(by=np.arange(360) // 2).drawn(360, None, {})
    assert "fewer than 20" in Coins.of(pairs, {"a": scores}, members, practice={}, unit="person").withheld


def audited(design: object, *, age: bool = False) -> object:
    random = np.random.default_rng(5)
    units = Units(np.repeat(np.arange(200), 3))
    inside = random.random((9, 200)) < 0.5
    inside[1:] = np.vstack([inside[1:5], ~inside[1:5]])
    if age:
        inside[0] = np.arange(200) < 100
    loss = random.exponential(size=(9, 600)) * np.where(inside[:, units.rows], 0.3, 1.0)
    evidence = Evidence(
        target_loss=loss[0],
        shadow_loss=loss[1:],
        shadow_members=inside[1:][:, units.rows],
        unit=units,
        labels=(np.arange(200) < 100)[units.rows].astype(int),
    )
    evaluation = Evaluation(design=design)  # type: ignore[arg-type]
    return audit_evidence(evidence, members=inside[0][units.rows], attacks=["base"], evaluation=evaluation)


def test_a_declared_draw_gets_a_verdict_and_its_evidence() -> None:
    result = audited("units", age=True)
    summary = result.summary()  # type: ignore[attr-defined]
    assert summary.conclusion.leak is True
    assert summary.declared.contradicted
    assert "1 of 2\u00a0000 cases" in summary.verdict  # members are the first half, and labels say so
    assert "speaks against the declared draw" in summary.verdict


def test_without_a_draw_simulated_targets_are_told_under_their_own_name() -> None:
    result = audited(TimeSplit())
    summary = result.summary()  # type: ignore[attr-defined]
    assert summary.conclusion.leak is None
    assert summary.conclusion.reasons == ("no draw",)
    assert "Without a draw: models trained in the same way" in summary.verdict
    assert result.privacy.withheld.startswith("it needs a random draw")  # type: ignore[attr-defined]
    assert concluded(summary.verdict_attack, summary.context, mismatch=False).reasons == ("members not random",)


def test_the_risk_of_each_unit_is_that_of_a_count_by_hand() -> None:
    random = np.random.default_rng(6)
    scored = [(random.normal(size=50), random.random(50) < 0.5) for _ in range(12)]
    found = unit_risk({"a": scored}, attack="a", fpr=0.1)
    hits, times = np.zeros(50), np.zeros(50)
    for scores, members in scored:
        highest = np.sort(scores[~members])[::-1][int(0.1 * (~members).sum())]  # the first that may not be flagged
        hits += members & (scores > highest)
        times += members
    np.testing.assert_array_equal(found.hits["a"], hits)
    np.testing.assert_array_equal(found.times, times)


def test_units_who_are_identified_nearly_always_stand_out_and_equal_ones_do_not() -> None:
    random = np.random.default_rng(7)

    def figures(exposed: int) -> object:
        scored = []
        for _ in range(20):
            members = random.random(400) < 0.5
            shift = np.where(np.arange(400) < exposed, 6.0, 0.0)
            scored.append((random.normal(size=400) + shift * members, members))
        return unit_risk({"a": scored}, attack="a", fpr=0.05).figures()

    told = figures(57)
    assert told.hidden  # type: ignore[attr-defined]
    assert "1 in 7 persons" in told.sentence("person")  # type: ignore[attr-defined]
    assert not figures(0).hidden  # type: ignore[attr-defined]
    assert sum(told.alike) == pytest.approx(400) == sum(told.guessed)  # type: ignore[attr-defined]
