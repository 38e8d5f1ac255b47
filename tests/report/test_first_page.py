from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import glasshouse
from glasshouse import AuditResult, Evaluation, Evidence, PrivacyClaim, audit_evidence
from glasshouse.cli import app
from glasshouse.config import AuditFile
from glasshouse.evaluation import Interval
from glasshouse.report import Summary, compare, read_run, render_comparison, render_html
from glasshouse.report.decision.first_page import (
    exposure_at,
    exposure_of,
    shown_groups,
)
from glasshouse.report.decision.next_steps import Step, next_steps
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.figures import RateFigure
from glasshouse.report.pictures.people import people_picture
from glasshouse.report.pictures.scores import roc_picture
from glasshouse.report.policy import Limit, Policy
from tests.strategies import gaussian_evidence

ABBREVIATIONS = re.compile(r"\b(TPR|FPR|AUC|ROC|ECE|FDR)\b|[εδμ]")


def audited(shift: float, **options: Any) -> AuditResult:
    evidence, members = gaussian_evidence(records=1500, models=8, shift=shift, seed=1)
    chosen: dict[str, Any] = {"members": members, "attacks": ["base", "rmia"], **options}
    return audit_evidence(evidence, **chosen)


@pytest.fixture(scope="module")
def leaky() -> AuditResult:
    return audited(2.0, evaluation=Evaluation(groups={"sex": np.where(np.arange(1500) % 3 == 0, "a", "b")}))


@pytest.fixture(scope="module")
def tight() -> AuditResult:
    return audited(0.0)


def with_context(summary: Summary, **changed: Any) -> Summary:
    return dataclasses.replace(summary, context=dataclasses.replace(summary.context, **changed))


def with_headline(summary: Summary, **changed: Any) -> Summary:
    assert summary.verdict_attack is not None
    return dataclasses.replace(summary, verdict_attack=dataclasses.replace(summary.verdict_attack, **changed))


def first_part(page: str) -> str:
    """The text of the page above the expert's part, without tags and without what a reader types or copies."""
    body = page.split("</style>")[1].split('id="expert"')[0]
    return re.sub(r"<[^>]*>", " ", re.sub(r"<pre.*?</pre>", "", body, flags=re.DOTALL))


def test_a_leak_above_the_usual_limit_is_high_and_none_is_never_called_safe(
    leaky: AuditResult, tight: AuditResult
) -> None:
    high, none = rating_of(leaky.summary()), rating_of(tight.summary())
    assert (high.level, high.word) == ("high", "High exposure")
    assert (none.level, none.word) == ("none", "No leak shown")
    assert "does not show that the model is safe" in " ".join(none.sentences)
    assert "usual policy" in high.rule
    assert [finding.status for finding in high.findings] == ["failed"]


def test_the_rating_follows_the_end_of_the_interval_that_is_sure(leaky: AuditResult) -> None:
    """Above the limit with confidence is high; a leak that may be below it is not; the limit is five times the rate.

    The rate is all the evidence there is here: without thresholds and ε, and with an AUC that many leaks have.
    """
    summary = leaky.summary()
    bare = tuple(dataclasses.replace(one, accusations=()) for one in summary.attacks)
    summary = dataclasses.replace(summary, attacks=bare, privacy=None)
    assert summary.verdict_attack is not None
    assert summary.verdict_attack.rate is not None
    limit = 5 * summary.verdict_attack.rate.wanted
    for low, high, level in [
        (limit + 0.001, 0.9, "high"),
        (limit - 0.001, 0.9, "some"),
        (0.0, limit - 0.001, "some"),
    ]:
        rate = dataclasses.replace(summary.verdict_attack.rate, tpr=(low + high) / 2, tpr_interval=Interval(low, high))
        assert rating_of(with_headline(summary, rate=rate)).level == level
    unsure = rating_of(with_headline(summary, rate=rate, leak=False))
    assert unsure.level == "none"


def test_what_could_not_be_measured_cannot_be_told(leaky: AuditResult, tight: AuditResult) -> None:
    plain, nothing = leaky.summary(), tight.summary()
    for summary in (
        with_headline(plain, leak=None),
        with_context(plain, warnings=("Members and non-members look swapped.",)),
        audited(2.0, members=None).summary(),
        dataclasses.replace(nothing, mismatch=True),
        with_context(nothing, shadows=2),
    ):
        assert rating_of(summary).word == "Inconclusive"
        own = Policy(limits=(Limit(figure="auc", most=1.0),))
        assert rating_of(summary, own).word == "Inconclusive"
        assert next_steps(summary, rating_of(summary))
    assert rating_of(dataclasses.replace(plain, mismatch=True)).level == "high"  # what is shown is shown


