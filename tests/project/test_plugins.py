"""What CONTRIBUTING promises: a plug-in is a few lines and one registration, and no file of ours is touched for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import GraphConv, TAGConv

import glasshouse
from glasshouse import Evaluation, Evidence
from glasshouse.attacks import Attack, attack_names, register
from glasshouse.attacks.attack import _ATTACKS
from glasshouse.config import AuditFile
from glasshouse.config.graph import NetworkSection
from glasshouse.core.arrays import BoolArray, FloatArray
from glasshouse.graph import (
    GNN,
    GNNTrainer,
    GraphAttack,
    LayerType,
    SamplingRequest,
    Scene,
    audit,
    citation_graph,
    layer_widths,
    register_layer_type,
    register_network,
    register_sampler,
    toggle_losses,
)
from glasshouse.graph.layers.layer_type import LAYER_TYPES, Operations
from glasshouse.graph.models.networks import NETWORKS
from glasshouse.graph.sampling.samplers import SAMPLERS
from glasshouse.graph.training.trainer import batching_obstacle
from glasshouse.pool.description import describe
from tests.forked import Forks
from tests.manual import blocks as blocks_of_the_manual

TRAINER = GNNTrainer(hidden=8, epochs=20, device="cpu")
DATA = citation_graph(nodes=160, classes=3, words=60, topic_words=20)


@pytest.fixture(autouse=True)
def _registries_as_they_were(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = dict(LAYER_TYPES)
    monkeypatch.setattr(NETWORKS, "_things", dict(NETWORKS._things))
    yield
    LAYER_TYPES.clear()
    LAYER_TYPES.update(known)


@pytest.fixture
def _attacks_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ATTACKS, "_things", dict(_ATTACKS._things))


def tag(features: int, hidden: int, classes: int, layers: int) -> list[nn.Module]:
    """A network: all that a plug-in has to say."""
    return [TAGConv(a, b, K=2) for a, b in layer_widths(features, hidden, classes, layers)]


def test_a_network_is_one_function() -> None:
    register_network("tag")(tag)
    trainer = GNNTrainer(architecture="tag", hidden=8, epochs=20, device="cpu")
    found = audit(
        DATA,
        trainer=trainer,
        attacks=["base", "g-base"],
        shadows=4,
        nodes=np.arange(40),
        evaluation=Evaluation(fprs=[0.1]),
    )
    assert np.isfinite(found.table()["auc"]).tolist() == [True, True]
    model = trainer.untrained(DATA)
    assert isinstance(model, GNN)
    assert model.hops == 4  # two layers of two steps


def test_a_network_is_known_to_audit_files() -> None:
    with pytest.raises(ValueError, match='"tag" is not a network'):
        NetworkSection(architecture="tag")
    register_network("tag")(tag)
    assert NetworkSection(architecture="tag", hidden=8).build().network is tag


def test_a_pool_notices_that_a_networks_code_has_changed() -> None:
    register_network("tag")(tag)
    before = describe(GNNTrainer(architecture="tag"))
    register_network("tag")(lambda features, hidden, classes, layers: [TAGConv(features, classes, K=layers)])
    assert describe(GNNTrainer(architecture="tag")) != before


@pytest.mark.usefixtures("_attacks_as_they_were")
def test_an_attack_on_graphs_is_one_class() -> None:
    @register("degree")
    @dataclass(frozen=True, kw_only=True)
    class Degree(GraphAttack):
        """Nodes with many neighbours are members, it believes."""

        def score(self, scene: Scene) -> FloatArray:
            degree = np.bincount(scene.data.edge_index[0].numpy(), minlength=int(scene.data.num_nodes))
            return scene.audited(degree).astype(np.float64)

    assert "degree" in attack_names()
    assert "degree" not in attack_names(graph=False)
    assert AuditFile(attacks=["degree"]).attacks == ["degree"]
    found = audit(
        DATA,
        trainer=TRAINER,
        attacks=["degree", {"name": "best", "candidates": ["degree"]}],
        shadows=4,
        evaluation=Evaluation(fprs=[0.1]),
    )
    assert (found.outcomes["degree"].scores == found.outcomes["best"].scores).all()
    assert found.outcomes["degree"].thresholds


@pytest.mark.usefixtures("_attacks_as_they_were")
def test_an_attack_on_records_is_one_class_and_runs_on_graphs_too() -> None:
    @register("gap")
    @dataclass(frozen=True, kw_only=True)
    class Gap(Attack):
        """How much surer the target is than the median shadow model."""

        def score(self, view: Evidence) -> FloatArray:
            return np.asarray(np.median(view.shadow_loss, axis=0) - view.target_loss)

    assert "gap" in attack_names(graph=False)
    assert list(
        audit(DATA, trainer=TRAINER, attacks=["gap"], shadows=2, evaluation=Evaluation(fprs=[0.1])).outcomes
    ) == ["gap"]


def test_a_sampler_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SAMPLERS, "_things", dict(SAMPLERS._things))

    @register_sampler("everybody")
    def everybody(scene: Scene, request: SamplingRequest) -> BoolArray:
        return np.ones((request.samples, len(request.prior)), dtype=bool)

    assert AuditFile(attacks=[{"name": "g-base", "sampler": "everybody"}]).attacks
    attacks = [{"name": "g-base", "sampler": "everybody", "samples": 1}]
    found = audit(
        DATA, trainer=TRAINER, attacks=attacks, shadows=2, nodes=np.arange(40), evaluation=Evaluation(fprs=[0.1])
    )
    assert found.outcomes["g-base-everybody"].details["sampler_recall"] == 1.0


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("g-regressed", {"attacks/attack.py", "graph/attacks/two_queries.py"}),
        ("g-stacked", {"attacks/attack.py", "graph/attacks/g_stacked.py", "graph/audit.py"}),
        ("sage-mean", {"graph/models/networks.py"}),
        ("bavaria", {"attacks/lira.py"}),
    ],
)
def test_what_is_built_in_is_named_in_as_few_files(name: str, files: set[str]) -> None:
    """The counts of CONTRIBUTING: nobody has to find a second table that wants the name, but for the default audit."""
    source = Path(glasshouse.__file__).parent
    found = {str(path.relative_to(source)) for path in source.rglob("*.py") if f'"{name}"' in path.read_text()}
    assert found == files


class OwnConv(GraphConv):  # type: ignore[misc]
    """A layer of one's own; subclasses of a known layer are not known, since they may do anything."""


