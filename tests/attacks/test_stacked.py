from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logit

from glasshouse import Evidence, InputError
from glasshouse.attacks import BASE, LiRA, PartsBASE, PartsLiRA, Stacked
from glasshouse.attacks.learners import Boosted, Linear
from glasshouse.attacks.stacked import usual_of
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc, estimate_thresholds, run_attack
from glasshouse.evidence import Mode, PartLosses
from tests.strategies import gaussian_evidence

QUICK = Boosted(rounds=40, leaves=15, fits=1)


def quick(mode: Mode = "online") -> Stacked:
    return Stacked(mode=mode, boosted=QUICK, jobs=1)


def calibration_error(scores: FloatArray, members: BoolArray) -> float:
    bins = np.minimum((scores * 10).astype(int), 9)
    return float(
        sum(
            abs(scores[bins == at].mean() - members[bins == at].mean()) * float((bins == at).mean())
            for at in np.unique(bins)
        )
    )


def features_of(attack: Stacked, evidence: Evidence, panel: NDArray[np.intp]) -> FloatArray:
    usual = usual_of(evidence, panel, mode=attack.mode)
    return attack._rows(evidence, panel, usual, records=np.arange(evidence.records))


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_it_is_no_worse_than_the_best_single_attack_and_calibrated(mode: Mode) -> None:
    random = np.random.default_rng(0)
    stacked, single, errors, floors = [], [], [], []
    for seed in range(2):
        evidence, members = gaussian_evidence(records=2000, models=8, shift=1.5, seed=seed)
        scores = quick(mode).score(evidence)
        stacked.append(auc(scores, members))
        single.append([auc(attack.score(evidence), members) for attack in (BASE(mode=mode), LiRA(mode=mode))])
        errors.append(calibration_error(scores, members))
        floors.append(calibration_error(scores, random.random(2000) < scores))
    assert np.mean(stacked) >= np.mean(single, axis=0).max()
    assert np.mean(errors) <= np.mean(floors) + 0.01


def test_against_the_members_of_another_target_it_finds_nothing() -> None:
    evidence, _ = gaussian_evidence(records=2000, models=8, shift=1.5, seed=0)
    others = complementary_halves(2000, models=2, seed=99)[0]
    assert auc(quick().score(evidence), others) == pytest.approx(0.5, abs=0.03)


def test_from_wrong_members_of_the_pool_it_learns_nothing() -> None:
    evidence, members = gaussian_evidence(records=2000, models=8, shift=1.5, seed=0)
    wrong = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=complementary_halves(2000, models=8, seed=99),
    )
    assert auc(quick().score(wrong), members) == pytest.approx(0.5, abs=0.06)


def test_what_it_learns_does_not_depend_on_the_target() -> None:
    """The target's losses are looked at only to score it, and its members never: they are not in the evidence."""
    evidence, members = gaussian_evidence(records=400, models=6, shift=1.5, seed=0)
    other = Evidence(
        target_loss=evidence.target_loss[::-1],
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
    )
    first, second = quick().tuned(evidence), quick().tuned(other)
    assert (first.score(evidence) == second.score(evidence)).all()
    shuffled = np.random.default_rng(0).permutation(members)
    outcomes = [run_attack(quick(), evidence, fprs=[0.05], members=who) for who in (members, shuffled)]
    assert (outcomes[0].scores == outcomes[1].scores).all()
    assert outcomes[0].thresholds == outcomes[1].thresholds


def test_offline_in_models_of_a_record_do_not_enter_its_score() -> None:
    """Records of one fold: whatever their in-models answer, their scores stay bit for bit."""
    evidence, _ = gaussian_evidence(records=400, models=6, shift=1.5, seed=0)
    attack = quick("offline").tuned(evidence)
    assert attack.fit_ is not None
    fold = attack.fit_.fit.folds == 0
    changed = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=np.where(evidence.shadow_members & fold, 5.0, evidence.shadow_loss),
        shadow_members=evidence.shadow_members,
    )
    learner = attack.fit_.fit.learner  # which one is best follows from all records together
    panel = attack.fit_.plan.panels[0]
    rows = features_of(attack, evidence, panel)
    again = quick("offline").tuned(changed).fit_
    assert again is not None
    before, after = (known.fit.log_odds(rows, learner=learner) for known in (attack.fit_, again))
    assert (before[fold] == after[fold]).all()
    assert (features_of(attack, changed, panel)[fold] == rows[fold]).all()