def test_figures_that_say_nothing_are_not_drawn(leaky: AuditResult) -> None:
    summary = leaky.summary()
    for lost in (with_headline(summary, leak=None), with_context(summary, warnings=("swapped",))):
        assert exposure_of(lost) is None
        page = render_html(lost)
        assert "guessing is right in 50" not in page
        assert 'class="plot people"' not in page
        assert "could identify about" not in page
        assert 'id="who"' not in page


def test_an_owners_policy_gives_the_rating(leaky: AuditResult, tight: AuditResult) -> None:
    strict, loose = (Policy(limits=(Limit(figure="auc", most=most),)) for most in (0.51, 1.0))
    assert rating_of(leaky.summary(), strict).word == "Outside the policy"
    assert rating_of(leaky.summary(), loose).word == "Within the policy, though a leak is shown"
    assert rating_of(tight.summary(), loose).word == "Within the policy; no leak is shown"
    aged = Policy(limits=(Limit(figure="auc", most=1.0),), age_days=1.0)
    assert rating_of(tight.summary(), aged).word == "Inconclusive"  # it was never saved


def test_a_claim_that_is_contradicted_is_high() -> None:
    result = audited(2.0, evaluation=Evaluation(claim=PrivacyClaim(epsilon=0.01)))
    rating = rating_of(result.summary())
    assert rating.level == "high"
    assert "contradicts the privacy guarantee that was claimed" in " ".join(rating.sentences)


@pytest.mark.parametrize(
    ("wanted", "reached", "told"),
    [
        (
            0.01,
            True,
            "Of 1 000 records in the training data, an attacker could identify about 42 (between 0 and 300), while",
        ),
        (0.0005, True, "Of 10 000 records in the training data, an attacker could identify about 420"),
        (0.01, False, "while wrongly flagging 250 of 1 000 non-members"),
    ],
)
def test_the_counts_are_those_of_the_rate(leaky: AuditResult, wanted: float, reached: bool, told: str) -> None:
    rate = RateFigure(wanted, wanted if reached else 0.25, 0.042, Interval(0.0, 0.3), 3, 0.01, reached=reached)
    summary = with_headline(leaky.summary(), rate=rate)
    page = render_html(summary).replace("\xa0", " ")
    assert told in page
    assert ("no attacker can flag fewer" in page) is not reached


def test_every_count_of_the_exposure_is_its_own_rate() -> None:
    rate = RateFigure(0.01, 0.008, 0.042, Interval(0.02, 0.3), 3, 0.013)
    found = exposure_at(rate, unit="records", members=500, others=400, confidence=0.95)
    assert (found.per, found.members, found.others) == (1000, 500, 400)
    assert [found.found, found.low, found.high, found.wrong, found.chance] == pytest.approx([42, 20, 300, 10, 13])
    tied = dataclasses.replace(rate, fpr=0.25, reached=False)
    above = exposure_at(tied, unit="records", members=500, others=400, confidence=0.95)
    assert (above.wrong, above.reached) == (250, False)


def test_a_sample_that_resolves_no_rate_still_speaks_about_pairs() -> None:
    evidence, members = gaussian_evidence(records=60, models=8, shift=2.0, seed=0)
    summary = audit_evidence(evidence, members=members, attacks=["base"], evaluation=Evaluation(fprs=[])).summary()
    assert exposure_of(summary) is None
    assert "guessing is right in 50" in render_html(summary)


@pytest.mark.parametrize(("share", "high"), [(0.0, None), (0.0004, 0.01), (0.042, 0.0999), (0.5, 1.0), (1.0, None)])
def test_the_crowd_has_as_many_figures_as_the_share_says(share: float, high: float | None) -> None:
    """The regions are counted cell by cell, as a dull drawing would place them."""
    drawn = people_picture(share, high=high, label="x", name="n")
    counts = {}
    for kind, path in re.findall(r'd="([^"]*)" class="crowd (\w+)"', drawn):
        parts = re.findall(r"h([\d.]+)v([\d.]+)", kind)
        counts[path] = sum(round(float(wide) * float(tall) / 130) for wide, tall in parts)
    found = max(1, round(1000 * share)) if share else 0
    maybe = max(0, round(1000 * (high or 0)) - found)
    assert counts.get("found", 0) == found
    assert counts.get("maybe", 0) == maybe
    assert sum(counts.values()) == 1000