def formula(o: Operations, layer: OwnConv, x: Any) -> Any:
    """A layer type: the sum that a toggle changes, and that is trained."""
    return o.sum(x, linear="lin_rel", bias="lin_rel.bias", root="lin_root")


def test_a_layer_type_is_one_registration_and_makes_a_network_fast() -> None:
    members = np.random.default_rng(0).random((2, 160)) < 0.5
    register_network("graph-conv")(lambda *sizes: [OwnConv(a, b) for a, b in layer_widths(*sizes)])
    trainer = GNNTrainer(architecture="graph-conv", hidden=8, epochs=5, dropout=0, device="cpu")
    assert "cannot be trained in one batch" in str(batching_obstacle(trainer, DATA, members))
    register_layer_type(LayerType(convolution=OwnConv, formula=formula))
    assert batching_obstacle(trainer, DATA, members) is None
    models = trainer.train_many(DATA, members, [0, 1])
    for model, who, seed in zip(models, members, (0, 1), strict=True):
        alone = trainer(DATA, who, seed)
        for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    masks, nodes = torch.from_numpy(members), torch.arange(0, 160, 20)
    fast, as_written = (toggle_losses(models, DATA, masks, nodes, engine=engine) for engine in ("layered", "reference"))
    torch.testing.assert_close(fast, as_written, atol=1e-4, rtol=1e-4)


RECIPES = """
import torch
from glasshouse.graph import GNNTrainer, audit, citation_graph, layer_widths, register_network, toggle_losses

register_network("mine")(lambda *sizes: [MyConv(a, b) for a, b in layer_widths(*sizes)])
data = citation_graph(nodes=120, classes=3, seed=0)
trainer = GNNTrainer(architecture="mine", hidden=8, epochs=3, device="cpu")
members = np.random.default_rng(0).random((2, 120)) < 0.5
models = trainer.train_many(data, members, [0, 1])
masks, nodes = torch.from_numpy(members), torch.arange(0, 120, 20)
fast, written = (toggle_losses(models, data, masks, nodes, engine=one) for one in ("layered", "as-written"))
torch.testing.assert_close(fast, written, atol=1e-4, rtol=1e-4)
result = audit(data, trainer=trainer, attacks=[attack], shadows=4, progress=False)
print(*result.outcomes)
halves = np.concatenate([members, ~members])
target, *shadow_models = trainer.train_many(data, np.concatenate([members[:1], halves]), [*range(5)])
scene, stacked = Scene(data, target, shadow_models, halves), GStacked(samples=(1,), jobs=1)
with_it, without_it = scores_with_mine(scene, stacked), stacked.score(scene)
assert np.isfinite(with_it).all() and not np.array_equal(with_it, without_it)
"""


def test_the_recipes_of_the_manual_work_together(forks: Forks, tmp_path: Path) -> None:
    """In a process of their own: what they register would be known to other tests."""
    blocks = [one.text for one in blocks_of_the_manual() if one.page == "extending.md" and one.language == "python"]
    assert len(blocks) == 4
    ran = forks.run("\n".join([*blocks, RECIPES]), folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["g-base-half"]
