"""Audits with one or no shadow model: ordinary results, a lower bound, and never a verdict of safety."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

from glasshouse import (
    Attacker,
    Evaluation,
    Evidence,
    InputError,
    LabelOnly,
    LossTrace,
    Population,
    SklearnTrainer,
    audit,
    audit_evidence,
    audit_targets,
    random_subsets,
    read_evidence,
)
from glasshouse.auditing.steps import CHEAP_ATTACKS, REFERENCE_ATTACKS, TOKEN_ATTACKS
from glasshouse.cli import app
from glasshouse.core.arrays import BoolArray
from glasshouse.data import Units
from glasshouse.report.run_folder import read_run

CHEAP = ["loss", "class-loss", "modified-entropy", "hinge"]


def people(records: int = 600, *, seed: int = 0) -> tuple[Population, BoolArray]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(records, 30))
    population = Population(x, np.where(x[:, 0] + random.normal(size=records) > 0, "yes", "no"))
    return population, random_subsets(records, models=1, fraction=0.5, seed=seed)[0]


def fitted(population: Population, members: BoolArray, strength: float = 100.0) -> LogisticRegression:
    labels = population.classes[population.y]
    return LogisticRegression(C=strength, max_iter=500).fit(population.x[members], labels[members])


def test_a_model_and_its_members_are_enough(tmp_path: Path) -> None:
    """Three lines, no trainer; the run has all of its files, and can be read and shown again."""
    population, members = people()
    result = audit(population, model=fitted(population, members), members=members, shadows=0)
    assert result.table()["attack"].tolist() == CHEAP
    assert set(result.left_out) == {"public-quantile", "trace"}
    assert not any(name.startswith(("threshold", "flagged")) for name in result.table())
    assert not any(name.endswith(("_decision", "_posterior", "_fdr")) for name in result.records())
    notes = result.summary().notes
    assert notes[0].startswith("No shadow models were trained: the figures are a lower bound")
    assert notes[1].startswith("Estimate, not a measurement")
    folder = result.save(tmp_path / "run")
    assert json.loads((folder / "metrics.json").read_text())["estimate"]["models"] == 0
    assert read_run(folder).quick_estimate == result.quick_estimate
    assert "lower bound" in (folder / "report.html").read_text()
    again = audit_evidence(read_evidence(folder / "evidence.npz").evidence, members=members, attacks=["loss"])
    assert again.table()["auc"][0] == result.table()["auc"][0]
    assert again.quick_estimate == result.quick_estimate


def test_a_model_that_leaks_nothing_to_weak_attacks_is_not_called_safe() -> None:
    population, members = people(seed=3)
    other = random_subsets(600, models=1, fraction=0.5, seed=9)[0]
    result = audit(population, model=fitted(population, other, 0.01), members=members, shadows=0)
    assert "attacks this weak do not show that the model is safe" in result.summary().verdict
    assert "lower bound" in result.summary().verdict


def test_one_reference_model_brings_the_calibrated_attacks() -> None:
    population, members = people()
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier(max_depth=6))
    result = audit(population, members=members, trainer=trainer, shadows=1)
    assert result.table()["attack"].tolist() == [*CHEAP, "calibration", "base", "rmia"]
    assert result.evidence.models == 1
    assert not any(name.endswith("_posterior") for name in result.records())
    assert result.summary().notes[0].startswith("One reference model was trained")
    assert result.quick_estimate is not None
    assert result.quick_estimate.models == 1


def test_public_records_and_a_trace_bring_the_rest_and_are_not_judged() -> None:
    population, members = people()
    model = fitted(population, members)
    trace = LossTrace(population)
    for strength in (1e-3, 1e-2, 1.0, 100.0):
        trace.record(fitted(population, members, strength))
    prior = np.full(600, 0.5)
    result = audit(
        population, model=model, members=members, shadows=0, attacker=Attacker(public=0.4, trace=trace, prior=prior)
    )
    assert tuple(result.table()["attack"]) == CHEAP_ATTACKS
    assert result.evidence.records == 600 - 120
    assert result.members is not None
    assert int(result.members.sum()) == 300  # only non-members were set aside
    assert result.verdict_attack is not None
    assert result.verdict_attack.attack != "trace"
    assert set(result.records()["id"]) < set(population.ids)
    same = audit(population, model=model, members=members, shadows=0, attacker=Attacker(public=0.4, trace=trace.losses))
    assert (same.records()["public-quantile_score"] == result.records()["public-quantile_score"]).all()


def test_public_records_serve_an_audit_with_shadow_models_too() -> None:
    population, members = people()
    trainer = SklearnTrainer(estimator=LogisticRegression(max_iter=500))
    outside = ~members & (np.arange(600) % 2 == 0)
    groups = Evaluation(groups={"odd": np.arange(600) % 2})
    options: dict[str, Any] = {"members": members, "trainer": trainer, "evaluation": groups}
    result = audit(
        population, shadows=4, attacks=["base", "public-quantile"], attacker=Attacker(public=outside), **options
    )
    assert result.evidence.records == int((~outside).sum())
    assert result.quick_estimate is None
    assert result.left_out == {}


def test_the_estimate_is_withheld_where_members_differ_without_the_model() -> None:
    random = np.random.default_rng(0)
    members = np.arange(600) < 300
    x = random.normal(size=(600, 3)) + 3.0 * members[:, None]
    population = Population(x, random.integers(2, size=600))
    result = audit(population, model=fitted(population, members), members=members, shadows=0)
    assert result.quick_estimate is None
    assert "is not estimated" in result.summary().notes[1]


def test_what_a_quick_look_cannot_do_is_refused_in_one_line() -> None:
    population, members = people()
    model = fitted(population, members)
    given: dict[str, Any] = {"members": members, "shadows": 0}
    for options, message in (
        ({"attacks": ["base"]}, "attacks: base: it compares the target with shadow models, and there are none"),
        ({"attacks": ["best"]}, "attacks: best: shadows: 0 shadow models are too few"),
        ({"attacks": ["public-quantile"]}, "attacks: public-quantile: it learns from records that are known"),
        ({"attacks": ["loss", "trace"]}, "attacks: trace: it needs losses from the training"),
        (
            {"attacks": ["trace"], "attacker": Attacker(trace=np.ones((2, 600)))},
            "attacks: all of them know who trained the target, or its",
        ),
        ({"attacks": ["loss"], "attacker": Attacker(trace=np.ones((2, 3)))}, "trace: shape"),
        ({"attacks": ["loss"], "attacker": Attacker(public=members)}, "public: 300 of the public records trained"),
        ({"shadows": -2}, "shadows: -2"),
        ({"shadows": 3}, "3 is not a positive even number"),
    ):
        trainer = SklearnTrainer(estimator=LogisticRegression())
        with pytest.raises(InputError, match=message):
            audit(population, model=model, trainer=trainer, **{**given, **options})
    with pytest.raises(InputError, match=r"or shadows=0 to train none"):
        audit(population, model=model, members=members)
    with pytest.raises(InputError, match="trainer: missing"):
        audit(population, members=members, shadows=0)


def test_losses_alone_are_enough_with_and_without_members(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    members = np.arange(400) < 200
    loss = random.exponential(np.where(members, 0.4, 1.0))
    result = audit_evidence(Evidence(target_loss=loss, labels=np.arange(400) % 2), members=members)
    assert result.table()["attack"].tolist() == ["loss", "class-loss"]
    unknown = audit_evidence(Evidence(target_loss=loss))
    assert unknown.quick_estimate is None
    assert unknown.summary().notes[0].startswith("No shadow models were trained")
    rows = ["model,id,member,loss", *(f"target,{n},{int(members[n])},{loss[n]}" for n in range(400))]
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(rows))
    done = CliRunner().invoke(app, ["score", str(path)])
    assert done.exit_code == 0, done.output
    assert "Estimate, not a measurement" in " ".join(done.output.split())


def test_the_command_line_and_audit_files_take_zero_for_records_alone(tmp_path: Path) -> None:
    file = tmp_path / "audit.yaml"
    file.write_text("data: {name: digits}\ntrainer: {kind: mlp, epochs: 2}\npublic: 0.3\n")
    done = CliRunner().invoke(app, ["audit", str(file), "--shadows", "0", "--out", str(tmp_path / "run"), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert list(found["attacks"]) == [*CHEAP, "public-quantile"]
    assert found["shadows"] == 0
    file.write_text("shadows: 0\n")  # the embedded graph
    for command in (["audit", str(file)], ["audit", "--shadows", "0"]):
        refused = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "other")])
        assert isinstance(refused.exception, InputError)
        assert "a graph needs 2 or more" in str(refused.exception)


def test_several_targets_share_no_pool_where_there_is_none() -> None:
    population, _ = people(300)
    trainer = SklearnTrainer(estimator=LogisticRegression(max_iter=500))
    found = audit_targets(population, trainer=trainer, targets=2, shadows=0)
    assert found.table()["attack"].tolist() == CHEAP


def test_the_lists_name_every_attack_that_needs_no_more() -> None:
    from glasshouse.attacks.attack import attack_names, find_attack

    alone = {name for name in attack_names(graph=False) if find_attack(name).least_models == 0}
    assert alone == {*CHEAP_ATTACKS, *TOKEN_ATTACKS}
    assert set(REFERENCE_ATTACKS) - alone == {"calibration", "base", "rmia"}


def test_labels_alone_give_no_estimate_and_public_records_may_be_ids() -> None:
    population, members = people()
    model = fitted(population, members)
    given: dict[str, Any] = {"members": members, "shadows": 0, "attacks": ["loss"], "progress": False}
    asked = audit(population, model=model.predict, attacker=Attacker(query=LabelOnly(votes=4)), **given)
    assert asked.quick_estimate is None
    assert "or the target does not give the probabilities of classes" in asked.summary().notes[1]
    outside = np.flatnonzero(~members)[:100]
    by_mask, by_ids = (
        audit(population, model=model, attacker=Attacker(public=one), **given)
        for one in (np.isin(np.arange(600), outside), population.ids[outside])
    )
    assert by_mask.table()["auc"].tolist() == by_ids.table()["auc"].tolist()


@pytest.mark.parametrize("shadows", [4.0, "8"])
def test_a_number_of_shadow_models_that_is_none_is_refused(shadows: Any) -> None:
    population, members = people()
    with pytest.raises(InputError, match="shadows: .* is not a whole number"):
        audit(population, members=members, trainer=LogisticRegression(), shadows=shadows)


def test_what_eight_models_would_find_is_not_estimated_for_persons() -> None:
    """The relation was learned from records."""
    random, members = np.random.default_rng(0), np.arange(800) % 4 < 2
    loss = np.logaddexp(0, random.normal(-2, 2, size=800) - members)
    for unit, estimated in ((None, True), (np.arange(800) // 2, False)):
        rows = Evidence(target_loss=loss, unit=None if unit is None else Units(unit))
        found = audit_evidence(rows, members=members, attacks=["loss"], progress=False)
        assert (found.quick_estimate is not None) == estimated
