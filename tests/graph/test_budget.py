"""An audit that fits into a given time, and says what it gave up."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from glasshouse import Evaluation
from glasshouse.attacks import BASE, Attack
from glasshouse.cli import app
from glasshouse.config import AuditFile, with_options
from glasshouse.core.errors import InputError
from glasshouse.graph import GBASE, GNNTrainer, GStacked, audit, budget, citation_graph
from glasshouse.graph.budget import QuestionCost, measure_questions, plan_budget
from glasshouse.graph.rule.incremental.engine import default_memory
from glasshouse.graph.rule.question import Question, Toggles
from glasshouse.graph.training.trainer import adam
from glasshouse.io.limits import memory_limit
from tests.graph.scenes import trained_scene

ATTACKS: dict[str, Attack[Any]] = {"base": BASE(), "g-base": GBASE(), "g-stacked": GStacked()}
COST = QuestionCost(fixed=0.01, each=1e-4)
DATA = citation_graph(nodes=600, classes=3, seed=0)
TRAINER = GNNTrainer(hidden=8, dropout=0.0, epochs=20, optimizer=adam(0.03), device="cpu")


def planned(seconds: float, *, nodes: int = 20_000, least: int = 200) -> budget.BudgetPlan:
    options: dict[str, Any] = {"models": 8, "nodes": nodes, "size": 10**6, "seconds": seconds, "minutes": seconds / 60}
    return plan_budget(ATTACKS, COST, **options, least=least)


def test_with_time_enough_nothing_is_given_up() -> None:
    found = planned(1e5)
    assert found.nodes == 20_000
    assert found.attacks == ATTACKS
    assert not found.left_out
    assert "nothing had to be given up" in found.note


def test_less_time_costs_nodes_first_and_then_training_sets_and_then_the_learned_attack() -> None:
    plans = [planned(seconds) for seconds in (1e5, 2000, 1000, 300, 60)]
    nodes = [plan.nodes for plan in plans]
    samples = [plan.attacks["g-base"].samples for plan in plans]  # type: ignore[attr-defined]
    assert samples == sorted(samples, reverse=True)
    assert nodes[1] < nodes[0]
    assert samples[1] == 8
    assert "requested nodes" in plans[1].note
    assert "g-stacked" not in plans[-1].attacks
    assert "stay within" in plans[-1].left_out["g-stacked"]
    assert all("base" in plan.attacks for plan in plans)


@pytest.mark.parametrize("seconds", [300, 1000, 3000])
def test_a_plan_fits_by_its_own_reckoning_and_one_more_node_in_a_hundred_would_not(seconds: float) -> None:
    """The dull way: count models times masks, question by question."""
    found = planned(seconds)

    def predicted(nodes: int) -> float:
        total = 0.0
        for attack in found.attacks.values():
            if isinstance(attack, GBASE):
                total += attack.samples * 9 * COST.seconds(nodes)  # the target with eight shadow models
                total += 8 * attack.samples * 7 * COST.seconds(nodes)  # each simulated target with six
        return total

    assert predicted(found.nodes) <= seconds
    if "g-stacked" not in found.attacks and found.nodes < 20_000:
        assert predicted(int(1.01 * found.nodes) + 1) > seconds * 0.9 / 1.3


def test_named_nodes_are_never_left_out_and_a_plan_that_cannot_fit_says_so() -> None:
    found = planned(5, nodes=9000, least=9000)
    assert found.nodes == 9000
    assert "Even so, its queries were expected to take" in found.note


def test_what_a_question_costs_is_the_slope_between_two_measured_ones() -> None:
    """A clock that only a question moves: 0.5 s, and 0.01 s per node and model and mask."""
    scene, now = trained_scene(nodes=300, shadows=4), [0.0]

    def answer(models: Any, question: Question) -> Toggles:
        now[0] += len(models) * len(question.masks) * (0.5 + 0.01 * len(question.nodes))
        return Toggles(torch.zeros(1), torch.zeros(1))

    with patch.object(budget, "answer_question", answer):
        found = measure_questions(scene, seed=0, clock=lambda: now[0])
    assert found == pytest.approx((0.5, 0.01))


def test_an_audit_in_little_time_audits_fewer_nodes_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    slow = QuestionCost(fixed=0.0, each=0.05)  # as if each question took seconds
    with patch.object(budget, "measure_questions", lambda *_, **__: slow), caplog.at_level(logging.INFO, "glasshouse"):
        found = audit(
            DATA, trainer=TRAINER, attacks=["base", "g-base"], shadows=4, evaluation=Evaluation(fprs=[0.02]), minutes=3
        )
    assert len(found.evidence.ids) == 200
    said = " ".join(found.context.notes)
    assert "Planned to take 3 minutes: to fit, the audit used 200 of the 600 requested nodes; " in said
    assert "2 training sets instead of 8 for g-base-mia." in said
    assert "a sample of 200 of 600 nodes" in said
    assert "Planned to take 3 minutes" in caplog.text
    assert found.outcomes["g-base-mia"].attack.samples == 2  # type: ignore[attr-defined]
    named = np.arange(0, 600, 2)
    with patch.object(budget, "measure_questions", lambda *_, **__: slow):
        kept = audit(
            DATA,
            trainer=TRAINER,
            attacks=["g-base"],
            shadows=4,
            evaluation=Evaluation(fprs=[0.02]),
            minutes=3,
            nodes=named,
        )
    assert len(kept.evidence.ids) == 300


def test_minutes_come_from_the_command_line_and_are_for_graphs(tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text("graph: {nodes: 200, network: {hidden: 4, epochs: 2}}\nattacks: [g-base]\nshadows: 4\n")
    done = CliRunner().invoke(app, ["audit", str(file), "--minutes", "30", "--out", str(tmp_path / "run"), "-q", "-v"])
    assert done.exit_code == 0, done.output
    assert "Planned to take 30 minutes: nothing had to be given up." in " ".join(done.output.split())
    with pytest.raises(InputError, match="for records"):
        with_options(AuditFile.model_validate({"data": {"name": "digits"}}), minutes=5)
    for minutes in (0, -1, float("nan")):
        with pytest.raises(InputError, match="minutes"):
            with_options(AuditFile(), minutes=minutes)
        with pytest.raises(InputError, match="minutes"):
            audit(DATA, minutes=minutes)
    for wrong in ("15", True, [15], float("inf")):
        with pytest.raises(InputError, match="minutes: .* is not a positive number"):
            audit(DATA, minutes=wrong)  # type: ignore[arg-type]


def test_toggling_on_the_cpu_takes_what_the_limit_on_memory_allows() -> None:
    with memory_limit("3MiB"):
        assert default_memory(torch.device("cpu")) == 3 * 2**20
