"""What users bring as graphs: judged rightly, or refused in one line (docs/no-false-verdict.md).

What 5f6366e did not have is imported where it is used, so that every other test here can be run, and fails, there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (as users write it)
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv

from glasshouse import Attacker, Evaluation, InputError
from glasshouse.config import read_audit_file, run_audit_file
from glasshouse.graph import GBASE, GNNTrainer, Scene, audit, build_gnn, citation_graph
from glasshouse.graph.training.trainer import adam

DATA = citation_graph(nodes=120, classes=3, words=60, words_a_node=6.0, topic_words=15, seed=0)
MEMBERS = np.random.default_rng(0).random(120) < 0.5


class MyGNN(nn.Module):
    """As a user writes it."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        widths = [60, *[16] * (layers - 1)]
        self.convs = nn.ModuleList([GCNConv(a, 16) for a in widths[:-1]] + [GCNConv(widths[-1], 3)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs[:-1]:
            x = F.dropout(F.relu(conv(x, edge_index)), p=0.3, training=self.training)
        return self.convs[-1](x, edge_index)  # type: ignore[no-any-return]


def planetoid_script(data: Data, members: Any, seed: int) -> nn.Module:
    """The usual script: the whole graph, and a mask of labelled nodes."""
    torch.manual_seed(seed % 2**31)
    model, mask = MyGNN(), torch.from_numpy(np.asarray(members))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(data.x, data.edge_index)[mask], data.y[mask]).backward()
        optimizer.step()
    return model


def inductive_script(data: Data, members: Any, seed: int) -> nn.Module:
    part = data.subgraph(torch.from_numpy(np.asarray(members)))
    return planetoid_script(part, np.ones(part.num_nodes, dtype=bool), seed)


def test_a_given_model_without_its_members_is_refused() -> None:
    with pytest.raises(InputError, match="^members: missing; a given model needs the records that trained it"):
        audit(DATA, model=MyGNN(), trainer=inductive_script)


def test_a_given_model_without_its_trainer_does_not_become_a_gcn_of_ours() -> None:
    with pytest.raises(InputError, match="^trainer: missing; shadow models must be trained as the given model was"):
        audit(DATA, model=MyGNN(), members=MEMBERS)
    with pytest.raises(InputError, match="^trainer: missing"):
        audit(DATA, model=build_gnn("gat", features=60, hidden=64, classes=3), members=MEMBERS)


def test_a_model_that_our_own_trainer_would_make_needs_no_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = build_gnn("gcn", features=60, hidden=64, classes=3)
    monkeypatch.setattr(GNNTrainer, "__call__", lambda self, data, members, seed: ours)
    monkeypatch.setattr(GNNTrainer, "train_many", lambda self, data, members, seeds: [ours] * len(seeds))
    assert audit(DATA, model=ours, members=MEMBERS, attacks=["loss"], shadows=2).table()["attack"].tolist() == ["loss"]


class Weighted(MyGNN):
    """The same with weights of edges."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.convs[1](self.convs[0](x, edge_index, edge_weight).relu(), edge_index, edge_weight)  # type: ignore[no-any-return]


def weighted_script(data: Data, members: Any, seed: int, network: type[Weighted] = Weighted) -> nn.Module:
    """Inductive training with the weights of the edges between members."""
    torch.manual_seed(seed % 2**31)
    part, model = data.subgraph(torch.from_numpy(np.asarray(members))), network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(40):
        optimizer.zero_grad()
        F.cross_entropy(model(part.x, part.edge_index, part.edge_weight), part.y).backward()
        optimizer.step()
    return model


def test_weights_of_edges_reach_the_model_in_a_whole_audit() -> None:
    """The model itself compares the weights that it is given with those of the graph."""
    data = DATA.clone()
    data.edge_weight = torch.rand(data.num_edges, generator=torch.Generator().manual_seed(0)) * 3
    compared: list[bool] = []

    def pairs(x: Tensor, edge_index: Tensor) -> list[tuple[bytes, bytes]]:
        prints = [row.numpy().tobytes() for row in x]  # nodes are known by their features
        return [(prints[a], prints[b]) for a, b in edge_index.T.tolist()]

    known = dict(zip(pairs(data.x, data.edge_index), data.edge_weight.tolist(), strict=True))

    class Strict(Weighted):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            assert edge_weight is not None
            if len(x) >= 100 and not self.training:  # the probe asks about short paths of its own
                given = dict(zip(pairs(x, edge_index), edge_weight.tolist(), strict=True))
                compared.extend(known[pair] == weight for pair, weight in given.items() if pair in known)
            return super().forward(x, edge_index, edge_weight)

    found = audit(
        data,
        members=MEMBERS,
        trainer=lambda data, members, seed: weighted_script(data, members, seed, Strict),
        attacks=["base", "g-base"],
        shadows=2,
    )
    assert len(compared) > 1000
    assert all(compared)
    assert "The model is given the graph's edge_weight as its argument edge_weight." in found.context.notes
    assert "largest difference" in str(found.context.settings["engine"])


def test_values_of_edges_that_the_model_does_not_use_are_said() -> None:
    data = DATA.clone()
    data.edge_attr = torch.rand(data.num_edges, 2)
    found = audit(data, trainer=GNNTrainer(hidden=4, epochs=2, device="cpu"), attacks=["loss"], shadows=2)
    assert "The graph has edge_attr, which the model does not use." in found.context.notes


def test_the_engine_is_held_against_the_rule_and_the_report_says_how_near_it_is() -> None:
    found = audit(
        DATA,
        members=MEMBERS,
        trainer=GNNTrainer(model=lambda: GCN(60, 8, 3, 3), epochs=5),
        attacks=[GBASE(samples=1)],
        shadows=2,
        evaluation=Evaluation(fprs=[0.1]),
    )
    said = found.context.settings["engine"]
    assert " signals against the rule as written: largest difference " in said
    assert float(said.split()[-1]) < 1e-4


def test_an_engine_that_differs_from_the_rule_stops_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    from glasshouse.graph.models.profile import profile_models
    from glasshouse.graph.rule.engines import answer_block
    from glasshouse.graph.rule.toggling import check_engine

    models = [build_gnn("gcn", features=60, hidden=4, classes=3) for _ in range(3)]
    nodes = np.arange(int(DATA.num_nodes))
    assert check_engine(profile_models(models, DATA), DATA, nodes=nodes, share=0.5, seed=0).largest < 1e-4
    wrong = lambda *asked: answer_block(*asked) + 0.05  # noqa: E731
    monkeypatch.setattr("glasshouse.graph.rule.toggling.answer_block", wrong)
    with pytest.raises(InputError, match="the fast engine differs from the rule as written by 0.0"):
        check_engine(profile_models(models, DATA), DATA, nodes=nodes, share=0.5, seed=0)


@pytest.mark.parametrize("broken", ["dropout", "cache"])
def test_what_spoils_every_query_is_refused_where_nothing_is_toggled_too(broken: str) -> None:
    class Spoiled(MyGNN):
        def __init__(self) -> None:
            super().__init__()
            for conv in self.convs:
                setattr(conv, "cached", broken == "cache")  # noqa: B010 (unknown to the type checker)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            answers = super().forward(x, edge_index)
            return F.dropout(answers, 0.5) if broken == "dropout" else answers

    with pytest.raises(InputError, match="dropout is on" if broken == "dropout" else "with cached=True"):
        audit(DATA, members=MEMBERS, trainer=lambda data, members, seed: Spoiled(), attacks=["base"], shadows=2)


def test_the_usual_script_is_noticed_as_transductive() -> None:
    from glasshouse.graph.training.setting import fit_ratios, looks_transductive

    rows = np.stack([MEMBERS, ~MEMBERS])
    scripts = {planetoid_script: True, inductive_script: False}
    for script, wanted in scripts.items():
        models = [script(DATA, who, seed) for seed, who in enumerate(rows)]
        assert looks_transductive(fit_ratios(models, DATA, rows)) == wanted
    found = audit(
        DATA,
        model=planetoid_script(DATA, MEMBERS, 9),
        members=MEMBERS,
        trainer=planetoid_script,
        shadows=4,
        attacks=["base"],
    )
    assert "the target (its mean loss" in found.context.warnings[0]
    assert found.context.warnings[0].endswith(
        " and all shadow models. The audit treats them as inductive, so its "
        'figures are wrong: pass setting="transductive".'
    )


@pytest.mark.parametrize("script", [planetoid_script, inductive_script])
@pytest.mark.parametrize("trainer", [GNNTrainer(model=MyGNN, epochs=60), inductive_script])
def test_a_target_that_saw_the_whole_graph_is_noticed_whoever_trained_the_shadow_models(
    script: Any, trainer: Any
) -> None:
    """The usual loop, and an audit in the default setting."""
    target = script(DATA, MEMBERS, 9)
    found = audit(DATA, model=target, members=MEMBERS, trainer=trainer, shadows=4, attacks=["base"]).context.warnings
    noticed = [text for text in found if "with a mask: the target (its mean loss on members is 0." in text]
    assert len(noticed) == (script is planetoid_script)
    assert all("shadow models" not in text for text in noticed)
    assert all(("GNNTrainer" in text) == isinstance(trainer, GNNTrainer) for text in noticed)


def test_a_target_that_the_audit_trained_is_looked_at_too() -> None:
    found = audit(
        DATA,
        members=MEMBERS,
        trainer=planetoid_script,
        attacker=Attacker(trainer=inductive_script),
        shadows=2,
        attacks=["base"],
    )
    unlike, cause = found.context.warnings
    assert unlike.endswith("the target was not trained as the shadow models were.")
    assert "with a mask: the target (" in cause


def test_transductive_targets_are_asked_about_the_whole_graph() -> None:
    model = planetoid_script(DATA, MEMBERS, 9)
    found = audit(
        DATA, model=model, members=MEMBERS, trainer=planetoid_script, setting="transductive", shadows=4,
        attacks=["base", "g-base", "g-classifier", "best"],
    )  # fmt: skip
    model.eval()
    right = (model(DATA.x, DATA.edge_index).argmax(dim=1) == DATA.y).numpy()
    assert found.context.train_accuracy == pytest.approx(right[MEMBERS].mean())
    assert found.context.test_accuracy == pytest.approx(right[~MEMBERS].mean())
    assert found.context.warnings == ()
    assert list(found.left_out) == ["g-base-mia", "g-classifier"]
    assert "a transductive model was trained on the whole graph" in found.left_out["g-base-mia"]
    logits = model(DATA.x, DATA.edge_index)
    wanted = F.cross_entropy(logits.double(), DATA.y, reduction="none").detach().numpy()
    np.testing.assert_allclose(found.evidence.target_loss, wanted, atol=1e-6)


def test_our_trainer_trains_transductively_as_the_script_does() -> None:
    trainer = GNNTrainer(setting="transductive", hidden=16, dropout=0.0, epochs=60, optimizer=adam(0.02), device="cpu")
    model = trainer(DATA, MEMBERS, 0)
    hidden = DATA.clone()
    hidden.y = torch.where(torch.from_numpy(MEMBERS), DATA.y, (DATA.y + 1) % 3)  # others' labels play no part
    again = trainer(hidden, MEMBERS, 0)
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    elsewhere = DATA.clone()
    elsewhere.x = DATA.x.clone()
    elsewhere.x[~torch.from_numpy(MEMBERS)] += 1.0  # but their features do
    assert not torch.equal(next(trainer(elsewhere, MEMBERS, 0).parameters()), next(model.parameters()))
    assert trainer.metrics(DATA, MEMBERS, model)["train_accuracy"] > 0.9


def test_an_audit_and_its_trainer_must_agree_on_the_setting() -> None:
    with pytest.raises(InputError, match='^setting: the audit has "inductive", but the trainer trains in the trans'):
        audit(DATA, trainer=GNNTrainer(setting="transductive"))
    with pytest.raises(InputError, match='^setting: "both" is not known'):
        audit(DATA, setting="both")  # type: ignore[arg-type]


def test_an_audit_file_says_the_setting_too(tmp_path: Path) -> None:
    path = tmp_path / "audit.yaml"
    path.write_text(
        "graph: {name: synthetic, setting: transductive, network: {hidden: 8, epochs: 2}}\n"
        "attacks: [base, g-base]\nshadows: 2\n"
    )
    found = run_audit_file(read_audit_file(path), folder=tmp_path, progress=False)
    assert found.context.settings["setting"] == "transductive"
    assert list(found.left_out) == ["g-base-mia"]


def test_a_target_that_is_unlike_its_shadow_models_is_told_of_the_switch() -> None:
    found = audit(
        DATA, model=build_gnn("gcn", features=60, hidden=16, classes=3), members=MEMBERS, shadows=6, attacks=["loss"],
        trainer=GNNTrainer(hidden=16, dropout=0.0, epochs=100, optimizer=adam(0.05), device="cpu"),
    )  # fmt: skip
    (note,) = [note for note in found.summary().notes if "unlike every shadow model" in note]
    assert note.endswith('then pass setting="transductive".')


def test_a_network_that_gives_probabilities_in_a_dict_is_audited_as_its_logits_are() -> None:
    class Answering(nn.Module):
        def __init__(self, inner: nn.Module, kind: str) -> None:
            super().__init__()
            self.inner, self.kind = inner, kind

        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            logits = self.inner(x, edge_index)
            return {"logits": logits.softmax(dim=1)} if self.kind == "dict" else logits

    nets = [inductive_script(DATA, who, seed) for seed, who in enumerate([MEMBERS, MEMBERS, ~MEMBERS])]
    found = {}
    for kind in ("dict", "plain"):
        target, *shadows = (Answering(net, kind) for net in nets)
        scene = Scene(DATA, target, shadows, np.stack([MEMBERS, ~MEMBERS]))
        found[kind] = (GBASE(samples=2).score(scene), scene.zero_hop.target_loss, scene.notes)
    np.testing.assert_allclose(found["dict"][0], found["plain"][0], atol=1e-3)
    np.testing.assert_allclose(found["dict"][1], found["plain"][1], atol=1e-4)
    assert "answers with probabilities" in found["dict"][2][0]
    assert found["plain"][2] == ()


def test_swapped_members_of_a_graph_are_said_first() -> None:
    trainer = GNNTrainer(hidden=16, dropout=0.0, epochs=100, optimizer=adam(0.05), device="cpu")
    model = trainer(DATA, MEMBERS, 3)
    right, wrong = (
        audit(DATA, model=model, members=who, trainer=trainer, attacks=["base"], shadows=4)
        for who in (MEMBERS, ~MEMBERS)
    )
    assert right.context.warnings == ()
    assert wrong.context.warnings[0].startswith("Members and non-members look swapped")


def test_copies_of_nodes_in_both_groups_are_noted() -> None:
    edges = torch.cat([DATA.edge_index, DATA.edge_index + 120], dim=1)
    twice = Data(x=DATA.x.repeat(2, 1), edge_index=edges, y=DATA.y.repeat(2))
    members = np.repeat([True, False], 120)
    found = audit(twice, members=members, trainer=GNNTrainer(hidden=4, epochs=2), attacks=["loss"], shadows=2)
    assert any(note.startswith("120 of 120 non-members have the same features") for note in found.context.notes)


@pytest.mark.parametrize(
    ("trainer", "said"),
    [
        ("gcn", "trainer: str is not a trainer."),
        (MyGNN, "trainer: MyGNN is not a trainer."),
        (MyGNN(), "trainer: MyGNN is not a trainer."),
        (lambda data, members: MyGNN(), "trainer: it cannot be called as trainer(population, members, seed)"),
    ],
)
def test_what_is_no_trainer_is_refused_before_anything_is_trained(trainer: Any, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        audit(DATA, trainer=trainer)
    assert str(refusal.value).startswith(said)
    with pytest.raises(InputError, match="model: is a MyGNN that is already made"):
        GNNTrainer(model=MyGNN())


def test_a_network_with_too_few_logits_is_refused_before_it_is_trained() -> None:
    binary = DATA.clone()
    binary.y = (DATA.y > 0).long()
    for network, data in ((lambda: GCN(60, 8, 2, 1), binary), (lambda: GCN(60, 8, 2, 2), DATA)):
        with pytest.raises(InputError, match="^module: it gives . logits, but there are . classes; give one per class"):
            audit(data, members=MEMBERS, trainer=GNNTrainer(model=network, epochs=1), shadows=2, attacks=["base"])


def test_a_network_of_ones_own_may_train_on_a_dict_or_on_probabilities() -> None:
    class Softmax(MyGNN):
        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return {"logits": super().forward(x, edge_index).softmax(dim=1)}

    plain, wrapped = (
        GNNTrainer(model=kind, epochs=20, optimizer=adam(0.02), device="cpu")(DATA, MEMBERS, 0)
        for kind in (MyGNN, Softmax)
    )
    for one, other in zip(plain.parameters(), wrapped.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kind", [torch.float64, torch.int64, torch.float16])
def test_features_of_another_type_than_our_trainer_has_are_refused_before_anything_is_trained(
    kind: torch.dtype,
) -> None:
    data = DATA.clone()
    data.x = data.x.to(kind)
    with pytest.raises(InputError, match=rf"^data\.x: is {kind}, and GNNTrainer trains in torch\.float32"):
        audit(data, trainer=GNNTrainer(device="cpu"))
