"""The attacks as the authors' program computes them, beside the same sums written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from torch_geometric.data import Data

from glasshouse.attacks import RMIA
from glasshouse.core.randomness import generator
from glasshouse.evaluation import auc
from glasshouse.evidence import Mode
from glasshouse.graph import GBASE, Scene
from glasshouse.graph.models.networks import build_gnn
from glasshouse_experiments.authors import MARK, AuthorsBASE, AuthorsGBASE, AuthorsMLP, AuthorsRMIA, beside_the_paper
from glasshouse_experiments.cells import Cell
from glasshouse_experiments.counting import run_cells


@pytest.fixture
def scene() -> Scene:
    random = np.random.default_rng(3)
    x = torch.from_numpy(random.normal(size=(40, 5)).astype(np.float32))
    edges = torch.from_numpy(random.integers(0, 40, size=(2, 60)))
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.from_numpy(random.integers(0, 3, 40)))
    torch.manual_seed(0)
    models = [build_gnn("gcn", features=5, hidden=4, classes=3) for _ in range(9)]
    half = np.stack([random.permutation(40) < 20 for _ in range(4)])
    return Scene(data, models[0], models[1:], np.concatenate([half, ~half])[[0, 4, 1, 5, 2, 6, 3, 7]], nodes=range(30))


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_rmia_counts_pairs_of_a_shadow_model_and_a_z(scene: Scene, mode: Mode) -> None:
    """The counts written out, with p(z) of each shadow model and no correction offline."""
    attack = AuthorsRMIA(mode=mode, z_share=0.5)
    every = scene.zero_hop
    target, shadows = np.exp(-every.target_loss), np.exp(-every.shadow_loss)
    share = attack._share(every)
    z = generator(0, "Z").permutation(40)[:20]
    expected = []
    for node in range(30):
        usual = shadows[:, node].mean()
        if mode == "offline":
            outside = shadows[~scene.shadow_members[:, node], node].mean()
            usual = 0.5 * ((1 + share) * outside + 1 - share)
        ratio = target[node] / usual
        expected.append(np.mean([[ratio > target[one] / model[one] for one in z] for model in shadows]))
    np.testing.assert_allclose(attack.score(scene), expected, atol=1e-12)


def test_rmia_ranks_online_like_the_texts_form_and_has_smaller_large_scores(scene: Scene) -> None:
    theirs, ours = AuthorsRMIA(z_share=1.0).score(scene), RMIA().score(scene.evidence)
    order = np.argsort(ours)
    assert (np.diff(theirs[order]) >= 0).all()
    assert theirs.max() < ours.max() == 1.0


def test_offline_base_and_g_base_with_their_factor_are_the_sums_written_out(scene: Scene) -> None:
    every = scene.zero_hop
    outside = ~scene.shadow_members
    expected = np.log([np.exp(-every.shadow_loss[outside[:, v], v]).mean() for v in range(40)])
    areas = []
    for share in np.linspace(0, 1, 101):
        usual = np.log([np.exp(-every.shadow_loss[2:, v][outside[2:, v]]).mean() for v in range(40)])
        areas.append(auc(-every.shadow_loss[0] - share * usual, scene.shadow_members[0]))
    scale = np.argmax(areas) / 100
    odds = logit(AuthorsBASE().score(scene))
    np.testing.assert_allclose(odds, (-every.target_loss - scale * expected)[:30], atol=1e-9)
    # with factor 1 and the same sets, G-BASE itself
    sure = expit(-every.target_loss - expected)
    masks = generator(0, "sets").random((8, 40)) < sure
    same = GBASE(mode="offline", sampler=lambda scene, request: masks).score(scene)
    np.testing.assert_allclose(AuthorsGBASE(scale=1.0).score(scene), same, atol=1e-9)
    assert np.abs(AuthorsGBASE().score(scene) - same).max() > 1e-3


def test_the_network_learns_from_logits_once_and_scores_another_target_with_it(scene: Scene) -> None:
    """Logits that are larger for members, in the first class: their order in the row is kept."""

    class Told(torch.nn.Module):
        def __init__(self, members: np.ndarray) -> None:
            super().__init__()
            self.shift = torch.nn.Parameter(torch.from_numpy(members.astype(np.float32)) * 3)

        def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            return torch.stack([self.shift, torch.zeros(len(x)), torch.ones(len(x))], dim=1)

    truth = np.arange(40) % 2 == 0
    models = [Told(who) for who in scene.shadow_members]
    known = Scene(scene.data, Told(truth), models, scene.shadow_members)
    for hops in ((0,), (0, 2)):
        attack = AuthorsMLP(hops=hops, epochs=400).tuned(known)
        assert attack.tuned(known) is attack
        scores = attack.score(known)
        assert scores[truth].min() > scores[~truth].max()


def test_their_rows_stand_beside_the_paper_and_are_not_counted_as_ours(tmp_path: Path) -> None:
    cell = Cell("thresholds", "Cora", "online", "8", MARK, "RMIA", "threshold_at_fpr1", (0.85, 0.86))
    (tmp_path / "authors.csv").write_text(beside_the_paper([cell]).to_csv())
    assert run_cells(tmp_path) == []
