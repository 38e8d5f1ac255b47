"""Declared draws of a graph's members: tests, evidence and ε follow the draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch_geometric.data import Batch, Data

from glasshouse import Evaluation
from glasshouse.auditing.result import AuditResult
from glasshouse.core.errors import InputError
from glasshouse.graph import GNNTrainer, audit, citation_graph, snowball_subset

TRAINER = GNNTrainer(hidden=8, epochs=20, device="cpu")


@pytest.fixture(scope="module")
def graph() -> Data:
    """Six components, which differ in nothing but their edges."""
    whole = Batch.from_data_list([citation_graph(nodes=80, classes=3, seed=seed) for seed in range(6)])
    return Data(x=whole.x, edge_index=whole.edge_index, y=whole.y)


def audited(data: Data, members: Any, design: Any) -> AuditResult:
    return audit(
        data,
        members=members,
        trainer=TRAINER,
        attacks=["base"],
        shadows=4,
        evaluation=Evaluation(design=design),
        progress=False,
    )


def test_a_snowball_is_evidence_against_a_draw_of_nodes_and_not_against_one_by_snowball(graph: Data) -> None:
    members = snowball_subset(graph, fraction=0.5, seed=1)
    undeclared, nodes, snowball = (audited(graph, members, design) for design in (None, "records", "snowball"))
    assert undeclared.random_members is not None
    assert undeclared.random_members.found
    assert undeclared.summary().conclusion.leak is None
    assert nodes.declared is not None
    assert nodes.declared.contradicted
    assert "nodes were drawn at random" in nodes.declared.sentence
    assert snowball.declared is not None
    assert not snowball.declared.contradicted
    assert snowball.summary().conclusion.leak is not None
    assert snowball.privacy is not None
    assert "drawn along edges" in snowball.privacy.withheld


def test_whole_components_are_permuted_and_are_the_units_of_an_epsilon(graph: Data) -> None:
    component = np.repeat(np.arange(6), 80)
    result = audited(graph, component < 3, "component")
    assert result.declared is not None
    assert result.declared.cluster == "component"
    assert not result.declared.contradicted
    assert result.privacy is not None
    assert result.privacy.unit == "component"
    assert result.verdict_attack is not None
    assert result.verdict_attack.test.p_value >= 1 / 20  # of 20 choices of three components


def test_strata_of_unequal_shares_leave_nodes_out_and_the_others_keep_their_places(graph: Data) -> None:
    random, stratum = np.random.default_rng(0), np.arange(480) % 2
    members = random.random(480) < np.where(stratum == 0, 0.8, 0.2)
    result = audited(graph, members, {"name": "strata", "by": stratum})
    assert result.declared is not None
    assert result.declared.left_out > 50
    records = result.records()
    at = records["id"].astype(int)
    np.testing.assert_array_equal(records["member"], members[at])
    degree = np.bincount(graph.edge_index[1].numpy(), minlength=480)
    np.testing.assert_array_equal(records["degree"], degree[at])
    # losses of the target belong to the nodes that they are listed for
    np.testing.assert_array_equal(result.evidence.ids, records["id"])


def test_a_design_of_a_sample_of_nodes_is_refused(graph: Data) -> None:
    with pytest.raises(InputError, match="follow that draw"):
        audit(graph, nodes=50, evaluation=Evaluation(design="records"))
