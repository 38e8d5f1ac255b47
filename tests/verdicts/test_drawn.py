"""Members that differ from others in kind: the audit says so first, and gives no ε."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB

from glasshouse import Evaluation, Evidence, Population, SklearnTrainer, audit, audit_evidence
from glasshouse.attacks.attack import chosen_attacks
from glasshouse.auditing.result import AuditResult
from glasshouse.auditing.steps import audit_view
from glasshouse.auditing.track import logged_metrics
from glasshouse.core.arrays import BoolArray
from glasshouse.evaluation import Known, PrivacyClaim
from glasshouse.evaluation.checks.random_members import member_edges
from glasshouse.graph import GNNTrainer, citation_graph, load_graph
from glasshouse.graph import audit as audit_graph
from glasshouse.graph.data.attacker_view import snowball_subset
from glasshouse.report import Context, read_run, render_html
from glasshouse.report.terminal import print_summary
from tests.strategies import PAPER

TRAINER = SklearnTrainer(estimator=GaussianNB())
WARNING = "Members can be told from non-members without the model"


def audited(*, site: bool) -> AuditResult:
    """The first half of the digits was written by other people; the model saw a third of it, and no audited record."""
    x, y = load_digits(return_X_y=True)
    x = x + np.random.default_rng(0).normal(size=x.shape)
    first = np.arange(len(x)) < 900
    seen = first & (np.arange(len(x)) % 3 == 0)
    model = TRAINER(Population(x, y), seen, 0)
    members: BoolArray = first[~seen] if site else np.random.default_rng(1).permutation(first[~seen])
    population = Population(x[~seen], y[~seen])
    return audit(
        population,
        model=model,
        members=members,
        trainer=TRAINER,
        attacks=PAPER,
        shadows=4,
        evaluation=Evaluation(claim=PrivacyClaim(epsilon=1.0)),
    )


@pytest.fixture(scope="module")
def of_one_site() -> AuditResult:
    return audited(site=True)


def test_members_of_one_site_are_said_first_and_epsilon_is_withheld(of_one_site: AuditResult, tmp_path: Path) -> None:
    assert of_one_site.context.warnings[0].startswith(WARNING)
    assert of_one_site.privacy is not None
    assert of_one_site.privacy.sentence() == "ε is withheld: members differ from non-members in kind."
    page = render_html(of_one_site.summary())
    assert WARNING in page
    assert "ε is withheld" in page
    assert "ε ≥" not in page
    written = io.StringIO()
    print_summary(of_one_site.summary(), Console(file=written, width=1000))
    shown = written.getvalue()
    assert f"WARNING: {WARNING}" in shown
    assert "ε ≥" not in shown
    figures = json.loads((of_one_site.save(tmp_path / "run") / "metrics.json").read_text())
    assert figures["privacy"]["epsilon_lower_bound"] is None
    assert figures["privacy"]["contradicted"] is False
    assert figures["drawn"]["found"] is True
    assert "epsilon_lower_bound" not in logged_metrics(figures)
    again = read_run(tmp_path / "run")
    assert again.privacy == of_one_site.privacy
    assert again.random_members == of_one_site.random_members


def test_random_members_of_the_same_records_get_an_epsilon_and_one_line() -> None:
    result = audited(site=False)
    assert not any(WARNING in warning for warning in result.context.warnings)
    assert result.privacy is not None
    assert not result.privacy.withheld
    assert "the attacks show no ε above 0" in result.privacy.sentence()  # it never saw an audited record
    assert "Without the model, members are told from non-members with AUC" in render_html(result.summary())


def test_saved_evidence_of_one_site_is_noticed_by_the_answers_of_the_shadow_models() -> None:
    """Here members are easier for every model, as records of one site may be."""
    found = audited(site=False)
    easy = np.median(found.evidence.shadow_loss, axis=0)
    result = audit_evidence(found.evidence, members=easy < np.median(easy), attacks=["loss"])
    assert result.context.warnings[0].startswith(WARNING)
    assert result.privacy is not None
    assert result.privacy.withheld


def test_features_that_cannot_be_read_leave_the_figures_and_a_note() -> None:
    evidence, members = audited(site=False).evidence, np.arange(1497) % 2 == 0
    context = Context(shadows=4, mode="online")
    result = audit_view(
        evidence,
        chosen_attacks(["loss"]),
        members=members,
        labels=None,
        evaluation=Evaluation(fprs=(0.01,)),
        context=context,
        known=Known(x=np.zeros((3, 2))),
    )
    assert result.random_members is None
    assert any("could not be tested (IndexError" in note for note in result.context.notes)
    assert result.outcomes["loss"].metrics is not None


def test_too_little_memory_for_the_test_is_a_note_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def short(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 50.2 MiB")

    monkeypatch.setattr("glasshouse.auditing.steps.check_random_members", short)
    evidence = Evidence(target_loss=np.linspace(0, 1, 40))
    result = audit_evidence(evidence, members=np.arange(40) % 2 == 0, attacks=["loss"])
    assert any("could not be tested (there is not enough memory for it" in note for note in result.context.notes)
    assert caplog.records == []


def test_a_snowball_gives_no_epsilon() -> None:
    data = citation_graph(nodes=300, classes=3)
    trainer = GNNTrainer(hidden=8, epochs=5, device="cpu")
    ball = snowball_subset(data, fraction=0.5, seed=0)
    result = audit_graph(data, members=ball, trainer=trainer, attacks=["base"], shadows=2)
    assert "Members were not drawn at random from the graph" in result.context.warnings[0]
    assert result.privacy is not None
    assert result.privacy.withheld
    fair = audit_graph(data, trainer=trainer, attacks=["base"], shadows=2)
    assert fair.random_members is not None
    assert not fair.random_members.found
    assert fair.random_members.joined is not None


def test_a_snowball_of_a_real_graph_is_found(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSHOUSE_DATA", str(real_data))
    cora = load_graph("cora")
    edges, random = cora.edge_index.numpy(), np.random.default_rng(0)
    ball = member_edges(edges, snowball_subset(cora, fraction=0.1, seed=0, branching=2), seed=0)
    fair = member_edges(edges, random.permutation(2708) < 271, seed=0)
    assert ball is not None
    assert fair is not None
    assert ball.p_value == 0.001
    assert fair.p_value > 0.005
