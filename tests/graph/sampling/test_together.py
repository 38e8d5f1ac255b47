from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from glasshouse.graph.models.networks import NETWORKS
from glasshouse.graph.models.profile import profile_models
from glasshouse.graph.sampling import metropolis
from glasshouse.graph.sampling.chain_state import forward_losses
from glasshouse.graph.sampling.metropolis import masked_losses, metropolis_masks, walk_in_step
from tests.graph.random_graphs import Case, depths, random_cases, random_models, seeds
from tests.graph.simple_graphs import simple_graph, unmeasured

POOLS = (["gcn", "gcn", "gcn"], ["sgc", "gin", "sgc", "gin"])


def pool(architectures: list[str], seed: int) -> list[torch.nn.Module]:
    return [
        random_models(name, layers=2, count=1, seed=seed + number, dtype=torch.float32)[0]
        for number, name in enumerate(architectures)
    ]


@settings(deadline=None, max_examples=8)
@given(
    seed=st.integers(0, 1000),
    size=st.integers(3, 14),
    hub=st.booleans(),
    offline=st.booleans(),
    architectures=st.sampled_from(POOLS),
)
def test_chains_in_step_take_the_steps_of_chains_one_at_a_time(
    seed: int, size: int, hub: bool, offline: bool, architectures: list[str]
) -> None:
    """On a GPU the same code runs; here it is asked for on the CPU."""
    data = simple_graph(size=size, edges=2 * size, seed=seed, hub=hub)
    models = profile_models(pool(architectures, seed), data)
    usable = None
    if offline:
        usable = np.random.default_rng(seed).random((len(models) - 1, size)) < 0.5
        usable[0] = True
    options = {
        "samples": 4,
        "chains": 2,
        "burn_in": 55,
        "thinning": 5,
        "prior": 0.4,
        "seed": seed,
        "usable_shadows": usable,
    }
    apart, first = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metropolis, "walk_in_step", lambda models, data: True)
        patch.setattr(metropolis, "OneChain", lambda **_: pytest.fail("one at a time"))
        together, second = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
    assert np.array_equal(apart, together)
    assert (first.acceptance_rate, first.flip_share) == (second.acceptance_rate, second.flip_share)


def test_losses_under_several_masks_are_those_of_a_forward_pass_under_each() -> None:
    data = simple_graph(size=20, edges=50, seed=1, hub=True)
    models = pool(["gat", "gcn", "gat"], 0)
    profiled = profile_models(models, data)
    masks = np.random.default_rng(0).random((4, 20)) < 0.6
    with torch.no_grad():
        found = masked_losses(profiled, data)(torch.from_numpy(masks))
    slow = forward_losses(profiled, data)
    for mask, losses in zip(masks, found, strict=True):
        np.testing.assert_allclose(losses[mask].numpy().T, slow(mask)[:, mask], rtol=1e-5)


@pytest.mark.parametrize("architecture", sorted(NETWORKS.names()))
@settings(max_examples=8, deadline=None)
@given(case=random_cases(masks=3), layers=depths, seed=seeds)
def test_that_holds_for_every_network_on_ugly_graphs(architecture: str, case: Case, layers: int, seed: int) -> None:
    """Nothing is kept for toggles there, as the largest senders after the first."""
    models = random_models(architecture, layers=layers, seed=seed)
    profiled = profile_models(models, case.data)
    with torch.no_grad():
        found = masked_losses(profiled, case.data)(case.masks)
    slow = forward_losses(profiled, case.data)
    for mask, losses in zip(case.masks.numpy(), found.numpy(), strict=True):
        np.testing.assert_allclose(losses[mask].T, slow(mask)[:, mask], atol=1e-8)


def test_nothing_walks_in_step_on_the_cpu_or_without_a_program() -> None:
    data = simple_graph(size=6, edges=8, seed=6)
    assert not walk_in_step(unmeasured(random_models("gcn", layers=2, count=2)), data)
    assert not walk_in_step(unmeasured([lambda x, edge_index: x]), Data(x=torch.zeros(2, 2)))
