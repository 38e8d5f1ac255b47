from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glasshouse import AuditResult, Evaluation, InputError, PrivacyClaim, audit_evidence
from glasshouse.cli import app
from glasshouse.io.files import check_free, digest
from glasshouse.report import read_run
from glasshouse.report.appendix import POINTS, SOURCES, Appendix, render_appendix, render_appendix_markdown
from glasshouse.report.run_folder import run_faults
from tests.strategies import gaussian_evidence


@pytest.fixture(scope="module")
def result() -> AuditResult:
    evidence, members = gaussian_evidence(records=400, models=8, shift=2.0, seed=0)
    attacks = ["base", "lira"]
    return audit_evidence(
        evidence, members=members, attacks=attacks, evaluation=Evaluation(claim=PrivacyClaim(epsilon=0.1))
    )


@pytest.fixture
def run(result: AuditResult, tmp_path: Path) -> Path:
    return result.save(tmp_path / "run")


def appendix(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["appendix", *map(str, arguments)])
    if done.exception:
        raise done.exception
    return done.output


def test_every_clause_says_what_it_asks_and_what_a_reader_must_supply(result: AuditResult) -> None:
    found = Appendix(result.summary())
    assert [source for source, _ in found.answers] == list(SOURCES)
    for _, answers in found.answers:
        for answer in answers:
            assert answer.clause.asks.endswith(".")
            assert answer.clause.supply
    for kind in ("measured", "declared", "assumed"):
        assert any(answer.of(kind) for _, answers in found.answers for answer in answers)


def test_the_figures_of_the_run_stand_beside_the_clause_on_simulated_attacks(result: AuditResult) -> None:
    summary = result.summary()
    aisvs = next(answers for source, answers in Appendix(summary).answers if "AISVS" in source.name)
    simulated = next(answer for answer in aisvs if answer.clause.place.startswith("11.2.5"))
    assert summary.verdict in simulated.of("measured")
    assert "Likelihood-ratio attacks among them: lira." in simulated.of("measured")
    private = next(answer for answer in aisvs if answer.clause.place.startswith("11.2.4"))
    assert "Claimed: ε = 0.1 at δ = 0." in private.of("declared")
    assert any("contradict" in text for text in private.of("measured"))


def test_it_never_gives_the_legal_verdict_itself(result: AuditResult) -> None:
    found = Appendix(result.summary())
    for text in (render_appendix_markdown(found), render_appendix(found)):
        assert not re.search(r"complian|conform|certif|satisf|fulfil", text, flags=re.IGNORECASE)
        assert "gives no legal verdict" in text
        assert text.index("Still to supply") < text.index("The attacks in figures")


def test_a_run_without_members_or_shadow_models_is_not_made_to_look_better() -> None:
    evidence, _ = gaussian_evidence(records=50, models=4, shift=2.0, seed=0)
    found = Appendix(audit_evidence(evidence, attacks=["loss"]).summary())
    texts = [text for _, answers in found.answers for answer in answers for text in answer.of("declared")]
    assert any("was not stated" in text for text in texts)
    measured = [text for _, answers in found.answers for answer in answers for text in answer.of("measured")]
    assert "No likelihood-ratio attack was run." in measured
    assert "not measured" in render_appendix_markdown(found)
    assert "not measured" in render_appendix(found)


def test_the_command_writes_both_forms_into_the_run_which_stays_whole(run: Path) -> None:
    assert "points still need your input" in appendix(run)
    for name in ("appendix.md", "appendix.html"):
        text = (run / name).read_text()
        assert digest(run / "metrics.json") in text
        assert f"Run written: {datetime.now(UTC):%Y-%m}" in text
    appendix(run)  # its own files may be written again
    read_run(run)
    check_free(run, overwrite=True)  # and the run may still be replaced


def test_it_names_no_record(result: AuditResult) -> None:
    """The same run with ids that stand out; the report shows them, the evidence file does not."""
    named = dataclasses.replace(result.evidence, ids=np.array([f"patient-{number}" for number in range(400)]))
    summary = dataclasses.replace(result, evidence=named).summary()
    assert str(summary.top_records["id"][0]).startswith("patient-")
    found = Appendix(summary)
    assert "patient-" not in render_appendix_markdown(found) + render_appendix(found)


def test_a_policy_becomes_a_part_and_a_strangers_file_stays(run: Path, tmp_path: Path) -> None:
    policy = tmp_path / "risk.yaml"
    policy.write_text("limits: [{figure: auc, most: 0.6}]\n")
    appendix(run, "--policy", policy, "--out", tmp_path / "out")
    assert "FAIL  AUC of the verdict attack at most 0.6" in (tmp_path / "out" / "appendix.html").read_text()
    (tmp_path / "out" / "appendix.md").write_text("mine")
    with pytest.raises(InputError, match="is not a page of Glasshouse"):
        appendix(run, "--out", tmp_path / "out")
    assert (tmp_path / "out" / "appendix.md").read_text() == "mine"


def test_what_the_owner_supplies_in_a_form_stands_beside_its_clause_and_is_open_no_longer(run: Path) -> None:
    form = run.parent / "supply.yaml"
    told = appendix(run, "--supply", form)
    assert f"Form: {form.resolve()}" in told, "an empty form, to be filled in"
    assert f"{len(POINTS)} points still need your input" in told
    assert [line.split(":")[0] for line in form.read_text().splitlines() if re.match(r"# \w+: $", line)] == [
        f"# {key}" for key in POINTS
    ]
    assert f"{len(POINTS)} points still need your input" in appendix(run, "--supply", form), "nothing is answered yet"
    form.write_text(form.read_text().replace("# officer_advice: ", 'officer_advice: "Agreed <b>on 3 March</b>."'))
    told = appendix(run, "--supply", form)
    assert f"{len(POINTS) - 1} points still need your input" in told
    page, markdown = (run / "appendix.html").read_text(), (run / "appendix.md").read_text()
    assert "Agreed &lt;b&gt;on 3 March&lt;/b&gt;." in page
    assert "<b>on" not in page + markdown
    assert f"- [ ] {POINTS['officer_advice']}" not in markdown
    with pytest.raises(InputError, match='officer_advise: is not a key here. Did you mean "officer_advice"'):
        form.write_text("officer_advise: yes\n")
        appendix(run, "--supply", form)


def test_the_record_for_programs_has_figures_thresholds_and_versions(run: Path, result: AuditResult) -> None:
    policy = run.parent / "risk.yaml"
    policy.write_text("limits: [{figure: auc, most: 0.5}]\n")
    (run.parent / "supply.yaml").write_text("risk_appetite: An AUC of at most 0.5 (rules, 2.1).\n")
    appendix(run, "--policy", policy, "--supply", run.parent / "supply.yaml")
    record = json.loads((run / "appendix.json").read_text())
    measured = result.outcomes["base"].metrics
    assert measured is not None
    figures = next(one for one in record["attacks"] if one["attack"] == "base")
    assert figures["auc"]["value"] == measured.auc
    assert (figures["auc"]["low"], figures["auc"]["high"]) == tuple(measured.auc_interval)
    assert [one["status"] for one in record["thresholds"]] == ["failed"]
    assert record["risk_appetite"] == "An AUC of at most 0.5 (rules, 2.1)."
    assert record["tool_versions"]["numpy"] == np.__version__
    assert record["metrics_sha256"] == digest(run / "metrics.json")
    assert {one["kind"] for one in record["statements"]} == {"measured", "declared", "assumed"}
    assert not run_faults(run), "the run's list knows the three files"
    appendix(run)
    assert json.loads((run / "appendix.json").read_text())["thresholds"] == [], "written again"
