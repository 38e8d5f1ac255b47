from __future__ import annotations

import dataclasses

from glasshouse import Evaluation, audit_evidence
from glasshouse.report import latex_table
from tests.strategies import PAPER, gaussian_evidence


def test_the_latex_table_has_a_row_for_each_attack_with_the_same_figures() -> None:
    evidence, members = gaussian_evidence(records=1000, models=8, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=PAPER, evaluation=Evaluation(fprs=[0.01, 0.05]))
    lines = latex_table(result.summary()).splitlines()
    assert lines[0] == r"\begin{tabular}{lrrr}"
    assert r"TPR at 1\,\% FPR (\%)" in lines[2]
    rows = [line for line in lines if line.startswith(("base", "lira", "rmia"))]
    assert len(rows) == 3
    assert f"{result.table()['auc'][0]:.3f}" in rows[0]
    assert all(row.count("&") == 3 for row in rows)


def test_names_that_latex_would_obey_are_escaped() -> None:
    evidence, members = gaussian_evidence(records=200, models=4, shift=2.0, seed=0)
    result = audit_evidence(evidence, members=members, attacks=["base"], evaluation=Evaluation(fprs=[]))
    name = r"a_b\input{x}%"
    assert result.verdict_attack is not None
    headline = dataclasses.replace(result.verdict_attack, attack=name)
    result = dataclasses.replace(result, outcomes={name: result.outcomes["base"]}, verdict_attack=headline)
    assert r"a\_b\textbackslash{}input\{x\}\%" in latex_table(result.summary())
