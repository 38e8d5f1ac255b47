from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import glasshouse
from glasshouse import Attacker, Evaluation, InputError, PrivacyClaim
from glasshouse.auditing.result import AuditResult
from glasshouse.data import random_subsets
from glasshouse.graph import GBASE, GNNTrainer, audit, citation_graph, noisy_edges, snowball_subset
from glasshouse.graph.training.trainer import adam, sgd

DATA = citation_graph(nodes=300, classes=3, seed=0)
TRAINER = GNNTrainer(hidden=16, dropout=0.0, epochs=60, optimizer=adam(0.02), device="cpu")


@pytest.fixture(scope="module")
def result() -> AuditResult:
    attacks: list[Any] = ["base", "lira", "g-classifier", "g-base", {"name": "g-base", "sampler": "gibbs"}]
    return audit(
        DATA,
        trainer=TRAINER,
        attacks=attacks,
        evaluation=Evaluation(claim=PrivacyClaim(epsilon=0.01)),
        about="A made-up graph.",
    )


def test_both_kinds_of_attack_land_in_one_table_and_one_report(result: AuditResult, tmp_path: Path) -> None:
    assert result.table()["attack"].tolist() == ["base", "lira", "g-classifier", "g-base-mia", "g-base-gibbs"]
    assert (result.table()["auc"][[0, 1, 3, 4]] > 0.6).all()
    assert result.records()["g-base-gibbs_rank"].min() == 1
    page = result.report(tmp_path / "report.html").read_text()
    assert "g-base-mia" in page
    assert "A made-up graph." in page
    folder = result.save(tmp_path / "run")
    assert "sampler_precision" in (folder / "metrics.json").read_text()
    assert result.context.train_accuracy is not None
    assert result.context.train_accuracy > 0.95
    assert result.context.shadow_seconds is not None
    assert result.records()["degree"].min() >= 0
    flagged = {name: result.records()[f"{name}_decision"] for name in result.outcomes}
    alone = flagged["base"] | flagged["lira"]
    around = flagged["g-classifier"] | flagged["g-base-mia"] | flagged["g-base-gibbs"]
    exposed = result.records()["exposed_by"]
    assert ((exposed == "itself") == alone).all()
    assert ((exposed == "neighbours") == (around & ~alone)).all()
    assert "exposed by" in page
    assert page.count('class="ego"') == 40


def test_same_seed_same_scores_and_the_truth_reaches_none(result: AuditResult) -> None:
    again = audit(DATA, trainer=TRAINER, attacks=["base", "g-base"])
    for name in ("base", "g-base-mia"):
        assert (again.outcomes[name].scores == result.outcomes[name].scores).all()


def test_a_users_own_target_and_some_nodes_with_names() -> None:
    members = random_subsets(300, models=1, fraction=0.5, seed=3)[0]
    target = TRAINER(DATA, members, 5)
    nodes = np.arange(0, 300, 2)
    found = audit(
        DATA,
        model=target,
        members=members,
        trainer=TRAINER,
        nodes=nodes,
        ids=[f"paper-{i}" for i in range(300)],
        attacks=[GBASE(samples=2), "base"],
        attacker=Attacker(prior=np.full(300, 0.4)),
        shadows=4,
        evaluation=Evaluation(fprs=[0.05]),
    )
    assert found.records()["id"].tolist() == [f"paper-{i}" for i in nodes]
    assert found.members is not None
    assert (found.members == members[nodes]).all()
    assert found.records()["label"].tolist() == DATA.y.numpy()[nodes].tolist()