def test_the_first_part_needs_no_abbreviation_explained(leaky: AuditResult, tight: AuditResult) -> None:
    claimed = audited(2.0, evaluation=Evaluation(claim=PrivacyClaim(epsilon=1.0)))
    for result in (leaky, tight, audited(2.0, members=None), claimed):
        text = first_part(render_html(result.summary()))
        assert ABBREVIATIONS.findall(text) == []
        assert "What was tested, and what was not" in text
    comparison = compare({"plain": leaky, "defended": tight})
    assert ABBREVIATIONS.findall(first_part(render_comparison(comparison))) == []


def test_every_abbreviation_of_the_page_is_in_its_glossary(leaky: AuditResult) -> None:
    page = render_html(leaky.summary())
    for word in ("TPR", "FPR", "AUC", "ROC", "FDR", "ECE", "ε", "δ", "μ", "Online, offline", "Shadow model", "DP-SGD"):
        assert word in page.split('id="glossary"')[1]


def test_equal_curves_share_a_line_that_names_both(leaky: AuditResult) -> None:
    curves = {one.name: one.metrics.curve for one in leaky.summary().attacks if one.metrics is not None}
    other = dataclasses.replace(curves["base"], tpr=curves["base"].fpr)
    drawn = roc_picture({"a": curves["base"], "b": curves["base"], "c": other})
    assert ">a = b<" in drawn
    assert drawn.count('class="band') == 2


def test_the_verdict_says_what_best_picked() -> None:
    result = audited(2.0, attacks=[{"name": "best", "candidates": ("base", "loss")}])
    picked = result.outcomes["best"].picked
    assert picked
    assert f"best (here {picked}) identifies" in result.summary().verdict
    assert read_again(result).verdict == result.summary().verdict


def read_again(result: AuditResult) -> Summary:
    from glasshouse.report.json_io import metrics_json, run_json, summary_from

    summary = result.summary()
    plain = json.loads(json.dumps([metrics_json(summary), run_json(summary)]))
    return summary_from(*plain)


TRAINERS = {
    "torch": "TorchTrainer(module=<function mlp>, epochs=30, batch_size=64)",
    "private": "PrivateTrainer(module=<function mlp>, epsilon=3.0, epochs=10)",
    "forest": "SklearnTrainer(estimator=RandomForestClassifier(n_estimators=200))",
    "own": "my_function",
    "none": "none: the model was given",
}


def steps_of(summary: Summary, kind: str, *, policy: Policy | None = None) -> tuple[Step, ...]:
    settings = {"trainer": TRAINERS.get(kind, "GNNTrainer(epochs=50)")} | (
        {"setting": "inductive"} if kind == "graph" else {}
    )
    changed = with_context(summary, settings=settings)
    return next_steps(changed, rating_of(changed, policy), policy)


@pytest.mark.parametrize("kind", [*TRAINERS, "graph"])
def test_what_the_report_says_to_do_can_be_done(leaky: AuditResult, kind: str, tmp_path: Path) -> None:
    """Every line for an audit file is read by the audit file, and every line of Python runs."""
    steps = steps_of(leaky.summary(), kind)
    assert [step.title for step in steps][-2:] == ["Audit again, and compare", "Set your own limits"]
    assert any("differential privacy" in step.title for step in steps) is (kind != "graph")
    leaky.save(tmp_path / "RUN")
    names: dict[str, Any] = {name: getattr(glasshouse, name) for name in glasshouse.__all__}
    names |= dict.fromkeys(("MyNet", "MyGNN"), lambda: None)
    names |= {"audit": dict, "population": None, "members": None, "trainer": None}  # its keywords are checked below
    from sklearn.ensemble import RandomForestClassifier

    from glasshouse.graph import GNNTrainer
    from glasshouse.query.labels_only import LabelOnly
    from glasshouse.training import EarlyStopping

    names |= {
        "RandomForestClassifier": RandomForestClassifier,
        "GNNTrainer": GNNTrainer,
        "EarlyStopping": EarlyStopping,
        "LabelOnly": LabelOnly,
    }
    for code in (code for step in steps for code in step.codes):
        if code.where == "audit file":
            told = yaml.safe_load(code.text)
            AuditFile.model_validate({"data": {"name": "digits"}, **told} if "graph" not in told else told)
        elif code.where == "python":
            text = code.text.replace("RUN/", f"{tmp_path}/RUN/").replace("audit(population, ", "audit(")
            exec(text, names)  # noqa: S102 (our own lines)
        else:
            assert code.text.startswith("glasshouse ")
    identified = names["identified"]
    records = leaky.records()
    decided = records[f"{leaky.summary().strongest}_decision"] & records["member"]
    assert identified == records["id"][decided].tolist()


