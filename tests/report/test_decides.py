"""The page that decides, on real small runs: one judgement by rating and gate, and the seven cases of issue 43."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from glasshouse import AuditResult, Evaluation, InputError, Population, audit, audit_evidence
from glasshouse.cli import app
from glasshouse.evidence import write_evidence
from glasshouse.report import Summary, render_html
from glasshouse.report.appendix import Appendix
from glasshouse.report.decision.next_steps import next_steps
from glasshouse.report.decision.rating import rating_of
from glasshouse.report.json_io import metrics_json, run_json, summary_from
from glasshouse.report.policy import Limit, Policy, judge
from glasshouse.report.terminal import summary_text
from tests.strategies import gaussian_evidence

RUNNER = CliRunner()


def split(count: int, *, seed: int = 0) -> np.ndarray:
    """A random half, [N]."""
    return np.random.default_rng(seed).permutation(count) < count // 2


def read_again(summary: Summary) -> Summary:
    """The same summary, as a saved run has it."""
    return summary_from(*json.loads(json.dumps([metrics_json(summary), run_json(summary)])))


def logistic(strength: float) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=strength))


@pytest.fixture(scope="module")
def cancer() -> tuple[Population, np.ndarray]:
    x, y = load_breast_cancer(return_X_y=True)
    return Population(x, y), split(len(y), seed=1)


@pytest.fixture(scope="module")
def unheard(cancer: tuple[Population, np.ndarray]) -> dict[str, AuditResult]:
    """Runs that say nothing: no shadow models and an AUC of about 0.5; a target unlike its shadow models."""
    population, members = cancer
    target = logistic(0.01).fit(population.x[members], population.y[members])
    return {
        "no shadow models": audit(population, members=members, trainer=GaussianNB(), shadows=0, attacks=["loss"]),
        "mismatch": audit(
            population, model=target, members=members, trainer=logistic(0.2), shadows=6, attacks=["base"]
        ),
    }


@pytest.mark.parametrize("kind", ["no shadow models", "mismatch"])
def test_case_2_the_gate_does_not_pass_a_run_that_says_nothing(
    unheard: dict[str, AuditResult], kind: str, tmp_path: Path
) -> None:
    """Whatever the limit, and however far below or above it the figure is; rating and evidence file say the same."""
    result = unheard[kind]
    summary = result.summary()
    assert summary.conclusion.leak is False
    assert summary.conclusion.silent
    assert kind != "mismatch" or result.mismatch
    for policy in (None, *(Policy(limits=(Limit(figure="auc", most=most),)) for most in (0.4, 1.0))):
        verdict, rating = judge(summary, policy), rating_of(summary, policy)
        assert (verdict.exit_code, rating.word, rating.findings) == (4, "Inconclusive", verdict.findings)
        assert summary.conclusion.why in rating.sentences
    folder = result.save(tmp_path / "run")
    (tmp_path / "loose.yaml").write_text("limits: [{figure: auc, most: 1}]")
    for options in ([], ["--policy", str(tmp_path / "loose.yaml")]):
        told = RUNNER.invoke(app, ["check", str(folder), *options])
        assert told.exit_code == 4, told.output
    told_first = [one.text for _, answers in Appendix(summary).answers for a in answers for one in a.statements]
    assert any(text.startswith("Rated: Inconclusive.") for text in told_first)


def test_without_a_policy_the_gate_uses_the_runs_own_and_else_the_usual_one(tmp_path: Path) -> None:
    """So the page of a run and its gate agree."""
    evidence, members = gaussian_evidence(records=1500, models=8, shift=2.0, seed=1)
    result = audit_evidence(evidence, members=members, attacks=["base"])
    plain = result.save(tmp_path / "plain")
    lenient = result.save(tmp_path / "lenient", policy=Policy(limits=(Limit(figure="auc", most=1.0),)))
    codes = [RUNNER.invoke(app, ["check", str(folder)]).exit_code for folder in (plain, lenient)]
    assert codes == [3, 0]
    for folder, word in ((plain, "High exposure"), (lenient, "Within the policy, though a leak is shown")):
        assert word in (folder / "report.html").read_text()


def test_an_estimate_counts_only_where_the_sample_resolves_it() -> None:
    """One of 1 % of 300 non-members may be flagged three times: the bare estimate says nothing, its ends do."""
    evidence, members = gaussian_evidence(records=600, models=8, shift=2.0, seed=0)
    small = audit_evidence(evidence, members=members, attacks=["base"]).summary()
    for attack in ("headline", "base"):
        limit = Limit(figure="tpr", at_fpr=0.01, most=0.9, attack=attack)
        found = {
            end: judge(small, Policy(limits=(dataclasses.replace(limit, end=end),))).status
            for end in ("upper", "estimate", "lower", "both")
        }
        assert found == {"upper": "passed", "estimate": "unknown", "lower": "passed", "both": "passed"}
    (unsure,) = judge(small, Policy(limits=(Limit(figure="tpr", at_fpr=0.01, most=0.2),), end="both")).findings
    assert unsure.status == "unknown"
    assert unsure.sentence.endswith("too few records to say whether the limit is exceeded.")
    (sure,) = judge(small, Policy(limits=(Limit(figure="auc", most=0.6),), end="estimate")).findings
    assert sure.status == "failed"


@pytest.mark.parametrize("count", [60, 100, 300, 580])
def test_case_1_a_perfect_leak_is_high_whether_or_not_the_wanted_rate_is_resolved(count: int) -> None:
    """30 to 290 non-members: at 1 % none, one or two of them may be flagged; the AUC is 1 all the same."""
    x, y = load_digits(return_X_y=True)
    population = Population(x[:count], y[:count])
    trainer = ExtraTreesClassifier(30)
    result = audit(population, members=split(count), trainer=trainer, attacks=["base", "lira"], shadows=4)
    summary = result.summary()
    assert summary.verdict_attack is not None
    assert summary.verdict_attack.auc > 0.99
    rating = rating_of(summary)
    assert (rating.word, judge(summary).exit_code) == ("High exposure", 3)
    assert {one.status for one in rating.findings} == {"failed"}
    assert rating.sentences[0].startswith("Attackers can clearly tell")


def test_case_1_a_model_whose_file_is_the_training_data_is_high_however_little_its_answers_show(
    cancer: tuple[Population, np.ndarray],
) -> None:
    population, members = cancer
    trainer = make_pipeline(StandardScaler(), KNeighborsClassifier(1))
    result = audit(population, members=members, trainer=trainer, attacks=["base"], shadows=4)
    page = render_html(result.summary())
    told = "The model file contains training records: KNeighborsClassifier keeps its training records."
    assert told in page.split('id="expert"')[0]
    assert "Do not give the model file away" in page
    for summary in (result.summary(), read_again(result.summary())):
        assert rating_of(summary).word == "High exposure"
        assert judge(summary).exit_code == 3


def test_weak_and_strong_evidence_read_differently() -> None:
    evidence, members = gaussian_evidence(records=1500, models=8, shift=0.2, seed=1)
    summary = audit_evidence(evidence, members=members, attacks=["base"]).summary()
    assert summary.verdict_attack is not None
    told = {}
    for p_value in (0.046, 0.005, 0.0005):
        found = dataclasses.replace(summary.verdict_attack, p_value=p_value, leak=True)
        told[p_value] = rating_of(dataclasses.replace(summary, verdict_attack=found)).sentences[0]
    assert told[0.046].startswith("There is weak evidence that attackers can tell training records from non-members")
    assert "at most 1 of 22 audits. Audit more records" in told[0.046]
    assert told[0.005].startswith("Attackers can tell training records")
    assert told[0.0005].startswith("Attackers can clearly tell training records")
    assert "1 of 2\xa0000 audits." in told[0.0005]


def memorised(*, seed: int = 0) -> tuple[Population, dict[str, np.ndarray]]:
    """A table in which men have some labels at random, and women few: a forest learns these by heart, and only these.

    Women with high income are such records alone, so that they are the most exposed, though women are less so.
    """
    random = np.random.default_rng(seed)
    x, men = random.normal(size=(1600, 4)), random.random(1600) < 0.5
    clear = x[:, 0] > 0
    x[:, 0] += np.where(clear, 0.5, -0.5)
    high = np.where(men, clear ^ (random.random(1600) < 0.3), random.random(1600) < 0.06)
    return Population(np.c_[x, men], np.where(high, "high", "low")), {"sex": np.where(men, "men", "women")}


@pytest.fixture(scope="module")
def people() -> AuditResult:
    population, columns = memorised()
    trainer, members = RandomForestClassifier(20), split(1600, seed=1)
    return audit(
        population, members=members, trainer=trainer, attacks=["base"], evaluation=Evaluation(groups=columns), seed=0
    )


def test_case_5_the_most_exposed_cell_is_named_though_its_column_points_elsewhere(people: AuditResult) -> None:
    summary = people.summary()
    assert {(one.column, one.group): one.singled_out for one in summary.groups} == {
        ("class", "high"): "more",
        ("class", "low"): "less",
        ("sex", "men"): "more",
        ("sex", "women"): "less",
    }
    worst = summary.worst_cell
    assert worst is not None
    assert worst.name == "class high with sex women"
    at = (people.records()["label"] == "high") & (people.records()["sex"] == "women")
    flagged, inside = people.records()["base_decision"], people.records()["member"]
    counts = [int((at & one).sum()) for one in (inside, ~inside, inside & flagged, ~inside & flagged)]
    assert counts == [worst.members, worst.non_members, worst.identified, worst.flagged]
    assert worst.identified > 0.9 * worst.members
    low, high = (f"{1000 * end:,.0f}".replace(",", "\xa0") for end in worst.tpr_interval)
    told = (
        f"Most exposed is class high with sex women: {worst.identified} of {worst.members} members are identified "
        f"(between {low} and {high} of 1\xa0000), and {worst.flagged} of {worst.non_members} non-members flagged"
    )
    first, expert = render_html(read_again(summary)).split('id="expert"')
    short = f"Most exposed: {worst.name}, {worst.identified} of {worst.members} members flagged"
    assert short in " ".join(str(people).split())
    for text in (first, expert, summary_text(summary, verbose=True)):
        assert " ".join(told.split()) in " ".join(text.split())


def test_case_3_sentence_picture_and_table_speak_of_the_same_flags(people: AuditResult) -> None:
    """The counts of each group, its place in the sentence and its two dots are all from the first threshold."""
    summary = people.summary()
    records = people.records()
    page = render_html(summary)
    picture = page.split('<h2 id="who">')[1].split("</figure>")[0]
    assert "None of the" not in picture
    assert "More exposed than the other groups of their column: class high, sex men. Less exposed: class" in picture
    dots = [float(at) for at in re.findall(r'<circle cx="([\d.]+)"', picture)]
    axis = [float(at) for at in re.findall(r'class="tick"[^>]*>([\d.]+)<', picture)]
    ends = [float(at) for at in re.findall(r'<text x="([\d.]+)"[^>]*class="tick"', picture)]
    assert len(dots) == 2 * (1 + len(summary.groups) + 1)  # all records, every group, and the combination

    def place(rate: float) -> float:
        return float(np.interp(1000 * rate, axis, ends))

    for row, one in enumerate(summary.groups, start=1):
        at = records["label" if one.column == "class" else one.column] == one.group
        rates = [records["base_decision"][at & side].mean() for side in (~records["member"], records["member"])]
        assert (one.fpr, one.tpr) == (rates[0], rates[1])
        assert dots[2 * row : 2 * row + 2] == pytest.approx([place(rate) for rate in rates], abs=0.2)
        assert f"{one.column} {one.group} ({one.singled_out}, {one.flags})" in page
    assert 'class="chance"' not in picture
    assert 'class="cut"' not in picture


def test_case_4_a_rare_class_that_is_wholly_exposed_is_found_and_makes_the_rating_high(tmp_path: Path) -> None:
    """Of 1 500 records 39 have a label that nothing explains; elsewhere the limit is kept."""
    random = np.random.default_rng(0)
    x = random.normal(size=(1500, 4))
    label = (x[:, 0] > 0).astype(int)
    x[:, 0] += 2.0 * label - 1
    label[:39] = 2
    population, trainer = Population(x, np.array(["common", "usual", "rare"])[label]), ExtraTreesClassifier(20)
    result = audit(population, members=split(1500, seed=1), trainer=trainer, attacks=["base"])
    summary = result.summary()
    shown = summary.verdict_attack
    assert shown is not None
    assert shown.rate is not None
    assert shown.rate.tpr_interval.low < 0.05 < shown.rate.tpr_interval.high  # the whole does not tell
    worst = summary.worst_cell
    assert worst is not None
    assert (worst.name, worst.identified, worst.flagged) == ("class rare", worst.members, 0)
    assert 15 <= worst.members <= 25
    rating = rating_of(summary)
    assert rating.word == "High exposure"
    (found,) = rating.findings
    assert found.sentence.startswith(
        f"Limit exceeded: in class rare, base flags {worst.members} of {worst.members} members and 0 of "
    )
    folder = result.save(tmp_path / "run")
    for most, code in ((0.2, 3), (1.0, 0)):
        (tmp_path / "risk.yaml").write_text(f"limits: [{{figure: tpr, group: worst, most: {most}}}]\nend: lower")
        told = RUNNER.invoke(app, ["check", str(folder), "--policy", str(tmp_path / "risk.yaml")])
        assert told.exit_code == code, told.output
        assert f"TPR of the most exposed group at most {100 * most:g} %: class rare 100.0 %" in told.output


def test_a_limit_on_the_worst_group_is_on_all_records_where_none_stands_out(people: AuditResult) -> None:
    summary = people.summary()
    limit = Limit(figure="tpr", group="worst", most=0.5)
    alike = dataclasses.replace(summary, worst_cell=None)
    (found,) = judge(alike, Policy(limits=(limit,))).findings
    flags = summary.attack(summary.strongest).first_flags
    assert flags is not None
    assert (found.status, f"{100 * flags.tpr:.1f} %" in found.reason) == ("passed", True)
    (lost,) = judge(dataclasses.replace(alike, groups=()), Policy(limits=(limit,))).findings
    assert lost.status == "unknown"
    assert summary.worst_cell is not None
    small = dataclasses.replace(summary.worst_cell, members=19, identified=9)
    (few,) = judge(dataclasses.replace(summary, worst_cell=small), Policy(limits=(limit,), end="estimate")).findings
    assert few.status == "unknown"
    with pytest.raises(InputError, match="the worst group is the one with the largest tpr"):
        Limit(figure="auc", group="worst", most=0.6)


@pytest.fixture(scope="module")
def tight(cancer: tuple[Population, np.ndarray]) -> AuditResult:
    """A model that leaks nothing that the attacks find."""
    population, members = cancer
    return audit(population, members=members, trainer=GaussianNB(), attacks=["base", "lira"], seed=1)


def test_case_6_a_model_that_leaks_nothing_is_drawn_grey_and_lists_nobody(tight: AuditResult, tmp_path: Path) -> None:
    summary = tight.summary()
    assert rating_of(summary).word == "No leak shown"
    best = summary.strongest
    flagged, inside = (tight.records()[name] for name in (f"{best}_decision", "member"))
    counts = [f"{1000 * flagged[side].mean():.0f}" for side in (inside, ~inside)]
    counts = ["fewer than 1" if not int(one) and flagged.any() else one for one in counts]
    page = render_html(summary)
    assert f"No better than guessing: {counts[0]} against {counts[1]}." in page.replace("\xa0", " ")
    assert 'class="one found null"' in page
    assert re.findall(r'class="one (?:found|maybe|rest)"', page) == []
    assert 'class="key found"' not in page
    assert "Records most at risk" not in page
    assert 'id="records"' not in page
    assert "This report lists no records, since no leak is shown." in page
    assert "Records most at risk" not in str(tight)
    assert not read_again(summary).top_records.height
    ids = set(tight.records()["id"].tolist())
    tight.save(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["top_records"] == []
    assert not ids & set(re.findall(r'class="id" title="([^"]*)"', (tmp_path / "run" / "report.html").read_text()))


def test_a_leak_is_drawn_red_and_lists_records(people: AuditResult) -> None:
    page = render_html(people.summary())
    assert 'class="one found"' in page
    assert not [css for css in re.findall(r'class="one [^"]*"', page) if "null" in css]
    assert page.count('class="id" title=') == 100


def test_case_7_the_first_advice_for_a_forest_keeps_the_forest(people: AuditResult) -> None:
    """That it is measured too is `glasshouse advise`, which is another part of the issue."""
    first, second, *_ = next_steps(people.summary(), rating_of(people.summary()))
    assert first.title == "Fit the training data less closely"
    assert "RandomForestClassifier(min_samples_leaf=10)" in first.codes[1].text
    assert "differential privacy" in second.title


def test_the_sheet_has_at_most_250_words(
    people: AuditResult, tight: AuditResult, unheard: dict[str, AuditResult]
) -> None:
    """How bad, for whom, how sure, what to do, and a place to sign; pictures and warnings are not counted."""
    for result in (people, tight, *unheard.values()):
        page = render_html(result.summary())
        sheet = page.split('<div class="sheet">')[1].split('<dl class="signoff">')
        text = re.sub(r"<svg.*?</svg>|<p class=\"warning.*?</p>", "", sheet[0], flags=re.DOTALL)
        plain = re.sub(r"<[^>]*>", " ", text + sheet[1].split("</dl>")[0]).replace("\xa0", "")
        words = re.findall(r"\S*\w\S*", plain)
        assert 50 < len(words) <= 250
        rating = rating_of(result.summary())
        for told in (rating.word, "Tested:", "Not tested:", "What to do", "release", "Signature"):
            assert told in " ".join(plain.split())


def test_a_page_names_model_and_data_in_its_title_and_the_command_that_repeats_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence, members = gaussian_evidence(records=300, models=4, shift=1.0, seed=0)
    losses, out = str(write_evidence(tmp_path / "losses.npz", evidence, members=members)), str(tmp_path / "my run")
    arguments = ["score", losses, "-a", "base", "--out", out, "--quiet"]
    for program, known in (("/usr/bin/glasshouse", True), ("/usr/bin/pytest", False)):
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        done = RUNNER.invoke(app, [*arguments, "--overwrite"])
        assert done.exit_code == 0, done.output
        page = (tmp_path / "my run" / "report.html").read_text()
        command = html.escape(f"glasshouse score {losses} -a base --out '{out}' --quiet").replace("&#x27;", "&#39;")
        assert (command in page) is known
        assert "300 records audited, 150 of them training data) · Glasshouse</title>" in page
