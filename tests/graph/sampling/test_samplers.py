from __future__ import annotations

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.attacks import BASE
from glasshouse.core.arrays import BoolArray
from glasshouse.graph import Scene
from glasshouse.graph.sampling.samplers import SAMPLERS, SamplingRequest, draw
from tests.graph.scenes import trained_scene


def request(samples: int = 400, mode: str = "online", prior: float = 0.5) -> SamplingRequest:
    return SamplingRequest(samples=samples, prior=np.full(240, prior), mode=mode, passes=1, seed=0)  # type: ignore[arg-type]


def test_model_independent_samples_follow_the_prior() -> None:
    masks = draw(SAMPLERS.find("independent"), trained_scene(), request(prior=0.3)).masks
    assert masks.mean() == pytest.approx(0.3, abs=0.01)


def test_zero_hop_samples_follow_the_posterior_of_base() -> None:
    scene = trained_scene()
    masks = draw(SAMPLERS.find("mia"), scene, request()).masks
    assert np.abs(masks.mean(axis=0) - BASE().score(scene.zero_hop)).max() < 0.1
    offline = draw(SAMPLERS.find("mia"), scene, request(mode="offline")).masks
    assert np.abs(offline.mean(axis=0) - BASE(mode="offline").score(scene.zero_hop)).max() < 0.1


@pytest.mark.parametrize("chain", ["gibbs", "metropolis"])
def test_offline_chains_ask_only_models_without_the_node(chain: str) -> None:
    """Two silent shadows are replaced by loud ones trained on everybody: offline nobody may ask them."""
    scene = trained_scene()
    everyone = np.ones((1, 240), dtype=bool)
    loud = Scene(
        scene.data,
        scene.target,
        [*scene.shadows, scene.target],
        np.concatenate([scene.shadow_members, everyone]),
    )
    sampler = SAMPLERS.find(chain)
    quiet, asked = (draw(sampler, some, request(samples=4, mode="offline")).masks for some in (scene, loud))
    assert (quiet == asked).all()
    assert (draw(sampler, loud, request(samples=4)).masks != quiet).any()


def test_what_cannot_be_sampled_is_said() -> None:
    scene = trained_scene()
    with pytest.raises(InputError, match="truth needs the target's members"):
        draw(SAMPLERS.find("truth"), scene, request())


def test_a_users_own_sampler_is_checked() -> None:
    def mine(scene: Scene, request: SamplingRequest) -> BoolArray:
        return np.ones((request.samples, 239), dtype=bool)

    with pytest.raises(InputError, match="sampler: shape"):
        draw(mine, trained_scene(), request(samples=2))
