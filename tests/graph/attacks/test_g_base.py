from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from glasshouse import InputError
from glasshouse.core.arrays import BoolArray
from glasshouse.evaluation import auc
from glasshouse.evaluation.run import run_attack
from glasshouse.graph import GBASE, Scene
from glasshouse.graph.attacks.g_base import answers_of, with_truth
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.sampling.samplers import SamplingRequest
from tests.graph.scenes import on_nodes, trained_scene, truth_of

MASKS = np.random.default_rng(0).random((3, 240)) < 0.5


def fixed(scene: Scene, request: SamplingRequest) -> BoolArray:
    return MASKS


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_it_equals_definition_2_written_out_by_hand(mode: Any) -> None:
    scene = on_nodes(trained_scene(), [3, 50, 7, 200])
    signals = reference_losses(scene.models, scene.data, torch.from_numpy(MASKS), torch.from_numpy(scene.nodes)).numpy()
    expected = []
    for j, node in enumerate(scene.nodes):
        posteriors = []
        for i in range(3):
            speaking = [k for k in range(4) if mode == "online" or not scene.shadow_members[k, node]]
            mean = np.mean([np.exp(-signals[1 + k, i, j]) for k in speaking])
            ratio = np.exp(-signals[0, i, j]) / mean * 0.2 / 0.8
            posteriors.append(ratio / (1 + ratio))
        expected.append(np.mean(posteriors))
    found = GBASE(mode=mode, sampler=fixed, samples=3, prior=0.2).score(scene)
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.parametrize("sampler", ["independent", "mia", "gibbs", "metropolis", "truth"])
def test_it_tells_members_with_every_sampler_and_repeats(sampler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.graph.sampling.samplers._BURN_IN", 400)
    scene = trained_scene(nodes=800, shadows=8)
    attack = with_truth(GBASE(sampler=sampler, samples=4), truth_of(scene))
    first, again = attack.judge(scene), attack.judge(scene)
    assert auc(first.scores, truth_of(scene)) > 0.56
    assert (first.scores == again.scores).all()
    assert first.sampled is not None
    assert first.sampled.shape == (4, 800)
    assert ("sampler_acceptance" in first.details) is (sampler in ("gibbs", "metropolis"))


def test_the_contract_takes_models_and_masks_as_they_are() -> None:
    scene = trained_scene()
    masks = torch.from_numpy(scene.shadow_members).numpy()
    given = Scene(scene.data, scene.target, list(scene.shadows), masks, nodes=torch.tensor([5, 9]).numpy())
    scores = GBASE(sampler="mia").score(given)
    assert scores.shape == (2,)
    assert (scores == GBASE(sampler="mia").score(scene)[[5, 9]]).all()


def test_a_black_box_target_is_scored_like_the_module_inside() -> None:
    scene = on_nodes(trained_scene(), list(range(40)))
    module = scene.target

    def box(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        answer: torch.Tensor = module(x, edge_index)
        return answer

    opaque = Scene(scene.data, box, scene.shadows, scene.shadow_members, nodes=scene.nodes)
    attack = GBASE(sampler=fixed, samples=3)
    np.testing.assert_allclose(attack.score(opaque), attack.score(scene), atol=1e-4)


def test_a_prior_of_each_node_moves_the_posterior() -> None:
    scene = on_nodes(trained_scene(), [0, 1])
    prior = np.full(240, 0.5)
    prior[0] = 0.99
    plain, moved = (GBASE(sampler=fixed, samples=3, prior=some).score(scene) for some in (0.5, prior))
    assert moved[0] > plain[0]
    assert moved[1] == plain[1]
    by_rule = run_attack(GBASE(sampler=fixed, samples=3, prior=lambda seen: prior), scene, fprs=())
    np.testing.assert_array_equal(by_rule.scores, moved)
    with pytest.raises(InputError, match="3 numbers for 240 nodes"):
        GBASE(prior=[0.5, 0.5, 0.5]).score(scene)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "gibs"}, '"gibs" is not a sampler. Did you mean "gibbs"'),
        ({"samples": 0}, "use 1 or more"),
        ({"prior": 0.0}, "between 0 and 1"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GBASE(**options)


def test_an_engine_that_does_not_exist_is_a_clear_line() -> None:
    with pytest.raises(InputError, match="engine: 'warp' is not known"):
        GBASE(engine="warp").score(on_nodes(trained_scene(), [0]))


@pytest.mark.parametrize(
    ("sampler", "shared"), [("independent", 0), ("mia", 1), ("gibbs", 2 * 3), ("metropolis", 3 * (1000 + 100))]
)
def test_queries_count_both_toggles_of_every_mask_and_what_the_sampler_asks(sampler: Any, shared: int) -> None:
    scene = on_nodes(trained_scene(), [3, 50])
    queries = GBASE(sampler=sampler, samples=3).judge(scene).queries
    models = len(scene.models)
    assert queries == (2 * 3 * models, shared * models * int(scene.data.num_nodes))


def test_a_copy_with_another_sampler_mode_or_seed_does_not_use_what_was_learned() -> None:
    """A sampler that learns remembers for whom; a copy with another prior may share it."""

    class Learner:
        name = "learner"

        def __init__(self, mask: BoolArray | None = None) -> None:
            self.mask = mask

        def tuned(self, scene: Scene, request: SamplingRequest) -> Learner:
            return Learner(scene.shadow_members[request.seed])

        def __call__(self, scene: Scene, request: SamplingRequest) -> BoolArray:
            assert self.mask is not None
            return np.tile(self.mask, (request.samples, 1))

    scene = on_nodes(trained_scene(), list(range(40)))
    attack = GBASE(sampler=Learner(), samples=2)
    learned = attack.tuned(scene)
    assert learned.sampler_ is not None
    assert replace(learned, prior=0.2).sampler_ is learned.sampler_
    for change in ({"sampler": "mia"}, {"mode": "offline"}, {"seed": 1}):
        copy: GBASE = replace(learned, **change)
        assert copy.sampler_ is None
        assert (copy.score(scene) == replace(attack, **change).score(scene)).all()


def test_what_the_check_of_an_audit_asks_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = trained_scene()
    attack = GBASE()
    known = answers_of(attack, scene)
    assert known is not None
    assert known.signals.shape == (len(scene.models), 8, len(scene.nodes))
    monkeypatch.setattr("glasshouse.graph.scene.answer_question", lambda *_: pytest.fail("asked again"))
    assert attack.score(scene).shape == (len(scene.nodes),)
    assert answers_of(GBASE(sampler=fixed), scene) is None
    assert answers_of(GBASE(samples=2), scene) is None
