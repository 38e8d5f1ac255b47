from __future__ import annotations

from pathlib import Path

import numpy as np

from glasshouse.config import AuditFile, run_audit_file
from glasshouse.config.graph import GraphSection


def test_a_graph_file_of_the_users_own_is_found_beside_the_audit_file(tmp_path: Path) -> None:
    from glasshouse.graph import citation_graph

    data = citation_graph(nodes=200, classes=3, seed=1)
    np.savez(tmp_path / "mine.npz", edge_index=data.edge_index.numpy(), x=data.x.numpy(), y=data.y.numpy())
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


def test_the_default_section_is_the_synthetic_graph_and_says_so() -> None:
    arguments = GraphSection().arguments(folder=Path(), seed=0)
    assert "synthetic" in arguments["about"].lower()
    assert arguments["known_graph"] is None
