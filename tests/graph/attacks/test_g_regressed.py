from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logit
from scipy.stats import multivariate_normal
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.attacks import Regressed
from glasshouse.attacks.in_out_moments import side_moments
from glasshouse.attacks.regressed import mean_margins
from glasshouse.core.numerics import loss_to_margin
from glasshouse.data import complementary_halves
from glasshouse.evaluation import auc, run_attack
from glasshouse.evidence import Evidence, Mode
from glasshouse.graph import GRegressed, Scene
from tests.graph.scenes import on_nodes, trained_scene, truth_of


def test_online_it_is_the_ratio_of_two_bivariate_regressions_written_out() -> None:
    scene = trained_scene(shadows=8)
    asked = (scene.zero_hop, scene.whole_graph)

    def seen(evidences: list[Evidence]) -> tuple[np.ndarray, np.ndarray]:
        signals = [mean_margins(side_moments(evidence, "online")) for evidence in evidences]
        margins = [loss_to_margin(evidence.target_loss) for evidence in evidences]
        return np.column_stack([np.ones(240), *signals]), np.column_stack(margins)

    rows = [seen([a.view, b.view]) for a, b in zip(*(one.simulated() for one in asked), strict=True)]
    densities = []
    x_target, y_target = seen([*asked])
    for side in (scene.shadow_members, ~scene.shadow_members):
        x = np.concatenate([row[0][who] for row, who in zip(rows, side, strict=True)])
        y = np.concatenate([row[1][who] for row, who in zip(rows, side, strict=True)])
        line = np.linalg.lstsq(x, y, rcond=None)[0]
        covariance = (y - x @ line).T @ (y - x @ line) / (len(x) - 5)
        densities.append(multivariate_normal([0, 0], covariance).logpdf(y_target - x_target @ line))
    expected = densities[0] - densities[1]
    found = GRegressed(prior=0.3).score(scene)
    middle = np.abs(expected) < 20  # further out, a probability has no digits left to compare
    np.testing.assert_allclose(logit(found)[middle], (expected + logit(0.3))[middle], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_it_finds_members_and_scores_the_audited_nodes_with_numbers_from_all(mode: Mode) -> None:
    scene = trained_scene(shadows=8)
    scores = GRegressed(mode=mode).score(scene)
    assert auc(scores, truth_of(scene)) > 0.65
    assert (GRegressed(mode=mode).score(on_nodes(scene, [4, 2])) == scores[[4, 2]]).all()


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_without_edges_both_queries_say_the_same_and_the_second_changes_nothing(mode: Mode) -> None:
    trained = trained_scene(shadows=8)
    alone = Data(x=trained.data.x, edge_index=torch.empty((2, 0), dtype=torch.long), y=trained.data.y)
    scene = Scene(alone, trained.target, trained.shadows, trained.shadow_members)
    both, once = GRegressed(mode=mode).score(scene), Regressed(mode=mode).score(scene.zero_hop)
    assert np.corrcoef(both.argsort().argsort(), once.argsort().argsort())[0, 1] > 0.999


def test_thresholds_are_of_the_numbers_that_judge_the_target() -> None:
    scene = trained_scene(shadows=8)
    attack = GRegressed()
    outcome = run_attack(attack, scene, fprs=[0.1])
    assert outcome.thresholds[0].simulated == 8
    assert 0.05 < outcome.thresholds[0].expected_fpr < 0.15
    for (scores, members), who in zip(attack.simulated_scores(scene), scene.shadow_members, strict=True):
        assert (members == who).all()
        assert auc(scores, members) > 0.65


def test_true_membership_and_the_target_do_not_change_the_numbers() -> None:
    scene = trained_scene(shadows=8)
    other = Scene(scene.data, scene.shadows[0], scene.shadows, scene.shadow_members)
    for (first, _), (second, _) in zip(
        GRegressed().simulated_scores(scene), GRegressed().simulated_scores(other), strict=True
    ):
        assert (first == second).all()


def test_offline_a_node_is_judged_without_a_look_at_its_in_models() -> None:
    """Models as tables of answers, so that one answer can be changed."""
    random = np.random.default_rng(0)
    nodes = 30
    members = complementary_halves(nodes, models=8, seed=0)
    answers = random.normal(size=(9, 2, nodes)) + np.concatenate([members[:1], members])[:, None, :]
    data = Data(x=torch.eye(nodes), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.zeros(nodes, dtype=torch.long))
    data.y[0] = 1

    def scores(table: np.ndarray) -> np.ndarray:
        def model(own: np.ndarray) -> object:
            def answer(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
                chosen = torch.tensor(own[int(edge_index.shape[1] > 0)])
                return torch.stack([chosen, -chosen], dim=1)

            return answer

        target, *shadows = [model(own) for own in table]
        return GRegressed(mode="offline").score(Scene(data, target, shadows, members))  # type: ignore[arg-type]

    usual = scores(answers)
    for v in (3, 17):
        other = answers.copy()
        other[1:][members[:, v], :, v] = 9.0
        assert scores(other)[v] == usual[v]


def test_queries_are_two_about_each_node_and_the_rest_of_the_pool_for_the_fit() -> None:
    scene = trained_scene(shadows=8)
    assert GRegressed().judge(scene).queries == (18.0, 0)
    some = on_nodes(scene, [4, 2])
    assert GRegressed().judge(some).queries == (18.0, 2 * 8 * 238)
    assert GRegressed(mode="offline").judge(some).queries == (10.0, 2 * (8 * 240 - 8))


def test_bad_parameters_and_too_small_pools_are_refused() -> None:
    for wrong, message in (({"prior": 1.0}, "between 0 and 1"), ({"folds": 1}, "too few")):
        with pytest.raises(InputError, match=message):
            GRegressed(**wrong)
    scene = trained_scene(shadows=8)
    with pytest.raises(InputError, match="train 4 or more"):
        GRegressed().judge(Scene(scene.data, scene.target, scene.shadows[:2], scene.shadow_members[:2]))
