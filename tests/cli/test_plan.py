"""The command ``plan``, and an audit file that names its folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from glasshouse.cli.app import app
from glasshouse.config.audit_file import read_audit_file, run_audit_file


def table(folder: Path) -> Path:
    random = np.random.default_rng(0)
    lines = ["who,age,town,label"]
    lines += [f"p{one // 2},{random.normal():.3f},{one // 20},{random.integers(2)}" for one in range(200)]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "people.csv"


def planned(path: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["plan", str(path), *options, "--out", str(path.parent / "plan")])
    assert result.exit_code == 0, result.output
    return result.output


def test_canaries_are_planned_and_audited_by_a_file(tmp_path: Path) -> None:
    path = table(tmp_path)
    told = planned(path, "--canaries", "80", "--unit", "who")
    hash_of = (tmp_path / "plan" / "commitment.txt").read_text(encoding="utf-8").strip()
    assert hash_of in told
    (tmp_path / "audit.yaml").write_text(
        "data: {name: file, path: people.csv, unit: who}\nplan: plan\nshadows: 0\nattacks: [loss]\n"
        "trainer: {kind: sklearn, estimator: DecisionTreeClassifier}\n",
        encoding="utf-8",
    )
    result = run_audit_file(read_audit_file(tmp_path / "audit.yaml"), folder=tmp_path, progress=False)
    assert len(result.evidence.ids) == 80
    assert result.declared is not None
    assert result.declared.coins == "canary"
    assert result.declared.epsilon > 0  # a tree remembers every wrong label


def test_members_are_planned_by_site(tmp_path: Path) -> None:
    assert "10 whole sites were drawn" in planned(table(tmp_path), "--design", "site", "--by", "town")
    assert not (tmp_path / "plan" / "canaries.csv").exists()


def test_the_number_of_canaries_follows_from_the_epsilon(tmp_path: Path) -> None:
    assert "canaries with a wrong label" in planned(table(tmp_path), "--epsilon", "12")


def test_a_plan_is_not_replaced_by_chance(tmp_path: Path) -> None:
    path = table(tmp_path)
    planned(path, "--canaries", "20")
    again = CliRunner().invoke(app, ["plan", str(path), "--out", str(tmp_path / "plan")])
    assert again.exit_code != 0
