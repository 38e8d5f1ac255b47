from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from glasshouse.config import AuditFile, run_audit_file
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
