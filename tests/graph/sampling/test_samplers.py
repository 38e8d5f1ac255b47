from __future__ import annotations

import numpy as np
import pytest

from glasshouse import InputError
from glasshouse.arrays import BoolArray
from glasshouse.attacks import BASE
from glasshouse.graph import Scene
from glasshouse.graph.sampling.samplers import SamplingRequest, draw
from tests.graph.scenes import trained_scene


def request(samples: int = 400, mode: str = "online", prior: float = 0.5) -> SamplingRequest:
    return SamplingRequest(samples=samples, prior=np.full(240, prior), mode=mode, passes=1, seed=0)  # type: ignore[arg-type]


def test_model_independent_samples_follow_the_prior() -> None:
    masks = draw("independent", trained_scene(), request(prior=0.3)).masks
    assert masks.mean() == pytest.approx(0.3, abs=0.01)


def test_zero_hop_samples_follow_the_posterior_of_base() -> None:
    scene = trained_scene()
    masks = draw("mia", scene, request()).masks
    assert np.abs(masks.mean(axis=0) - BASE().score(scene.zero_hop)).max() < 0.1
    offline = draw("mia", scene, request(mode="offline")).masks
    assert np.abs(offline.mean(axis=0) - BASE(mode="offline").score(scene.zero_hop)).max() < 0.1


def test_precision_and_recall_are_counted_against_the_truth() -> None:
    scene = trained_scene()
    assert scene.truth is not None
    found = draw("mia", scene, request(samples=3))
    hits = (found.masks & scene.truth).sum()
    assert found.precision == hits / found.masks.sum()
    assert found.recall == hits / (3 * scene.truth.sum())
    perfect = draw("truth", scene, request(samples=2))
    assert (perfect.precision, perfect.recall) == (1.0, 1.0)


def test_offline_gibbs_hears_only_models_without_the_node() -> None:
    """Two silent shadows are replaced by loud ones trained on everybody: offline nobody may ask them."""
    scene = trained_scene()
    everyone = np.ones((1, 240), dtype=bool)
    loud = Scene(
        scene.data,
        scene.target,
        [*scene.shadows, scene.target],
        np.concatenate([scene.shadow_members, everyone]),
        truth=scene.truth,
    )
    quiet, heard = (draw("gibbs", some, request(samples=4, mode="offline")).masks for some in (scene, loud))
    assert (quiet == heard).all()
    assert (draw("gibbs", loud, request(samples=4)).masks != quiet).any()


def test_what_cannot_be_sampled_is_said() -> None:
    scene = trained_scene()
    unknown = Scene(scene.data, scene.target, scene.shadows, scene.shadow_members)
    with pytest.raises(InputError, match="truth needs the target's members"):
        draw("truth", unknown, request())
    assert draw("mia", unknown, request()).precision is None
    with pytest.raises(InputError, match="Use gibbs"):
        draw("metropolis", scene, request(mode="offline"))


def test_a_users_own_sampler_is_checked() -> None:
    def mine(scene: Scene, request: SamplingRequest) -> BoolArray:
        return np.ones((request.samples, 239), dtype=bool)

    with pytest.raises(InputError, match="sampler: shape"):
        draw(mine, trained_scene(), request(samples=2))
