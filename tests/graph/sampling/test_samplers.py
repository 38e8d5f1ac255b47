from __future__ import annotations

from typing import Self

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from glasshouse import InputError
from glasshouse.attacks import BASE
from glasshouse.core.arrays import BoolArray
from glasshouse.graph import Scene
from glasshouse.graph.models.profile import ModelProfile, Profiled
from glasshouse.graph.sampling import chain_state, samplers
from glasshouse.graph.sampling.chain_state import ChainInfo, ChainStart
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
def test_offline_chains_ask_only_models_without_the_node(chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two silent shadows are replaced by loud ones trained on everybody: offline nobody may ask them."""
    monkeypatch.setattr(samplers, "_BURN_IN", 100)
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


class Elsewhere(nn.Linear):
    """A model on a device that holds no values."""

    def __init__(self) -> None:
        super().__init__(2, 2, device="meta")

    def cpu(self) -> Self:
        return self.to_empty(device="cpu")


@pytest.mark.parametrize("on_cpu", [False, True])
def test_chains_bring_graph_and_models_to_one_device(on_cpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph on the CPU and models on a GPU, which the device `meta` stands for."""
    known, given = ModelProfile(), Elsewhere()
    monkeypatch.setattr(chain_state, "profile_models", lambda models, data: [Profiled(one, known) for one in models])
    data = Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1]))
    start = ChainStart.of([given, len, Elsewhere()], data, 0.5, usable=None, chains=1, seed=0, on_cpu=on_cpu)
    wanted = {"cpu" if on_cpu else "meta"}
    assert {start.data.x.device.type, start.data.y.device.type, start.data.edge_index.device.type} == wanted
    assert {one.model.weight.device.type for one in start.models if isinstance(one.model, nn.Module)} == wanted
    assert start.models[1].model is len
    assert given.weight.is_meta  # the caller's own is as it was
    assert data.x.device.type == "cpu"


@pytest.mark.parametrize("chain", ["gibbs", "metropolis"])
def test_samplers_leave_it_to_the_chains_where_they_run(chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, seen = trained_scene(), []

    def walked(models: list[Profiled], data: Data, **_: object) -> tuple[BoolArray, ChainInfo]:
        seen.extend([models == scene.profiled(), data is scene.data])
        return np.ones((2, 240), dtype=bool), ChainInfo(acceptance_rate=1.0, flip_share=0.0, seconds=0.0)

    monkeypatch.setattr(samplers, f"{chain}_masks", walked)
    draw(SAMPLERS.find(chain), scene, request(samples=2))
    assert seen == [True, True]
