"""Columns that divide records, given to every kind of audit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import glasshouse
import glasshouse.graph
from glasshouse import Evaluation, InputError, Population, SklearnTrainer, audit, audit_evidence
from glasshouse.config import read_audit_file, run_audit_file
from glasshouse.graph import GNNTrainer, citation_graph
from tests.strategies import gaussian_evidence


def test_records_are_divided_by_the_users_columns_and_by_class() -> None:
    random = np.random.default_rng(0)
    population = Population(random.normal(size=(200, 3)), random.choice(["no", "yes"], 200))
    trainer = SklearnTrainer(estimator=LogisticRegression())
    columns: dict[str, Any] = {"age": np.arange(200), "sex": ["f", "m"] * 100}
    result = audit(population, trainer=trainer, attacks=["base"], shadows=4, evaluation=Evaluation(groups=columns))
    found = [(one.column, one.group) for one in result.summary().groups]
    assert found[:4] == [("class", "no"), ("class", "yes"), ("age", "0–49"), ("age", "50–99")]
    assert found[-2:] == [("sex", "f"), ("sex", "m")]
    assert sum(one.members for one in result.summary().groups if one.column == "age") == 100
    assert result.records()["sex"].tolist()[:2] == ["f", "m"]

    def never(population: Any, members: Any, seed: int) -> Any:
        raise AssertionError("nothing is trained before the columns are checked")

    with pytest.raises(InputError, match="'sex' has shape"):
        audit(population, trainer=never, attacks=["base"], shadows=4, evaluation=Evaluation(groups={"sex": ["f"]}))


def test_evidence_with_wrong_columns_is_refused() -> None:
    evidence, members = gaussian_evidence(records=40, models=4, shift=1.0, seed=0)
    with pytest.raises(InputError, match="'label' is the name of a column of the result"):
        audit_evidence(
            evidence, members=members, attacks=["base"], evaluation=Evaluation(groups={"label": np.zeros(40)})
        )


def test_nodes_are_divided_by_degree_and_columns_cover_the_whole_graph() -> None:
    data = citation_graph(nodes=160, classes=3, seed=0)
    trainer = GNNTrainer(hidden=4, epochs=2, device="cpu")
    nodes = np.arange(0, 160, 2)
    result = glasshouse.graph.audit(
        data,
        trainer=trainer,
        attacks=["base"],
        shadows=4,
        nodes=nodes,
        evaluation=Evaluation(groups={"half": np.arange(160) < 80}),
    )
    columns = [one.column for one in result.summary().groups]
    assert list(dict.fromkeys(columns)) == ["class", "degree", "half"]
    assert 2 <= columns.count("degree") <= 8
    assert result.records()["half"].sum() == 40
    assert sum(one.members + one.non_members for one in result.summary().groups if one.column == "degree") == 80


def test_an_audit_file_names_columns_for_the_report(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [f"{random.normal():.3f},{'fm'[i // 2 % 2]},{i % 50 or ''},{'yn'[i % 3 == 0]},{i % 2}" for i in range(120)]
    (tmp_path / "people.csv").write_text("height,sex,age,label,trained\n" + "\n".join(rows) + "\n")
    path = tmp_path / "audit.yaml"
    path.write_text(
        "data: {name: file, path: people.csv, member: trained, groups: [sex, age]}\n"
        "trainer: {kind: sklearn, estimator: LogisticRegression}\nattacks: [base]\nshadows: 4\n"
    )
    result = run_audit_file(read_audit_file(path), folder=tmp_path)
    found = [(one.column, one.group) for one in result.summary().groups]
    assert ("sex", "f") in found
    assert ("age", "missing") in found
    path.write_text(path.read_text().replace("[sex, age]", "[town]"))
    with pytest.raises(InputError, match="has no column 'town'"):
        run_audit_file(read_audit_file(path), folder=tmp_path)
