"""An audit by unit: persons are audited, and their rows stay visible inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

import glasshouse
from glasshouse import Evaluation, Population, SklearnTrainer, audit
from glasshouse.attacks import create
from glasshouse.attacks.by_unit import POWERS, ByUnit, joined_ratios
from glasshouse.auditing.defences import Defence
from glasshouse.auditing.result import AuditResult
from glasshouse.core.errors import InputError
from glasshouse.core.numerics import area_under_roc
from glasshouse.data import Units, complementary_halves
from glasshouse.evaluation.best import AttackCache
from glasshouse.evidence import Evidence, read_evidence
from glasshouse.evidence.evidence import UnitView
from glasshouse.report import read_run, render_html
from glasshouse.report.json_io import metrics_json, run_json, summary_from
from glasshouse.report.redaction import Redactor


def panel(persons: int = 150, *, seed: int = 0) -> Population:
    """A made-up panel: one to five visits of each person, which resemble each other."""
    random = np.random.default_rng(seed)
    of = np.repeat(np.arange(persons), random.integers(1, 6, size=persons))
    x = random.normal(size=(persons, 4))[of] + 0.3 * random.normal(size=(len(of), 4))
    return Population(x, random.integers(2, size=len(of)), unit=[f"p{one}" for one in of])


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier(min_samples_leaf=2))
    options = {"shadows": 8, "attacks": ["base", "loss", "rmia"], "evaluation": Evaluation(fprs=[0.05])}
    return audit(panel(), trainer=trainer, progress=False, **options)  # type: ignore[arg-type]


def losses(units: Units, *, models: int = 8, seed: int = 0) -> tuple[Evidence, NDArray[np.bool_]]:
    """Losses that are lower inside, with a part that all rows of a unit share."""
    random = np.random.default_rng(seed)
    halves = complementary_halves(len(units), models=models, seed=seed)
    inside = np.vstack([random.random(len(units)) < 0.5, halves])
    shared = random.normal(size=(models + 1, len(units)))[:, units.rows]
    found = np.exp(shared + random.normal(size=shared.shape) - inside[:, units.rows])
    rows = Evidence(target_loss=found[0], shadow_loss=found[1:], shadow_members=inside[1:][:, units.rows], unit=units)
    return rows, inside[0]


def test_persons_are_audited_and_rows_stay_inside(audited: AuditResult) -> None:
    persons, rows = audited.records(), audited.rows()
    assert persons.height == 150
    assert persons["records"].sum() == rows.height == len(panel())
    assert "person" in rows
    assert "150 persons" in audited.context.settings["units"]
    assert "persons" in str(audited)
    assert "Persons most at risk" in str(audited)
    page = render_html(audited.summary())
    assert "Persons most at risk" in page
    hidden = audited.summary().risk.hidden  # type: ignore[union-attr]
    assert ("Who is exposed though the average is not" in page, "Is the risk the same for all?" in page) == (
        hidden,
        not hidden,
    )
    assert {"risk", "risk_by", "risk_chance"} <= set(persons)
    held = [json.loads(json.dumps(one(audited.summary()))) for one in (metrics_json, run_json)]
    assert summary_from(*held).risk == audited.summary().risk, "a saved run of persons is read again"


def test_equal_records_of_two_persons_are_no_fault_of_the_input() -> None:
    """In surveys with few answers; they stay a note, and the verdict stays."""
    random, person = np.random.default_rng(0), np.repeat(np.arange(120), 2)
    few = random.integers(3, size=(240, 3)).astype(float)
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
    found = audit(
        Population(few, random.integers(2, size=240), unit=person), trainer=trainer, attacks=["base"], progress=False
    )
    assert found.context.warnings == ()
    assert any("records of non-members equal one of a member, another person" in note for note in found.context.notes)


def test_the_score_of_a_unit_is_the_joined_ratio_of_its_rows(audited: AuditResult) -> None:
    """By a loop over persons."""
    view, attack = audited.by_unit, audited.outcomes["base"].attack
    assert view is not None
    assert isinstance(attack, ByUnit)
    assert attack.power is not None
    posterior = audited.rows()["base_score"]
    for place in range(5):
        mine = posterior[view.units.rows == place]
        told = np.log(mine / (1 - mine)).sum() / len(mine) ** attack.power
        assert audited.outcomes["base"].scores[place] == pytest.approx(told)


def test_what_joins_rows_is_the_best_power_on_simulated_targets_alone() -> None:
    units = Units(np.repeat(np.arange(200), np.arange(200) % 5 + 1))
    rows, _ = losses(units)
    view = UnitView(rows, units)
    tuned = ByUnit(attack=create("lira")).tuned(view)
    again = ByUnit(attack=create("lira")).tuned(UnitView(rows.among(np.arange(8)[:, None], model=3), units))
    assert tuned.power == again.power  # the target is not looked at
    areas = {
        power: np.mean(
            [
                area_under_roc(joined_ratios(scores, view, power), units.members(members, place="simulated"))
                for scores, members in create("lira").simulated_scores(rows)
            ]
        )
        for power in POWERS
    }
    assert tuned.power == max(areas, key=lambda power: areas[power])


def test_simulated_scores_are_those_of_simulated_targets() -> None:
    units = Units(np.repeat(np.arange(60), 3))
    rows, _ = losses(units)
    view = UnitView(rows, units)
    for name in ("base", "rmia", "loss"):
        tuned = AttackCache(view).tuned(ByUnit(attack=create(name)))
        for k, (scores, members) in enumerate(tuned.simulated_scores(view)):
            target = view.simulated_target(k)
            np.testing.assert_array_equal(members, target.members)
            if name != "rmia":  # the Z of a simulated target is weighted
                np.testing.assert_allclose(scores, tuned.score(target.view), rtol=1e-8, atol=1e-10)


def test_best_picks_among_attacks_on_persons() -> None:
    units = Units(np.repeat(np.arange(120), 3))
    rows, members = losses(units)
    result = glasshouse.audit_evidence(rows, members=members[units.rows], attacks=["best"], progress=False)
    (outcome,) = result.outcomes.values()
    assert isinstance(outcome.attack, ByUnit)
    assert len(outcome.scores) == 120


def test_rows_with_units_are_saved_and_audited_again(audited: AuditResult, tmp_path: Path) -> None:
    audited.save(tmp_path / "run")
    again = read_evidence(tmp_path / "run" / "evidence.npz")
    assert again.evidence.unit is not None
    result = glasshouse.audit_evidence(again.evidence, members=again.members, attacks=["base"], progress=False)
    np.testing.assert_array_equal(result.outcomes["base"].scores, audited.outcomes["base"].scores)


def test_a_saved_run_of_units_is_read_again(audited: AuditResult, tmp_path: Path) -> None:
    assert read_run(audited.save(tmp_path / "run")).risk == audited.summary().risk


def test_a_redacted_result_holds_no_name_of_a_person_or_of_a_row(audited: AuditResult, tmp_path: Path) -> None:
    redacted = audited.redacted(Redactor(b"0" * 32))
    redacted.save(tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        assert b"p149" not in path.read_bytes(), path
    assert redacted.risk is not None
    assert audited.risk is not None
    np.testing.assert_array_equal(np.sort(redacted.risk.identified), np.sort(audited.risk.identified))


def test_members_that_split_a_person_are_refused_before_the_training() -> None:
    def never(*_: object) -> None:
        raise AssertionError("trained")

    population = panel(20)
    with pytest.raises(InputError, match="members: person 'p"):
        audit(population, members=np.arange(len(population)) % 2 == 0, trainer=never, progress=False)


def test_defences_are_measured_on_units() -> None:
    """Whole persons are left out or count less, and the fresh target trains on whole persons."""
    people = panel(60)
    assert people.unit is not None
    of, first = people.unit.rows, people.x[:, 0]

    class Watched(DecisionTreeClassifier):  # type: ignore[misc]
        def fit(self, x: NDArray[np.float64], y: NDArray[np.int64], sample_weight: Any = None) -> Watched:
            inside = np.isin(first, x[:, 0])
            assert np.isin(np.bincount(of, inside) / np.bincount(of), (0, 1)).all(), "a person is partly inside"
            if sample_weight is not None:
                light = np.bincount(of[inside], sample_weight < 1) / np.bincount(of[inside]).clip(1)
                assert np.isin(light, (0, 1)).all(), "a person counts partly"
            fitted: Watched = super().fit(x, y, sample_weight=sample_weight)
            return fitted

    defences = [Defence(name="less", exposed=0.1, weight=0.1), Defence(name="without", exposed=0.1)]
    trainer = SklearnTrainer(estimator=Watched())
    options: dict[str, Any] = {"defences": defences, "shadows": 4, "attacks": ["base"], "progress": False}
    found = glasshouse.advise(people, trainer=trainer, evaluation=Evaluation(fprs=[0.1]), **options)
    assert {one.name for one in found.tried} == {"less", "without"}, found.left_out
    assert all(one.note.startswith("6 records (10 %)") for one in found.tried)
    assert found.advised is None or found.fresh is not None


def test_a_design_that_a_fresh_target_would_not_follow_is_refused() -> None:
    trainer = SklearnTrainer(estimator=DecisionTreeClassifier())
    with pytest.raises(InputError, match="site: the fresh target of an advice is drawn at random"):
        glasshouse.advise(panel(30), trainer=trainer, evaluation=Evaluation(design={"name": "site", "by": "label"}))
