from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data

from glasshouse.evaluation import run_attack
from glasshouse.graph import Scene
from glasshouse.graph.attacks.g_base import GBASE
from glasshouse.graph.models.profile import AnyModel, profile_models
from glasshouse.graph.rule.reference import reference_losses
from glasshouse.graph.sampling.chain_state import NO_ROWS, CompiledGroup, ForwardGroup, chain_maker
from glasshouse.graph.sampling.gibbs import gibbs_masks
from glasshouse.graph.sampling.metropolis import metropolis_masks
from tests.graph.random_graphs import random_models
from tests.graph.sampling.plain_chains import Signal, plain_gibbs, plain_metropolis
from tests.graph.simple_graphs import simple_graph

POOLS = {  # the target first; each with how many of its groups have kernels
    "gcn, attacked with gat": (["gcn", "gat", "gat", "gat"], 2),
    "three shapes in turn": (["gat", "gcn", "sage", "gat"], 3),
    "one without kernels": (["gcn", "gin", "gat", "gin"], 2),
    "none with kernels": (["gin", "gin", "sgc"], 0),
}


class Own(nn.Module):
    """A user's own network of two layers, with dropout, left in training mode. It cannot be traced: a black box."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.dropout = inner, nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        answer: Tensor = self.inner(self.dropout(x), edge_index)
        return answer if float(answer.abs().sum()) >= 0 else -answer


def mixed(architectures: list[str], seed: int = 0) -> list[nn.Module]:
    return [
        random_models(name, layers=2, count=1, seed=seed + number, dtype=torch.float32)[0]
        for number, name in enumerate(architectures)
    ]


def as_written(models: Sequence[AnyModel], data: Data) -> Signal:
    models = profile_models(models, data)  # once: a chain asks hundreds of times

    def signal(mask: npt.NDArray[np.bool_], v: int) -> npt.NDArray[np.float64]:
        return (
            reference_losses(models, data, torch.from_numpy(mask)[None], torch.tensor([v]))[:, 0, 0]
            .contiguous()
            .numpy()
        )

    return signal


@pytest.mark.parametrize("pool", POOLS)
def test_models_of_several_shapes_answer_in_one_group_per_shape(pool: str) -> None:
    architectures, compiled = POOLS[pool]
    models, data = mixed(architectures), simple_graph(size=8, edges=10, seed=0)
    make, side_by_side = chain_maker(profile_models(models, data), data, NO_ROWS, threads=1)
    parts = make().groups
    assert sum(isinstance(group, CompiledGroup) for _, group in parts) == compiled
    assert len(parts) == len(set(architectures))
    assert side_by_side == (compiled == len(parts)), "a model without kernels may not bear two callers at once"
    assert sorted(np.concatenate([places for places, _ in parts]).tolist()) == list(range(len(architectures)))


@pytest.mark.parametrize("pool", POOLS)
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 1000), size=st.integers(3, 12), hub=st.booleans(), offline=st.booleans())
def test_gibbs_over_several_shapes_takes_the_steps_of_the_rule_as_written(
    pool: str, seed: int, size: int, hub: bool, offline: bool
) -> None:
    data = simple_graph(size=size, edges=2 * size, seed=seed, hub=hub)
    models = profile_models(mixed(POOLS[pool][0], seed), data)
    usable = None
    if offline:
        usable = np.random.default_rng(seed).random((len(models) - 1, size)) < 0.5
        usable[0] = True
    found, info = gibbs_masks(models, data, chains=1, passes=2, prior=0.6, seed=seed, usable_shadows=usable)
    slow, flipped = plain_gibbs(
        as_written(models, data), size, chains=1, passes=2, prior=0.6, seed=seed, usable_shadows=usable
    )
    assert np.array_equal(found, slow)
    assert info.flip_share == flipped


@pytest.mark.parametrize("pool", POOLS)
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 1000), size=st.integers(3, 14), hub=st.booleans(), offline=st.booleans())
def test_metropolis_over_several_shapes_takes_the_steps_of_full_forward_passes(
    pool: str, seed: int, size: int, hub: bool, offline: bool
) -> None:
    data = simple_graph(size=size, edges=2 * size, seed=seed, hub=hub)
    models = profile_models(mixed(POOLS[pool][0], seed), data)
    usable = None
    if offline:
        usable = np.random.default_rng(seed).random((len(models) - 1, size)) < 0.5
        usable[0] = True
    options = {"samples": 3, "burn_in": 55, "thinning": 5, "prior": 0.4, "seed": seed, "usable_shadows": usable}
    found, quick = metropolis_masks(models, data, **options)  # type: ignore[arg-type]
    slow, taken = plain_metropolis(models, data, **options)  # type: ignore[arg-type]
    assert np.array_equal(found, slow)
    assert quick.acceptance_rate == taken


def test_masks_of_several_shapes_do_not_depend_on_the_threads() -> None:
    data = simple_graph(size=30, edges=60, seed=4)
    models = mixed(["gcn", "gat", "gat"])
    one, two = (gibbs_masks(models, data, chains=5, seed=7, threads=threads)[0] for threads in (1, 2))
    assert one.tobytes() == two.tobytes()
    one, two = (
        metropolis_masks(models, data, samples=4, burn_in=50, thinning=10, chains=2, seed=7, threads=threads)[0]
        for threads in (1, 2)
    )
    assert one.tobytes() == two.tobytes()


def test_a_users_own_module_in_training_mode_is_asked_without_dropout_and_by_one_thread() -> None:
    """It is one model of a mixed pool, so the built-in ones beside it still run compiled."""
    data = simple_graph(size=12, edges=20, seed=2)
    callers: set[int] = set()

    class Watched(Own):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            callers.add(threading.get_ident())
            return super().forward(x, edge_index)

    target, *shadows = mixed(["gcn", "gat", "gat"])
    own = Watched(target).train()
    pool = profile_models([own, *shadows], data)  # in this thread
    callers.clear()
    found, _ = gibbs_masks(pool, data, chains=4, seed=1, threads=2)
    assert len(callers) == 1
    slow, _ = plain_gibbs(as_written([target, *shadows], data), 12, chains=4, seed=1)
    assert np.array_equal(found, slow)
    assert own.training
    make, _ = chain_maker(pool, data, NO_ROWS, threads=2)
    assert [type(group) for _, group in make().groups] == [ForwardGroup, CompiledGroup]


def test_gibbs_over_two_shapes_asks_no_forward_pass_of_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Item 13 of issue 15: the README's own graph audit took 218 ms for each flip."""
    data = simple_graph(size=400, edges=900, seed=3)
    models = profile_models(mixed(["gcn", "gat", "gat", "gat"]), data)
    gibbs_masks(models, data, chains=1, seed=0)  # compiles
    for one in models:
        monkeypatch.setattr(one.model, "forward", lambda *_: pytest.fail("a forward pass"))
    masks, _ = gibbs_masks(models, data, chains=4, seed=0)
    metropolis_masks(models, data, samples=2, burn_in=50, thinning=10)
    assert masks.shape == (4, 400)  # 1 600 visits, each a forward pass by the rule as written


def test_the_chains_of_an_attack_show_a_bar_where_bars_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    data = simple_graph(size=12, edges=20, seed=5)
    target, *shadows = mixed(["gcn", "gat", "gat"])
    scene = Scene(data, target, shadows, np.arange(24).reshape(2, 12) % 2 == 0)
    for sampler in ("gibbs", "metropolis"):
        run_attack(GBASE(sampler=sampler, samples=2), scene, fprs=[], progress=False)
    assert capsys.readouterr().err == ""
    run_attack(GBASE(sampler="gibbs", samples=2), scene, fprs=[], progress=True)
    assert "Gibbs chains: 24 visits" in capsys.readouterr().err
    run_attack(GBASE(sampler="metropolis", samples=2), scene, fprs=[], progress=True)
    assert "Metropolis-Hastings chains: 2200 steps" in capsys.readouterr().err
    gibbs_masks(scene.models, data, chains=2)
    assert capsys.readouterr().err == "", "a chain by itself shows nothing"