def test_the_epsilon_to_train_with_keeps_the_policys_limit(leaky: AuditResult) -> None:
    policy = Policy(limits=(Limit(figure="tpr", at_fpr=0.01, most=0.02),))
    told = steps_of(leaky.summary(), "torch", policy=policy)[0]
    assert "epsilon 0.6" in told.title  # exp(0.6) = 1.8 ≤ 2 < exp(0.7)
    assert "epsilon 1.6" in steps_of(leaky.summary(), "torch")[0].title


def test_commands_of_the_page_run(leaky: AuditResult, tight: AuditResult, tmp_path: Path) -> None:
    runner = CliRunner()
    leaky.save(tmp_path / "RUN")
    tight.save(tmp_path / "NEW_RUN")
    (tmp_path / "risk.yaml").write_text("limits: [{figure: auc, most: 0.51}]")
    out = runner.invoke(
        app, ["compare", str(tmp_path / "RUN"), str(tmp_path / "NEW_RUN"), "--out", str(tmp_path / "c.html")]
    )
    assert out.exit_code == 0
    assert "High exposure" in (tmp_path / "c.html").read_text()
    page = tmp_path / "RUN" / "report.html"
    for options, word in (
        (["--policy", str(tmp_path / "risk.yaml"), "--author", "A. <Ndiaye>"], "Outside the policy"),
        ([], "High exposure"),
    ):
        assert runner.invoke(app, ["report", str(tmp_path / "RUN"), *options]).exit_code == 0
        assert word in page.read_text()
        assert ("A. &lt;Ndiaye&gt;" in page.read_text()) is bool(options)


def test_a_run_keeps_its_policy_and_its_date(leaky: AuditResult, tmp_path: Path) -> None:
    from glasshouse.report.policy import policy_of

    policy = Policy(limits=(Limit(figure="auc", most=0.51, end="lower"),), attacks=("base",), age_days=30.0)
    folder = leaky.save(tmp_path / "run", policy=policy)
    assert policy_of(folder) == policy
    summary = read_run(folder)
    assert summary.written is not None
    timed = dataclasses.replace(
        summary, attacks=tuple(dataclasses.replace(one, seconds=0.0) for one in summary.attacks)
    )
    again = render_html(timed, policy=policy)
    assert "Outside the policy" in again
    assert f"{summary.written:%d %B %Y, %H:%M} UTC" in again
    assert CliRunner().invoke(app, ["report", str(folder)]).exit_code == 0
    assert "Outside the policy" in (folder / "report.html").read_text()


def test_groups_that_stand_out_are_named(leaky: AuditResult) -> None:
    groups = shown_groups(leaky.summary())
    assert {one.column for one in groups} == {"sex"}
    first = dataclasses.replace(groups[0], singled_out="more")
    summary = dataclasses.replace(leaky.summary(), groups=(first, *groups[1:]))
    assert "<p>More exposed than the other groups of their column: sex a." in render_html(summary)
    many = [dataclasses.replace(first, group=str(n), singled_out="", members=n) for n in range(40)]
    shown = shown_groups(dataclasses.replace(summary, groups=(*many, first)))
    assert first in shown
    assert len(shown) == 12


def test_numbers_that_are_not_there_leave_a_first_page() -> None:
    evidence = Evidence(target_loss=np.ones(6), shadow_loss=np.ones((2, 6)), shadow_members=[[1, 0] * 3, [0, 1] * 3])
    text = first_part(render_html(audit_evidence(evidence, members=[1, 0] * 3, attacks=["base"]).summary()))
    assert "Inconclusive" in text
