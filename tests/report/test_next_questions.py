"""What a reader asks after the verdict: sentences, tables, picture, and that a saved run keeps all of it."""

from __future__ import annotations

import dataclasses
import json
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from glasshouse import AuditResult, Evaluation, Evidence, audit_evidence
from glasshouse.evaluation.groups import GroupLeak
from glasshouse.report import print_summary, read_run, render_html
from glasshouse.report.decision.verdict import groups_sentence, list_sentence, power_sentences, precision_sentence
from glasshouse.report.pictures.people import groups_picture
from glasshouse.report.pictures.scores import precision_picture
from tests.strategies import gaussian_evidence


@pytest.fixture(scope="module")
def result() -> AuditResult:
    """Class 1 leaks much, class 0 little; the name of a group is markup."""
    random = np.random.default_rng(0)
    evidence, members = gaussian_evidence(records=1200, models=8, shift=1.0, seed=0)
    strange, _ = gaussian_evidence(records=1200, models=8, shift=4.0, seed=0)
    second = np.arange(1200) % 2 == 1
    evidence = Evidence(
        target_loss=np.where(second, strange.target_loss, evidence.target_loss),
        shadow_loss=np.where(second, strange.shadow_loss, evidence.shadow_loss),
        shadow_members=evidence.shadow_members,
        labels=second.astype(int),
    )
    columns = {"site": random.choice(["<b>north</b>", "south"], 1200), "age": random.integers(18, 90, 1200)}
    return audit_evidence(evidence, members=members, attacks=["base", "lira"], evaluation=Evaluation(groups=columns))


def test_a_saved_run_keeps_groups_power_and_accusations(result: AuditResult, tmp_path: Path) -> None:
    result.save(tmp_path / "run")
    again, summary = read_run(tmp_path / "run"), result.summary()
    assert again.groups == summary.groups
    assert again.power == summary.power
    for one, other in zip(again.attacks, summary.attacks, strict=True):
        assert (one.accusations, one.listed, one.fewer) == (other.accusations, other.listed, other.fewer)
    assert "accusations" in json.loads((tmp_path / "run" / "metrics.json").read_text())["attacks"]["base"]


def test_the_page_shows_the_group_that_leaks_and_escapes_names(result: AuditResult) -> None:
    summary = result.summary()
    page = render_html(summary)
    verdicts = {(one.column, one.group): one.singled_out for one in summary.groups}
    assert verdicts["class", "1"] == "more"
    assert verdicts["class", "0"] == "less"
    assert not any(side for (column, _), side in verdicts.items() if column != "class")
    assert "leaks more" in page
    assert "<b>north</b>" not in page
    for section in ("precision", "groups", "power"):
        assert f'<h2 id="{section}">' in page
        assert f'href="#{section}"' in page
    best = summary.attack(summary.strongest)
    assert best.fewer is not None
    assert best.fewer.sentence() in page
    assert precision_sentence(best) in page
    assert 'class="plot precision"' in page


def test_the_terminal_answers_in_a_few_lines(result: AuditResult) -> None:
    out = StringIO()
    print_summary(result.summary(), Console(file=out, width=400), verbose=True)
    text = out.getvalue()
    assert "are not members if 50 % of all records are members" in text
    assert re.search(r"can flag \d+ records with at most 10 % of the flags wrong", text)
    assert re.search(r"class 1 \(more, \d+ of \d+ members and \d+ of \d+ non-members flagged\)", text)
    assert "in four of five cases" in text


