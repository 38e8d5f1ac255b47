from __future__ import annotations

import dataclasses

import numpy as np

from glasshouse.attacks import LossThreshold
from glasshouse.evaluation import AttackOutcome, evaluate
from glasshouse.report import Context
from glasshouse.report.figures import AttackFigures, attack_figures
from glasshouse.report.verdict import attackers, notes, strongest, verdict

MEMBERS = np.arange(200) < 100
CONTEXT = Context(shadows=4, mode="online")


def figures(name: str, shift: float, *, fprs: tuple[float, ...] = (0.05,), tied: bool = False) -> AttackFigures:
    scores = np.random.default_rng(0).normal(size=200) + shift * MEMBERS
    if tied:
        scores = np.where(MEMBERS, 1.0, np.arange(200) % 2 == 0)
    metrics = evaluate(scores, MEMBERS, fprs=fprs)
    return attack_figures(name, AttackOutcome(LossThreshold(), scores, (), metrics, 0.0), MEMBERS)


WEAK, STRONG = figures("weak", 0.5), figures("strong", 3.0)


def test_the_strongest_is_best_at_the_smallest_rate_and_never_one_that_knows_the_truth() -> None:
    told = dataclasses.replace(figures("told", 9.0), knows_truth=True)
    assert strongest([WEAK, told, STRONG]).name == "strong"
    assert attackers([WEAK, told]) == [WEAK]
    assert attackers([told]) == [told], "where there is no other, it is shown"


def test_the_verdict_counts_attackers_and_says_what_chance_gives() -> None:
    told = dataclasses.replace(STRONG, knows_truth=True)
    text = verdict(STRONG, [WEAK, STRONG, told], CONTEXT)
    assert text.startswith("The strongest of 2 attacks, strong, finds")
    assert "where chance gives 5.0 % and at most 5.0 % of 100 non-members are wrongly accused" in text
    assert "4 shadow models (online)" in text


def test_tied_scores_that_reach_no_wanted_rate_are_said_to_be_tied() -> None:
    tied = figures("tied", 0.0, tied=True)
    text = verdict(tied, [tied], CONTEXT)
    assert "The strongest of 1 attack, tied, finds 100.0 % of 100 members" in text
    assert "scores are tied, and no threshold accuses fewer, so nothing can be measured at 5.0 %" in text


def test_without_rates_the_area_is_told_and_without_members_nothing_is() -> None:
    without = figures("auc", 1.0, fprs=())
    assert verdict(without, [without], CONTEXT).startswith("The strongest of 1 attack, auc, reaches AUC 0.")
    unknown = dataclasses.replace(WEAK, metrics=None)
    assert verdict(unknown, [unknown], CONTEXT).endswith("records are ranked but nothing is measured.")


def test_rates_that_the_sample_cannot_resolve_are_noted() -> None:
    assert notes([WEAK], [0.05], CONTEXT) == ("A false-positive rate of 0.1 % is not measurable with 100 non-members.",)
    (said,) = notes([figures("few", 1.0, fprs=())], [], CONTEXT)
    assert said.endswith("no false-positive rate of 1 % or less is measurable.")


def test_a_warning_stands_before_what_the_data_are() -> None:
    context = dataclasses.replace(CONTEXT, about="Made up.", notes=("Noticed.",))
    assert notes([WEAK], [0.05], context, "Beware.")[:3] == ("Beware.", "Made up.", "Noticed.")