def test_an_attacker_who_knows_little_can_be_switched_on() -> None:
    """The paper's mismatched adversary: other architecture, optimizer and share; edges missing; a snowball target."""
    members = snowball_subset(DATA, fraction=0.35, seed=0)
    found = audit(
        DATA,
        members=members,
        trainer=GNNTrainer(hidden=16, dropout=0.0, epochs=60, optimizer=sgd(0.5), device="cpu"),
        attacker=Attacker(
            trainer=GNNTrainer(
                architecture="gat", hidden=16, dropout=0.0, epochs=30, optimizer=adam(0.02), device="cpu"
            ),
            graph=noisy_edges(DATA, drop=0.1, add=0.1, seed=0),
        ),
        attacks=["base", "g-base"],
        shadows=6,
        evaluation=Evaluation(fprs=[0.05]),
    )
    assert "unlike every shadow model" in found.summary().notes[0]
    assert found.members is not None
    assert found.members.sum() == 105
    assert "gat" in str(found.context.settings["shadow trainer"])
    assert found.context.settings["attacker's graph"] != "the owner's"


def test_odd_edges_are_accepted_and_said_once() -> None:
    edges = torch.cat([DATA.edge_index, torch.tensor([[0, 0, 5], [0, 1, 200]]), torch.tensor([[0], [1]])], dim=1)
    odd = Data(x=DATA.x, edge_index=edges, y=DATA.y)
    found = audit(
        odd,
        trainer=TRAINER,
        attacks=[{"name": "g-base", "samples": 1}],
        shadows=2,
        nodes=np.arange(100),
        evaluation=Evaluation(fprs=[0.1]),
    )
    notes = [note for note in found.summary().notes if "handled as PyTorch Geometric does" in note]
    assert len(notes) == 1
    assert "1 self-loops and" in notes[0]
    assert "repeated edges and edges in one direction only" in notes[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nodes": [999]}, "whole numbers from 0 to 299"),
        ({"members": [1, 0]}, "members: shape"),
        ({"shadows": 5}, "complementary pairs"),
        ({"evaluation": Evaluation(fprs=[0.001])}, "is not measurable"),
        ({"attacks": ["gbase"]}, '"gbase" is not an attack. Did you mean "g-base"'),
        ({"attacks": [{"name": "g-base", "smaples": 3}]}, "'smaples' is not a parameter"),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(options: dict[str, Any], message: str) -> None:
    def never(data: Any, members: Any, seed: int) -> Any:
        raise AssertionError("a model was trained")

    with pytest.raises(InputError, match=message):
        audit(DATA, **({"trainer": never} | options))


def test_the_records_call_points_graphs_to_their_own() -> None:
    with pytest.raises(InputError, match=r"glasshouse\.graph\.audit"):
        glasshouse.audit(DATA, members=np.ones(300), trainer=TRAINER)


def test_the_ground_truth_is_shown_but_is_never_the_strongest_and_feeds_no_epsilon() -> None:
    data = citation_graph(nodes=240, classes=3, seed=0)
    trainer = GNNTrainer(hidden=16, dropout=0.0, epochs=60, device="cpu")
    limit = {"name": "g-base", "sampler": "truth", "samples": 1}
    options: dict[str, Any] = {"trainer": trainer, "shadows": 4, "evaluation": Evaluation(fprs=[0.1]), "seed": 1}
    choices: list[list[Any]] = [["loss"], [limit, "loss"]]
    alone, both = (audit(data, attacks=attacks, **options) for attacks in choices)
    summary = both.summary()
    assert summary.strongest == "loss"
    assert ". loss identifies" in summary.verdict or ". loss reaches" in summary.verdict
    assert summary.attack("g-base-truth").knows_truth
    assert alone.privacy is not None
    assert both.privacy == alone.privacy
    with pytest.raises(InputError, match="all of them know who trained the target"):
        audit(data, attacks=[limit], **options)


def test_audited_nodes_of_one_kind_are_refused_before_the_training() -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained")

    members = np.arange(300) < 150
    for nodes, kind in ((np.arange(5), "members"), (np.arange(200, 210), "non-members")):
        with pytest.raises(InputError, match=f"all {len(nodes)} audited nodes are {kind}"):
            audit(DATA, trainer=never, members=members, nodes=nodes, shadows=2, progress=False)
