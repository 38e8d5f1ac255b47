from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from glasshouse import Evaluation, InputError, Population, SklearnTrainer, audit_targets
from glasshouse.auditing.targets import SeveralTargets
from glasshouse.core.arrays import BoolArray
from glasshouse.graph import GNNTrainer, citation_graph
from glasshouse.report import read_run
from glasshouse.report.policy import Limit, Policy, policy_of

TREE = SklearnTrainer(estimator=DecisionTreeClassifier(max_depth=4))


def records(count: int = 120) -> Population:
    random = np.random.default_rng(0)
    return Population(random.normal(size=(count, 3)), random.integers(2, size=count))


@pytest.fixture(scope="module")
def found() -> SeveralTargets:
    return audit_targets(
        records(), trainer=TREE, targets=3, shadows=4, attacks=["base", "loss"], evaluation=Evaluation(fprs=[0.1])
    )


def test_every_target_has_its_own_members_and_seed_and_shadow_models_are_trained_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: list[tuple[bytes, int]] = []
    train = SklearnTrainer.__call__

    def noted(self: SklearnTrainer, population: Population, members: BoolArray, /, seed: int) -> Any:
        trained.append((members.tobytes(), seed))
        return train(self, population, members, seed)

    monkeypatch.setattr(SklearnTrainer, "__call__", noted)
    done = audit_targets(records(), trainer=TREE, targets=3, shadows=4, attacks=["base"])
    assert len(trained) == len({members for members, _ in trained}) == len({seed for _, seed in trained}) == 3 + 4
    masks = [result.members for result in done.results]
    assert all(mask is not None and mask.sum() == 60 for mask in masks)
    first, second = (result.evidence.shadow_members for result in done.results[:2])
    np.testing.assert_array_equal(first, second)


def test_the_table_has_means_and_intervals_over_targets(found: SeveralTargets) -> None:
    rows = list(found.table().rows())
    assert [row["attack"] for row in rows] == ["base", "loss"]
    for row in rows:
        assert row["targets"] == 3
        outcomes = [result.outcomes[row["attack"]].metrics for result in found.results]
        areas = [metrics.auc for metrics in outcomes if metrics is not None]
        assert row["auc"] == pytest.approx(np.mean(areas))
        reach = 4.302653 * np.std(areas, ddof=1) / np.sqrt(3)  # Student's t with 2 degrees of freedom, from a table
        assert row["auc_low"] == pytest.approx(max(0.0, row["auc"] - reach))
        assert row["auc_high"] == pytest.approx(min(1.0, row["auc"] + reach))
        assert row["tpr@0.1_low"] <= row["tpr@0.1"] <= row["tpr@0.1_high"]


def test_an_attack_that_failed_against_a_target_is_averaged_over_the_others(found: SeveralTargets) -> None:
    part = dataclasses.replace(found.results[0], outcomes={"base": found.results[0].outcomes["base"]})
    rows = {row["attack"]: row for row in SeveralTargets((part, *found.results[1:])).table().rows()}
    assert (rows["base"]["targets"], rows["loss"]["targets"]) == (3, 2)


def test_targets_are_saved_as_a_table_and_one_run_each(found: SeveralTargets, tmp_path: Path) -> None:
    place = found.save(tmp_path / "several")
    assert (place / "table.csv").read_text() == found.table().to_csv()
    for number, result in enumerate(found.results, start=1):
        assert read_run(place / f"target-{number}").verdict == result.summary().verdict
    with pytest.raises(InputError, match="already holds something"):
        found.save(place)


def test_earlier_targets_are_overwritten_if_nothing_else_is_there(found: SeveralTargets, tmp_path: Path) -> None:
    place = found.save(tmp_path / "several")
    policy = Policy(limits=(Limit(figure="auc", most=1.0),))
    found.save(place, overwrite=True, policy=policy)
    assert policy_of(place / "target-1") == policy
    fewer = SeveralTargets(found.results[:2])
    with pytest.raises(
        InputError, match=r"target-3: would not be replaced"
    ):  # two runs beside an old third would mislead
        fewer.save(place, overwrite=True)
    (place / "target-2" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes.txt: is not a file of the run, so the folder is not overwritten"):
        found.save(place, overwrite=True)
    assert (place / "target-2" / "notes.txt").read_text() == "mine"


def test_a_result_of_several_targets_is_shown_in_one_line(found: SeveralTargets) -> None:
    assert repr(found) == "SeveralTargets(3 targets, the first: AuditResult(120 records, attacks: base, loss))"


def test_the_same_seed_gives_the_same_table(found: SeveralTargets) -> None:
    again = audit_targets(
        records(), trainer=TREE, targets=3, shadows=4, attacks=["base", "loss"], evaluation=Evaluation(fprs=[0.1])
    )
    assert again.table().to_csv() == found.table().to_csv()


def test_targets_of_a_graph_are_audited_as_a_graph() -> None:
    trainer = GNNTrainer(hidden=4, epochs=2, device="cpu")
    graph = citation_graph(nodes=80, classes=2)
    done = audit_targets(
        graph, trainer=trainer, targets=2, shadows=2, attacks=["base"], evaluation=Evaluation(fprs=[0.1])
    )
    assert done.results[0].surroundings is not None
    assert done.table()["targets"].tolist() == [2]


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="targets: 1 given; an interval over targets needs two or more"):
        audit_targets(records(), trainer=TREE, targets=1)
    with pytest.raises(InputError, match="members: every target is trained here"):
        audit_targets(records(), trainer=TREE, members=np.ones(120))
    with pytest.raises(InputError, match="list is not a population"):
        audit_targets([1, 2], trainer=TREE)
    with pytest.raises(InputError, match="str is not a trainer"):
        audit_targets(records(), trainer="tree")
