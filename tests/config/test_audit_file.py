from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.config import AuditFile, read_audit_file, run_audit_file


def written(folder: Path, text: str) -> Path:
    path = folder / "audit.yaml"
    path.write_text(text)
    return path


def test_every_fault_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
shadow: 8
shadows: 7
mode: sideways
attacks: [base, rmai, {name: rmia, gama: 2}]
trainer: {kind: mlp, epochs: many, hiden: [3]}
fprs: [0.01, 2]
data: {name: digit}
claim: {delta: 0.1}
""",
    )
    with pytest.raises(InputError) as caught:
        read_audit_file(path)
    text = str(caught.value)
    assert len(caught.value.faults) == 10
    assert all(fault.startswith(f"{path}: ") for fault in caught.value.faults)
    for expected in (
        'shadow: is not a key here. Did you mean "shadows"?',
        "shadows: 7 is odd; models are trained in complementary pairs. Use 6 or 8.",
        "mode: Input should be 'online' or 'offline', but is 'sideways'.",
        'attacks[1]: "rmai" is not an attack. Did you mean "rmia"?',
        "attacks[2]: rmia: 'gama' is not a parameter of it.",
        "trainer.epochs: Input should be a valid integer, but is 'many'.",
        'trainer.hiden: is not a key here. Did you mean "hidden"?',
        "fprs[1]: Input should be less than 1, but is 2",
        "data: 'digit' is not known. Known: 'digits', 'adult', 'cifar10', 'cifar100', 'file', 'python'.",
        "claim.epsilon: is missing.",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no keys"),
        ("- a\n- b", "has no keys"),
        ("a: [", "is not YAML"),
        ("x: !!python/object/apply:os.system ['true']", "is not YAML"),
        ("shadows: 0", "shadows: an audit without shadow models is for records; a graph needs 2 or more"),
        ("shadows: 3", "shadows: 3 is odd"),
        ("attacks: []", "attacks: List should have at least 1 item"),
        ("attacks: bset", 'attacks\\[0\\]: "bset" is not an attack. Did you mean "best"'),
        ("attacks: [{name: best, candidates: [lira, g-bsae]}]", 'attacks\\[0\\]: "g-bsae" is not an attack'),
        ("trainer: {epochs: 3}", "trainer: needs 'kind'"),
        ("data: people.csv", "data: needs keys of its own, such as data: {…: …}, but is 'people.csv'"),
        ("data: {name: cifar100, recods: 200}", 'data.recods: is not a key here. Did you mean "records"'),
        ("graph: {path: my.npz}", "graph: give the file of a graph as its name: write name: my.npz"),
        ("graph: {standardise: true}", "graph.standardise: is not a key here. Another section has it"),
        ("graph: {name: cora}\ndata: {name: digits}", "data: cannot be used together with graph"),
        (
            "graph: {network: {architecture: transformer}}",
            'graph.network.architecture: "transformer" is not a network. Known: gcn, sage,',
        ),
        ("attacks: [{name: g-base, sampler: gibs}]", 'attacks\\[0\\]: "gibs" is not a sampler. Did you mean "gibbs"'),
    ],
)
def test_files_that_are_no_audit_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_audit_file(written(tmp_path, text))
    with pytest.raises(InputError, match="there is no such file"):
        read_audit_file(tmp_path / "none.yaml")


def test_the_default_needs_no_file() -> None:
    config = AuditFile()
    assert config.is_graph
    assert config.shadows == 8


def test_records_are_audited_where_data_or_a_trainer_is_given() -> None:
    assert not AuditFile.model_validate({"data": {"name": "digits"}}).is_graph
    assert not AuditFile.model_validate({"trainer": {"kind": "mlp"}}).is_graph
    assert AuditFile.model_validate({"shadows": 4}).is_graph


def test_one_attack_needs_no_list_and_best_may_name_candidates_of_both_kinds() -> None:
    assert AuditFile.model_validate({"attacks": "best"}).attacks == ["best"]
    choice = {"name": "best", "candidates": ["lira", "g-base"]}
    assert AuditFile.model_validate({"attacks": [choice]}).attacks == [choice]


def test_a_users_own_files_and_functions_are_audited(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [f"{random.normal()},{random.normal()},{'high' if i % 3 else 'low'},person-{i},{i % 2}" for i in range(200)]
    (tmp_path / "people.csv").write_text("\n".join(["age,height,income,who,trained", *rows]))
    path = written(
        tmp_path,
        """
title: People
data: {name: file, path: people.csv, label: income, id: who, member: trained}
trainer: {kind: sklearn, estimator: DecisionTreeClassifier, parameters: {max_depth: 8}}
attacks: [base, {name: rmia, gamma: 2.0}, best]
shadows: 4
fprs: [0.05]
claim: {epsilon: 1.0}
""",
    )
    result = run_audit_file(read_audit_file(path), folder=tmp_path)
    assert result.members is not None
    assert result.members.tolist() == [bool(i % 2) for i in range(200)]
    assert result.records()["id"][7] == "person-7"
    assert result.records()["label"][0] == "low"
    assert result.table()["auc"][0] > 0.55
    assert any("best picked" in note for note in result.summary().notes)


def test_functions_of_the_users_own_are_found_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "my_audit.py").write_text(
        """
import numpy as np
from glasshouse import Population, SklearnTrainer
from sklearn.tree import DecisionTreeClassifier

def data():
    random = np.random.default_rng(0)
    return Population(random.normal(size=(200, 2)), random.integers(2, size=200))

def trainer():
    return SklearnTrainer(estimator=DecisionTreeClassifier())

def target():
    members = np.arange(200) < 100
    return trainer()(data(), members, 0), members

def nothing():
    return None
"""
    )
    text = """
data: {name: python, factory: "my_audit:data"}
trainer: {kind: python, factory: "my_audit:trainer"}
target: {kind: python, factory: "my_audit:target"}
attacks: [base]
shadows: 4
"""
    with pytest.raises(InputError) as refused:
        run_audit_file(read_audit_file(written(tmp_path, text)), folder=tmp_path)
    assert [fault.split(".")[0] for fault in refused.value.faults] == ["data", "trainer", "target"]
    assert f"runs code: my_audit:data, from {tmp_path / 'my_audit.py'}. If you trust it" in refused.value.faults[0]
    assert "my_audit" not in sys.modules, "it was imported to be judged"
    result = run_audit_file(read_audit_file(written(tmp_path, text)), folder=tmp_path, trust_code=True)
    assert result.context.train_accuracy == 1.0
    for section, message in (
        ("data", "expected a Population"),
        ("trainer", "expected a trainer"),
        ("target", "a pair"),
    ):
        wrong = text.replace(f"my_audit:{section}", "my_audit:nothing")
        with pytest.raises(InputError, match=message):
            run_audit_file(read_audit_file(written(tmp_path, wrong)), folder=tmp_path, trust_code=True)
    for name, message in (
        ("my_audit", "module:function"),
        ("no_such:f", "cannot be imported"),
        ("my_audit:f", "has no f"),
    ):
        wrong = text.replace("my_audit:data", name)
        with pytest.raises(InputError, match=message):
            run_audit_file(read_audit_file(written(tmp_path, wrong)), folder=tmp_path, trust_code=True)
