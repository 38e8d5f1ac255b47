"""The audit of edges as one call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glasshouse import Evaluation, InputError
from glasshouse import audit as audit_records
from glasshouse.data import Population
from glasshouse.graph import GNNTrainer, audit_edges, citation_graph
from glasshouse.graph import audit as audit_nodes

DATA = citation_graph(nodes=160, classes=3)
SHORT = GNNTrainer(hidden=8, epochs=10, device="cpu")


def test_an_audit_names_both_ends_of_each_edge_and_says_edge(tmp_path: Path) -> None:
    result = audit_edges(DATA, trainer=SHORT, edges=40, others="held out", shadows=4, attacks=["g-edge", "lira"])
    ends = [name.split(" - ") for name in result.records()["id"].tolist()]
    assert all(int(a) < int(b) < 160 for a, b in ends)
    assert result.table()["attack"].tolist() == ["g-edge", "lira"]
    assert result.privacy is not None
    assert result.privacy.unit == "edge"
    assert not result.privacy.withheld
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "80 edges audited, 40 of them training data" in page
    assert "80 pairs of nodes were audited: 40 edges" in page


def test_a_design_of_edges_is_refused() -> None:
    with pytest.raises(InputError, match="drawn by this audit"):
        audit_edges(DATA, trainer=SHORT, evaluation=Evaluation(design="records"))


@pytest.mark.parametrize("others", ["distance", "random"])
def test_no_epsilon_where_no_coin_chose_the_non_edges(others: str) -> None:
    members = np.arange(160) < 120
    result = audit_edges(
        DATA,
        trainer=SHORT,
        members=members,
        edges=30,
        others=others,  # type: ignore[arg-type]
        shadows=2,
        attacks=["g-edge"],
    )
    assert result.privacy is not None
    assert "drawn by a coin" in result.privacy.sentence()
    ends = {int(end) for name in result.records()["id"] for end in name.split(" - ")}
    assert max(ends) < 120


def test_the_same_seed_gives_the_same_scores() -> None:
    one, other = (
        audit_edges(DATA, trainer=SHORT, edges=20, shadows=2, attacks=["g-edge", "edge-influence"], seed=5)
        for _ in range(2)
    )
    for name in ("g-edge", "edge-influence"):
        assert np.array_equal(one.outcomes[name].scores, other.outcomes[name].scores)


def test_a_given_model_is_audited_and_edges_are_not_held_out_from_it() -> None:
    members = np.ones(160, dtype=bool)
    model = SHORT(DATA, members, 3)
    result = audit_edges(DATA, model=model, trainer=SHORT, edges=20, shadows=2, attacks=["g-edge"])
    assert result.members is not None
    assert result.members.sum() == 20
    with pytest.raises(InputError, match="held out from a model"):
        audit_edges(DATA, model=model, trainer=SHORT, edges=20, others="held out")
    with pytest.raises(InputError, match="trained as the given model was"):
        audit_edges(DATA, model=model, edges=20)


def test_attacks_on_edges_are_refused_elsewhere_with_the_call_to_use() -> None:
    with pytest.raises(InputError, match="audit_edges"):
        audit_nodes(DATA, trainer=SHORT, attacks=["g-edge"], shadows=2)
    with pytest.raises(InputError, match="audit_edges"):
        audit_records(Population(np.eye(20), [0, 1] * 10), trainer=lambda *_: None, attacks=["g-edge"], shadows=2)