def test_the_prior_shifts_the_log_odds() -> None:
    evidence, _ = gaussian_evidence(records=300, models=6, shift=1.5, seed=0)
    even = quick().tuned(evidence)
    rare = dataclasses.replace(even, prior=0.1)
    assert rare.log_odds(evidence) - even.log_odds(evidence) == pytest.approx(logit(0.1))
    with pytest.raises(InputError, match="prior"):
        Stacked(prior=1.0)


def test_a_copy_with_other_parameters_learns_anew() -> None:
    evidence, _ = gaussian_evidence(records=100, models=4, shift=1.5, seed=0)
    attack = quick().tuned(evidence)
    others: list[dict[str, Any]] = [{"mode": "offline"}, {"seed": 1}, {"folds": 2}, {"boosted": Boosted(fits=1)}]
    for change in others:
        assert dataclasses.replace(attack, **change).fit_ is None
    assert dataclasses.replace(attack, prior=0.2, jobs=2).fit_ is attack.fit_


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_where_nothing_more_can_be_learned_it_is_base_as_probabilities(mode: Mode) -> None:
    evidence, _ = gaussian_evidence(records=40, models=6, shift=1.5, seed=1)
    dull = dataclasses.replace(quick(mode), boosted=Boosted(rounds=1, rate=1e-6), linear=Linear(strength=1e-12))
    attack = dull.tuned(evidence)
    assert attack.fit_ is not None
    assert attack.fit_.part == 1
    odds, base = attack.log_odds(evidence), BASE(mode=mode).log_odds(evidence)
    assert odds == pytest.approx(attack.fit_.line.slope * base + attack.fit_.line.offset)
    assert abs(attack.score(evidence).mean() - 0.5) < 0.1
    scores, members = (np.array(each) for each in zip(*attack.simulated_scores(evidence), strict=True))
    assert calibration_error(scores.ravel(), members.ravel()) < 0.1
    learned, _ = gaussian_evidence(records=1000, models=6, shift=1.5, seed=0)
    known = quick(mode).tuned(learned).fit_
    assert known is not None
    assert known.part < 1


def test_held_out_thresholds_keep_their_rate_on_new_targets() -> None:
    rates = []
    for seed in range(3):
        evidence, members = gaussian_evidence(records=2000, models=8, shift=1.5, seed=seed)
        attack = quick().tuned(evidence)
        (threshold,) = estimate_thresholds(attack, evidence, [0.05])
        rates.append(threshold.decide(attack.flag_scores(evidence))[~members].mean())
    assert np.mean(rates) == pytest.approx(0.05, abs=0.012)


def test_a_target_on_another_scale_is_noticed_and_not_misjudged() -> None:
    """The same target with margins twice as large and shifted, as by another training procedure."""
    evidence, members = gaussian_evidence(records=2000, models=8, shift=1.5, seed=0)
    margins = -np.log(np.expm1(evidence.target_loss))
    unlike = Evidence(
        target_loss=np.logaddexp(0.0, -(2.5 * margins + 4.0)),
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
    )
    attack = quick().tuned(evidence)
    assert attack.unlikeness(evidence) < 5 < attack.unlikeness(unlike)
    found = auc(attack.score(unlike), members)
    assert found == pytest.approx(auc(attack.score(evidence), members), abs=0.02)
    assert found > auc(BASE().score(unlike), members)
    assert run_attack(attack, evidence, fprs=[]).note == ""
    assert "unlike every simulated target" in run_attack(attack, unlike, fprs=[]).note


def test_labels_and_many_models_are_used() -> None:
    evidence, _ = gaussian_evidence(records=300, models=32, shift=1.5, seed=0)
    labelled = Evidence(
        target_loss=evidence.target_loss,
        shadow_loss=evidence.shadow_loss,
        shadow_members=evidence.shadow_members,
        labels=np.arange(300) % 3,
    )
    attack = quick().tuned(labelled)
    assert attack.fit_ is not None
    assert attack.score(labelled).shape == (300,)
    with pytest.raises(InputError, match="300"):
        attack.score(gaussian_evidence(records=20, models=32, shift=1.5, seed=0)[0])


