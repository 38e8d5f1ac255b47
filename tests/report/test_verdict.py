from __future__ import annotations

import dataclasses

import numpy as np

from glasshouse.attacks import LossThreshold
from glasshouse.evaluation import AttackOutcome, PrivacyVerdict, evaluate, verdict_attack
from glasshouse.evaluation.thresholds import SimulatedFigures
from glasshouse.report import Context
from glasshouse.report.decision.conclusion import attackers, verdict_figures
from glasshouse.report.decision.verdict import notes, verdict
from glasshouse.report.figures import AttackFigures, attack_figures

MEMBERS = np.arange(200) < 100
CONTEXT = Context(shadows=4, mode="online")


def figures(name: str, shift: float, *, fprs: tuple[float, ...] = (0.05,), tied: bool = False) -> AttackFigures:
    scores = np.random.default_rng(0).normal(size=200) + shift * MEMBERS
    if tied:
        scores = np.where(MEMBERS, 1.0, np.arange(200) % 2 == 0)
    metrics = evaluate(scores, MEMBERS, fprs=fprs)
    return attack_figures(name, AttackOutcome(LossThreshold(), scores, (), metrics, 0.0), MEMBERS)


WEAK = figures("weak", 0.5)


def outcome(shift: float, *, fprs: tuple[float, ...] = (0.05,), tied: bool = False) -> AttackOutcome:
    scores = np.random.default_rng(0).normal(size=200) + shift * MEMBERS
    if tied:
        scores = np.where(MEMBERS, 1.0, np.arange(200) % 2 == 0)
    return AttackOutcome(LossThreshold(), scores, (), evaluate(scores, MEMBERS, fprs=fprs), 0.0)


def told(shift: float, *, fprs: tuple[float, ...] = (0.05,), tied: bool = False) -> str:
    found = verdict_attack({"loss": outcome(shift, fprs=fprs, tied=tied)}, MEMBERS, fprs=fprs)
    return verdict(verdict_figures(found), CONTEXT)


def test_attacks_that_know_the_truth_are_no_attackers() -> None:
    limit = dataclasses.replace(figures("limit", 9.0), knows_truth=True)
    assert attackers([WEAK, limit]) == [WEAK]
    assert attackers([limit]) == [limit], "where there is no other, it is shown"


def test_the_verdict_says_whether_there_is_a_leak_and_what_chance_finds() -> None:
    text = told(3.0)
    assert text.startswith("A leak is shown (p ≤ 0.0005, 1 attack; by the TPR of loss at 5 % FPR). loss identifies ")
    assert "while 5 % of 100 non-members are flagged, so this rests on 5 of them; chance identifies 5.0 %" in text
    assert text.endswith("The attacker had 4 shadow models (online).")
    assert told(0.0).startswith("No leak is shown (p = 0.")


def test_tpr_auc_and_epsilon_are_in_one_text() -> None:
    found = verdict_figures(verdict_attack({"loss": outcome(3.0)}, MEMBERS, fprs=(0.05,)))
    assert "; the attacks show ε ≥ 1.71 at δ = 1e-05 (≥ 1.72 at δ = 0). The attacker" in verdict(
        found, CONTEXT, PrivacyVerdict(pure=1.72, epsilon=1.71)
    )
    assert "; the attacks show no node-level ε above 0 (" in verdict(found, CONTEXT, PrivacyVerdict(unit="node"))
    assert "; ε is withheld. The attacker" in verdict(found, CONTEXT, PrivacyVerdict(withheld="members differ"))


def test_without_random_members_no_leak_is_told() -> None:
    found = verdict_figures(verdict_attack({"loss": outcome(3.0)}, MEMBERS, fprs=(0.05,)), random=False)
    assert found.leak is None
    assert verdict(found, CONTEXT).startswith("The audit is inconclusive, since members were not drawn")


def test_the_way_of_the_choice_is_in_the_sentence() -> None:
    both = {"weak": outcome(0.5), "strong": outcome(3.0)}
    text = verdict(verdict_figures(verdict_attack(both, MEMBERS, fprs=[0.05])), CONTEXT)
    assert "strong, the strongest of 2 attacks on one half of the records, identifies on the other half" in text
    assert " of 50 members" in text


def test_tied_scores_that_reach_no_wanted_rate_are_said_to_be_tied() -> None:
    text = told(0.0, tied=True)
    assert "loss identifies 100.0 % of 100 members" in text
    assert "while 50.0 % of 100 non-members are flagged; scores are tied and no threshold flags fewer, so" in text
    assert "chance identifies 50.0 %" in text


def test_without_rates_the_area_is_told_and_without_members_nothing_is() -> None:
    assert ". loss reaches AUC 0." in told(1.0, fprs=())
    assert verdict(None, CONTEXT).endswith("records are ranked but nothing is measured.")


def test_rates_that_the_sample_cannot_resolve_are_noted() -> None:
    lost, few = notes([WEAK], [0.05], CONTEXT)
    assert lost == "A false-positive rate of 0.1 % is not measurable with 100 non-members."
    assert few.startswith("At 5 % false positives only 5 of 100 non-members may be flagged.")
    assert few.endswith("For a sharper figure, audit 200 non-members.")
    (said,) = notes([figures("few", 1.0, fprs=())], [], CONTEXT)
    assert said.endswith("no false-positive rate of 1 % or less is measurable.")


def test_a_warning_stands_before_what_the_data_are() -> None:
    context = dataclasses.replace(CONTEXT, about="Made up.", notes=("Noticed.",))
    assert notes([WEAK], [0.05], context, "Beware.")[:3] == ("Beware.", "Made up.", "Noticed.")


def test_the_sentence_names_the_figure_that_shows_the_leak_and_how_its_attack_was_chosen() -> None:
    simulated = SimulatedFigures(targets=8, auc=0.8, strengths=(0.5,))
    outcomes = {
        "first": dataclasses.replace(outcome(-1.0), simulated=simulated),
        "other": dataclasses.replace(outcome(2.0), simulated=dataclasses.replace(simulated, auc=0.6, strengths=(0.2,))),
    }
    found = verdict_figures(verdict_attack(outcomes, MEMBERS, fprs=[0.05]))
    text = verdict(found, CONTEXT)
    assert text.startswith("A leak is shown (p ≤ 0.0005, 2 attacks; by the ")
    assert " of other" in text.split(")")[0]
    assert "other, which shows it best of 2 attacks on these same records" in text
    assert "its estimates tend to be too high" in text
    assert "97.5 % interval" in text


def test_an_area_below_one_half_is_said_to_show_no_leak() -> None:
    text = told(-2.0)
    assert text.startswith("No leak is shown")
    assert "worse than guessing" in text
    assert "worse than guessing" not in told(0.0)
