"""The rule for edges, its baselines, and the scene that they look at."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv, SGConv
from torch_geometric.utils import to_undirected

from glasshouse import InputError
from glasshouse.attacks import BASE, create
from glasshouse.core.arrays import BoolArray
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc
from glasshouse.graph import (
    CandidateEdges,
    EdgeInfluence,
    EdgeScene,
    GEdge,
    GroundTruth,
    candidate_edges,
    citation_graph,
)
from glasshouse.graph.attacks.g_edge import learned_prior
from glasshouse.graph.models.networks import build_gnn
from glasshouse.graph.sampling.posterior import log_odds
from tests.graph.random_graphs import CLASSES, FEATURES, random_models

PAIRS = np.array([[0, 1, 2, 0], [2, 4, 5, 5]])


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = SGConv(FEATURES, 6, K=2), SAGEConv(6, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.first(x, edge_index).relu(), edge_index)  # type: ignore[no-any-return]


def graph() -> Data:
    torch.manual_seed(1)
    edges = to_undirected(torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]))
    return Data(x=torch.randn(6, FEATURES, dtype=torch.float64), edge_index=edges, y=torch.arange(6) % CLASSES)


def models_of(kind: str, count: int) -> list[Any]:
    if kind != "own":
        return list(random_models(kind, layers=2, count=count))
    torch.manual_seed(0)
    return [Own().double().eval() for _ in range(count)]


def scene_of(kind: str = "gcn", shadows: int = 4) -> EdgeScene:
    half = np.array([[1, 0, 1, 0], [1, 1, 0, 0]], dtype=bool)
    members = np.array([row for one in half for row in (one, ~one)][:shadows])
    target, *others = models_of(kind, shadows + 1)
    return EdgeScene(graph(), target, others, members, pairs=PAIRS)


def every_mask(scene: EdgeScene, request: Any) -> BoolArray:
    return np.array(list(itertools.product([False, True], repeat=4)))


@pytest.mark.parametrize("mode", ["online", "offline"])
@pytest.mark.parametrize("kind", ["gcn", "sage", "gat", "own"])
def test_the_posterior_is_the_rule_enumerated_over_all_graphs(kind: str, mode: Any) -> None:
    scene, data = scene_of(kind), graph()

    def total(model: Any, there: BoolArray) -> float:
        added = torch.from_numpy(PAIRS[:, there])
        edges = torch.cat([data.edge_index, added, added.flip(0)], dim=1)
        with torch.no_grad():
            return float(nn.functional.cross_entropy(model(data.x, edges), data.y, reduction="sum"))

    wanted = np.zeros(4)
    for there, pair in itertools.product(every_mask(scene, None), range(4)):
        sides = [np.where(np.arange(4) == pair, on, there) for on in (True, False)]
        signals = [total(model, sides[0]) - total(model, sides[1]) for model in scene.models]
        used = np.array(signals[1:])[~scene.shadow_members[:, pair] | (mode == "online")]
        wanted[pair] += expit(-signals[0] - np.log(np.mean(np.exp(-used)))) / 16
    attack = GEdge(mode=mode, sampler=every_mask, samples=16)
    np.testing.assert_allclose(attack.score(scene), wanted, atol=1e-8)


def test_engines_agree_and_the_reference_is_slow_but_sure() -> None:
    scene = scene_of("sage")
    fast, slow = (GEdge(engine=name).score(scene) for name in ("auto", "reference"))
    np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_simulated_targets_never_ask_a_model_twice_and_leave_out_complements() -> None:
    scene = scene_of()
    first = GEdge().score(scene)
    known = len(scene._pool.kept["signals"])
    targets = list(scene.simulated())
    assert [len(one.view.shadows) for one in targets] == [2, 2, 2, 2]
    assert all(one.view.target is model for one, model in zip(targets, scene.shadows, strict=True))
    scores = [GEdge().score(one.view) for one in targets]
    assert len(scene._pool.kept["signals"]) == known
    assert not any(np.array_equal(first, one) for one in scores)
    one = targets[0].view
    again = EdgeScene(scene.data, one.target, one.shadows, one.shadow_members, pairs=PAIRS)
    np.testing.assert_allclose(scores[0], GEdge().score(again), atol=1e-12)


def test_the_evidence_has_the_margin_minus_s() -> None:
    scene = scene_of()
    signals = scene.toggled(np.zeros((1, 4), dtype=bool))[:, 0]
    np.testing.assert_allclose(scene.evidence.target_statistic, -signals[0], atol=1e-9)
    assert BASE().score(scene.evidence).shape == (4,)
    assert scene.evidence.labels is not None
    assert scene.evidence.labels.tolist() == [0, 1, 1, 0]


def test_samplers_give_graphs_and_those_of_nodes_are_refused() -> None:
    scene = scene_of()
    truth = np.array([True, False, True, False])
    told = GEdge(sampler=GroundTruth(truth), samples=1)
    assert told.knows_truth
    signals = scene.toggled(truth[None])[:, 0]
    np.testing.assert_allclose(told.score(scene), expit(-signals[0] - np.log(np.exp(-signals[1:]).mean(axis=0))))
    assert GEdge(sampler="mia").score(scene).shape == (4,)
    with pytest.raises(InputError, match="does not draw edges"):
        GEdge(sampler="gibbs")
    with pytest.raises(InputError, match="no out-model"):
        GEdge(mode="offline").check(np.ones((2, 4), dtype=bool))


def wide_scene(others: Any, shadows: int = 4) -> tuple[EdgeScene, CandidateEdges]:
    data = citation_graph(nodes=200, classes=3)
    pairs = candidate_edges(data, count=60, others=others)
    torch.manual_seed(0)
    models = [build_gnn("gcn", features=data.x.shape[1], hidden=8, classes=3).eval() for _ in range(shadows + 1)]
    members = complementary_halves(120, models=shadows, seed=0)
    return EdgeScene(pairs.known, models[0], models[1:], members, pairs=pairs.pairs, others=others), pairs


def test_a_learned_prior_tells_edges_from_random_pairs_without_the_target_or_the_audited_pairs() -> None:
    scene, pairs = wide_scene("random")
    prior = learned_prior(scene)
    assert auc(prior, pairs.present) > 0.8
    assert ((prior > 0) & (prior < 1)).all()
    other = EdgeScene(
        scene.data,
        lambda x, edges: x[:, :3],
        scene.shadows,
        ~scene.shadow_members,
        pairs=scene.pairs,
        others="random",
    )
    np.testing.assert_array_equal(learned_prior(other), prior)
    half, _ = wide_scene("held out")
    np.testing.assert_array_equal(learned_prior(half), 0.5)
    np.testing.assert_array_equal(GEdge(prior="learned").score(half) > 0.5, GEdge().score(half) > 0.5)


def test_beside_a_learned_prior_the_rule_weighs_as_simulated_targets_say() -> None:
    scene, _ = wide_scene("random")
    attack, masks = GEdge(prior="learned", samples=1), np.zeros((1, 120), dtype=bool)
    signals = scene.toggled(masks)
    odds = np.stack([log_odds(signals[1 + k, 0], signals[1 + scene.references_of(k), 0]) for k in range(4)])
    signs = np.where(scene.shadow_members, 1.0, -1.0)
    weights = np.linspace(0.0, 400.0, 4001)
    losses = [np.logaddexp(0.0, -weight * signs * odds).sum() for weight in weights]
    found = attack._log_odds(scene, signals, None)[0] / GEdge()._log_odds(scene, signals, None)[0]
    np.testing.assert_allclose(found, weights[np.argmin(losses)], atol=0.2)
    assert attack.label == "g-edge-learned"


def test_a_prior_may_be_a_function_of_the_scene_or_one_number_for_each_pair() -> None:
    scene = scene_of()
    by_pair = [0.1, 0.9, 0.5, 0.2]
    attack = GEdge(prior=lambda seen: by_pair if seen is scene else 1 / 0)
    np.testing.assert_array_equal(attack.score(scene), GEdge(prior=by_pair).score(scene))
    plain = np.zeros((1, 4), dtype=bool)
    odds = [logit(GEdge(prior=one, sampler=lambda *_: plain, samples=1).score(scene)) for one in (by_pair, 0.5)]
    np.testing.assert_allclose(odds[0] - odds[1], logit(by_pair), atol=1e-8)
    for wrong, words in (("similar", 'Use a number or "learned"'), (lambda _: 2.0, "between 0 and 1")):
        with pytest.raises(InputError, match=words):
            GEdge(prior=wrong).score(scene)
    with pytest.raises(InputError, match="3 numbers for 4 edges"):
        GEdge(prior=lambda _: [0.5, 0.4, 0.3]).score(scene)


def test_influence_is_that_of_whole_graph_passes() -> None:
    scene, data = scene_of("gcn"), graph()
    found = EdgeInfluence().score(scene)
    for pair, (a, b) in enumerate(PAIRS.T.tolist()):
        edges = torch.cat([data.edge_index, torch.tensor([[a, b], [b, a]])], dim=1)
        both = []
        for near, far in ((a, b), (b, a)):
            nudged = data.x.clone()
            nudged[far] *= 1.01
            with torch.no_grad():
                change = scene.target(nudged, edges).softmax(1) - scene.target(data.x, edges).softmax(1)
            both.append(float(change[near].norm()) / 0.01)
        assert found[pair] == pytest.approx(max(both), rel=1e-6)


def test_similarity_baselines_are_cosines_of_both_ends() -> None:
    scene, data = scene_of("gcn"), graph()
    rows = data.x.numpy()
    wanted = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in zip(*rows[PAIRS], strict=True)]
    np.testing.assert_allclose(create("edge-features").score(scene), wanted, atol=1e-12)
    with torch.no_grad():
        shown = scene.target(data.x, data.edge_index).softmax(1).numpy()
    wanted = [np.corrcoef(shown[a], shown[b])[0, 1] for a, b in PAIRS.T]
    np.testing.assert_allclose(create("edge-posteriors").score(scene), wanted, atol=1e-9)