def test_its_parameters_are_checked_and_its_queries_counted() -> None:
    with pytest.raises(InputError, match="folds, targets"):
        Stacked(folds=1)
    evidence, _ = gaussian_evidence(records=20, models=6, shift=1.5, seed=0)
    assert Stacked().queries(evidence).per_record == 7
    assert Stacked(mode="offline").queries(evidence).shared == 60


@pytest.mark.parametrize(("shift", "clear"), [(0.0, False), (1.5, True)])
def test_without_members_to_find_the_target_is_scored_as_one_simulated_target_is(shift: float, clear: bool) -> None:
    """A mean over panels would vary less than the scores of simulated targets, from which the thresholds come."""
    evidence, _ = gaussian_evidence(records=400, models=8, shift=shift, seed=0)
    known = quick().tuned(evidence).fit_
    assert known is not None
    assert known.clear == clear
    panels = [known.fit.log_odds(features_of(quick(), evidence, panel)) for panel in known.plan.panels]
    expected = np.mean(panels, axis=0) if clear else panels[0]
    if known.part == 0:
        np.testing.assert_allclose(dataclasses.replace(quick(), fit_=known).log_odds(evidence), expected)


def test_memory_is_within_four_times_the_evidence() -> None:
    evidence, _ = gaussian_evidence(records=50_000, models=8, shift=1.5, seed=0)
    size = evidence.target_loss.nbytes + evidence.shadow_loss.nbytes + evidence.shadow_members.nbytes
    few = Stacked(boosted=Boosted(rounds=2, examples=24_000), linear=Linear(examples=12_000), jobs=1)
    few.score(gaussian_evidence(records=100, models=4, shift=1.5, seed=0)[0])  # what is imported on the way
    tracemalloc.start()
    try:
        few.score(evidence)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * size


def test_jobs_change_no_bit() -> None:
    evidence, _ = gaussian_evidence(records=9000, models=6, shift=1.5, seed=0)  # more than one block
    few = Stacked(boosted=Boosted(rounds=5, examples=5000), linear=Linear(examples=5000))
    one, many = (dataclasses.replace(few, jobs=jobs).score(evidence) for jobs in (1, 8))
    assert (one == many).all()


def texts(records: int, *, seed: int) -> tuple[Evidence, BoolArray]:
    """Members know a few easy tokens better; in the sum of a text, hard tokens vary far more than this."""
    random = np.random.default_rng(seed)
    shadow_members = complementary_halves(records, models=8, seed=seed)
    members = np.vstack([random.random(records) < 0.5, shadow_members])
    hard = np.tile([3.0, 3.0, 1.0, 1.0], records)
    noise = random.normal(size=(9, 4 * records)) * np.tile([1.0, 1.0, 0.02, 0.02], records)
    loss = np.maximum(hard + noise - 0.03 * np.repeat(members, 4, axis=1), 0).astype(np.float32)
    sums = loss.reshape(9, records, 4).sum(axis=2, dtype=np.float64)
    parts = PartLosses(target=loss[0], shadow=loss[1:], offsets=4 * np.arange(records + 1))
    return Evidence(target_loss=sums[0], shadow_loss=sums[1:], shadow_members=shadow_members, parts=parts), members[0]


def test_it_learns_from_parts_and_details_of_parts_change_nothing() -> None:
    evidence, members = texts(600, seed=0)
    scores = quick().score(evidence)
    best = max(auc(attack.score(evidence), members) for attack in (BASE(), LiRA(), PartsBASE(), PartsLiRA()))
    assert auc(scores, members) > max(best, 0.75) + 0.05
    assert auc(scores, members) > auc(quick().score(dataclasses.replace(evidence, parts=None)), members) + 0.2


def test_a_target_on_another_scale_is_judged_from_its_parts() -> None:
    """Losses of all its tokens are half as large: matched to the pool's, its members are found again."""
    evidence, members = texts(600, seed=1)
    attack = quick().tuned(evidence)
    other = evidence.with_target_loss(evidence.target_loss / 2)
    assert other.parts is not None
    np.testing.assert_allclose(np.add.reduceat(other.parts.target, other.parts.offsets[:-1]), other.target_loss, 1e-5)
    assert "unlike" in attack.warning(other)
    assert auc(attack.score(other), members) > 0.7
    assert auc(attack.score(dataclasses.replace(other, parts=evidence.parts)), members) < 0.6
