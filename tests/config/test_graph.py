from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from glasshouse import InputError
from glasshouse.compute import LocalProcesses
from glasshouse.config import AuditFile, run_audit_file, with_options
from glasshouse.config.graph import GraphSection, NetworkSection
from glasshouse.graph import GNNTrainer


def test_a_graph_file_of_the_users_own_is_found_beside_the_audit_file(tmp_path: Path) -> None:
    from glasshouse.graph import citation_graph

    data = citation_graph(nodes=200, classes=3, seed=1)
    weights = np.random.default_rng(0).random(data.num_edges)
    parts = {name: data[name].numpy() for name in ("edge_index", "x", "y")}
    np.savez(tmp_path / "mine.npz", **parts, edge_weight=weights)
    config = AuditFile.model_validate(
        {
            "graph": {
                "name": "mine.npz",
                "network": {"hidden": 8, "epochs": 20, "optimizer": "sgd", "learning_rate": 0.5},
                "drawn": "snowball",
                "fraction": 0.4,
                "attacker": {"network": {"architecture": "sage", "hidden": 8, "epochs": 10}, "missing_edges": 0.2},
            },
            "attacks": ["base", {"name": "g-base", "samples": 2}],
            "shadows": 2,
            "fprs": [0.05],
        }
    )
    result = run_audit_file(config, folder=tmp_path)
    assert result.members is not None
    assert result.members.sum() == 80
    assert list(result.outcomes) == ["base", "g-base-mia"]
    assert "The graph has edge_weight, which the model does not use." in result.context.notes


def test_a_file_that_asks_for_edges_is_an_audit_of_edges_with_their_ends(tmp_path: Path) -> None:
    section = {"network": {"hidden": 8, "epochs": 2}, "pairs": {"count": 20, "others": "random"}}
    attacks = [{"name": "g-edge", "prior": "learned"}, "edge-posteriors"]
    given = {"graph": section, "attacks": attacks, "shadows": 2, "prior": 0.4}
    result = run_audit_file(AuditFile.model_validate(given), folder=tmp_path)
    assert list(result.outcomes) == ["g-edge-learned", "edge-posteriors"]
    assert result.context.settings["prior"] == 0.4
    assert result.context.settings["pairs that are not edges"] == "random"
    assert all(len(str(name).split(" - ")) == 2 for name in result.records()["id"])
    assert GraphSection(pairs={}).arguments(folder=Path(), seed=0)["members"] is None  # type: ignore[arg-type]
    some = GraphSection(pairs={}, fraction=0.3).arguments(folder=Path(), seed=0)  # type: ignore[arg-type]
    assert some["members"].mean() == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    "given", [{"minutes": 3}, {"pool": "models"}, {"advise": 1}, {"public": 0.2}, {"graph": {"nodes": 9, "pairs": {}}}]
)
def test_what_an_audit_of_edges_does_not_use_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="an audit of edges"):
        AuditFile.model_validate({"graph": {"pairs": {}}} | given)


def test_options_of_the_command_line_are_checked_for_edges_too(tmp_path: Path) -> None:
    config = AuditFile.model_validate({"graph": {"pairs": {"count": 9}}})
    assert with_options(config, shadows=6).graph == config.graph
    with pytest.raises(InputError, match="--minutes: an audit of edges"):
        with_options(config, minutes=3)
    with pytest.raises(InputError, match=r"graph\.pairs"):
        with_options(config, nodes=30)
    with pytest.raises(InputError, match="--workers: an audit of edges"):
        run_audit_file(config, folder=tmp_path, compute=LocalProcesses(workers=2))


def test_the_default_section_is_the_synthetic_graph_and_says_so() -> None:
    arguments = GraphSection().arguments(folder=Path(), seed=0)
    assert "synthetic" in arguments["data"].about.lower()
    assert arguments["attacker"].graph is None


def test_the_network_of_a_file_without_settings_is_the_default_one_of_python() -> None:
    file, python = NetworkSection().build(), GNNTrainer()
    for field in dataclasses.fields(python):
        ours, theirs = getattr(file, field.name), getattr(python, field.name)
        if field.name == "optimizer":
            ours, theirs = (ours.func, ours.keywords), (theirs.func, theirs.keywords)
        assert ours == theirs, field.name


def test_two_tables_are_a_graph_and_nodes_with_an_empty_label_are_context(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [f"p{at},{random.normal():.3f},{['a', 'b', ''][at % 3]}" for at in range(90)]
    (tmp_path / "nodes.csv").write_text("\n".join(["paper,words,topic", *rows]))
    edges = [f"p{one},p{other}" for one, other in random.integers(90, size=(120, 2)).tolist()]
    (tmp_path / "edges.csv").write_text("\n".join(["from,to", *edges]))
    section = {"name": "nodes.csv", "edges": "edges.csv", "label": "topic", "network": {"epochs": 2, "hidden": 4}}
    config = AuditFile.model_validate({"graph": section, "attacks": ["base"], "shadows": 2, "fprs": [0.1]})
    result = run_audit_file(config, folder=tmp_path)
    assert len(result.records()["id"]) == 60
    assert any("all of them were in the graph that trained the target" in note for note in result.context.notes)
    with pytest.raises(ValidationError, match="write name: nodes.csv, with edges: and label:"):
        GraphSection.model_validate({"nodes": "nodes.csv", "edges": "edges.csv"})
