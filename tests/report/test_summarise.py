from __future__ import annotations

import json

from glasshouse import Evaluation, PrivacyClaim, audit_evidence
from glasshouse.evaluation.leakage import audit_power
from glasshouse.report.json_io import metrics_json
from tests.strategies import PAPER, gaussian_evidence


def test_the_summary_is_plain_json_and_repeats() -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    texts = [
        json.dumps(
            metrics_json(
                audit_evidence(
                    evidence, members=members, attacks=PAPER, evaluation=Evaluation(claim=PrivacyClaim(epsilon=1.0))
                ).summary()
            ),
            allow_nan=False,
        )
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
    found = json.loads(texts[0])
    assert found["attacks"]["lira"]["parameters"] == {"mode": "online", "variance": "global"}
    assert found["privacy"]["claim"] == {"epsilon": 1.0, "delta": 0.0}
    assert found["attacks"]["base"]["rates"][0]["wanted"] == 0.01


def test_the_verdict_names_the_strongest_attack_its_rate_and_its_interval() -> None:
    evidence, members = gaussian_evidence(records=2000, models=8, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=PAPER)
    summary = result.summary()
    simulated = {name: outcome.simulated for name, outcome in result.outcomes.items() if outcome.simulated}
    best = max(simulated, key=lambda name: simulated[name].strengths[0])
    assert summary.strongest == best
    assert f"{best}, the strongest of 3 attacks on simulated targets, identifies" in summary.verdict
    assert "95 % interval" in summary.verdict
    assert "8 shadow models (online)" in summary.verdict


def test_what_an_attack_learned_is_not_among_its_parameters() -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    summary = audit_evidence(evidence, members=members, attacks=["regressed"]).summary()
    assert summary.attack("regressed").parameters == {"mode": "online", "prior": 0.5, "folds": 5, "seed": 0}
    assert summary.attack("regressed").description == "Regressed(mode='online', prior=0.5, folds=5, seed=0)"


def test_the_power_of_an_audit_follows_the_figure_that_got_most_of_the_error() -> None:
    evidence, members = gaussian_evidence(records=400, models=8, shift=0.3, seed=0)
    result = audit_evidence(evidence, members=members, attacks=PAPER, evaluation=Evaluation(fprs=[0.05]))
    power = result.summary().power
    assert result.verdict_attack is not None
    assert result.verdict_attack.test.first is not None
    assert power is not None
    alike = audit_power(200, 200, [0.05], attacks=3)
    told = {"auc": power.auc < alike.auc, "tpr@0.05": power.rates[0].tpr < alike.rates[0].tpr}
    assert {figure for figure, smaller in told.items() if smaller} == {result.verdict_attack.test.first[1]}


def test_a_summary_is_shown_in_one_line() -> None:
    evidence, members = gaussian_evidence(records=40, models=4, shift=1.0, seed=0)
    summary = audit_evidence(evidence, members=members, attacks=["base", "loss"]).summary()
    assert repr(summary) == "Summary(40 records, attacks: base, loss)"