def test_tables_have_a_row_for_each_group_and_each_prior(result: AuditResult) -> None:
    groups = result.group_table()
    assert groups["group"].tolist()[:2] == ["0", "1"]
    assert groups["column"].tolist().count("age") == 4
    assert (groups["auc_low"] <= groups["auc"]).all()
    precision = result.precision_table()
    assert precision.height == 2 * 3  # attacks, priors; one threshold each
    assert (precision["precision_low"] <= precision["precision_high"]).all()
    records = result.records()
    assert records["site"].tolist()[0] in ("<b>north</b>", "south")
    listed = int((records["lira_fdr"] <= 0.1).sum())
    row = result.table()["attack"].tolist().index("lira")
    assert result.table()["flagged@fdr0.1"][row] == listed == result.summary().attack("lira").listed
    assert listed > 10
    assert records["member"][records["lira_fdr"] <= 0.1].mean() > 0.8
    assert set(np.unique(records["lira_stability"])) <= {0.0, 0.25, 0.5, 0.75, 1.0}


def test_without_members_there_is_a_list_but_no_rate(result: AuditResult) -> None:
    blind = audit_evidence(result.evidence, attacks=["lira"])
    summary = blind.summary()
    assert summary.groups == ()
    assert summary.power is None
    (attack,) = summary.attacks
    assert precision_sentence(attack) == ""
    assert " records with at most 10 % of the flags wrong" in list_sentence(attack)
    assert blind.group_table().height == blind.precision_table().height == 0
    page = render_html(summary)
    assert 'id="precision"' in page
    assert 'id="groups"' not in page
    np.testing.assert_array_equal(blind.records()["lira_fdr"], result.records()["lira_fdr"])


def test_sentences_for_one_none_and_nobody(result: AuditResult) -> None:
    attack = result.summary().attacks[0]
    assert "can flag 1 record with" in list_sentence(dataclasses.replace(attack, listed=1))
    assert "can flag no record" in list_sentence(dataclasses.replace(attack, listed=0))
    assert list_sentence(dataclasses.replace(attack, listed=None)) == ""
    nobody = dataclasses.replace(attack.accusations[0], tpr=0.0, fpr=0.0)
    assert precision_sentence(dataclasses.replace(attack, accusations=(nobody,))).endswith("flags no record.")
    assert groups_sentence([GroupLeak(column="a", group="b", members=1, non_members=1)]) == ""
    power = result.summary().power
    assert power is not None
    assert f"AUC of {power.auc:.3f}" in power_sentences(power)[0]


def test_the_picture_of_precision_goes_through_its_dots_and_nobody_accused_has_none(result: AuditResult) -> None:
    summary = result.summary()
    best = summary.attack(summary.strongest)
    drawn = precision_picture(best.name, best.accusations[0])
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)
    curve = [tuple(map(float, at.split())) for at in re.search(r'd="M([^"]+)" class="curve', drawn).group(1).split("L")]  # type: ignore[union-attr]
    assert len(dots) == 3
    for x, y in dots:  # between two points of the curve, as high as they are
        near = sorted(curve, key=lambda at: abs(at[0] - float(x)))[:2]
        assert min(abs(at[1] - float(y)) for at in near) < 8
    nobody = tuple(dataclasses.replace(one, value=None) for one in best.accusations[0].precisions)
    first = dataclasses.replace(best.accusations[0], tpr=0.0, fpr=0.0, precisions=nobody)
    empty = dataclasses.replace(best, accusations=(first,))
    others = tuple(attack for attack in summary.attacks if attack.name != best.name)
    page = render_html(dataclasses.replace(summary, attacks=(empty, *others)))
    assert 'class="plot precision"' not in page


def test_the_picture_has_a_dot_for_each_group_with_an_area_and_stays_inside(result: AuditResult) -> None:
    groups = [*result.summary().groups, GroupLeak(column="age", group="few", members=3, non_members=3)]
    drawn = groups_picture(groups, overall=0.7)
    assert drawn.count("<circle") == len(groups) - 1
    assert drawn.count("dot s1") == 2
    height = float(re.search(r'viewBox="0 0 440 (\d+)"', drawn).group(1))  # type: ignore[union-attr]
    assert max(float(y) for y in re.findall(r'cy="([\d.]+)"', drawn)) < height - 40
    long = dataclasses.replace(groups[0], group="x" * 50)
    assert "x" * 19 + "…" in groups_picture([long], overall=0.7)
